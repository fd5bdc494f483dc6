package storetest

import (
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// expiryTests are about the instant by which a job is to begin. That it is not
// begun later is the engine's affair; a store keeps the instant.
var expiryTests = []test{
	{"The instant to begin by is there on every later attempt, and none is none", func(t *T) {
		by := t.clock().Add(time.Hour).Truncate(time.Microsecond)
		for _, opt := range []stint.Option{stint.StartBy(by), stint.StartWithin(time.Hour), stint.StartBy(time.Time{})} {
			for _, delay := range []time.Duration{0, time.Millisecond} {
				t.keepsStartBy(job("k", opt, stint.Delay(delay)))
			}
		}
	}},
	{"A time to begin within counts from when the job is due", func(t *T) {
		const within = 90*time.Minute + 7*time.Microsecond
		opt, now := stint.StartWithin(within), t.clock()
		jobs := []stint.NewJob{
			job("k", opt), job("k", opt, stint.Delay(time.Hour)), job("k", opt, stint.RunAt(now.Add(2*time.Hour))),
			job("k", opt, stint.RunAt(now.Add(-time.Hour))), job("k", opt, stint.IdempotencyKey("a")), job("k", opt, stint.Tag("a"), stint.Delay(time.Hour)),
		}
		tx := t.begin()
		time.Sleep(20 * time.Millisecond)
		ids := append(t.enqueue(jobs[:4]...), t.enqueueIn(tx, jobs...)...)
		t.must(tx.Commit())
		for _, id := range ids {
			j := t.info(id)
			got := j.StartBy.Sub(j.Due)
			expect(t, got == within,
				"job %d, due %v after it was made, is to begin within %v, want %v", id, j.Due.Sub(j.Created), got, within)
		}
	}},
	{"Jobs of one batch differ in when they are to begin", func(t *T) {
		by := t.clock().Add(time.Hour).Truncate(time.Microsecond)
		opts := [][]stint.Option{
			nil, {stint.StartBy(by)}, {stint.Retry(retry.None())}, {stint.StartBy(by.Add(time.Hour)), stint.Tag("a")},
			{stint.StartBy(by.Add(-24 * time.Hour))}, nil,
		}
		want := []time.Time{{}, by, {}, by.Add(time.Hour), by.Add(-24 * time.Hour), {}}
		var batch []stint.NewJob
		for _, opt := range opts {
			batch = append(batch, job("k", opt...))
		}
		ids := t.enqueue(batch...)
		entries := t.join("k").ClaimAll()
		need(t, len(entries) == len(ids), "%d were claimed, want %d: too late or not, they are ready", len(entries), len(ids))
		for i, e := range entries {
			expect(t, e.ID == ids[i] && e.StartBy.Equal(want[i]) && t.info(e.ID).StartBy.Equal(want[i]),
				"job %d is to begin by %v, and people see %v; want %v", e.ID, e.StartBy, t.info(e.ID).StartBy, want[i])
		}
	}},
	{"A job that is due only after it is to begin is refused with its batch", func(t *T) {
		by := t.clock().Add(time.Hour)
		late := job("k", stint.Delay(2*time.Hour), stint.StartBy(by))
		for _, batch := range [][]stint.NewJob{{late}, {job("k"), late, job("k")}, {job("k", stint.IdempotencyKey("a")), late}} {
			tx := t.begin()
			for _, in := range []stint.Tx{{}, tx.Tx()} {
				fails(t, errOf(stint.NewClient(t.Store).With(in).EnqueueMany(t.ctx, batch)), stint.ErrInvalid,
					"%d jobs, in a transaction %v: the error is %v, want ErrInvalid", len(batch), in.Handle != nil)
			}
			t.must(tx.Rollback())
		}
		equal(t, len(t.ledger().Jobs), 0, "%d jobs were stored, want %d")
		id := t.enqueue(job("k", stint.Delay(time.Minute), stint.StartBy(by)))[0]
		t.state(id, stint.Scheduled)
	}},
	{"One that waits keeps it whenever it is to run, and one that is recovered has none", func(t *T) {
		by := t.clock().Add(time.Hour).Truncate(time.Microsecond)
		ids := t.enqueue(job("k", stint.Delay(time.Minute), stint.StartBy(by)), job("k", stint.Delay(time.Minute), stint.StartBy(by)))
		t.retry(stint.RerunOptions{}, ids[0])
		t.retry(stint.RerunOptions{Delay: 2 * time.Hour}, ids[1])
		for _, id := range ids {
			got := t.info(id).StartBy
			expect(t, got.Equal(by), "job %d, which waited, is to begin by %v, want %v", id, got, by)
		}
		w := t.join("k")
		e := w.One()
		expect(t, e.StartBy.Equal(by), "an engine gets %v, want %v", e.StartBy, by)
		w.Finish(expired, e)
		for _, again := range []stint.RerunOptions{{}, {Delay: time.Hour}} {
			got := t.info(t.recovers(e.ID, again)).StartBy
			expect(t, got.IsZero(), "recovered it is to begin by %v, want no bound", got)
		}
		got := w.One().StartBy
		expect(t, got.IsZero(), "recovered it comes to an engine with %v, want no bound", got)
		got = t.info(e.ID).StartBy
		expect(t, got.Equal(by), "the old job was to begin by %v, want %v", got, by)
	}},
	{"What expired has failed, and did not begin", func(t *T) {
		id := t.enqueue(job("k", stint.StartBy(t.clock().Add(-time.Hour))))[0]
		w := t.join("k")
		x := w.Conclude(w.One(), expired)
		x.Slot, x.Started = 0, time.Time{}
		w.record(1, x)
		j := t.info(id)
		need(t, j.State == stint.Failed && j.Reason == retry.ReasonExpired && j.Attempt == 1 && j.Losses == 0 &&
			len(j.Attempts) == 1,
			"it is %+v", j)
		if x := j.Attempts[0]; x.Outcome != stint.OutcomeExpired || !x.Final || x.Slot != 0 || !x.Started.Equal(x.Finished) || x.Recoverable != nil {
			t.Errorf("its execution is %+v", x)
		}
	}},
	{"What is lost when it is too late to begin again has expired", func(t *T) {
		ids := t.enqueue(job("k", stint.StartWithin(20*time.Millisecond)), job("k", stint.StartWithin(time.Hour)))
		w := t.join("k")
		entries := w.ClaimAll()
		w.Heartbeat(entries[0].Pos, entries[1].Pos)
		time.Sleep(40 * time.Millisecond)
		w.Leave()
		j := t.info(ids[0])
		expect(t, j.State == stint.Failed && j.Reason == retry.ReasonExpired && j.Attempts[0].Outcome == stint.OutcomeLost,
			"it is %s (%s)", j.State, j.Reason)
		t.state(ids[1], stint.Available)
	}},
	{"Those who decide about a failure learn of it", func(t *T) {
		by := t.clock().Add(time.Hour).Truncate(time.Microsecond)
		t.enqueue(job("k", stint.StartBy(by), stint.Retry(retry.Function("f"))))
		w := t.join("k")
		w.Finish(failed, w.One())
		page := must(t.Store.Undecided(t.ctx, []string{"f"}, 0, 10))(t)
		expect(t, len(page) == 1 && page[0].StartBy.Equal(by), "told is %+v, want one to begin by %v", page, by)
	}},
	{"It holds for what is claimed at once", func(t *T) {
		as[store.ClaimedEnqueuer](t)
		by := t.clock().Add(time.Hour).Truncate(time.Microsecond)
		w := t.join("k")
		e := w.now(t, job("k", stint.StartBy(by))).Entries[0]
		expect(t, e.StartBy.Equal(by) && t.info(e.ID).StartBy.Equal(by), "it is to begin by %v, want %v", e.StartBy, by)
		e = w.now(t, job("k", stint.StartWithin(time.Hour))).Entries[0]
		got := e.StartBy.Sub(e.Due)
		expect(t, got.Round(time.Second) == time.Hour, "it is to begin %v after it was due, want an hour", got)
		if e = w.now(t, job("k")).Entries[0]; !e.StartBy.IsZero() {
			t.Errorf("it is to begin by %v, want no bound", e.StartBy)
		}
	}},
}

// keepsStartBy brings a job back in every way there is.
func (t *T) keepsStartBy(j stint.NewJob) {
	t.Helper()
	id := t.enqueue(j)[0]
	want := j.StartBy
	if j.StartWithin > 0 {
		want = t.info(id).Due.Add(j.StartWithin)
	}
	w := t.join("k")
	for i, end := range []store.Result{
		returned, snoozed,
		{Outcome: stint.OutcomeReturned, Part: store.PartKind}, failed, snoozed, completed,
	} {
		if i == 0 && j.Delay > 0 || i == 2 || i == 4 || i == 5 {
			t.promoteAfter(15*time.Millisecond, 1)
		}
		e := w.One()
		info := t.info(id)
		expect(t, e.StartBy.Equal(want) && info.StartBy.Equal(want),
			"appearance %d: it is to begin by %v, and people see %v; want %v", i+1, e.StartBy, info.StartBy, want)
		x := w.Conclude(e, end)
		if x.Next != nil {
			x.Next.Delay = 0
		}
		w.record(1, x)
		got := t.info(id).StartBy
		expect(t, got.Equal(want), "after appearance %d people see that it is to begin by %v, want %v", i+1, got, want)
	}
}

// clock is the store's, read without a trace.
func (t *T) clock() time.Time {
	t.Helper()
	c, ok := t.Store.(store.Clock)
	if !ok {
		return time.Now()
	}
	return must(c.Now(t.ctx))(t)
}

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
