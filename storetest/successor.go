package storetest

import (
	"math"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// successorTests are about what follows an attempt that was not the last.
var successorTests = []test{
	{"A returned entry goes to the part of the lane that was asked for", func(t *T) {
		w := t.join("k")
		for _, part := range []store.Part{store.PartFront, store.PartKind, store.PartNormal} {
			queue := "to " + string(part)
			id := t.enqueue(job("k", stint.Queue(queue), stint.Priority(3)))[0]
			first := w.One()
			w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: part}, first)
			want := store.LaneOf(queue, 3, part, "k")
			seen := t.look(store.LaneHints{})
			s := (store.LaneHead{Lane: want.ID, Queue: queue, Priority: 3, Kind: "k"})
			expect(t, len(seen) == 1 && seen[want.ID] == s, "a look sees %v, want %v", seen, s)
			again := w.Claim(want.ID, 10)
			need(t, len(again) == 1 && again[0].ID == id && again[0].Pos > first.Pos,
				"the %s lane gave %v, want job %d at a new position", part, positions(again), id)
			w.Complete(again[0])
			t.state(id, stint.Completed)
		}
	}},
	{"Everything said of the job is there on every later attempt", func(t *T) { laterAttempts(t, rich()) }},
	{"Also when it was scheduled", func(t *T) {
		j := rich()
		j.Delay = time.Millisecond
		laterAttempts(t, j)
	}},
	{"Also when nothing was said", func(t *T) { laterAttempts(t, stint.NewJob{Kind: "k"}) }},
	{"Attempts, losses and suspicion are carried as told", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		for i, step := range []struct {
			outcome stint.Outcome
			next    store.Next
		}{
			{stint.OutcomeLost, store.Next{Part: store.PartFront, Attempt: 2, Losses: 1}},
			{stint.OutcomeFailed, store.Next{Wait: true, Why: stint.Retrying, Attempt: 3, Losses: 1, Suspect: 2}},
			{stint.OutcomeSnoozed, store.Next{Wait: true, Why: stint.Scheduled, Attempt: 3, Losses: 2}},
			{stint.OutcomeReturned, store.Next{Part: store.PartNormal, Attempt: 3, Losses: 2, Suspect: 1}},
			{stint.OutcomeLost, store.Next{Part: store.PartKind, Attempt: 4, Losses: 100, Suspect: 7}},
		} {
			next := step.next
			next.Kind, next.Queue = "k", stint.DefaultQueue
			x := w.Conclude(w.One(), store.Result{Outcome: stint.OutcomeReturned})
			x.Outcome, x.Next = step.outcome, &next
			t.must(errOf(w.TryFinish(t.ctx, x)))
			if next.Wait {
				t.promoteAll(1)
			}
			e := t.peek(id, w)
			expect(t, e.Attempt == next.Attempt && e.Losses == next.Losses && e.Suspect == next.Suspect,
				"step %d: attempt %d, %d losses, suspect %d; want %d, %d, %d", i+1, e.Attempt, e.Losses, e.Suspect, next.Attempt,
				next.Losses, next.Suspect)
			info := t.info(id)
			expect(t, info.Attempt == next.Attempt && info.Losses == next.Losses,
				"step %d: people see attempt %d, %d losses; want %d, %d", i+1, info.Attempt, info.Losses, next.Attempt,
				next.Losses)
		}
		w.Complete(w.ClaimAll()...)
	}},
	{"A retry waits from the end of the attempt, by the store's clock", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		x := w.Conclude(w.One(), store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Minute})
		x.Ended = time.Now().Add(-2 * time.Second)
		x.Started = x.Ended
		t.must(errOf(w.TryFinish(t.ctx, x)))
		l := t.ledger()
		need(t, len(l.Waiting) == 1 && l.Waiting[0].Job == id && l.Waiting[0].Why == stint.Scheduled, "waiting is %+v", l.Waiting)
		wait := l.Waiting[0].Due.Sub(l.Executions[0].Finished)
		expect(t, wait >= time.Minute-time.Millisecond && wait <= time.Minute+time.Millisecond,
			"snoozed for a minute, it waits %v from its end", wait)
	}},
	{"A snooze without end is far from due, in a time that can be told", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		var end store.Result
		if !store.AsResult(stint.Snooze(math.MaxInt64), &end) {
			t.Fatal("a snooze is no ending")
		}
		w.Finish(end, w.One())
		t.promoteAll(0)
		t.state(id, stint.Scheduled)
		years := t.info(id).Due.Year() - time.Now().Year()
		expect(t, years >= 99 && years <= 100, "it is due in %d years", years)
	}},
	{"A retry with no wait is due at once", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Finish(snoozed, w.ClaimAll()...)
		t.promoteAll(1)
		got := w.ClaimAll()
		expect(t, len(got) == 1 && got[0].ID == id, "claimed %v, want job %d", jobIDs(got), id)
	}},
	{"A retry may move to another queue and priority", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		x := w.Conclude(w.One(), failed)
		x.Next.Queue, x.Next.Priority, x.Next.Delay = "hospital", 9, 0
		t.must(errOf(w.TryFinish(t.ctx, x)))
		t.promoteAll(1)
		got := w.Claim(store.LaneOf("hospital", 9, store.PartNormal, "").ID, 1)
		expect(t, len(got) == 1 && got[0].ID == id && got[0].Queue == "hospital" && got[0].Priority == 9 && got[0].Attempt == 2,
			"the other queue gave %+v", got)
	}},
	{"An entry is due when its job first was, ready when it became so", func(t *T) {
		t.enqueue(job("k"))
		w := t.join("k")
		first := w.One()
		time.Sleep(20 * time.Millisecond)
		w.Finish(returned, first)
		second := w.One()
		expect(t, second.Due.Equal(first.Due) && second.Created.Equal(first.Created),
			"due %v, created %v; at first %v, %v", second.Due, second.Created, first.Due, first.Created)
		d := second.Ready.Sub(first.Ready)
		expect(t, d >= 15*time.Millisecond && d <= deadline, "returned after 20ms, it became ready %v after the first time", d)
	}},
}

// promoteAll promotes what is due, and checks how much that is.
func (t *T) promoteAll(want int) store.Promotion {
	t.Helper()
	p := must(t.Store.Promote(t.ctx, time.Time{}, 1000))(t)
	need(t, p.Moved == want, "%d jobs were promoted, want %d", p.Moved, want)
	return p
}

// peek reads the newest entry of a job without claiming it.
func (t *T) peek(id stint.ID, w *Worker) store.Entry {
	t.Helper()
	var at store.Position
	for _, e := range t.ledger().Entries {
		if e.Job == id {
			at = max(at, e.Pos)
		}
	}
	entries := must(w.Store.Fetch(t.ctx, []store.Position{at}))(t)
	need(t, len(entries) == 1 && entries[0].ID == id, "position %d gave %v, want an entry of job %d", at, entries, id)
	return entries[0]
}

// laterAttempts brings a job back in every way there is, and compares what
// each attempt sees with what the first one saw.
func laterAttempts(t *T, j stint.NewJob) {
	w := t.join(j.Kind)
	t.enqueue(j)
	if j.Delay > 0 {
		t.promoteAfter(20*time.Millisecond, 1)
	}
	first := w.One()
	e := first
	for i, end := range []store.Result{
		returned, snoozed,
		{Outcome: stint.OutcomeReturned, Part: store.PartKind}, snoozed,
		{Outcome: stint.OutcomeReturned, Part: store.PartNormal},
	} {
		w.Finish(end, e)
		if end.Outcome == stint.OutcomeSnoozed {
			t.promoteAll(1)
		}
		before := e.Pos
		e = w.One()
		expect(t, e.Pos > before, "return %d: position %d is not after %d", i+1, e.Pos, before)
		noDiff(t, cmp.Diff(first.Job, e.Job, sameJob...), "return %d (-first +later)", i+1)
	}
	w.Complete(e)
	info := t.info(e.ID)
	expect(t, info.State == stint.Completed && sameJSON(info.Args, first.Args), "people see %s, %s", info.State, info.Args)
}
