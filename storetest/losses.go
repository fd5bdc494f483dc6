package storetest

import (
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// lossesTests are about how often a job may be lost with its engine.
var lossesTests = []test{
	{"How often a job may be lost is there on every later attempt, zero and nothing too", func(t *T) {
		for _, c := range []struct {
			said *int
			want int
		}{{nil, stint.DefaultMaxLosses}, {new(0), 0}, {new(1), 1}, {new(1000), 1000}} {
			for _, delay := range []time.Duration{0, time.Millisecond} {
				j := job("k")
				j.MaxLosses, j.Delay = c.said, delay
				t.keepsMaxLosses(j, c.want)
			}
		}
	}},
	{"Also when it was enqueued in a transaction", func(t *T) {
		for want := range 3 {
			tx := t.begin()
			ids := t.enqueueIn(tx, job("k", stint.MaxLosses(want)), job("k"))
			t.must(tx.Commit())
			w := t.join("k")
			w.Complete(w.ClaimAll()...)
			a, b := t.info(ids[0]).MaxLosses, t.info(ids[1]).MaxLosses
			expect(t, a == want && b == stint.DefaultMaxLosses,
				"people see that they may be lost %d and %d times, want %d and the default", a, b, want)
		}
	}},
	{"Jobs of one batch differ", func(t *T) {
		ids := t.enqueue(job("k"), job("k", stint.MaxLosses(0)), job("k", stint.MaxLosses(9)), job("k"))
		for i, e := range t.join("k").ClaimAll() {
			want := []int{stint.DefaultMaxLosses, 0, 9, stint.DefaultMaxLosses}[i]
			expect(t, e.ID == ids[i] && e.MaxLosses == want, "job %d may be lost %d times, want %d", e.ID, e.MaxLosses, want)
		}
	}},
	{"A job is lost as often as it may be, and then it has failed", func(t *T) {
		for most := range 4 {
			id := t.enqueue(job("k", stint.MaxLosses(most)))[0]
			for range max(1, most) {
				t.state(id, stint.Available)
				w := t.join("k")
				w.Heartbeat(w.One().Pos)
				w.Leave()
			}
			info := t.info(id)
			expect(t, info.State == stint.Failed && info.Reason == retry.ReasonLost && len(info.Attempts) == max(1, most),
				"of %d losses: it is %s (%s) after %d attempts", most, info.State, info.Reason, len(info.Attempts))
		}
	}},
}

// keepsMaxLosses brings a job back in every way there is.
func (t *T) keepsMaxLosses(j stint.NewJob, want int) {
	t.Helper()
	id := t.enqueue(j)[0]
	w := t.join("k")
	for i, end := range []store.Result{
		returned, snoozed,
		{Outcome: stint.OutcomeReturned, Part: store.PartKind}, snoozed, completed,
	} {
		if i == 0 && j.Delay > 0 || i == 2 || i == 4 {
			t.promoteAfter(15*time.Millisecond, 1)
		}
		e := w.One()
		info := t.info(id)
		expect(t, e.MaxLosses == want && info.MaxLosses == want,
			"attempt %d: it may be lost %d times, and people see %d; want %d", i+1, e.MaxLosses, info.MaxLosses, want)
		w.Finish(end, e)
		equal(t, t.info(id).MaxLosses, want, "after attempt %d people see that it may be lost %d times, want %d", i+1)
	}
}

// due waits until a job is due that was to wait for a moment.
func (t *T) due() { time.Sleep(15 * time.Millisecond) }
