package storetest

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// recordTests are about what an execution says of an attempt.
var recordTests = []test{
	{"Each outcome leaves its job in its state", eachOutcome},
	{"Times are the store's, and the duration is the engine's", finishTimes},
	{"Result, error, reason, slot and engine come back exactly", finishRoundTrips},
	{"Another process can record for the engine", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		e := w.One()
		w.Store = t.again()
		w.Complete(e)
		t.state(id, stint.Completed)
	}},
}

func eachOutcome(t *T) {
	failure := errors.New("no")
	w := t.join("k")
	for _, c := range []struct {
		end   store.Result
		state stint.State
		final bool
	}{
		{completed, stint.Completed, true},
		{store.Result{Outcome: stint.OutcomeCancelled, Note: "not needed"}, stint.Cancelled, true},
		{expired, stint.Failed, true},
		{store.Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(failure)}, stint.Failed, true},
		{store.Result{Outcome: stint.OutcomeFailed, Err: failure}, stint.Retrying, false},
		{store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, stint.Scheduled, false},
		{returned, stint.Available, false},
	} {
		id := t.enqueue(job("k"))[0]
		w.Finish(c.end, w.Claim(lane(stint.DefaultQueue), 1)...)
		info := t.info(id)
		if info.State != c.state || len(info.Attempts) != 1 {
			t.Errorf("after %s the job is %s with %d executions, want %s with one",
				c.end.Outcome, info.State, len(info.Attempts), c.state)
			continue
		}
		x := info.Attempts[0]
		expect(t, x.Outcome == c.end.Outcome && x.Final == c.final,
			"the execution is %s, final %v; want %s, %v", x.Outcome, x.Final, c.end.Outcome, c.final)
	}
}

func finishTimes(t *T) {
	const ran, ago = 4 * time.Second, 700 * time.Millisecond
	id := t.enqueue(job("k"))[0]
	w := t.join("k")
	x := w.Conclude(w.One(), completed)
	before := t.now()
	x.Ended = time.Now().Add(-ago)
	x.Started = x.Ended.Add(-ran)
	t.must(errOf(w.TryFinish(t.ctx, x)))
	after := t.now()
	got := t.info(id).Attempts[0]
	d := got.Finished.Sub(got.Started)
	expect(t, d >= ran-time.Millisecond && d <= ran+time.Millisecond, "an attempt of %v is recorded as %v long", ran, d)
	const slack = time.Millisecond
	end := got.Finished.Add(ago)
	expect(t, between(end, before.Add(-slack), after.Add(slack)),
		"an attempt that ended %v before the flush at %v is recorded as ended at %v", ago, before, got.Finished)
}

func finishRoundTrips(t *T) {
	ids := t.enqueue(jobs(2, "k")...)
	w := t.join("k")
	entries := w.ClaimAll()
	x := w.Conclude(entries[0], store.Result{
		Outcome: stint.OutcomeCompleted, Note: "done, 'well' ✓",
		Result: json.RawMessage(`{"n":9007199254740993,"s":"\"\\ ünï 😀","a":[null,true,0.1]}`),
	})
	x.Slot = 17
	y := w.Conclude(entries[1], store.Result{
		Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("line 1\nline 2\t\"quoted\" ünï 😀")), Stack: "main.go:1\nmain.go:2",
		Result: json.RawMessage(`["kept","also of a failure"]`),
	})
	t.must(errOf(w.TryFinish(t.ctx, x, y)))
	for i, want := range []store.Completion{x, y} {
		info := t.info(ids[i])
		got := info.Attempts[0]
		shown := stint.Attempt{
			Attempt: 1, Outcome: want.Outcome, Final: true, Reason: want.Reason, Started: got.Started, Finished: got.Finished,
			Engine: int64(w.Info.Token), Instance: w.Info.Instance, Host: w.Info.Host, PID: w.Info.PID, Slot: want.Slot,
			Result: want.Result, Error: want.Error,
		}
		shown.Derive()
		noDiff(t, cmp.Diff(shown, got, sameJob...), "execution (-want +got)")
		expect(t, info.Reason == want.Reason && info.Finished.Equal(got.Finished) && info.Started.Equal(got.Started),
			"the job shows reason %q, %v to %v; its execution %q, %v to %v", info.Reason, info.Started, info.Finished, got.Reason,
			got.Started, got.Finished)
	}
	l := t.ledger()
	expect(t, slices.ContainsFunc(l.Executions, func(e store.LedgerExecution) bool { return e.Nonce == x.Nonce }),
		"no execution of the ledger has the nonce of its claim")
}
