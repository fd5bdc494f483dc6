package storetest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var inspectTests = []test{
	{"A job is seen at every step of its life", wholeLife},
	{"A job that does not exist is not found", func(t *T) {
		for _, id := range []stint.ID{1 << 60, 0, -1} {
			fails(t, errOf(t.Store.Job(t.ctx, id)), stint.ErrNotFound, "job %d gives %v, want ErrNotFound", id)
		}
	}},
	{"A position of a later entry is not a job", func(t *T) {
		t.enqueue(job("k"))
		w := t.join("k")
		w.Finish(returned, w.ClaimAll()...)
		pos := w.One().Pos
		j, err := t.Store.Job(t.ctx, stint.ID(pos))
		expect(t, errors.Is(err, stint.ErrNotFound), "position %d is shown as job %+v, error %v", pos, j, err)
		equal(t, len(t.list(store.Filter{})), 1, "%d jobs are listed, want %d")
	}},
	{"How many are ahead of an available job is counted in its queue, priority and limits", func(t *T) {
		w := t.join("k")
		ahead := func(id stint.ID, most, want int) {
			t.Helper()
			equal(t, must(t.Store.Ahead(t.ctx, id, most))(t), want, "ahead of job %d are %d jobs, want %d", id)
		}
		ids := t.enqueue(jobs(6, "k")...)
		t.enqueue(jobs(3, "other", stint.Queue("other"))...)
		urgent := t.enqueue(job("k", stint.Priority(-1)), job("k", stint.Limited("smtp")))
		ahead(ids[0], 100, 0)
		ahead(ids[5], 100, 5)
		ahead(ids[5], 3, 3)
		ahead(urgent[0], 100, 0)
		ahead(urgent[1], 100, 0)
		lane := store.LimitedLane(stint.DefaultQueue, 0, store.PartNormal, "", "").ID
		held := w.Claim(lane, 2)
		ahead(ids[5], 100, 3)
		ahead(ids[0], 100, 0)
		t.waits(w, failed, held[0])
		ahead(held[0].ID, 100, 4)
		again := w.Claim(lane, 1)
		w.Complete(held[1], again[0])
		ahead(ids[5], 100, 2)
		ahead(held[1].ID, 100, 0)
		ahead(1<<60, 100, 0)
	}},
	{"Jobs are listed by falling ID, a hundred unless told", func(t *T) {
		ids := t.enqueue(jobs(130, "k")...)
		slices.Reverse(ids)
		got := t.list(store.Filter{})
		expect(t, slices.Equal(got, ids[:100]), "%d jobs are listed, not the newest hundred", len(got))
		got = t.list(store.Filter{Limit: 1000})
		expect(t, slices.Equal(got, ids), "%d jobs are listed, want all", len(got))
	}},
	{"Pages follow each other without gap or repetition", func(t *T) {
		ids := t.enqueue(jobs(23, "k")...)
		slices.Reverse(ids)
		var got []stint.ID
		f := store.Filter{Limit: 5}
		for {
			page := t.list(f)
			got = append(got, page...)
			if len(page) < f.Limit {
				break
			}
			f.Before = page[len(page)-1]
		}
		equalAll(t, got, ids, "the pages show %v, want %v")
	}},
	{"A filter shows what it says, alone and together", filters},
	{"A filter by what went wrong shows each job of which an attempt ended so, crashes included", troubles},
	{"A filter by a time shows what happened in it, from its begin and before its end", spans},
	{"Those who go through a selection meet each job once, whatever they do to it", selections},
	{"Counts are those of a recount, in every mixture of states", func(t *T) {
		t.oneOfEach()
		counts := must(t.Store.Counts(t.ctx))(t)
		recount := map[stint.State]int64{}
		all := must(t.Store.Jobs(t.ctx, store.Filter{Limit: 1000}))(t)
		for _, j := range all {
			recount[j.State]++
		}
		audited := map[stint.State]int64{}
		for _, j := range t.ledger().Jobs {
			audited[j.State]++
		}
		zero := cmpopts.IgnoreMapEntries(func(_ stint.State, n int64) bool { return n == 0 })
		noDiff(t, cmp.Diff(recount, counts, zero), "counts (-listed +counted)")
		noDiff(t, cmp.Diff(audited, counts, zero), "counts (-audited +counted)")
	}},
	{"A running job has begun when its engine says so", func(t *T) {
		ids := t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		w.Finish(returned, w.Claim(lane(stint.DefaultQueue), 2)...)
		at := map[stint.ID]store.Position{}
		for _, e := range w.ClaimAll() {
			at[e.ID] = e.Pos
		}
		for _, begun := range [][]stint.ID{nil, {ids[0], ids[2]}, {ids[1]}, {ids[3]}, nil} {
			var running []store.Position
			for _, id := range begun {
				running = append(running, at[id])
			}
			w.Heartbeat(running...)
			for _, id := range ids {
				info := t.info(id)
				expect(t, info.State == stint.Running && info.Begun == slices.Contains(begun, id),
					"announced: %v; job %d shows as %s, begun %v", begun, id, info.State, info.Begun)
			}
		}
	}},
	{"All attempts are shown, oldest first", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		ends := []store.Result{
			returned, snoozed,
			{Outcome: stint.OutcomeReturned, Part: store.PartKind}, {Outcome: stint.OutcomeCompleted},
		}
		for _, end := range ends {
			w.Finish(end, w.ClaimAll()...)
			t.enqueue(job("other", stint.Queue("other"))) // it ends behind the attempt
			w.Complete(w.Claim(lane("other"), 1)...)
			shows := func() {
				t.Helper()
				info := t.info(id)
				last := info.Attempts[len(info.Attempts)-1]
				expect(t, info.Started.Equal(last.Started) && info.Finished.Equal(last.Finished),
					"behind its attempt that was %s, while it is %s, the job shows %v to %v, the attempt %+v", end.Outcome,
					info.State, info.Started, info.Finished, last)
			}
			shows()
			if end.Outcome == stint.OutcomeSnoozed {
				t.promoteAll(1)
				shows()
			}
		}
		info := t.info(id)
		var got []stint.Outcome
		for i, x := range info.Attempts {
			got = append(got, x.Outcome)
			expect(t, i <= 0 || !x.Finished.Before(info.Attempts[i-1].Finished), "attempt %d ended before the one before it", i+1)
		}
		want := []stint.Outcome{stint.OutcomeReturned, stint.OutcomeSnoozed, stint.OutcomeReturned, stint.OutcomeCompleted}
		equalAll(t, got, want, "the outcomes are %v, want %v")
		listed := must(t.Store.Jobs(t.ctx, store.Filter{Kind: "k"}))(t)
		expect(t, len(listed) == 1 && listed[0].Attempts == nil, "the list shows executions")
		info.Attempts = nil
		noDiff(t, cmp.Diff(*info, listed[0], sameJob...), "the list differs from the job (-job +list)")
	}},
}

// list lists the IDs that a filter shows.
func (t *T) list(f store.Filter) []stint.ID {
	t.Helper()
	all := must(t.Store.Jobs(t.ctx, f))(t)
	ids := []stint.ID{}
	for _, j := range all {
		ids = append(ids, j.ID)
	}
	return ids
}

func wholeLife(t *T) {
	id := t.enqueue(job("k", stint.Delay(30*time.Millisecond)))[0]
	see := func(state stint.State, attempt, executions int) {
		t.Helper()
		j := t.info(id)
		expect(t, j.State == state && j.Attempt == attempt && len(j.Attempts) == executions,
			"it shows as %s, attempt %d, %d executions; want %s, %d, %d", j.State, j.Attempt, len(j.Attempts), state, attempt,
			executions)
		equalAll(t, t.list(store.Filter{States: []stint.State{state}}), []stint.ID{id},
			"the filter by %s shows %v, want %v", state)
	}
	w := t.join("k")
	see(stint.Scheduled, 1, 0)
	time.Sleep(40 * time.Millisecond)
	see(stint.Scheduled, 1, 0)
	t.promoteAll(1)
	see(stint.Available, 1, 0)
	e := w.ClaimAll()
	see(stint.Running, 1, 0)
	w.Finish(returned, e...)
	see(stint.Available, 1, 1)
	e = w.ClaimAll()
	see(stint.Running, 1, 1)
	x := w.Conclude(e[0], failed)
	x.Next.Delay = 0
	w.record(1, x)
	see(stint.Retrying, 2, 2)
	t.promoteAll(1)
	see(stint.Available, 2, 2)
	e = w.ClaimAll()
	see(stint.Running, 2, 2)
	w.Finish(snoozed, e...)
	see(stint.Scheduled, 2, 3)
	t.promoteAll(1)
	w.Complete(w.ClaimAll()...)
	see(stint.Completed, 2, 4)
}

// oneOfEach brings a job into every state, each in another queue, and two of
// some.
func (t *T) oneOfEach() map[stint.State]stint.ID {
	t.Helper()
	w := t.join("k")
	all := map[stint.State]stint.ID{}
	put := func(s stint.State, end *store.Result, opts ...stint.Option) {
		all[s] = t.enqueue(job("k", append(opts, stint.Queue(string(s)))...))[0]
		if entries := w.Claim(lane(string(s)), 10); end != nil {
			w.Finish(*end, entries...)
		}
	}
	put(stint.Scheduled, nil, stint.Delay(time.Hour))
	put(stint.Running, nil)
	put(stint.Completed, &completed)
	put(stint.Cancelled, &cancelled)
	put(stint.Failed, &failedFinally)
	put(stint.Retrying, &failed)
	put(stint.Scheduled, &store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour})
	put(stint.Available, &returned)
	t.enqueue(job("k", stint.Queue("available")), job("k", stint.Queue("another")))
	return all
}

func filters(t *T) {
	a := t.enqueue(
		job("a", stint.Queue("p"), stint.Tag("x", "y"), stint.URN("urn:1"), stint.Source("cron")),
		job("a", stint.Queue("q"), stint.Tag("x"), stint.URN("urn:2")),
		job("b", stint.Queue("p"), stint.Tag("y y"), stint.URN("urn:1"), stint.Source("cron")),
		job("b", stint.Queue("p"), stint.Tag("x"), stint.Delay(time.Hour)),
	)
	w := t.join("a", "b")
	w.Complete(w.Claim(lane("q"), 1)...)
	for _, c := range []struct {
		f    store.Filter
		want []int
	}{
		{store.Filter{Kind: "a"}, []int{1, 0}},
		{store.Filter{Queue: "p"}, []int{3, 2, 0}},
		{store.Filter{Tag: "x"}, []int{3, 1, 0}},
		{store.Filter{Tag: "y y"}, []int{2}},
		{store.Filter{Tag: "y"}, []int{0}},
		{store.Filter{URN: "urn:1"}, []int{2, 0}},
		{store.Filter{URN: "urn:1*"}, []int{2, 0}},
		{store.Filter{URN: "urn:*"}, []int{2, 1, 0}},
		{store.Filter{URN: "*"}, []int{2, 1, 0}},
		{store.Filter{URN: "urn:*", Kind: "a"}, []int{1, 0}},
		{store.Filter{URN: "urn:*", Before: a[2], Limit: 1}, []int{1}},
		{store.Filter{URN: "urn:*", After: a[0]}, []int{2, 1}},
		{store.Filter{URN: "urn:*", Tag: "x"}, []int{1, 0}},
		{store.Filter{URN: "urn:*", States: []stint.State{stint.Completed}}, []int{1}},
		{store.Filter{URN: "urn:*", States: []stint.State{stint.Scheduled}}, nil},
		{store.Filter{URN: "urn:*", States: []stint.State{stint.Available}, Source: "cron"}, []int{2, 0}},
		{store.Filter{URN: "urn:3*"}, nil},
		{store.Filter{URN: "urn:%*"}, nil},
		{store.Filter{URN: "Urn:*"}, nil},
		{store.Filter{URN: "urn:"}, nil},
		{store.Filter{States: []stint.State{stint.Completed}}, []int{1}},
		{store.Filter{States: []stint.State{stint.Scheduled}}, []int{3}},
		{store.Filter{States: []stint.State{stint.Failed}}, nil},
		{store.Filter{Kind: "none"}, nil},
		{store.Filter{Tag: "%"}, nil},
		{store.Filter{States: []stint.State{stint.Completed, stint.Scheduled}}, []int{3, 1}},
		{store.Filter{States: []stint.State{stint.Scheduled, stint.Retrying}, Tag: "x"}, []int{3}},
		{store.Filter{States: []stint.State{stint.Scheduled, stint.Retrying, stint.Failed, stint.Cancelled}}, []int{3}},
		{store.Filter{States: store.States}, []int{3, 2, 1, 0}},
		{store.Filter{Source: "cron"}, []int{2, 0}},
		{store.Filter{Source: "cron", Kind: "b", Queue: "p"}, []int{2}},
		{store.Filter{Source: "cro"}, nil},
		{store.Filter{Outcome: stint.OutcomeCompleted}, []int{1}},
		{store.Filter{Kind: "a", Queue: "p"}, []int{0}},
		{store.Filter{Kind: "b", Tag: "x", States: []stint.State{stint.Scheduled}}, []int{3}},
		{store.Filter{Kind: "a", Tag: "x", States: []stint.State{stint.Scheduled}}, nil},
		{store.Filter{Before: a[2]}, []int{1, 0}},
		{store.Filter{Queue: "p", Before: a[3], Limit: 1}, []int{2}},
		{store.Filter{After: a[1]}, []int{3, 2}},
		{store.Filter{After: a[0], Before: a[3]}, []int{2, 1}},
		{store.Filter{After: a[0], Before: a[1]}, nil},
		{store.Filter{Kind: "b", After: a[2]}, []int{3}},
		{store.Filter{States: []stint.State{stint.Completed}, After: a[0]}, []int{1}},
		{store.Filter{States: []stint.State{stint.Completed}, After: a[1]}, nil},
		{store.Filter{States: []stint.State{stint.Scheduled}, After: a[2]}, []int{3}},
		{store.Filter{States: []stint.State{stint.Scheduled, stint.Available}, After: a[3]}, nil},
	} {
		var want []stint.ID
		for _, i := range c.want {
			want = append(want, a[i])
		}
		t.shows(c.f, want...)
	}
}

// shows checks what a filter shows, and what it finds.
func (t *T) shows(f store.Filter, want ...stint.ID) {
	t.Helper()
	equalAll(t, t.list(f), want, "%+v shows %v, want %v", f)
	if o, ok := t.Store.(store.Operator); ok {
		got, err := o.Find(t.ctx, f)
		expect(t, err == nil && slices.Equal(got, want), "%+v finds %v, error %v, want %v", f, got, err, want)
	}
}

// troubles has attempts end in every way that is not success.
func troubles(t *T) {
	ids := t.enqueue(jobs(7, "k", stint.Retry(retry.Forever(time.Millisecond)))...)
	w := t.join("k")
	e := w.ClaimAll()
	no, odd := errors.New("no paper"), fmt.Errorf("wrapped: %w", io.ErrUnexpectedEOF)
	w.Complete(e[0])
	w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: no}, e[1])
	w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(odd)}, e[2])
	w.Finish(store.Result{Outcome: stint.OutcomeCancelled, Err: no}, e[3])
	w.Finish(expired, e[4])
	lost := w.Conclude(e[5], store.Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost})
	lost.Final, lost.Next, lost.Reason = true, nil, retry.ReasonLost
	w.record(1, lost)
	w.Finish(store.Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost}, e[6])
	w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: no}, w.One())
	t.promoteAfter(15*time.Millisecond, 2)
	for _, again := range w.ClaimAll() {
		if again.ID == ids[6] {
			w.Complete(again)
		} else {
			w.Finish(returned, again)
		}
	}
	class := t.info(ids[2]).Attempts[0].Error.Class
	failed := []stint.State{stint.Failed}
	t.shows(store.Filter{Outcome: stint.OutcomeLost}, ids[6], ids[5])
	t.shows(store.Filter{Outcome: stint.OutcomeLost, States: failed}, ids[5])
	t.shows(store.Filter{Outcome: stint.OutcomeExpired}, ids[4])
	t.shows(store.Filter{Outcome: stint.OutcomeFailed}, ids[6], ids[2], ids[1])
	t.shows(store.Filter{Outcome: stint.OutcomeFailed, Before: ids[6], Limit: 1}, ids[2])
	t.shows(store.Filter{Outcome: stint.OutcomeReturned}, ids[1])
	t.shows(store.Filter{Outcome: stint.OutcomeCompleted}, ids[6], ids[0])
	t.shows(store.Filter{States: failed}, ids[5], ids[4], ids[2])
	t.shows(store.Filter{Error: "paper"}, ids[6], ids[3], ids[1])
	t.shows(store.Filter{Error: "paper", Kind: "k", States: []stint.State{stint.Available, stint.Completed}}, ids[6], ids[1])
	t.shows(store.Filter{Error: "Paper"})
	t.shows(store.Filter{Error: "%"})
	t.shows(store.Filter{Error: retry.ErrLost.Error()}, ids[6], ids[5])
	t.shows(store.Filter{Class: class, Error: "wrapped: "}, ids[2])
	t.shows(store.Filter{Class: class, Outcome: stint.OutcomeCancelled}, ids[3])
	t.shows(store.Filter{Class: "none"})
	several := w.Conclude(w.One(), store.Result{Outcome: stint.OutcomeFailed, Err: no})
	several.Error.Classes = []string{several.Error.Class, "stationery"}
	w.record(1, several)
	t.shows(store.Filter{Class: "stationery"}, ids[1])
	w.Leave()
}

// spans bring jobs into one time or another.
func spans(t *T) {
	ids := t.enqueue(jobs(2, "k")...)
	w := t.join("k")
	w.Complete(w.Claim(lane(stint.DefaultQueue), 1)...)
	time.Sleep(3 * time.Millisecond)
	ids = append(ids, t.enqueue(job("k", stint.Delay(time.Hour)))...)
	a, b, c := t.info(ids[0]), t.info(ids[1]), t.info(ids[2])
	span := func(from, to time.Time) store.TimeRange { return store.TimeRange{From: from, To: to} }
	later := c.Due.Add(time.Hour)
	t.shows(store.Filter{Created: span(a.Created, c.Created)}, ids[1], ids[0])
	t.shows(store.Filter{Created: span(c.Created, time.Time{})}, ids[2])
	t.shows(store.Filter{Created: span(time.Time{}, a.Created)})
	t.shows(store.Filter{Due: span(c.Due, later)}, ids[2])
	t.shows(store.Filter{Due: span(c.Created, c.Due)})
	t.shows(store.Filter{Due: span(b.Due, c.Due), States: []stint.State{stint.Available}}, ids[1])
	t.shows(store.Filter{Finished: span(a.Finished, time.Time{})}, ids[0])
	t.shows(store.Filter{Finished: span(time.Time{}, a.Finished)})
	t.shows(store.Filter{Finished: span(time.Time{}, later), Kind: "k"}, ids[0])
	w.Finish(returned, w.One())
	between := t.info(ids[1])
	expect(t, !between.Finished.IsZero() && !between.Started.IsZero(),
		"between two attempts it shows %v to %v", between.Started, between.Finished)
	t.shows(store.Filter{Finished: span(c.Created, later)}, ids[1])
	w.Finish(failed, w.One())
	t.shows(store.Filter{Finished: span(c.Created, later), States: []stint.State{stint.Retrying}}, ids[1])
}

func selections(t *T) {
	o := as[store.Operator](t)
	ids := t.enqueue(append(jobs(12, "k", stint.Delay(time.Hour)), jobs(3, "other", stint.Delay(time.Hour))...)...)
	slices.Reverse(ids)
	f := store.Filter{Kind: "k", States: []stint.State{stint.Scheduled}}
	for _, c := range []struct{ size, limit, want int }{{5, 0, 12}, {12, 0, 12}, {1, 0, 12}, {5, 7, 7}, {5, 5, 5}, {50, 3, 3}} {
		f.Limit = c.limit
		var got []stint.ID
		for batch, err := range store.FindEach(t.ctx, o, f, c.size) {
			t.must(err)
			expect(t, len(batch) != 0 && len(batch) <= c.size, "a batch of %d, want up to %d", len(batch), c.size)
			got = append(got, batch...)
		}
		equalAll(t, got, ids[3:3+c.want], "in batches of %d, up to %d: %v, want %v", c.size, c.limit)
	}
	f.Limit = 0
	n := 0
	for batch, err := range store.FindEach(t.ctx, o, f, 5) {
		t.must(err)
		t.cancel("", batch...)
		t.retry(stint.RerunOptions{}, batch...) // of the same kind, but enqueued meanwhile
		t.must(errOf(t.Store.(store.Operator).Delete(t.ctx, batch)))
		n += len(batch)
	}
	left := t.list(f)
	expect(t, n == 12 && len(left) == 0, "%d were met, and %v are left", n, left)
	ended := t.over()
	for _, err := range store.FindEach(ended, o, store.Filter{}, 5) {
		expect(t, err != nil, "a batch came though the context has ended")
	}
	w := t.join("k")
	w.Complete(w.ClaimAll()...)
}
