package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"
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
		t.must(errOf(w.TryFinish(t.ctx, x, y)))
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
	got := must(as[report.StatsStore](t).Stats(t.ctx, f))(t)
	utc := cmp.Transformer("utc", func(at time.Time) time.Time { return at.UTC() })
	diff := cmp.Diff(b.stats(f), got, utc, cmpopts.EquateEmpty())
	need(t, diff == "", "%+v (-worked out +said):\n%s", f, diff)
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
