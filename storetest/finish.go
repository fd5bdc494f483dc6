package storetest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var finishTests = []test{
	{"Repeating a batch changes nothing and counts nothing", finishRepeats},
	{"A batch that was recorded in part is completed, successors included", func(t *T) {
		t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		done := snoozes(w, w.ClaimAll())
		n, err := w.TryFinish(t.ctx, done[1], done[2])
		need(t, err == nil && n == 2, "the first part recorded %d, error %v", n, err)
		n, err = w.TryFinish(t.ctx, done...)
		need(t, err == nil && n == 2, "the whole recorded %d more, error %v", n, err)
		l := t.ledger()
		expect(t, len(l.Executions) == 4 && len(l.Waiting) == 4,
			"there are %d executions and %d successors, want 4 each", len(l.Executions), len(l.Waiting))
	}},
	{"What was recorded first stands, whatever a repetition says", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		e := w.One()
		w.Complete(e)
		for _, end := range []store.Result{cancelled, returned} {
			w.record(0, w.Conclude(e, end))
		}
		t.state(id, stint.Completed)
		expect(t, len(w.ClaimAll()) == 0, "the second outcome left a successor")
	}},
	{"Who is not in the roster records nothing", func(t *T) {
		ids := t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		entries := w.ClaimAll()
		done := []store.Completion{w.Conclude(entries[0], completed), w.Conclude(entries[1], completed)}
		never := NewWorker(t, t.Store, "k")
		never.taken = w.taken
		refuses(t, never, store.ErrBuried, done...)
		t.state(ids[0], stint.Running)
		w.Leave()
		refuses(t, w, store.ErrBuried, done...)
		t.states(ids, stint.Available)
	}},
	{"A claim that does not exist is told, and nothing is recorded", claimsMustExist},
	{"Nobody records under the claim of another", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w, other := t.join("k"), t.join("k")
		done := w.Conclude(w.One(), completed)
		other.taken = w.taken
		refuses(t, other, store.ErrClaimGone, done)
		t.state(id, stint.Running)
		w.record(1, done)
	}},
	{"A batch with one bad claim is refused whole", func(t *T) {
		ids := t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		entries := append(w.Claim(lane(stint.DefaultQueue), 2), w.Claim(lane(stint.DefaultQueue), 2)...)
		done := snoozes(w, entries)
		bad := w.taken[entries[3].Pos]
		bad.Nonce++
		refs := []store.ClaimRef{w.taken[entries[0].Pos], bad}
		n, err := t.Store.Finish(t.ctx, w.Info.Token, refs, done)
		expect(t, errors.Is(err, store.ErrClaimGone) && n == 0, "recorded %d, error %v, want ErrClaimGone", n, err)
		t.states(ids, stint.Running)
		w.record(4, done...)
	}},
	{"A large batch of many claims and outcomes", func(t *T) {
		const n = 2000
		ids := t.enqueue(jobs(n, "k")...)
		w := t.join("k")
		entries := must(w.TryClaimAll(t.ctx, 7))(t)
		ends := []store.Result{
			completed, failed, {Outcome: stint.OutcomeSnoozed, Snooze: time.Hour},
			returned, cancelled, expired,
		}
		states := []stint.State{stint.Completed, stint.Retrying, stint.Scheduled, stint.Available, stint.Cancelled, stint.Failed}
		var done []store.Completion
		for i, e := range entries {
			done = append(done, w.Conclude(e, ends[i%len(ends)]))
		}
		got, err := w.TryFinish(t.ctx, done...)
		need(t, err == nil && got == n, "recorded %d, error %v, want %d", got, err, n)
		for i := 0; i < n; i += 97 {
			t.state(ids[i], states[i%len(states)])
		}
	}},
	{"No executions are no error", func(t *T) {
		n, err := t.join("k").TryFinish(t.ctx)
		expect(t, err == nil && n == 0, "recorded %d, error %v", n, err)
	}},
}

// snoozes concludes entries so that each has a successor that waits.
func snoozes(w *Worker, entries []store.Entry) []store.Completion {
	done := w.concludeAll(store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, entries...)
	return done
}

// refuses checks that executions are refused for a reason, and leave nothing.
func refuses(t *T, w *Worker, want error, done ...store.Completion) {
	t.Helper()
	before := t.ledger()
	n, err := w.TryFinish(t.ctx, done...)
	expect(t, errors.Is(err, want) && n == 0, "recorded %d, error %v, want %v", n, err, want)
	after := t.ledger()
	expect(t, len(after.Executions) == len(before.Executions) && len(after.Waiting) == len(before.Waiting) &&
		len(after.Entries) == len(before.Entries),
		"a refused batch left something: %d executions, %d waiting, %d entries, before it %d, %d, %d", len(after.Executions),
		len(after.Waiting), len(after.Entries), len(before.Executions), len(before.Waiting), len(before.Entries))
}

func finishRepeats(t *T) {
	t.enqueue(jobs(6, "k")...)
	w := t.join("k")
	ends := []store.Result{
		completed, {Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, returned,
		{Outcome: stint.OutcomeReturned, Part: store.PartKind}, failed,
		{Outcome: stint.OutcomeReturned, Part: store.PartNormal},
	}
	var done []store.Completion
	for i, e := range w.ClaimAll() {
		done = append(done, w.Conclude(e, ends[i]))
	}
	for _, want := range []int{6, 0, 0} {
		w.record(want, done...)
	}
	l := t.ledger()
	expect(t, len(l.Executions) == 6 && len(l.Waiting) == 2 && len(l.Entries) == 6+3,
		"there are %d executions, %d waiting and %d entries, want 6, 2 and 9", len(l.Executions), len(l.Waiting), len(l.Entries))
}

func claimsMustExist(t *T) {
	t.enqueue(jobs(3, "k")...)
	w := t.join("k")
	entries := w.Claim(lane(stint.DefaultQueue), 2)
	right := w.taken[entries[0].Pos]
	for what, wrong := range map[string]store.ClaimRef{
		"another nonce":  {Lane: right.Lane, N: right.N, Nonce: right.Nonce + 1},
		"a later number": {Lane: right.Lane, N: right.N + 1, Nonce: right.Nonce},
		"another lane":   {Lane: right.Lane + 1, N: right.N, Nonce: right.Nonce},
	} {
		for _, e := range entries {
			w.taken[e.Pos] = wrong
		}
		refuses(t, w, store.ErrClaimGone, snoozes(w, entries)...)
		need(t, !t.Failed(), "the claim was given with %s", what)
	}
}

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
	w.record(1, x)
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
	w.record(2, x, y)
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

// poisons are values of an execution that some database refuses. A store may
// keep them or refuse them, but one that is refused must say so, and must not
// take the rest of its batch with it for ever.
var poisons = map[string]func(x *store.Completion){
	"NUL in an error":              func(x *store.Completion) { x.Error = &stint.Failure{Class: "c", Message: "a\x00b"} },
	"NUL in a stack":               func(x *store.Completion) { x.Error = &stint.Failure{Class: "c", Stack: "a\x00b"} },
	"invalid UTF-8 in an error":    func(x *store.Completion) { x.Error = &stint.Failure{Class: "c", Message: "a\xff\xfeb"} },
	"NUL in a reason":              func(x *store.Completion) { x.Reason = "a\x00b" },
	"invalid UTF-8 in a reason":    func(x *store.Completion) { x.Reason = "a\xffb" },
	"NUL in a result":              func(x *store.Completion) { x.Result = json.RawMessage(`{"a":"b\u0000"}`) },
	"NUL in a result's key":        func(x *store.Completion) { x.Result = json.RawMessage(`{"a\u0000":1}`) },
	"half a surrogate in a result": func(x *store.Completion) { x.Result = json.RawMessage(`"\ud800"`) },
	"invalid UTF-8 in a result":    func(x *store.Completion) { x.Result = json.RawMessage("\"\xff\"") },
	"a number beyond all":          func(x *store.Completion) { x.Result = json.RawMessage(`1e200000`) },
	"absurd depth":                 func(x *store.Completion) { x.Result = json.RawMessage(deep(100_000)) },
	"a result that is no JSON":     func(x *store.Completion) { x.Result = json.RawMessage(`{"a":`) },
	"an empty result":              func(x *store.Completion) { x.Result = json.RawMessage{} },
	"a long error":                 func(x *store.Completion) { x.Error = &stint.Failure{Message: strings.Repeat("ü", 1<<20)} },
}

var poisonTests = []test{
	{"A value that the store refuses is told as such, and the batch without it works", func(t *T) {
		w := t.join("k")
		for name, put := range poisons {
			ids := t.enqueue(jobs(3, "k")...)
			done := w.concludeAll(completed, w.ClaimAll()...)
			put(&done[1])
			n, err := w.TryFinish(t.ctx, done...)
			switch {
			case err == nil && n == 3:
				t.readable(name, ids...)
				continue
			case err == nil:
				t.Errorf("%s: %d of 3 were recorded without an error", name, n)
				continue
			case !errors.Is(err, stint.ErrUnstorable):
				t.Errorf("%s: error %v, want ErrUnstorable", name, err)
			}
			t.states(ids, stint.Running)
			w.record(2, done[0], done[2])
			fails(t, errOf(w.TryFinish(t.ctx, done[1])), stint.ErrUnstorable, "%s: alone it gives %v, want ErrUnstorable", name)
			clean := done[1]
			clean.Result, clean.Error, clean.Reason = nil, nil, "sanitised"
			w.record(1, clean)
			t.readable(name, ids...)
		}
	}},
	{"An error that is not about a value does not say so", func(t *T) {
		t.enqueue(job("k"))
		w := t.join("k")
		x := w.Conclude(w.One(), completed)
		w.Leave()
		_, err := w.TryFinish(t.ctx, x)
		expect(t, err != nil && !errors.Is(err, stint.ErrUnstorable), "a buried engine's batch gives %v", err)
	}},
}

// readable checks that people still see finished jobs, whatever was stored
// with them.
func (t *T) readable(name string, ids ...stint.ID) {
	t.Helper()
	for _, id := range ids {
		info, err := t.Store.Job(t.ctx, id)
		if err != nil {
			t.Errorf("%s: it was stored, and now job %d cannot be read: %v", name, id, err)
			continue
		}
		equal(t, info.State, stint.Completed, "%s: job %d is %s, want %s", name, id)
		_, err = json.Marshal(info)
		expect(t, err == nil, "%s: job %d cannot be shown as JSON: %v", name, id, err)
	}
	_, err := t.Store.Jobs(t.ctx, store.Filter{})
	expect(t, err == nil, "%s: it was stored, and now jobs cannot be listed: %v", name, err)
}
