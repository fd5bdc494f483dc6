package storetest

import (
	"errors"
	"time"

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
			n, err := w.TryFinish(t.ctx, w.Conclude(e, end))
			expect(t, err == nil && n == 0, "a second outcome recorded %d, error %v", n, err)
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
		n, err := w.TryFinish(t.ctx, done)
		expect(t, err == nil && n == 1, "its owner recorded %d, error %v", n, err)
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
		n, err = w.TryFinish(t.ctx, done...)
		expect(t, err == nil && n == 4, "with the right claims it recorded %d, error %v", n, err)
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
	for i, want := range []int{6, 0, 0} {
		n, err := w.TryFinish(t.ctx, done...)
		expect(t, err == nil && n == want, "time %d recorded %d, error %v, want %d", i+1, n, err, want)
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
