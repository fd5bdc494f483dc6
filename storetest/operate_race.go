package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// operateRaceTests change what becomes of jobs while somebody else does.
var operateRaceTests = []test{
	{"A job that is made ready while it is promoted is ready once", func(t *T) {
		t.rounds(rounds, func(rng *rand.Rand, other Store) {
			id := t.enqueue(job("k", stint.Delay(time.Millisecond)))[0]
			time.Sleep(3 * time.Millisecond)
			answer := stint.RerunResult{}
			t.both(rng, func() error {
				_, err := other.Promote(t.ctx, time.Time{}, 10)
				return err
			}, func() error {
				got, err := as[store.Operator](t).Retry(t.ctx, []stint.ID{id}, stint.RerunOptions{})
				answer = got[id]
				return err
			})
			expect(t, answer.Answer == stint.RerunReady || answer.Answer == stint.RerunAvailable, "the answer is %+v", answer)
			w := t.join("k")
			w.Complete(w.One())
			w.Leave()
		})
	}},
	{"A job that is made ready while it is cancelled does not run", func(t *T) {
		t.rounds(rounds, func(rng *rand.Rand, other Store) {
			id := t.enqueue(job("k", stint.Delay(time.Hour)))[0]
			var answer stint.RerunResult
			var said stint.CancelStatus
			t.both(rng, func() error {
				got, err := other.(store.Canceller).Cancel(t.ctx, []stint.ID{id}, "race")
				said = got[id]
				return err
			}, func() error {
				got, err := as[store.Operator](t).Retry(t.ctx, []stint.ID{id}, stint.RerunOptions{})
				answer = got[id]
				return err
			})
			// Either it was made ready first, or it was cancelled and then recovered.
			expect(t, (answer.Answer == stint.RerunReady || answer.Answer == stint.RerunRecovered) &&
				said == stint.CancelledNow,
				"the answers are %+v and %q", answer, said)
			w := t.join("k")
			for _, e := range w.ClaimAll() {
				end := completed
				if e.ID == id {
					if end = cancelled; !e.Cancelled {
						t.Errorf("it was handed out like any other")
					}
				}
				w.Finish(end, e)
			}
			w.Leave()
			t.state(id, stint.Cancelled)
			t.ended(id)
		})
	}},
	{"A job that is made ready while its failure is recorded runs once more", func(t *T) {
		t.rounds(rounds, func(rng *rand.Rand, other Store) {
			id := t.enqueue(job("k"))[0]
			w := t.join("k")
			x := w.Conclude(w.One(), failed)
			w.Store = other
			var answer stint.RerunResult
			t.both(rng, func() error {
				_, err := w.TryFinish(t.ctx, x)
				return err
			}, func() error {
				got, err := as[store.Operator](t).Retry(t.ctx, []stint.ID{id}, stint.RerunOptions{})
				answer = got[id]
				return err
			})
			want := stint.Available
			if answer.Answer == stint.RerunRunning {
				want = stint.Retrying
			} else if answer.Answer != stint.RerunReady {
				t.Errorf("the answer is %+v", answer)
			}
			t.state(id, want)
			t.retry(stint.RerunOptions{}, id)
			w.Complete(w.One())
			w.Leave()
		})
	}},
	{"Those who recover and delete the same jobs at once agree on them", func(t *T) {
		t.rounds(rounds, func(rng *rand.Rand, other Store) {
			ids := t.enqueue(jobs(4, "k")...)
			w := t.join("k")
			w.Complete(w.ClaimAll()...)
			var deleted map[stint.ID]store.DeleteStatus
			var recovered map[stint.ID]stint.RerunResult
			t.both(rng, func() (err error) {
				deleted, err = other.(store.Operator).Delete(t.ctx, ids)
				return err
			}, func() (err error) {
				recovered, err = as[store.Operator](t).Retry(t.ctx, ids, stint.RerunOptions{})
				return err
			})
			n := 0
			for _, id := range ids {
				equal(t, deleted[id], store.DeletedNow, "deleting job %d gives %q, want %q", id)
				switch recovered[id].Answer {
				case stint.RerunRecovered:
					n++
				case stint.RerunNotFound:
				default:
					t.Errorf("recovering job %d gives %+v", id, recovered[id])
				}
			}
			if got := w.ClaimAll(); len(got) != n || n != 0 && n != len(ids) {
				t.Errorf("%d jobs were recovered, and %d run", n, len(got))
			} else {
				w.Complete(got...)
			}
			t.gone(ids...)
			w.Leave()
		})
	}},
	{"Many who recover the same jobs once at the same time recover each once", func(t *T) {
		ids := t.enqueue(jobs(20, "k")...)
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		errs := atOnce(6, func(int) error {
			got, err := as[store.Operator](t).Retry(t.ctx, ids, stint.RerunOptions{Once: true})
			for id, r := range got {
				expect(t, r.ID != 0 && (r.Answer == stint.RerunRecovered || r.Answer == stint.RerunRecoveredBefore),
					"job %d: %+v", id, r)
			}
			return err
		})
		t.must(errors.Join(errs...))
		got := w.ClaimAll()
		equal(t, len(got), len(ids), "%d jobs run, want %d")
		w.Complete(got...)
	}},
	{"A call that is cut off has done all or nothing", func(t *T) {
		t.rounds(rounds/5, func(rng *rand.Rand, other Store) {
			ids := t.enqueue(append(jobs(5, "k"), jobs(5, "k", stint.Delay(time.Hour))...)...)
			w := t.join("k")
			w.Complete(w.ClaimAll()...)
			short := func(f func(ctx context.Context) error) {
				ctx, cancel := context.WithTimeout(t.ctx, time.Duration(rng.IntN(3000))*time.Microsecond)
				defer cancel()
				_ = f(ctx) // with an error nobody knows
			}
			short(func(ctx context.Context) error {
				_, err := as[store.Operator](t).Retry(ctx, ids, stint.RerunOptions{})
				return err
			})
			// Whatever became of it, a server may be about to do it still.
			t.settled(func() string { return fmt.Sprint(t.list(store.Filter{Limit: 1000})) })
			anew := w.ClaimAll()
			expect(t, len(anew) == 0 || len(anew) == len(ids), "%d jobs run, want none or %d", len(anew), len(ids))
			w.Complete(anew...)
			all := t.list(store.Filter{States: []stint.State{stint.Completed}, Limit: 1000})
			short(func(ctx context.Context) error {
				_, err := as[store.Operator](t).Delete(ctx, all)
				return err
			})
			t.settled(func() string { return fmt.Sprint(t.list(store.Filter{Limit: 1000})) })
			left := t.list(store.Filter{States: []stint.State{stint.Completed}, Limit: 1000})
			expect(t, len(left) == 0 || len(left) == len(all), "%d jobs are left, want none or %d", len(left), len(all))
			t.must(errOf(as[store.Operator](t).Delete(t.ctx, all)))
			t.must(errOf(t.Store.(store.Canceller).Cancel(t.ctx, ids, "")))
			w.Leave()
		})
	}},
}

// rounds runs a race again and again.
func (t *T) rounds(n int, run func(rng *rand.Rand, other Store)) {
	t.Helper()
	as[store.Operator](t)
	rng, other := NewSeed(t).Rand("race"), t.again()
	for i := range n {
		run(rng, other)
		need(t, !t.Failed(), "in round %d", i+1)
	}
}

// both does two things at nearly the same time.
func (t *T) both(rng *rand.Rand, do ...func() error) {
	t.Helper()
	var wg sync.WaitGroup
	for _, f := range do {
		after := time.Duration(rng.IntN(1500)) * time.Microsecond
		wg.Go(func() {
			time.Sleep(after)
			if err := f(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// settled waits until what is seen has not changed for a moment.
func (t *T) settled(see func() string) {
	t.Helper()
	for last := see(); ; {
		time.Sleep(5 * time.Millisecond)
		now := see()
		if now == last {
			return
		}
		last = now
	}
}
