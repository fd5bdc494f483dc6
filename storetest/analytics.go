package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// analyticsTests compare what a store says of the work with what the tests work
// out for themselves.
var analyticsTests = []test{
	{"What is due is queued, what is not is postponed, and what is claimed runs", func(t *T) {
		w := t.everywhere()
		for _, c := range []struct {
			f                          report.AnalyticsFilter
			queued, postponed, running int64
		}{
			{report.AnalyticsFilter{}, 5, 4, 2},
			{report.AnalyticsFilter{Queue: "q"}, 1, 1, 0},
			{report.AnalyticsFilter{Kind: "other"}, 1, 1, 1},
			{report.AnalyticsFilter{Tag: "x"}, 2, 1, 1},
			{report.AnalyticsFilter{Tag: "x", Kind: "other"}, 1, 1, 1},
			{report.AnalyticsFilter{Tag: "nobody's"}, 0, 0, 0},
			{report.AnalyticsFilter{At: time.Now().Add(3 * time.Hour)}, 8, 1, 2},  // but what waits for a function
			{report.AnalyticsFilter{At: time.Now().Add(-3 * time.Hour)}, 0, 9, 2}, // nothing was due then
		} {
			a := t.analyze(c.f)
			expect(t, a.Queued == c.queued && a.Postponed == c.postponed && a.Running == c.running && a.Zombies == 0,
				"%+v: %d queued, %d postponed, %d running, %d zombies; want %d, %d, %d, 0", c.f, a.Queued, a.Postponed, a.Running,
				a.Zombies, c.queued, c.postponed, c.running)
		}
		w.Leave()
		a := t.analyze(report.AnalyticsFilter{})
		expect(t, a.Queued == 7 && a.Running == 0, "when the engine left, %d are queued and %d run", a.Queued, a.Running)
	}},
	{"Of what is queued, that is told apart which a limit lets not start", func(t *T) {
		as[store.Limiter](t)
		w := t.join("k")
		limited := func(what string, f report.AnalyticsFilter, want int64) {
			t.Helper()
			equal(t, t.analyze(f).Limited, want, "%[2]d jobs wait for limits, want %[3]d, with %[1]s", what)
		}
		t.enqueue(slices.Concat(jobs(3, "k", stint.Limited("smtp")), jobs(2, "k", stint.Limited("5*api")), jobs(4, "k"),
			jobs(1, "k", stint.Limited("smtp", "tenant=acme"), stint.Queue("q")))...)
		t.enqueue(job("k", stint.Limited("smtp"), stint.Delay(time.Hour)))
		limited("no rules", report.AnalyticsFilter{}, 0)
		t.rules(map[string]string{"smtp": "2", "api": "1/1h"})
		limited("permits", report.AnalyticsFilter{}, 0)
		t.permits(w, taking(2, store.TakingGate{Gate: "smtp"}))
		limited("none left", report.AnalyticsFilter{}, 4)
		limited("none left, in a queue", report.AnalyticsFilter{Queue: "q"}, 1)
		t.permits(w, taking(1, store.TakingGate{Gate: "api", Cost: 5}))
		limited("a rate that was used", report.AnalyticsFilter{}, 6)
		t.permits(w, keeping("smtp", 1))
		limited("a permit that came back", report.AnalyticsFilter{}, 2)
		t.must(t.Store.(store.Limiter).PauseLimit(t.ctx, "queue=q", store.Pause{For: time.Minute}))
		limited("a queue's limit paused", report.AnalyticsFilter{}, 3)
		w.Leave()
	}},
	{"What engines hold that do not live are zombies", func(t *T) {
		t.enqueue(slices.Concat(jobs(2, "k"), jobs(2, "k", stint.Queue("q")), jobs(2, "k"))...)
		lives := t.join("k")
		lives.Claim(lane(stint.DefaultQueue), 1)
		lives.Claim(lane("q"), 2)
		w := NewWorker(t, t.Store, "k")
		w.Info.TimeToLive = 200 * time.Millisecond
		t.must(w.TryJoin(t.ctx))
		entries := w.ClaimAll()
		w.Complete(entries[0])
		w.Release()
		for until := time.Now().Add(10 * w.Info.TimeToLive); t.analyze(report.AnalyticsFilter{}).Zombies == 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("it has no zombies")
			}
		}
		a := t.analyze(report.AnalyticsFilter{Queue: stint.DefaultQueue, Kind: "k"})
		expect(t, a.Zombies == 2 && a.Running == 1 && a.Queued == 0, "it says %+v", a)
		w.Heartbeat(entries[1].Pos)
		a = t.analyze(report.AnalyticsFilter{})
		expect(t, a.Running+a.Zombies == 5, "when it beat again, it says %+v", a)
		w.Leave() // with which that one is lost, and has no end of its own
		a = t.analyze(report.AnalyticsFilter{})
		expect(t, a.Zombies == 0 && a.Running == 3 && a.Queued == 2 && a.Ended == 1, "when it was buried, it says %+v", a)
	}},
	{"Throughput, latency and execution time are those of the attempts of the last minute", func(t *T) {
		rnd := NewSeed(t).Rand("attempts")
		b, w := newBook(t), t.join("a", "b")
		for round := range 6 {
			var batch []stint.NewJob
			for range 20 {
				batch = append(batch, job([]string{"a", "b"}[rnd.IntN(2)], stint.Queue([]string{"p", "q"}[rnd.IntN(2)])))
				if n := rnd.IntN(4); n < 3 {
					batch[len(batch)-1].Tags = [][]string{{"x"}, {"y"}, {"x", "y"}}[n]
				}
			}
			t.enqueue(batch...)
			entries := b.note(w.ClaimAll())
			if round == 5 {
				break // these run
			}
			took := time.Now()
			var done []store.Completion
			for _, e := range entries {
				x := w.Conclude(e, []store.Result{completed, failed,
					{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, {Outcome: stint.OutcomeReturned, Part: store.PartKind}}[rnd.IntN(4)])
				switch rnd.IntN(5) {
				case 0: // not begun
					if x.Outcome == stint.OutcomeReturned {
						x.Slot, x.Started = 0, time.Time{}
					}
				case 1: // long, or long ago
					x.Started = x.Ended.Add(-time.Duration(rnd.Int64N(int64(10 * time.Second))))
				case 2:
					x.Ended = x.Ended.Add(-time.Duration(rnd.Int64N(int64(3 * time.Minute))))
					x.Started = x.Ended.Add(-time.Duration(rnd.Int64N(int64(time.Second))))
				default:
					x.Started = took.Add(time.Duration(rnd.Int64N(max(1, int64(x.Ended.Sub(took))))))
				}
				done = append(done, x)
			}
			b.finish(w, done...)
		}
		for _, f := range []report.AnalyticsFilter{
			{}, {Queue: "p"}, {Kind: "a"}, {Tag: "x"}, {Queue: "q", Kind: "b"}, {Queue: "nobody's"}, {At: time.Now().Add(-time.Minute)}, {At: time.Now().Add(-time.Hour)},
			{Span: time.Minute}, {Span: 7 * time.Second}, {Span: time.Second, Kind: "a", At: time.Now().Add(-time.Minute)},
		} {
			span := cmp.Or(f.Span, time.Minute)
			got := t.analyze(f)
			want := got
			want.AttemptFigures = b.lately(got.At, span, f.Queue, f.Kind, f.Tag)
			noDiff(t, gocmp.Diff(want, got), "%+v (-worked out +said)", f)
			var kinds []report.KindAnalytics
			for _, kind := range []string{"a", "b"} {
				if figures := b.lately(got.At, span, f.Queue, kind, f.Tag); figures.Ended > 0 && (f.Kind == "" || f.Kind == kind) {
					kinds = append(kinds, report.KindAnalytics{Kind: kind, AttemptFigures: figures})
				}
			}
			f.At = got.At
			said := must(as[report.LiveStats](t).AnalyzeKinds(t.ctx, f))(t)
			noDiff(t, gocmp.Diff(kinds, said, cmpopts.EquateEmpty()), "the kinds of %+v (-worked out +said)", f)
		}
	}},
	{"Only up to a minute is looked at", func(t *T) {
		for _, span := range []time.Duration{-1, time.Minute + 1, time.Hour} {
			f := report.AnalyticsFilter{Span: span}
			_, all := as[report.LiveStats](t).Analyze(t.ctx, f)
			_, kinds := as[report.LiveStats](t).AnalyzeKinds(t.ctx, f)
			_, now := as[report.ActivityStats](t).Activity(t.ctx, f)
			expect(t, errors.Is(all, stint.ErrInvalid) && errors.Is(kinds, stint.ErrInvalid) && errors.Is(now, stint.ErrInvalid),
				"a span of %v gives %v, for kinds %v, and for the activity %v", span, all, kinds, now)
		}
	}},
	{"Where nothing is, all figures are 0", func(t *T) {
		before := t.now()
		t.delete(t.list(store.Filter{})...)
		a := t.analyze(report.AnalyticsFilter{Kind: "k"})
		expect(t, !a.At.Before(before), "it tells of %v, and was asked behind %v", a.At, before)
		if diff := gocmp.Diff(report.Analytics{At: a.At}, a); diff != "" {
			t.Error(diff)
		}
		groups, err := as[report.LiveStats](t).DueBy(t.ctx, report.FieldURN, report.AnalyticsFilter{Kind: "k"}, 0)
		expect(t, err == nil && len(groups) == 0, "grouped it is %v, error %v", groups, err)
	}},
	{"What is due is grouped by any field, the largest first", func(t *T) {
		t.enqueue(
			with(job("a", stint.Queue("p"), stint.Tag("x", "y"), stint.URN("u"), stint.Priority(5), stint.Correlation("c")), `{"n": 1, "in": {"city": "Ulm"}}`, `{"region": "eu"}`),
			with(job("a", stint.Queue("p"), stint.Tag("x"), stint.Source("cron"), stint.Correlation("c")), `{"n": "1", "in": {"city": "Köln"}}`, `{"region": "us"}`),
			with(job("b", stint.Tag("y"), stint.URN("u"), stint.Delay(time.Millisecond)), `{"n": true, "in": {"city": "Ulm"}}`, ``),
			with(job("b", stint.Tag("x"), stint.Source("cron"), stint.Delay(time.Hour)), `{"n": 1}`, ``), // not yet due
			with(job("b", stint.Queue("claimed"), stint.Tag("x")), `{"n": 1}`, ``),
			with(job("c"), `{"n": null, "in": 3}`, `{"region": null}`),
		)
		t.due()
		t.join("b").Claim(lane("claimed"), 1)
		for round := range 2 {
			for _, c := range []struct {
				field report.Field
				f     report.AnalyticsFilter
				want  string
			}{
				{report.FieldQueue, report.AnalyticsFilter{}, "default:2 p:2"},
				{report.FieldKind, report.AnalyticsFilter{}, "a:2 b:1 c:1"},
				{report.FieldKind, report.AnalyticsFilter{Queue: "p"}, "a:2"},
				{report.FieldKind, report.AnalyticsFilter{Tag: "y"}, "a:1 b:1"},
				{report.FieldPriority, report.AnalyticsFilter{}, "0:3 5:1"},
				{report.FieldURN, report.AnalyticsFilter{}, "-:2 u:2"},
				{report.FieldSource, report.AnalyticsFilter{}, "-:3 cron:1"},
				{report.FieldSource, report.AnalyticsFilter{At: time.Now().Add(2 * time.Hour)}, "-:3 cron:2"},
				{report.FieldTag, report.AnalyticsFilter{}, "x:2 y:2 -:1"},
				{report.FieldCorrelation, report.AnalyticsFilter{Kind: "a"}, "c:2"},
				{"args.n", report.AnalyticsFilter{}, "1:2 -:1 true:1"},
				{"args.in.city", report.AnalyticsFilter{}, "Ulm:2 -:1 Köln:1"},
				{"args.nothing", report.AnalyticsFilter{}, "-:4"},
				{"metadata.region", report.AnalyticsFilter{}, "-:2 eu:1 us:1"},
			} {
				equal(t, t.dueBy(c.field, c.f, 0), c.want, "by %s of %+v: %s, want %s", c.field, c.f)
			}
			if round == 0 {
				t.promoteAll(1) // where it is makes no difference
			}
		}
		equal(t, t.dueBy(report.FieldKind, report.AnalyticsFilter{}, 2), "a:2 b:1", "the first two are %s, want %s")
		for _, field := range []report.Field{"", "state", "args", "args.", "metadata.a..b", "args.a\nb", "id", "x.y"} {
			fails(t, errOf(as[report.LiveStats](t).DueBy(t.ctx, field, report.AnalyticsFilter{}, 0)), stint.ErrInvalid,
				"by %q the error is %v", field)
		}
	}},
	{"Jobs are found that were tried again, and that had a long attempt", func(t *T) {
		no := failed
		w := t.join("k")
		fails := func(n int, took ...time.Duration) stint.ID {
			id := t.enqueue(job("k", stint.Retry(retry.Fixed(1, time.Millisecond))))[0]
			for i := range n {
				x := w.Conclude(w.One(), no)
				x.Started = x.Ended.Add(-took[i])
				w.record(1, x)
				if i+1 < n {
					t.promoteAfter(15*time.Millisecond, 1)
				}
			}
			return id
		}
		twice := fails(2, 7*time.Second, time.Second)
		waits := t.enqueue(job("k", stint.Retry(retry.Fixed(5, time.Hour))))[0]
		w.Finish(no, w.One())
		long := t.enqueue(job("k"))[0]
		x := w.Conclude(w.One(), completed)
		x.Started = x.Ended.Add(-time.Hour)
		w.record(1, x)
		short := t.enqueue(job("k"))[0]
		w.Complete(w.One())
		lost := t.enqueue(job("k"))[0]
		w.Heartbeat(w.One().Pos)
		w.Leave()
		w = t.join("k")
		done := t.enqueue(job("k", stint.Queue("done")))[0]
		w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartNormal}, w.Claim(lane("done"), 1)...)
		w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartNormal}, w.Claim(lane("done"), 1)...)
		w.Complete(w.Claim(lane("done"), 1)...)
		t.shows(store.Filter{Attempts: 1}, lost, waits, twice)
		t.shows(store.Filter{Attempts: 1, Before: lost}, waits, twice)
		t.shows(store.Filter{Attempts: 1, States: []stint.State{stint.Failed}}, twice)
		t.shows(store.Filter{Attempts: 1, States: []stint.State{stint.Retrying}}, waits)
		t.shows(store.Filter{Attempts: 2})
		t.shows(store.Filter{Longer: store.LongAttempt}, long, twice)
		t.shows(store.Filter{Longer: store.LongAttempt, Before: long}, twice)
		t.shows(store.Filter{Longer: time.Minute}, long)
		t.shows(store.Filter{Longer: 500 * time.Millisecond, Kind: "k"}, long, twice)
		t.shows(store.Filter{Longer: 2 * time.Hour})
		t.shows(store.Filter{Longer: time.Second, Attempts: 1}, twice)
		t.shows(store.Filter{Longer: time.Second, Outcome: stint.OutcomeFailed}, twice)
		t.shows(store.Filter{Attempts: 1, Limit: 1}, lost)
		t.shows(store.Filter{Attempts: 1, Kind: "other"})
		t.shows(store.Filter{States: []stint.State{stint.Failed}}, twice)
		t.shows(store.Filter{States: []stint.State{stint.Completed}}, done, short, long)
		w.Leave()
	}},
}

// everywhere brings jobs where they can be: ready, returned, waiting, due and not
// yet promoted, undecided, cancelled, claimed, and ended.
func (t *T) everywhere() *Worker {
	t.Helper()
	w := t.join("k", "other")
	one := func(j stint.NewJob, end *store.Result) stint.ID {
		id := t.enqueue(j)[0]
		if entries := w.Claim(lane(cmp.Or(j.Queue, stint.DefaultQueue)), 1); end != nil {
			w.Finish(*end, entries...)
		}
		return id
	}
	one(job("k"), &completed)
	one(job("k"), nil)
	one(job("other", stint.Tag("x")), nil)
	one(job("k", stint.Tag("x")), &returned)
	one(job("k", stint.Retry(retry.Fixed(1, time.Hour))), &failed)
	one(job("k", stint.Retry(retry.Function("unknown"))), &failed)
	cancelled := t.enqueue(job("k"), job("k", stint.Delay(time.Hour)), job("k", stint.Delay(2*time.Millisecond)))
	t.enqueue(
		job("k"), job("k", stint.Queue("q")), job("other", stint.Tag("x")),
		job("k", stint.Delay(time.Millisecond)),
		job("k", stint.Queue("q"), stint.Delay(2*time.Hour)), job("other", stint.Tag("x"), stint.Delay(time.Hour)),
	)
	t.cancel("", cancelled...)
	t.due()
	return w
}

// with gives a job arguments and metadata.
func with(j stint.NewJob, args, metadata string) stint.NewJob {
	j.Args = []byte(args)
	if metadata != "" {
		j.Metadata = []byte(metadata)
	}
	return j
}

// analyze also wants the activity alone to be the same. An engine may be found dead
// between two looks, so it may be that of either.
func (t *T) analyze(f report.AnalyticsFilter) report.Analytics {
	t.Helper()
	look := func() report.Analytics { return must(as[report.LiveStats](t).Analyze(t.ctx, f))(t) }
	part := func(a report.Analytics) report.Activity {
		return report.Activity{At: a.At, Running: a.Running, Zombies: a.Zombies, AttemptFigures: a.AttemptFigures}
	}
	all := look()
	f.At = all.At
	now := must(as[report.ActivityStats](t).Activity(t.ctx, f))(t)
	expect(t, now == part(all) || now == part(look()), "the activity alone is %+v, want %+v", now, part(all))
	return all
}

// dueBy writes groups as value:jobs, with - for those that say nothing.
func (t *T) dueBy(field report.Field, f report.AnalyticsFilter, limit int) string {
	t.Helper()
	groups := must(as[report.LiveStats](t).DueBy(t.ctx, field, f, limit))(t)
	var text strings.Builder
	for i, g := range groups {
		if i > 0 {
			text.WriteByte(' ')
		}
		value := "-"
		if g.Value != nil {
			value = *g.Value
		}
		fmt.Fprintf(&text, "%s:%d", value, g.Jobs)
	}
	return text.String()
}
