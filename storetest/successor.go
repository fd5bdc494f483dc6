package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
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
			s := (store.LaneHead{Lane: want.ID, Queue: queue, Priority: 3, Kind: "k", First: seen[want.ID].First})
			expect(t, len(seen) == 1 && seen[want.ID] == s, "a look sees %v, want %v", seen, s)
			again := w.Claim(want.ID, 10)
			need(t, len(again) == 1 && again[0].ID == id && again[0].Pos > first.Pos && again[0].Pos == s.First,
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
			w.record(1, x)
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
		w.record(1, x)
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
		w.record(1, x)
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

var waitingTests = []test{
	{"Only what is due is promoted", func(t *T) {
		ids := t.enqueue(job("k", stint.Delay(10*time.Millisecond)), job("k", stint.Delay(time.Hour)))
		t.promoteAfter(20*time.Millisecond, 1)
		t.states(ids, stint.Available, stint.Scheduled)
		equalAll(t, jobIDs(t.join("k").ClaimAll()), ids[:1], "claimed %v, want %v")
		t.promoteAll(0)
	}},
	{"Nothing is promoted early", func(t *T) {
		id := t.enqueue(job("k", stint.Delay(150*time.Millisecond)))[0]
		due := t.info(id).Due
		for {
			p := must(t.Store.Promote(t.ctx, time.Time{}, 10))(t)
			if p.Moved == 1 {
				break
			}
			time.Sleep(2 * time.Millisecond)
		}
		e := t.peek(id, t.join("k"))
		expect(t, !e.Ready.Before(due), "due at %v, it was ready at %v", due, e.Ready)
	}},
	{"Jobs become ready in the order of their due times, whatever that of their enqueues", func(t *T) {
		var batch []stint.NewJob
		for _, ms := range []int{40, 10, 30, 20, 50} {
			batch = append(batch, job("k", stint.Delay(time.Duration(ms)*time.Millisecond)))
		}
		ids := t.enqueue(batch...)
		fresh := t.enqueue(job("k"))[0]
		t.promoteAfter(70*time.Millisecond, 5)
		want := []stint.ID{fresh, ids[1], ids[3], ids[2], ids[0], ids[4]}
		got := t.join("k").Claim(lane(stint.DefaultQueue), 10)
		equalAll(t, jobIDs(got), want, "claimed %v, want %v")
		expect(t, slices.IsSorted(positions(got)) && distinct(positions(got)), "the positions %v do not rise", positions(got))
	}},
	{"A promoted job keeps its ID and everything said of it", func(t *T) {
		want := rich()
		want.Delay = 10 * time.Millisecond
		id := t.enqueue(want)[0]
		before := t.info(id)
		t.promoteAfter(20*time.Millisecond, 1)
		e := t.join(want.Kind).One()
		job := stint.Job{
			ID: id, Kind: want.Kind, Args: want.Args, Queue: want.Queue, Priority: want.Priority, Attempt: 1,
			MaxLosses: 7, Retry: want.Retry, Timeout: want.Timeout, Tags: want.Tags, URN: want.URN, Source: want.Source,
			Metadata: want.Metadata, StartBy: want.StartBy, Correlation: want.Correlation, Created: before.Created, Due: before.Due,
		}
		noDiff(t, cmp.Diff(job, e.Job, sameJob...), "claimed job (-want +got)")
		expect(t, e.Pos > store.Position(id), "the position %d is not a fresh one: the job is %d", e.Pos, id)
	}},
	{"The limit is respected, and the earliest come first", func(t *T) {
		offsets := make([]time.Duration, 7)
		for i := range offsets {
			offsets[i] = time.Duration(i) * time.Millisecond
		}
		want, at := t.comingUp(offsets...)
		var from time.Time
		for i, moved := range []int{3, 3, 1, 0} {
			p := must(t.Store.Promote(t.ctx, from, 3))(t)
			equal(t, p.Moved, moved, "call %d moved %d, want %d", i+1)
			equal(t, p.More, moved == 3, "call %d: there may be more is %v, want %v", i+1)
			last := at.Add(time.Duration(3*i+moved-1) * time.Millisecond)
			expect(t, moved <= 0 || p.Until.Equal(last), "call %d moved until %v, want %v", i+1, p.Until, last)
			if moved > 0 {
				from = p.Until
			}
		}
		equalAll(t, jobIDs(t.join("k").ClaimAll()), want, "claimed %v, want %v")
	}},
	{"A scan from a bound sees what is due at it, and not what is before", func(t *T) {
		ids, due := t.comingUp(0, 0, 0, 0, 0, -5*time.Millisecond)
		early := ids[5]
		for i, want := range []int{2, 2, 1, 0} {
			p := must(t.Store.Promote(t.ctx, due, 2))(t)
			equal(t, p.Moved, want, "call %d moved %d, want %d", i+1)
			expect(t, want != 0 || p.Next < 0, "nothing waits behind the bound, and Next is %v", p.Next)
		}
		t.state(early, stint.Scheduled)
		t.promoteAll(1)
	}},
	{"Next tells how long until the next job is due", func(t *T) {
		next := func() time.Duration {
			t.Helper()
			p := must(t.Store.Promote(t.ctx, time.Time{}, 1))(t)
			return p.Next
		}
		d := next()
		expect(t, d < 0, "nothing waits, and Next is %v", d)
		t.enqueue(job("k"))
		d = next()
		expect(t, d < 0, "nothing waits but a job is available, and Next is %v", d)
		t.enqueue(job("k", stint.Delay(2*time.Hour)))
		d = next()
		expect(t, d <= 2*time.Hour && d >= 2*time.Hour-deadline, "a job waits for 2h, and Next is %v", d)
		t.enqueue(job("k", stint.Delay(time.Hour)))
		d = next()
		expect(t, d <= time.Hour && d >= time.Hour-deadline, "a job waits for 1h, and Next is %v", d)
		t.enqueue(jobs(3, "k", stint.Delay(time.Millisecond))...)
		time.Sleep(10 * time.Millisecond)
		for i := range 2 {
			equal(t, next(), 0, "%d jobs are overdue, and Next is %v, want %v", 2-i)
		}
		d = next()
		expect(t, d <= time.Hour && d >= time.Hour-deadline, "after the last due job Next is %v, want nearly 1h", d)
	}},
	{"Many promoters move each job once", func(t *T) {
		const n = 300
		want := t.enqueue(jobs(n, "k", stint.Delay(time.Millisecond))...)
		time.Sleep(10 * time.Millisecond)
		other := t.again()
		var moved [6]int
		errs := atOnce(6, func(i int) error {
			for range 2000 {
				p, err := []Store{t.Store, other}[i%2].Promote(t.ctx, time.Time{}, 7)
				if err != nil || p.Moved == 0 && p.Next < 0 {
					return err
				}
				if moved[i] += p.Moved; moved[i] > n {
					return fmt.Errorf("one promoter moved %d, there are %d", moved[i], n)
				}
				if p.Moved == 0 {
					time.Sleep(time.Millisecond) // the others have what is due in hand
				}
			}
			return errors.New("there is no end to it")
		})
		t.must(errors.Join(errs...))
		sum := 0
		for _, m := range moved {
			sum += m
		}
		got := slices.Sorted(slices.Values(jobIDs(t.join("k").ClaimAll())))
		expect(t, sum == n && slices.Equal(got, want), "%d were promoted and %d claimed, want each of %d once", sum, len(got), n)
	}},
	{"A retried job goes through promotion with its next attempt", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		for attempt := 1; attempt <= 3; attempt++ {
			e := w.One()
			need(t, e.ID == id && e.Attempt == attempt, "claimed job %d, attempt %d; want %d, %d", e.ID, e.Attempt, id, attempt)
			x := w.Conclude(e, failed)
			x.Next.Delay = 5 * time.Millisecond
			w.record(1, x)
			t.state(id, stint.Retrying)
			t.promoteAfter(15*time.Millisecond, 1)
			t.state(id, stint.Available)
		}
		w.Complete(w.ClaimAll()...)
	}},
	{"A batch promoted into many lanes reaches all of them", func(t *T) {
		var want []stint.ID
		for _, q := range []string{"a", "b"} {
			for p := range 3 {
				want = append(want, t.enqueue(jobs(2, "k", stint.Queue(q), stint.Priority(p), stint.Delay(time.Millisecond))...)...)
			}
		}
		t.promoteAfter(10*time.Millisecond, len(want))
		equalAll(t, slices.Sorted(slices.Values(jobIDs(t.join("k").ClaimAll()))), want, "claimed %v, want %v")
	}},
}

// comingUp enqueues jobs for instants around one in the near future, and
// returns when all of them are due. On a busy machine that instant may have
// passed when they arrive in the store, so it tries again for a later one.
func (t *T) comingUp(offsets ...time.Duration) ([]stint.ID, time.Time) {
	t.Helper()
	for lead := 30 * time.Millisecond; lead < patience(); lead *= 3 {
		tx := t.begin()
		at := time.Now().Add(lead).Truncate(time.Millisecond)
		var batch []stint.NewJob
		for _, d := range offsets {
			batch = append(batch, job("k", stint.RunAt(at.Add(d))))
		}
		ids := t.enqueueIn(tx, batch...)
		if time.Until(at) < lead/3 {
			t.must(tx.Rollback())
			continue
		}
		t.must(tx.Commit())
		time.Sleep(time.Until(at) + slices.Max(offsets) + 5*time.Millisecond)
		return ids, at
	}
	t.Fatal("the store is too slow for this test")
	return nil, time.Time{}
}
