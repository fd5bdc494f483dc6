package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var startedTests = []test{
	{"Until-started, a job keeps others out until it is claimed, and not when it is retried or lost", func(t *T) {
		a := job("k", stint.UniqueUntilStarted(), stint.Retry(retry.Fixed(5, time.Millisecond)))
		waits := a
		waits.Delay = 3 * time.Second
		first := t.keyed(waits)[0].ID
		equal(t, t.keyed(a)[0], stint.Receipt{ID: first, Duplicate: true, State: stint.Scheduled}, "while it waits it is answered with %+v, want %+v")
		t.promoteAfter(waits.Delay, 1)
		equal(t, t.keyed(a)[0], stint.Receipt{ID: first, Duplicate: true, State: stint.Available}, "when it is ready it is answered with %+v, want %+v")
		w := t.join("k")
		e := w.One()
		equal(t, e.ID, first, "job %d is claimed, want %d")
		second := t.keyed(a)[0]
		expect(t, !second.Duplicate && second.ID != first, "when it is claimed it is answered with %+v", second)
		w.Finish(failed, e)
		expect(t, t.keyed(a)[0].ID == second.ID, "when it is retried the next one does not hold the key")
		w.Complete(w.One())
		third := t.keyed(a)[0]
		expect(t, !third.Duplicate && third.ID != first, "beside one that is retried it is answered with %+v", third)
		t.cancel("", first)
		w.Heartbeat(w.One().Pos)
		w.Leave()
		fourth := t.keyed(a)[0]
		expect(t, !fourth.Duplicate, "beside one that is ready again, since its engine was buried, it is answered with %+v", fourth)
	}},
	{"Until-started, a snoozed job holds nothing, and nor does a cancelled one", func(t *T) {
		a := job("k", stint.UniqueUntilStarted())
		t.keyed(a)
		w := t.join("k")
		w.Finish(store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, w.One())
		second := t.keyed(a)[0]
		expect(t, !second.Duplicate, "beside one that is snoozed it is answered with %+v", second)
		t.cancel("", second.ID)
		third := t.keyed(a)[0]
		expect(t, !third.Duplicate, "beside one that is cancelled it is answered with %+v", third)
	}},
	{"Until-started has keys of its own, and of a batch the first is stored", func(t *T) {
		t.keyed(job("k", stint.UniqueUntilEnded()))
		a := job("k", stint.UniqueUntilStarted())
		r := t.keyed(a, a)
		expect(t, !r[0].Duplicate && r[1] == stint.Receipt{ID: r[0].ID, Duplicate: true, State: stint.Available}, "it is answered with %+v", r)
	}},
	{"Until-started in a transaction, what waits is kept, and what may begin before the commit is not", func(t *T) {
		a := job("k", stint.UniqueUntilStarted(), stint.Delay(time.Hour))
		soon := job("k", stint.UniqueUntilStarted(), stint.Delay(3*time.Second))
		first := t.keyed(soon)[0].ID
		tx := t.begin()
		equal(t, t.keyedIn(tx, a)[0], stint.Receipt{ID: first, Duplicate: true, State: stint.Scheduled}, "it is answered with %+v, want %+v")
		t.must(tx.Commit())
		time.Sleep(soon.Delay)
		tx = t.begin()
		second := t.keyedIn(tx, a)[0]
		equal(t, t.keyedIn(tx, a)[0], stint.Receipt{ID: second.ID, Duplicate: true, State: stint.Scheduled}, "its second is answered with %+v, want %+v")
		t.must(tx.Commit())
		expect(t, !second.Duplicate && second.Replaced == 0, "beside one that is overdue it is answered with %+v", second)
		t.state(first, stint.Scheduled)
		t.promoteAfter(0, 1)
		t.cancel("", second.ID)
		ready := t.keyed(job("k", stint.UniqueUntilStarted()))[0].ID
		tx = t.begin()
		t.keyedIn(tx, a)
		t.must(tx.Rollback())
		equal(t, t.keyed(a)[0].ID, ready, "after a rollback job %d holds the key, want %d")
		tx = t.begin()
		third := t.keyedIn(tx, a)[0]
		t.must(tx.Commit())
		expect(t, !third.Duplicate && third.Replaced == 0, "beside one that is ready it is answered with %+v", third)
		t.state(ready, stint.Available)
		equal(t, t.keyed(a)[0], stint.Receipt{ID: third.ID, Duplicate: true, State: stint.Scheduled}, "the key went to %+v, want %+v")
	}},
	{"Until-started, replacing takes what has not begun, and stands beside what has", func(t *T) {
		a := job("k", stint.UniqueUntilStarted(stint.OrReplace()))
		first := t.keyed(a)[0].ID
		second := t.keyed(a)[0]
		expect(t, second.Replaced == first && !second.Duplicate, "beside one that is ready it is answered with %+v", second)
		t.state(first, stint.Cancelled)
		tx := t.begin()
		third := t.keyedIn(tx, job("k", stint.UniqueUntilStarted(stint.OrReplace()), stint.Delay(100*time.Millisecond)))[0]
		t.must(tx.Commit())
		expect(t, !third.Duplicate && third.Replaced == 0, "in a transaction, beside one that is ready, it is answered with %+v", third)
		t.state(second.ID, stint.Available)
		tx = t.begin()
		fourth := t.keyedIn(tx, job("k", stint.UniqueUntilStarted(stint.OrReplaceKeepTime())))[0]
		t.must(tx.Commit())
		expect(t, fourth.Replaced == third.ID, "in a transaction, beside one that waits, it is answered with %+v", fourth)
		time.Sleep(100 * time.Millisecond)
		fifth := t.keyed(a)[0]
		expect(t, fifth.Replaced == fourth.ID, "beside one that is overdue it is answered with %+v", fifth)
		w := t.join("k")
		w.ClaimAll()
		sixth := t.keyed(a)[0]
		expect(t, !sixth.Duplicate && sixth.Replaced == 0, "beside one that runs it is answered with %+v", sixth)
	}},
	{"Until-started, a job that is recovered takes its key again, or is refused", func(t *T) {
		a := job("k", stint.UniqueUntilStarted(stint.OrReplace()))
		first := t.keyed(a)[0].ID
		w := t.join("k")
		w.Finish(failedFinally, w.One())
		a.Delay = time.Hour
		holder := t.keyed(a)[0].ID
		again := must(as[store.Operator](t).Retry(t.ctx, []stint.ID{first}, stint.RerunOptions{}))(t)
		equal(t, again[first], stint.RerunResult{Answer: stint.RerunNotUnique, ID: holder}, "it is answered with %+v, want %+v")
		t.state(holder, stint.Scheduled)
		t.cancel("", holder)
		anew := t.recovers(first, stint.RerunOptions{})
		equal(t, t.keyed(job("k", stint.UniqueUntilStarted()))[0].ID, anew, "job %d holds the key, want %d")
	}},
	{"Until-started, every enqueue is followed by a start, whoever claims meanwhile", keepBesideClaims},
}

// keepBesideClaims has producers enqueue one unique job over and over, beside an engine and promotions.
// No job that an answer names was claimed before its enqueue began.
func keepBesideClaims(t *T) {
	var stop atomic.Bool
	var mu sync.Mutex
	claimed := map[stint.ID]time.Time{} // and not after
	var side, wg sync.WaitGroup
	w := t.join("k")
	side.Go(func() {
		for !stop.Load() {
			for _, e := range w.ClaimAll() {
				mu.Lock()
				claimed[e.ID] = time.Now()
				mu.Unlock()
				w.Complete(e)
			}
			_, err := t.Store.Promote(t.ctx, time.Time{}, 100)
			expect(t, err == nil, "%v", err)
		}
	})
	type ask struct {
		id stint.ID
		at time.Time // before the enqueue
	}
	var asks []ask
	kept := 0
	seed := NewSeed(t)
	for p := range 4 {
		r := seed.Rand(fmt.Sprint("producer ", p))
		wg.Go(func() {
			for range 60 {
				a := job("k", stint.UniqueUntilStarted(), stint.Delay(time.Duration(r.IntN(2))*2*time.Millisecond))
				at := time.Now()
				got, err := stint.NewClient(t.Store).EnqueueReceipts(t.ctx, []stint.NewJob{a})
				if err != nil {
					t.Errorf("producer %d: %v", p, err)
					return
				}
				mu.Lock()
				asks = append(asks, ask{got[0].ID, at})
				if got[0].Duplicate {
					kept++
				}
				mu.Unlock()
				time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
			}
		})
	}
	wg.Wait()
	time.Sleep(10 * time.Millisecond)
	stop.Store(true)
	side.Wait()
	_, err := t.Store.Promote(t.ctx, time.Time{}, 100)
	expect(t, err == nil, "%v", err)
	for _, e := range w.ClaimAll() {
		claimed[e.ID] = time.Now()
	}
	for _, a := range asks {
		if at, ok := claimed[a.id]; !ok || at.Before(a.at) {
			t.Errorf("job %d stands for an enqueue of %s, and was claimed at %s", a.id, a.at, at)
		}
	}
	t.Logf("%d enqueues, %d kept, %d jobs", len(asks), kept, len(claimed))
}
