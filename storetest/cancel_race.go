package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// cancelRaceTests cancel jobs while somebody moves them. Looking for a job
// where it waits and then in the log misses one that is just being promoted.
var cancelRaceTests = []test{
	{"A job that is cancelled while it is promoted does not run", func(t *T) {
		t.race(func(r *race) {
			r.id = t.enqueue(job("k", stint.Delay(time.Millisecond)))[0]
			time.Sleep(3 * time.Millisecond)
			r.beside(func(s Store) error {
				_, err := s.Promote(t.ctx, time.Time{}, 10)
				return err
			})
			r.answered(stint.CancelledNow)
		})
	}},
	{"A job that is cancelled while it is claimed is handed out as cancelled, or asked to stop", func(t *T) {
		t.race(func(r *race) {
			r.id = t.enqueue(job("k"))[0]
			keep := r.rng.IntN(2) == 0
			r.beside(func(s Store) error { return r.claim(s, keep) })
			r.answered(stint.CancelledNow, stint.CancelRequested)
		})
	}},
	{"A job that is cancelled while it is promoted and claimed is too", func(t *T) {
		t.race(func(r *race) {
			r.id = t.enqueue(job("k", stint.Delay(time.Millisecond)))[0]
			time.Sleep(3 * time.Millisecond)
			keep := r.rng.IntN(2) == 0
			r.beside(func(s Store) error {
				if _, err := s.Promote(t.ctx, time.Time{}, 10); err != nil {
					return err
				}
				return r.claim(s, keep)
			})
			r.answered(stint.CancelledNow, stint.CancelRequested)
		})
	}},
	{"A job that is cancelled while its failure is recorded does not run again", func(t *T) {
		t.race(func(r *race) {
			r.id = t.enqueue(job("k"))[0]
			w := r.worker(t.Store)
			e := w.One()
			ends := []store.Result{
				failed, snoozed,
				returned,
			}
			x := w.Conclude(e, ends[r.rng.IntN(len(ends))])
			if x.Next.Wait {
				x.Next.Delay = 0
			}
			r.beside(func(s Store) error {
				w.Store = s
				_, err := w.TryFinish(t.ctx, x)
				return err
			})
			r.answered(stint.CancelledNow, stint.CancelRequested)
		})
	}},
	{"A job that is cancelled while its success is recorded has completed", func(t *T) {
		t.race(func(r *race) {
			r.id = t.enqueue(job("k"))[0]
			w := r.worker(t.Store)
			x := w.Conclude(w.One(), completed)
			r.beside(func(s Store) error {
				w.Store = s
				_, err := w.TryFinish(t.ctx, x)
				return err
			})
			r.answered(stint.CancelTooLate, stint.CancelRequested)
		})
	}},
	{"A job that is cancelled while its engine is buried does not run again", func(t *T) {
		t.race(func(r *race) {
			r.id = t.enqueue(job("k"))[0]
			w := r.worker(t.Store)
			if e := w.One(); r.rng.IntN(2) == 0 {
				w.Heartbeat(e.Pos)
			}
			r.beside(func(s Store) error {
				_, err := Bury(t.ctx, s, store.Burial{Engine: w.Info.Token}, Judge)
				return err
			})
			r.answered(stint.CancelledNow, stint.CancelRequested)
		})
	}},
	{"Two who cancel the same jobs at once agree", func(t *T) {
		ids := t.enqueue(append(jobs(20, "k"), jobs(20, "k", stint.Delay(time.Hour))...)...)
		errs := atOnce(6, func(i int) error {
			got, err := as[store.Canceller](t).Cancel(t.ctx, ids, fmt.Sprint("number ", i))
			for id, answer := range got {
				equal(t, answer, stint.CancelledNow, "job %d: %s, want %s", id)
			}
			return err
		})
		t.must(errors.Join(errs...))
		w := t.join("k")
		w.Finish(cancelled, w.ClaimAll()...)
		t.ended(ids...)
	}},
}

// race is one job that is cancelled while something else happens to it.
type race struct {
	*T
	rng    *rand.Rand
	other  Store
	id     stint.ID
	answer stint.CancelStatus
	told   time.Time // when the cancellation returned
	asked  time.Time // when a claim was asked for that handed the job out like any other
	hold   *Worker   // who keeps it in hand
}

// rounds is how often each race is run.
const rounds = 40

func (t *T) race(run func(r *race)) {
	t.Helper()
	as[store.Canceller](t)
	rng, other := NewSeed(t).Rand("race"), t.again()
	for i := range rounds {
		r := &race{T: t, rng: rng, other: other}
		run(r)
		need(t, !t.Failed(), "in round %d, answered %q", i+1, r.answer)
	}
}

// beside cancels the job from one process while another does something to it.
func (r *race) beside(do func(s Store) error) {
	r.Helper()
	stores := []Store{r.Store, r.other}
	if r.rng.IntN(2) == 0 {
		stores[0], stores[1] = stores[1], stores[0]
	}
	first, second := time.Duration(r.rng.IntN(1500)), time.Duration(r.rng.IntN(1500))
	var wg sync.WaitGroup
	wg.Go(func() {
		time.Sleep(first * time.Microsecond)
		err := do(stores[0])
		expect(r, err == nil, "beside the cancellation: %v", err)
	})
	wg.Go(func() {
		time.Sleep(second * time.Microsecond)
		got, err := stores[1].(store.Canceller).Cancel(r.ctx, []stint.ID{r.id}, "race")
		expect(r, err == nil, "cancel: %v", err)
		r.answer, r.told = got[r.id], time.Now()
	})
	wg.Wait()
}

// answered checks the answer, works until nothing is left to do, and checks
// that the job ended as the answer says.
func (r *race) answered(may ...stint.CancelStatus) {
	r.Helper()
	ok := false
	for _, a := range may {
		ok = ok || a == r.answer
	}
	expect(r, ok, "the answer is %q, want one of %q", r.answer, may)
	shown := r.info(r.id).State
	kept := r.hold != nil && shown == stint.Running
	expect(r, r.answer != stint.CancelledNow || shown == stint.Cancelled || kept,
		"it is said to be cancelled and shows as %s", shown)
	expect(r, r.answer != stint.CancelledNow || !r.asked.After(r.told),
		"it was handed out like any other %v after the cancellation", r.asked.Sub(r.told))
	if r.hold != nil {
		r.hold.Leave()
	}
	w := r.worker(r.Store)
	for range 3 {
		r.must(errOf(r.Store.Promote(r.ctx, time.Time{}, 10)))
		for _, e := range w.ClaimAll() {
			expect(r, e.Cancelled, "it was handed out like any other after the cancellation")
			w.Finish(returned, e)
		}
	}
	w.Leave()
	want := stint.Cancelled
	if r.answer == stint.CancelTooLate || may[0] == stint.CancelTooLate {
		want = stint.Completed
	}
	info := r.info(r.id)
	expect(r, info.State == want && (want != stint.Cancelled || info.Reason == "race"),
		"in the end it is %s, reason %q; want %s", info.State, info.Reason, want)
	r.ended(r.id)
}

func (r *race) worker(s Store) *Worker { return Join(r.T.T, s, "k") }

// claim claims what there is. What is not cancelled it hands back, as an engine
// that stops, or keeps.
func (r *race) claim(s Store, keep bool) error {
	w := r.worker(s)
	asked := time.Now()
	got, err := w.TryClaimAll(r.ctx, 10)
	for _, e := range got {
		end := cancelled
		if !e.Cancelled {
			r.asked = asked
			end = returned
		}
		if keep {
			r.hold = w
		} else if _, err := w.TryFinish(r.ctx, w.Conclude(e, end)); err != nil {
			return err
		}
	}
	return err
}
