package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// rounds is how often each race is run.
const rounds = 40

// race is one round of a race: two processes do something at nearly the same
// time.
type race struct {
	*T
	rng   *rand.Rand
	other Store // the same database as Store, in either order
	round int
}

// race runs a race n times.
func (t *T) race(n int, run func(r *race)) {
	t.Helper()
	rng, stores := NewSeed(t).Rand("race"), []Store{t.Store, t.again()}
	for i := range n {
		rng.Shuffle(2, func(i, j int) { stores[i], stores[j] = stores[j], stores[i] })
		mine := *t
		mine.Store = stores[0]
		run(&race{T: &mine, rng: rng, other: stores[1], round: i + 1})
		need(t, !t.Failed(), "in round %d", i+1)
	}
}

// both does things at nearly the same time.
func (r *race) both(do ...func() error) {
	r.Helper()
	var wg sync.WaitGroup
	for _, f := range do {
		after := time.Duration(r.rng.IntN(1500)) * time.Microsecond
		wg.Go(func() {
			time.Sleep(after)
			err := f()
			expect(r, err == nil, "%v", err)
		})
	}
	wg.Wait()
}

// cut is a context that ends at any moment of a short call: before it, in the
// middle, or not in time.
func cut(t *T, rng *rand.Rand) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.ctx, time.Duration(rng.IntN(4000))*time.Microsecond)
}

// cancelRaceTests cancel jobs while something moves them. Looking for a job
// where it waits and then in the log misses one that is just being promoted.
var cancelRaceTests = []test{
	{"A job that is cancelled while it is promoted does not run", func(t *T) {
		t.raceCancel(3*time.Millisecond, func(r *cancelRace) func() error { return r.promote }, stint.CancelledNow)
	}},
	{"A job that is cancelled while it is claimed is asked to stop, or is not handed out", func(t *T) {
		t.raceCancel(0, func(r *cancelRace) func() error { return r.claim }, stint.CancelledNow, stint.CancelRequested)
	}},
	{"A job that is cancelled while it is promoted and claimed is too", func(t *T) {
		t.raceCancel(3*time.Millisecond, func(r *cancelRace) func() error {
			return func() error { return errors.Join(r.promote(), r.claim()) }
		}, stint.CancelledNow, stint.CancelRequested)
	}},
	{"A job that is cancelled while its failure is recorded does not run again", func(t *T) {
		t.raceCancel(0, func(r *cancelRace) func() error {
			return r.finish([]store.Result{failed, snoozed, returned}[r.rng.IntN(3)])
		}, stint.CancelledNow, stint.CancelRequested)
	}},
	{"A job that is cancelled while its success is recorded has completed", func(t *T) {
		t.raceCancel(0, func(r *cancelRace) func() error { return r.finish(completed) }, stint.CancelTooLate, stint.CancelRequested)
	}},
	{"A job that is cancelled while its engine is buried does not run again", func(t *T) {
		t.raceCancel(0, func(r *cancelRace) func() error {
			w := r.join("k")
			if e := w.One(); r.rng.IntN(2) == 0 {
				w.Heartbeat(e.Pos)
			}
			return func() error { return errOf(Bury(t.ctx, r.other, store.Burial{Engine: w.Info.Token}, Judge)) }
		}, stint.CancelledNow, stint.CancelRequested)
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
		t.none(t.join("k"))
		t.ended(ids...)
	}},
}

// cancelRace is one job that is cancelled while something else happens to it.
type cancelRace struct {
	*race
	id    stint.ID
	asked time.Time // when a claim was asked for that handed the job out like any other
	hold  *Worker   // the engine that keeps the job in hand
}

func (r *cancelRace) promote() error { return errOf(r.other.Promote(r.ctx, time.Time{}, 10)) }

// finish claims the job, and finishes it by the other process.
func (r *cancelRace) finish(end store.Result) func() error {
	w := r.join("k")
	x := w.Conclude(w.One(), end)
	soon(&x)
	return func() error {
		w.Store = r.other
		return errOf(w.TryFinish(r.ctx, x))
	}
}

// claim claims what there is. What is not cancelled it hands back, as an engine
// that stops, or keeps.
func (r *cancelRace) claim() error {
	w := Join(r.T.T, r.other, "k")
	asked, keep := time.Now(), r.round%2 == 0
	got, err := w.TryClaimAll(r.ctx, 10)
	for _, e := range got {
		end := cancelled
		if !e.Cancelled {
			r.asked, end = asked, returned
		}
		if keep {
			r.hold = w
		} else if _, err := w.TryFinish(r.ctx, w.Conclude(e, end)); err != nil {
			return err
		}
	}
	return err
}

// raceCancel cancels a job, which may have waited, beside what begin returns. It checks the answer, works
// until nothing is left to do, and checks that the job ended as the answer says.
func (t *T) raceCancel(waited time.Duration, begin func(r *cancelRace) func() error, may ...stint.CancelStatus) {
	t.Helper()
	as[store.Canceller](t)
	t.race(rounds, func(of *race) {
		r := &cancelRace{race: of, id: t.enqueue(job("k", stint.Delay(waited/3)))[0]}
		time.Sleep(waited)
		beside := begin(r)
		var answer stint.CancelStatus
		var told time.Time // when the cancellation returned
		r.both(beside, func() error {
			got, err := as[store.Canceller](r.T).Cancel(r.ctx, []stint.ID{r.id}, "race")
			answer, told = got[r.id], time.Now()
			return err
		})
		expect(t, slices.Contains(may, answer), "the answer is %q, want one of %q", answer, may)
		shown := r.info(r.id).State
		expect(t, answer != stint.CancelledNow || shown == stint.Cancelled, "it is said to be cancelled and shows as %s", shown)
		expect(t, answer != stint.CancelledNow || !r.asked.After(told),
			"it was handed out like any other %v after the cancellation", r.asked.Sub(told))
		if answer == stint.CancelledNow {
			r.ended(r.id)
		}
		if r.hold != nil {
			r.hold.Leave()
		}
		w := r.join("k")
		for range 3 {
			t.must(errOf(t.Store.Promote(r.ctx, time.Time{}, 10)))
			for _, e := range w.ClaimAll() {
				expect(t, e.Cancelled, "it was handed out like any other after the cancellation")
				w.Finish(returned, e)
			}
		}
		w.Leave()
		want := stint.Cancelled
		if answer == stint.CancelTooLate || may[0] == stint.CancelTooLate {
			want = stint.Completed
		}
		info := r.info(r.id)
		expect(t, info.State == want && (want != stint.Cancelled || info.Reason == "race"),
			"answered %q, in the end it is %s, reason %q; want %s", answer, info.State, info.Reason, want)
		t.ended(r.id)
	})
}

// operateRaceTests change what becomes of jobs while something else does.
var operateRaceTests = []test{
	{"A job that is made ready while it is promoted is ready once", func(t *T) {
		t.race(rounds, func(r *race) {
			id := t.enqueue(job("k", stint.Delay(time.Millisecond)))[0]
			time.Sleep(3 * time.Millisecond)
			answer := stint.RerunResult{}
			r.both(func() error { return errOf(r.other.Promote(t.ctx, time.Time{}, 10)) }, r.rerun(id, &answer))
			expect(t, answer.Answer == stint.RerunReady || answer.Answer == stint.RerunAvailable, "the answer is %+v", answer)
			w := t.join("k")
			w.Complete(w.One())
			w.Leave()
		})
	}},
	{"A job that is made ready while it is cancelled does not run", func(t *T) {
		t.race(rounds, func(r *race) {
			id := t.enqueue(job("k", stint.Delay(time.Hour)))[0]
			var answer stint.RerunResult
			var said stint.CancelStatus
			r.both(func() error {
				got, err := r.other.(store.Canceller).Cancel(t.ctx, []stint.ID{id}, "race")
				said = got[id]
				return err
			}, r.rerun(id, &answer))
			// Either it was made ready first, or it was cancelled and then recovered.
			expect(t, (answer.Answer == stint.RerunReady || answer.Answer == stint.RerunRecovered) && said == stint.CancelledNow,
				"the answers are %+v and %q", answer, said)
			w := t.join("k")
			for _, e := range w.ClaimAll() {
				end := completed
				if e.ID == id {
					end = cancelled
					expect(t, e.Cancelled, "it was handed out like any other")
				}
				w.Finish(end, e)
			}
			w.Leave()
			t.state(id, stint.Cancelled)
			t.ended(id)
		})
	}},
	{"A job that is made ready while its failure is recorded runs once more", func(t *T) {
		t.race(rounds, func(r *race) {
			id := t.enqueue(job("k"))[0]
			w := t.join("k")
			x := w.Conclude(w.One(), failed)
			w.Store = r.other
			var answer stint.RerunResult
			r.both(func() error { return errOf(w.TryFinish(t.ctx, x)) }, r.rerun(id, &answer))
			want, ok := map[stint.RerunStatus]stint.State{stint.RerunRunning: stint.Retrying, stint.RerunReady: stint.Available}[answer.Answer]
			expect(t, ok, "the answer is %+v", answer)
			t.state(id, want)
			t.retry(stint.RerunOptions{}, id)
			w.Complete(w.One())
			w.Leave()
		})
	}},
	{"Those who recover and delete the same jobs at once agree on them", func(t *T) {
		t.race(rounds, func(r *race) {
			ids := t.enqueue(jobs(4, "k")...)
			w := t.join("k")
			w.Complete(w.ClaimAll()...)
			var deleted map[stint.ID]store.DeleteStatus
			var recovered map[stint.ID]stint.RerunResult
			r.both(func() (err error) {
				deleted, err = r.other.(store.Operator).Delete(t.ctx, ids)
				return err
			}, func() (err error) {
				recovered, err = as[store.Operator](r.T).Retry(t.ctx, ids, stint.RerunOptions{})
				return err
			})
			n := 0
			for _, id := range ids {
				equal(t, deleted[id], store.DeletedNow, "deleting job %d gives %q, want %q", id)
				is := recovered[id].Answer
				expect(t, is == stint.RerunRecovered || is == stint.RerunNotFound, "recovering job %d gives %+v", id, recovered[id])
				if is == stint.RerunRecovered {
					n++
				}
			}
			got := w.ClaimAll()
			need(t, len(got) == n && (n == 0 || n == len(ids)), "%d jobs were recovered, and %d run", n, len(got))
			w.Complete(got...)
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
				expect(t, r.ID != 0 && (r.Answer == stint.RerunRecovered || r.Answer == stint.RerunRecoveredBefore), "job %d: %+v", id, r)
			}
			return err
		})
		t.must(errors.Join(errs...))
		got := w.ClaimAll()
		equal(t, len(got), len(ids), "%d jobs run, want %d")
		w.Complete(got...)
	}},
	{"A call that is cut off has done all or nothing", func(t *T) {
		t.race(rounds/5, func(r *race) {
			ids := t.enqueue(append(jobs(5, "k"), jobs(5, "k", stint.Delay(time.Hour))...)...)
			w := t.join("k")
			w.Complete(w.ClaimAll()...)
			// A call that is cut off has an error that nobody knows, and a server may
			// be about to carry it out still.
			short := func(f func(ctx context.Context)) {
				ctx, cancel := cut(t, r.rng)
				defer cancel()
				f(ctx)
				t.settled(func() string { return fmt.Sprint(t.list(store.Filter{Limit: 1000})) })
			}
			short(func(ctx context.Context) { _, _ = as[store.Operator](t).Retry(ctx, ids, stint.RerunOptions{}) })
			again := w.ClaimAll()
			expect(t, len(again) == 0 || len(again) == len(ids), "%d jobs run, want none or %d", len(again), len(ids))
			w.Complete(again...)
			ended := store.Filter{States: []stint.State{stint.Completed}, Limit: 1000}
			all := t.list(ended)
			short(func(ctx context.Context) { _, _ = as[store.Operator](t).Delete(ctx, all) })
			left := t.list(ended)
			expect(t, len(left) == 0 || len(left) == len(all), "%d jobs are left, want none or %d", len(left), len(all))
			t.must(errOf(as[store.Operator](t).Delete(t.ctx, all)))
			t.cancel("", ids...)
			w.Leave()
		})
	}},
}

// rerun has a job run again, and keeps the answer.
func (r *race) rerun(id stint.ID, answer *stint.RerunResult) func() error {
	return func() error {
		got, err := as[store.Operator](r.T).Retry(r.ctx, []stint.ID{id}, stint.RerunOptions{})
		*answer = got[id]
		return err
	}
}

// settled waits until what is seen has not changed for a moment.
func (t *T) settled(see func() string) {
	t.Helper()
	for last, now := "", see(); now != last; last, now = now, see() {
		time.Sleep(5 * time.Millisecond)
	}
}

// buryRaceTests are about burials beside other burials and beside the work of
// the engine that is buried.
var buryRaceTests = []test{
	{"Whoever comes second is told", func(t *T) {
		t.enqueue(jobs(20, "k")...)
		w := t.join("k")
		w.ClaimAll()
		var judged, won atomic.Int64
		for _, err := range atOnce(6, func(int) error {
			return errOf(Bury(t.ctx, t.Store, store.Burial{Engine: w.Info.Token}, func(e *store.Entry, begun bool) store.Completion {
				judged.Add(1)
				return Judge(e, begun)
			}))
		}) {
			if err == nil {
				won.Add(1)
			} else {
				fails(t, err, store.ErrBuried, "a burier got %v, want ErrBuried")
			}
		}
		expect(t, won.Load() == 1 && judged.Load() == 20,
			"%d buriers won and %d entries were judged, want 1 and 20", won.Load(), judged.Load())
		for _, unless := range []time.Duration{0, time.Hour} {
			fails(t, errOf(Bury(t.ctx, t.Store, store.Burial{Engine: w.Info.Token, Unless: unless}, Judge)), store.ErrBuried,
				"much later a burier got %v, want ErrBuried")
		}
	}},
	{"Claims in many lanes are all concluded", func(t *T) {
		var want []stint.ID
		for _, q := range []string{"a", "b", "c", "d"} {
			for p := -1; p <= 1; p++ {
				want = append(want, t.enqueue(jobs(3, "k", stint.Queue(q), stint.Priority(p))...)...)
			}
		}
		w := t.join("k")
		t.must(errOf(w.TryClaimAll(t.ctx, 2)))
		equal(t, w.Leave(), len(want), "%d entries were concluded, want %d")
		got := t.join("k").ClaimAll()
		equalAll(t, slices.Sorted(slices.Values(jobIDs(got))), want, "claimed again: %v, want %v")
		lanes := map[store.Position]store.LaneID{}
		for _, l := range t.ledger().Entries {
			lanes[l.Pos] = l.Lane
		}
		for _, e := range got {
			equal(t, lanes[e.Pos], store.LaneOf(e.Queue, e.Priority, store.PartFront, "").ID, "job %d came back through lane %d, want the front lane %d", e.ID)
		}
	}},
	{"Burial beside claims and finishes of the engine loses and doubles nothing", buryBesideWork},
}

// buryBesideWork kills engines in the middle of their work, from another
// process, round after round.
func buryBesideWork(t *T) {
	const rounds, n = 12, 60
	t.race(rounds, func(r *race) {
		t.enqueue(jobs(n, "k")...)
		w := r.join("k")
		errs := atOnce(2, func(i int) error {
			if i == 0 {
				time.Sleep(time.Duration(r.round) * time.Millisecond)
				return errOf(Bury(t.ctx, r.other, store.Burial{Engine: w.Info.Token}, Judge))
			}
			for {
				c, err := w.TryClaim(t.ctx, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 3, Wait: true})
				if err == nil && len(c.Entries) == 0 {
					return nil
				}
				if err == nil {
					_, err = w.TryFinish(t.ctx, w.concludeAll(completed, c.Entries[1:]...)...)
				}
				if errors.Is(err, store.ErrBuried) {
					return nil
				} else if err != nil {
					return fmt.Errorf("the dying engine got %w", err)
				}
			}
		})
		t.must(errors.Join(errs...))
		heir := t.join("k")
		heir.Complete(heir.ClaimAll()...)
		heir.Leave()
	})
	counts := must(t.Store.Counts(t.ctx))(t)
	expect(t, counts[stint.Completed] == rounds*n, "%d jobs completed, want %d: %v", counts[stint.Completed], rounds*n, counts)
}

// interruptedTests cut calls off in the middle, as a lost connection does: the
// answer is gone, and what was done is not known.
var interruptedTests = []test{
	{"A call whose context has ended fails, and the store works on", func(t *T) {
		ended := t.over()
		w := t.join("k")
		id := t.enqueue(job("k"))[0]
		expect(t, errOf(t.Store.Enqueue(ended, stint.Tx{}, jobs(1, "k", stint.Queue("never")))) != nil, "an enqueue succeeded")
		c, err := w.TryClaim(ended, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1})
		expect(t, err != nil, "a claim succeeded: %v", c.Positions)
		expect(t, errOf(t.Store.Promote(ended, time.Time{}, 1)) != nil, "a promotion succeeded")
		expect(t, errOf(t.Store.Bury(ended, store.Burial{Engine: w.Info.Token}, Judge)) != nil, "a burial succeeded")
		w.Complete(w.One())
		t.state(id, stint.Completed)
	}},
	{"A batch whose enqueue was cut off is there whole or not at all", func(t *T) {
		const size = 10
		rng := NewSeed(t).Rand("cuts")
		sure := map[string]bool{}
		for i := range 60 {
			tag := fmt.Sprint("batch ", i)
			ctx, cancel := cut(t, rng)
			_, err := stint.NewClient(t.Store).EnqueueMany(ctx, jobs(size, "k", stint.Tag(tag), stint.Queue(tag)))
			cancel()
			sure[tag] = err == nil
		}
		for tag, stored := range sure {
			n := len(t.list(store.Filter{Tag: tag}))
			expect(t, n == size || !stored && n == 0, "%s has %d jobs of %d; the call succeeded: %v", tag, n, size, stored)
		}
	}},
	{"A claim that was cut off is told by Held, or took nothing", func(t *T) {
		rng := NewSeed(t).Rand("cuts")
		ids := t.enqueue(jobs(300, "k")...)
		w := t.join("k")
		answered := map[store.Position]bool{}
		for range 60 {
			ctx, cancel := cut(t, rng)
			c, _ := w.TryClaim(ctx, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1 + rng.IntN(5), Wait: true})
			cancel()
			for _, pos := range c.Positions {
				answered[pos] = true
			}
		}
		w.ClaimAll()
		// A claim may commit after its client has gone, so an engine asks
		// again and again.
		var all []store.Position
		for since := time.Now(); len(all) < len(ids) && time.Since(since) < patience(); time.Sleep(time.Millisecond) {
			all = nil
			for _, c := range t.held(w, 1) {
				for _, pos := range c.Positions {
					delete(answered, pos)
					w.taken[pos] = c.ClaimRef
				}
				all = append(all, c.Positions...)
			}
		}
		expect(t, len(answered) <= 0, "Held does not tell of %d positions that were answered", len(answered))
		entries := must(t.Store.Fetch(t.ctx, all))(t)
		got := slices.Sorted(slices.Values(jobIDs(entries)))
		expect(t, slices.Equal(got, ids), "%d entries are held, want each of %d once", len(got), len(ids))
		w.Complete(entries...)
	}},
	{"A batch of outcomes that was cut off can be repeated until it is known", func(t *T) {
		rng := NewSeed(t).Rand("cuts")
		w := t.join("k")
		for range 40 {
			t.enqueue(jobs(5, "k")...)
			done := snoozes(w, w.ClaimAll())
			ctx, cancel := cut(t, rng)
			_, err := w.TryFinish(ctx, done...)
			cancel()
			n, again := w.TryFinish(t.ctx, done...)
			expect(t, again == nil && (err != nil || n == 0) && (n == 0 || n == len(done)),
				"first %v; then %d were new, error %v", err, n, again)
		}
		l := t.ledger()
		expect(t, len(l.Executions) == 200 && len(l.Waiting) == 200,
			"there are %d executions and %d successors, want 200", len(l.Executions), len(l.Waiting))
	}},
	{"A burial that was cut off is done whole by the next", func(t *T) {
		rng := NewSeed(t).Rand("cuts")
		const rounds, n = 20, 20
		for range rounds {
			t.enqueue(jobs(n, "k")...)
			w := t.join("k")
			w.ClaimAll()
			ctx, cancel := cut(t, rng)
			_, err := Bury(ctx, t.Store, store.Burial{Engine: w.Info.Token}, Judge)
			cancel()
			if err != nil {
				_, err := Bury(t.ctx, t.Store, store.Burial{Engine: w.Info.Token}, Judge)
				expect(t, err == nil || errors.Is(err, store.ErrBuried), "the second burial: %v", err)
			}
			heir := t.join("k")
			if got := heir.ClaimAll(); len(got) != n {
				t.Errorf("%d entries came back, want %d", len(got), n)
			} else {
				heir.Complete(got...)
			}
			heir.Leave()
		}
	}},
}
