package storetest

import (
	"cmp"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// statsTests compare sums with those that the tests make of the executions.
var statsTests = []test{
	{"Whatever happens meanwhile, the sums are those of the executions, also of deleted ones", statsStorm},
	{"Attempts stay in the sums when their jobs are deleted, before the sums come to them or after", func(t *T) {
		b, w := newBook(t), t.join("k")
		for _, before := range []bool{true, false, true} {
			ids := t.enqueue(jobs(3, "k")...)
			done := w.concludeAll(completed, b.note(w.ClaimAll())...)
			b.finish(w, done...)
			if !before {
				t.sumUp()
			}
			b.delete(ids[:2]...)
			t.sums(b, report.StatsFilter{})
			t.sumUp()
			t.sums(b, report.StatsFilter{Every: time.Hour})
			t.sums(b, report.StatsFilter{Every: time.Minute})
		}
	}},
	{"Many who sum up at once count nothing twice", func(t *T) {
		b, w := newBook(t), t.join("k")
		others := []report.StatsStore{as[report.StatsStore](t), t.again().(report.StatsStore)}
		for range 5 {
			t.enqueue(jobs(20, "k")...)
			entries := b.note(w.ClaimAll())
			for i, err := range atOnce(8, func(i int) error {
				if i == 0 {
					done := w.concludeAll(completed, entries...)
					b.finish(w, done...)
					return nil
				}
				_, err := others[i%2].SumUp(t.ctx)
				return err
			}) {
				expect(t, err == nil, "number %d: %v", i, err)
			}
			t.sums(b, report.StatsFilter{})
			t.sums(b, report.StatsFilter{Every: time.Minute})
		}
	}},
	{"Hours are those of UTC, and a filter means whole ones", func(t *T) {
		b, w := newBook(t), t.join("k")
		t.enqueue(jobs(8, "k")...)
		now := time.Now()
		for i, e := range b.note(w.ClaimAll()) {
			x := w.Conclude(e, completed)
			x.Ended = now.Add(-time.Duration(i) * 50 * time.Minute)
			x.Started = x.Ended.Add(-time.Duration(i) * time.Second)
			b.finish(w, x)
			t.sumUp()
		}
		for _, f := range []report.StatsFilter{
			{Every: time.Hour}, {Every: time.Hour, From: now.Add(-2 * time.Hour)}, {From: now.Add(-2 * time.Hour)}, {To: now.Add(-2 * time.Hour)},
			{From: now.Truncate(time.Hour)}, {To: now.Truncate(time.Hour), Every: time.Hour},
			{From: now.Add(-3 * time.Hour), To: now.Add(-time.Hour), Every: time.Hour}, {From: now.Add(time.Hour)},
		} {
			t.sums(b, f)
		}
	}},
	{"A filter means whole minutes where each is told, summed up or not", func(t *T) {
		b, w := newBook(t), t.join("k")
		t.enqueue(jobs(8, "k")...)
		now := t.clock()
		for i, e := range b.note(w.ClaimAll()) {
			x := w.Conclude(e, completed)
			x.Ended = now.Add(-time.Duration(i) * 50 * time.Second)
			x.Started = x.Ended.Add(-time.Duration(i) * time.Millisecond)
			b.finish(w, x)
		}
		for range 2 {
			for _, f := range []report.StatsFilter{
				{Every: time.Minute}, {Every: time.Minute, From: now.Add(-2 * time.Minute)}, {Every: time.Minute, To: now.Add(-2 * time.Minute)},
				{Every: time.Minute, From: now.Truncate(time.Minute)}, {Every: time.Minute, To: now.Truncate(time.Minute)},
				{Every: time.Minute, From: now.Add(-3 * time.Minute), To: now.Add(-time.Minute)}, {Every: time.Minute, From: now.Add(time.Minute)},
			} {
				t.sums(b, f)
			}
			t.sumUp()
		}
	}},
	{"Minutes are told of the last two days, and hours and all together for ever", func(t *T) {
		b, w := newBook(t), t.join("k")
		t.enqueue(jobs(6, "k")...)
		now := t.clock()
		for i, e := range b.note(w.ClaimAll()) {
			x := w.Conclude(e, completed)
			x.Ended = now.Add(-[]time.Duration{time.Hour, 47 * time.Hour, 48*time.Hour - 2*time.Minute, 48*time.Hour + 3*time.Minute, 49 * time.Hour, 100 * time.Hour}[i])
			x.Started = x.Ended.Add(-time.Second)
			b.finish(w, x)
		}
		for range 3 {
			for _, f := range []report.StatsFilter{
				{Every: time.Minute}, {Every: time.Minute, From: now.Add(-60 * time.Hour)}, {Every: time.Minute, From: now.Add(-2 * time.Hour)},
				{Every: time.Minute, To: now.Add(-48 * time.Hour)}, {Every: time.Hour}, {},
			} {
				t.sums(b, f)
			}
			t.sumUp()
		}
	}},
	{"How attempts are distributed is counted by the same bounds everywhere", func(t *T) {
		b, w := newBook(t), t.join("k")
		t.enqueue(jobs(2*len(report.HistogramBounds), "k")...)
		var done []store.Completion
		for i, e := range b.note(w.ClaimAll()) {
			x := w.Conclude(e, completed)
			x.Started = x.Ended.Add(time.Duration(i%2)*time.Microsecond - report.HistogramBounds[i/2])
			done = append(done, x)
		}
		b.finish(w, done...)
		for range 2 {
			t.sums(b, report.StatsFilter{})
			t.sums(b, report.StatsFilter{Every: time.Hour})
			t.sumUp()
		}
	}},
	{"Other spans than minutes and hours are refused", func(t *T) {
		for _, every := range []time.Duration{-time.Minute, 1, time.Second, 2 * time.Minute, 24 * time.Hour} {
			fails(t, errOf(as[report.StatsStore](t).Stats(t.ctx, report.StatsFilter{Every: every})), stint.ErrInvalid,
				"every %v gives %v", every)
		}
	}},
	{"What was lost is counted, and took no time", func(t *T) {
		b, w := newBook(t), t.join("k")
		ids := t.enqueue(job("k", stint.MaxLosses(0)), job("k"), job("k"))
		entries := b.note(w.ClaimAll())
		w.Heartbeat(entries[0].Pos, entries[1].Pos)
		w.Leave()
		t.sums(b, report.StatsFilter{})
		b.delete(ids[0]) // before the sums come to it
		t.sums(b, report.StatsFilter{})
		t.sumUp()
		t.sums(b, report.StatsFilter{})
	}},
	{"Where nothing began there are no sums", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		entries := w.ClaimAll()
		x := w.Conclude(entries[0], returned)
		x.Slot, x.Started = 0, time.Time{}
		y := w.Conclude(entries[1], expired)
		y.Slot, y.Started = 0, time.Time{}
		w.record(2, x, y)
		t.cancel("", ids[0])
		w.Leave()
		t.delete(ids[1])
		t.sumUp()
		list, err := as[report.StatsStore](t).Stats(t.ctx, report.StatsFilter{})
		expect(t, err == nil && len(list) == 0, "they are %+v, error %v", list, err)
	}},
}

// statsStorm does with jobs of two kinds and queues what can be done, in any
// order, and compares after each step.
func statsStorm(t *T) {
	rnd := NewSeed(t).Rand("storm")
	b, w := newBook(t), t.join("a", "b")
	pick := func(names ...string) string { return names[rnd.IntN(len(names))] }
	var held []store.Entry
	for step := range 60 {
		switch what := rnd.IntN(10); {
		case what < 2 || step == 0:
			for range 1 + rnd.IntN(6) {
				t.enqueue(job(pick("a", "b"), stint.Queue(pick("p", "q")), stint.Priority(rnd.IntN(2))))
			}
		case what < 4:
			held = append(held, b.note(w.ClaimAll())...)
		case what < 7 && len(held) > 0:
			n := 1 + rnd.IntN(len(held))
			var done []store.Completion
			for _, e := range held[:n] {
				x := w.Conclude(e, []store.Result{
					completed, completed, failedFinally, failed,
					{Outcome: stint.OutcomeSnoozed, Snooze: time.Millisecond}, cancelled, returned,
				}[rnd.IntN(7)])
				if x.Outcome == stint.OutcomeReturned && rnd.IntN(2) == 0 {
					x.Slot = 0 // it did not begin
				}
				if rnd.IntN(4) == 0 {
					x.Ended = x.Ended.Add(-time.Duration(rnd.Int64N(int64(3 * time.Hour))))
				}
				x.Started = x.Ended.Add(-time.Duration(rnd.Int64N(int64(20 * time.Millisecond))))
				done = append(done, x)
			}
			held = held[n:]
			b.finish(w, done...)
		case what == 7 && rnd.IntN(2) == 0:
			b.retain(atOnceKept)
		case what == 7:
			var ids []stint.ID
			for _, id := range t.list(store.Filter{States: []stint.State{stint.Completed, stint.Failed, stint.Cancelled}}) {
				if rnd.IntN(2) == 0 {
					ids = append(ids, id)
				}
			}
			b.delete(ids...)
		case what == 8:
			t.must(errOf(t.Store.Promote(t.ctx, time.Time{}, 100)))
			if rnd.IntN(3) > 0 || len(held) == 0 {
				break
			}
			// The engine dies, and with it what it had announced.
			w.Heartbeat(held[0].Pos)
			w.Leave()
			held, w = nil, t.join("a", "b")
		default:
			t.sumUp()
		}
		t.sums(b, report.StatsFilter{Every: []time.Duration{0, time.Minute, time.Hour}[rnd.IntN(3)], Kind: pick("", "a", "b"), Queue: pick("", "", "p", "q")})
	}
	t.sums(b, report.StatsFilter{Every: time.Hour})
	t.sums(b, report.StatsFilter{Every: time.Minute})
}

// sumUp sums up what there is.
func (t *T) sumUp() {
	t.Helper()
	for more := true; more; {
		more = must(as[report.StatsStore](t).SumUp(t.ctx))(t)
	}
}

// sums compares what the store says with what the book does.
func (t *T) sums(b *book, f report.StatsFilter) {
	t.Helper()
	utc := gocmp.Transformer("utc", func(at time.Time) time.Time { return at.UTC() })
	var got []report.Stats
	for _, f.Distributed = range []bool{true, false} {
		got = must(as[report.StatsStore](t).Stats(t.ctx, f))(t)
		diff := gocmp.Diff(b.stats(f), got, utc, cmpopts.EquateEmpty())
		need(t, diff == "", "%+v (-worked out +said):\n%s", f, diff)
	}
	t.sharesSums(f, got)
}

// sharesSums makes sure that what is in the sums and what is not make up all that a
// filter without bounds tells.
func (t *T) sharesSums(f report.StatsFilter, all []report.Stats) {
	t.Helper()
	if f.Every == time.Minute || f != (report.StatsFilter{Every: f.Every}) {
		return
	}
	f.Settled = true
	some := must(as[report.StatsStore](t).Stats(t.ctx, f))(t)
	missing := 0
	for _, s := range all {
		missing += int(s.Attempts)
	}
	for _, s := range some {
		missing -= int(s.Attempts)
	}
	for _, most := range []int{missing + 1000, missing, max(missing-1, 0), 0} {
		n, err := as[report.StatsStore](t).Unsummed(t.ctx, most)
		need(t, err == nil && n == min(most, missing),
			"%d attempts are not in the sums, of which it counts, up to %d, %d, error %v", missing, most, n, err)
	}
}

// book is what a test knows of entries that were claimed, so that it can work out
// for itself what a store says of their attempts.
type book struct {
	t       *T
	entries map[store.Position]store.Entry
	slots   map[store.Position]int
	gone    []written // of jobs that were deleted
}

// written is an attempt that began, as the store recorded it.
type written struct {
	store.LedgerExecution
	entry store.Entry
	ran   bool // it was not lost
}

func newBook(t *T) *book {
	return &book{t: t, entries: map[store.Position]store.Entry{}, slots: map[store.Position]int{}}
}

// note keeps what was claimed.
func (b *book) note(entries []store.Entry) []store.Entry {
	for _, e := range entries {
		b.entries[e.Pos] = e
	}
	return entries
}

// finish records executions.
func (b *book) finish(w *Worker, done ...store.Completion) {
	b.t.Helper()
	for _, x := range done {
		b.slots[x.Pos] = x.Slot
	}
	n, err := w.TryFinish(b.t.ctx, done...)
	need(b.t, err == nil && n == len(done), "%d of %d outcomes were recorded, error %v", n, len(done), err)
}

// there are the attempts of jobs that are there.
func (b *book) there() (all []written) {
	b.t.Helper()
	for _, x := range b.t.ledger().Executions {
		e, claimed := b.entries[x.Pos]
		if ran := b.slots[x.Pos] > 0; claimed && (ran || x.Outcome == stint.OutcomeLost) {
			all = append(all, written{x, e, ran})
		}
	}
	return all
}

// delete deletes jobs, and remembers their attempts.
func (b *book) delete(ids ...stint.ID) {
	b.t.Helper()
	b.losing(func() {
		b.t.must(errOf(as[store.Operator](b.t).Delete(b.t.ctx, ids)))
	})
}

// retain deletes what is old.
func (b *book) retain(keep store.Retention) {
	b.t.Helper()
	b.losing(func() { b.t.retain(keep) })
}

// losing notes the attempts of jobs that are not there any more afterwards.
func (b *book) losing(loses func()) {
	b.t.Helper()
	before := b.there()
	loses()
	for _, x := range before {
		if _, err := b.t.Store.Job(b.t.ctx, x.Job); err != nil {
			b.gone = append(b.gone, x)
		}
	}
}

// stats works out what statistics are to say.
func (b *book) stats(f report.StatsFilter) []report.Stats {
	b.t.Helper()
	all := append(b.there(), b.gone...)
	// In the order in which they ended, so that the last one is the last.
	slices.SortFunc(all, func(a, b written) int {
		return cmp.Or(a.Finished.Compare(b.Finished), cmp.Compare(a.Finished.Sub(a.Started), b.Finished.Sub(b.Started)))
	})
	span := time.Hour
	if f.Every == time.Minute {
		span = f.Every
	}
	var list []report.Stats
	for _, x := range all {
		start := x.Finished.UTC().Truncate(span)
		to := f.To.Truncate(span)
		if to != f.To {
			to = to.Add(span)
		}
		if f.Every == time.Minute && time.Since(start) > 48*time.Hour+30*time.Second {
			continue
		}
		if f.Kind != "" && x.entry.Kind != f.Kind || f.Queue != "" && x.entry.Queue != f.Queue ||
			start.Before(f.From.Truncate(span)) || !to.IsZero() && !start.Before(to) {
			continue
		}
		if f.Every == 0 {
			start = time.Time{}
		}
		i := slices.IndexFunc(list, func(s report.Stats) bool {
			return s.Start.Equal(start) && s.Kind == x.entry.Kind && s.Queue == x.entry.Queue && s.Outcome == x.Outcome
		})
		if i < 0 {
			i = len(list)
			list = append(list, report.Stats{Start: start, Kind: x.entry.Kind, Queue: x.entry.Queue, Outcome: x.Outcome})
		}
		s := &list[i]
		if s.Attempts++; x.ran {
			took := x.Finished.Sub(x.Started)
			s.Took.Add(took)
			s.LastAt = x.Finished
			waited := max(0, x.Started.Sub(x.entry.Ready))
			s.Waited += waited
			if f.Distributed {
				s.TookBy.Add(took)
				s.WaitedBy.Add(waited)
			}
		}
	}
	slices.SortFunc(list, func(a, b report.Stats) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Outcome, b.Outcome))
	})
	return list
}

// lately works out how the attempts of the time before an instant went.
func (b *book) lately(at time.Time, span time.Duration, queue, kind, tag string) report.AttemptFigures {
	b.t.Helper()
	var waited, took []time.Duration
	for _, x := range b.there() {
		in := x.Finished.After(at.Add(-span)) && !x.Finished.After(at)
		fits := (queue == "" || x.entry.Queue == queue) && (kind == "" || x.entry.Kind == kind) && (tag == "" || slices.Contains(x.entry.Tags, tag))
		if in && fits && x.ran {
			waited = append(waited, max(0, x.Started.Sub(x.entry.Ready)))
			took = append(took, x.Finished.Sub(x.Started))
		}
	}
	return report.AttemptFigures{Ended: int64(len(took)), PerSecond: float64(len(took)) / span.Seconds(), Latency: spread(waited), Execution: spread(took)}
}

// spread finds percentiles by counting for each duration how many do not exceed
// it.
func spread(all []time.Duration) (s report.Percentiles) {
	at := func(percent int) time.Duration {
		best := time.Duration(-1)
		for _, d := range all {
			n := 0
			for _, other := range all {
				if other <= d {
					n++
				}
			}
			if n*100 >= percent*len(all) && (best < 0 || d < best) {
				best = d
			}
		}
		return max(0, best)
	}
	for _, d := range all {
		s.Mean += d
	}
	if len(all) > 0 {
		s.Mean = (s.Mean / time.Duration(len(all))).Truncate(time.Microsecond)
	}
	s.P50, s.P95, s.P99 = at(50), at(95), at(99)
	return s
}

// metricsTests are about what is kept of what engines count.
var metricsTests = []test{
	{"The newest figures of an engine are kept, and come back exactly", func(t *T) {
		m := figures("ann", 1)
		t.keeps(m)
		t.kept(m)
		m.Engine, m.Claimer.Claims, m.Kinds["other"] = 2, 1<<60, report.Durations{Count: 1, Last: 1, Fastest: 1, Longest: 1, Total: 1}
		t.keeps(m)
		t.kept(m)
	}},
	{"Engines are kept apart, and so is one that counts anew under its old name", func(t *T) {
		ann, ben, anew := figures("ann", 1), figures("ben", 2), figures("ann", 3)
		anew.Since = anew.Since.Add(time.Microsecond)
		for _, m := range []report.Metrics{ann, ben, anew} {
			t.keeps(m)
		}
		t.kept(anew, ben, ann)
		ann.Workers.Run++
		t.keeps(ann)
		t.kept(ann, anew, ben)
	}},
	{"What is kept says when it came, by the store's clock", func(t *T) {
		k, m := as[report.MetricsKeeper](t), figures("ann", 1)
		m.At = time.Now().Add(1000 * time.Hour)
		before := t.now()
		t.keeps(m)
		after := t.now()
		list := must(k.EngineMetrics(t.ctx))(t)
		expect(t, len(list) == 1 && between(list[0].At, before, after),
			"between %v and %v came %+v", before, after, list)
	}},
}

// figures are some metrics that are nowhere zero.
func figures(instance string, token store.EngineID) report.Metrics {
	n := int64(token)
	took := report.Durations{Count: n, Last: 5, Fastest: 3, Longest: 1 << 50, Total: 1 << 55}
	return report.Metrics{
		Instance: instance, Engine: token, Since: time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC), At: time.Now().UTC(),
		Listener:  report.ListenerMetrics{Notifications: n, Reconnects: n + 1, Timeouts: n + 2},
		Claimer:   report.ClaimerMetrics{Claims: n, Empty: n + 1, Claimed: n + 2, SlotWaits: n + 3, Returned: n + 4, Took: took},
		Workers:   report.WorkerMetrics{Slots: n + 5, Running: n, Run: n + 1, Succeeded: n + 2, Failed: n + 3, Cancelled: n + 4, Working: time.Hour},
		Finisher:  report.FinisherMetrics{Outcomes: n, Flushes: n + 1, Retries: n + 2, Took: took},
		Prefetch:  report.PrefetchMetrics{Max: n, Min: n + 1, Full: n + 2, Empty: n + 3},
		Writer:    report.WriterMetrics{Reports: n, Writes: n + 1, Retries: n + 2, Took: took},
		Retention: report.RetentionMetrics{Deleted: n, Clean: time.Date(2026, 1, 2, 3, 5, 5, 678000, time.UTC), Kept: time.Hour},
		Kinds:     map[string]report.Durations{"k": took, "ü 'x": {Count: 1}},
	}
}

func (t *T) keeps(m report.Metrics) {
	t.Helper()
	t.must(as[report.MetricsKeeper](t).WriteMetrics(t.ctx, m))
}

// kept compares what is kept, but for the times at which it came.
func (t *T) kept(want ...report.Metrics) {
	t.Helper()
	got := must(as[report.MetricsKeeper](t).EngineMetrics(t.ctx))(t)
	noDiff(t, gocmp.Diff(want, got, cmpopts.IgnoreFields(report.Metrics{}, "At")), "what is kept (-want +got)")
}
