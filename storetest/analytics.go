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
	"github.com/stint-go/stint/retry"
)

// analyticsTests compare what a store says of the work with what the tests work
// out for themselves.
var analyticsTests = []test{
	{"What is due is queued, what is not is postponed, and what is claimed runs", func(t *T) {
		w := t.everywhere()
		for _, c := range []struct {
			f                          stint.AnalyticsFilter
			queued, postponed, running int64
		}{
			{stint.AnalyticsFilter{}, 5, 4, 2},
			{stint.AnalyticsFilter{Queue: "q"}, 1, 1, 0},
			{stint.AnalyticsFilter{Kind: "other"}, 1, 1, 1},
			{stint.AnalyticsFilter{Tag: "x"}, 2, 1, 1},
			{stint.AnalyticsFilter{Tag: "x", Kind: "other"}, 1, 1, 1},
			{stint.AnalyticsFilter{Tag: "nobody's"}, 0, 0, 0},
			{stint.AnalyticsFilter{At: time.Now().Add(3 * time.Hour)}, 8, 1, 2},  // but what waits for a function
			{stint.AnalyticsFilter{At: time.Now().Add(-3 * time.Hour)}, 0, 9, 2}, // nothing was due then
		} {
			a := t.analyze(c.f)
			if a.Queued != c.queued || a.Postponed != c.postponed || a.Running != c.running || a.Zombies != 0 {
				t.Errorf("%+v: %d queued, %d postponed, %d running, %d zombies; want %d, %d, %d, 0",
					c.f, a.Queued, a.Postponed, a.Running, a.Zombies, c.queued, c.postponed, c.running)
			}
		}
		w.Leave()
		if a := t.analyze(stint.AnalyticsFilter{}); a.Queued != 7 || a.Running != 0 {
			t.Errorf("when the engine left, %d are queued and %d run", a.Queued, a.Running)
		}
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
		for until := time.Now().Add(10 * w.Info.TimeToLive); t.analyze(stint.AnalyticsFilter{}).Zombies == 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("it has no zombies")
			}
		}
		if a := t.analyze(stint.AnalyticsFilter{Queue: stint.DefaultQueue, Kind: "k"}); a.Zombies != 2 || a.Running != 1 || a.Queued != 0 {
			t.Errorf("it says %+v", a)
		}
		w.Beat(entries[1].Pos)
		if a := t.analyze(stint.AnalyticsFilter{}); a.Running+a.Zombies != 5 {
			t.Errorf("when it beat again, it says %+v", a)
		}
		w.Leave() // with which that one is lost, and has no end of its own
		if a := t.analyze(stint.AnalyticsFilter{}); a.Zombies != 0 || a.Running != 3 || a.Queued != 2 || a.Ended != 1 {
			t.Errorf("when it was buried, it says %+v", a)
		}
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
			var done []stint.Execution
			for _, e := range entries {
				x := w.Conclude(e, []stint.Ending{completed, {Outcome: stint.OutcomeFailed, Err: errors.New("no")},
					{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, {Outcome: stint.OutcomeReturned, Part: stint.PartKind}}[rnd.IntN(4)])
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
		for _, f := range []stint.AnalyticsFilter{
			{}, {Queue: "p"}, {Kind: "a"}, {Tag: "x"}, {Queue: "q", Kind: "b"}, {Queue: "nobody's"}, {At: time.Now().Add(-time.Minute)}, {At: time.Now().Add(-time.Hour)},
			{Span: time.Minute}, {Span: 7 * time.Second}, {Span: time.Second, Kind: "a", At: time.Now().Add(-time.Minute)},
		} {
			span := cmp.Or(f.Span, time.Minute)
			got := t.analyze(f)
			want := got
			want.AttemptFigures = b.lately(got.At, span, f.Queue, f.Kind, f.Tag)
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%+v (-worked out +said):\n%s", f, diff)
			}
			var kinds []stint.KindAnalytics
			for _, kind := range []string{"a", "b"} {
				if figures := b.lately(got.At, span, f.Queue, kind, f.Tag); figures.Ended > 0 && (f.Kind == "" || f.Kind == kind) {
					kinds = append(kinds, stint.KindAnalytics{Kind: kind, AttemptFigures: figures})
				}
			}
			f.At = got.At
			said, err := t.analyst().AnalyzeKinds(t.ctx, f)
			t.must(err)
			if diff := gocmp.Diff(kinds, said, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the kinds of %+v (-worked out +said):\n%s", f, diff)
			}
		}
	}},
	{"Only up to a minute is looked at", func(t *T) {
		for _, span := range []time.Duration{-1, time.Minute + 1, time.Hour} {
			f := stint.AnalyticsFilter{Span: span}
			_, all := t.analyst().Analyze(t.ctx, f)
			_, kinds := t.analyst().AnalyzeKinds(t.ctx, f)
			if !errors.Is(all, stint.ErrInvalid) || !errors.Is(kinds, stint.ErrInvalid) {
				t.Errorf("a span of %v gives %v, and for kinds %v", span, all, kinds)
			}
		}
	}},
	{"Where nothing is, all figures are 0", func(t *T) {
		before := t.now()
		t.delete(t.list(stint.Filter{})...)
		a := t.analyze(stint.AnalyticsFilter{Kind: "k"})
		if a.At.Before(before) {
			t.Errorf("it tells of %v, and was asked behind %v", a.At, before)
		}
		if diff := gocmp.Diff(stint.Analytics{At: a.At}, a); diff != "" {
			t.Error(diff)
		}
		groups, err := t.analyst().DueBy(t.ctx, stint.FieldURN, stint.AnalyticsFilter{Kind: "k"}, 0)
		if err != nil || len(groups) != 0 {
			t.Errorf("grouped it is %v, error %v", groups, err)
		}
	}},
	{"What is due is grouped by any field, the largest first", func(t *T) {
		t.enqueue(
			with(job("a", stint.Queue("p"), stint.Tag("x", "y"), stint.URN("u"), stint.Priority(5), stint.Correlation("c")), `{"n": 1, "in": {"city": "Ulm"}}`, `{"region": "eu"}`),
			with(job("a", stint.Queue("p"), stint.Tag("x"), stint.Source("cron"), stint.Correlation("c")), `{"n": "1", "in": {"city": "Köln"}}`, `{"region": "us"}`),
			with(job("b", stint.Tag("y"), stint.URN("u"), stint.In(time.Millisecond)), `{"n": true, "in": {"city": "Ulm"}}`, ``),
			with(job("b", stint.Tag("x"), stint.Source("cron"), stint.In(time.Hour)), `{"n": 1}`, ``), // not yet due
			with(job("b", stint.Queue("claimed"), stint.Tag("x")), `{"n": 1}`, ``),
			with(job("c"), `{"n": null, "in": 3}`, `{"region": null}`),
		)
		t.due()
		t.join("b").Claim(lane("claimed"), 1)
		for round := range 2 {
			for _, c := range []struct {
				field stint.Field
				f     stint.AnalyticsFilter
				want  string
			}{
				{stint.FieldQueue, stint.AnalyticsFilter{}, "default:2 p:2"},
				{stint.FieldKind, stint.AnalyticsFilter{}, "a:2 b:1 c:1"},
				{stint.FieldKind, stint.AnalyticsFilter{Queue: "p"}, "a:2"},
				{stint.FieldKind, stint.AnalyticsFilter{Tag: "y"}, "a:1 b:1"},
				{stint.FieldPriority, stint.AnalyticsFilter{}, "0:3 5:1"},
				{stint.FieldURN, stint.AnalyticsFilter{}, "-:2 u:2"},
				{stint.FieldSource, stint.AnalyticsFilter{}, "-:3 cron:1"},
				{stint.FieldSource, stint.AnalyticsFilter{At: time.Now().Add(2 * time.Hour)}, "-:3 cron:2"},
				{stint.FieldTag, stint.AnalyticsFilter{}, "x:2 y:2 -:1"},
				{stint.FieldCorrelation, stint.AnalyticsFilter{Kind: "a"}, "c:2"},
				{"args.n", stint.AnalyticsFilter{}, "1:2 -:1 true:1"},
				{"args.in.city", stint.AnalyticsFilter{}, "Ulm:2 -:1 Köln:1"},
				{"args.nothing", stint.AnalyticsFilter{}, "-:4"},
				{"metadata.region", stint.AnalyticsFilter{}, "-:2 eu:1 us:1"},
			} {
				if got := t.dueBy(c.field, c.f, 0); got != c.want {
					t.Errorf("by %s of %+v: %s, want %s", c.field, c.f, got, c.want)
				}
			}
			if round == 0 {
				t.promoteAll(1) // where it is makes no difference
			}
		}
		if got := t.dueBy(stint.FieldKind, stint.AnalyticsFilter{}, 2); got != "a:2 b:1" {
			t.Errorf("the first two are %s", got)
		}
		for _, field := range []stint.Field{"", "state", "args", "args.", "metadata.a..b", "args.a\nb", "id", "x.y"} {
			if _, err := t.analyst().DueBy(t.ctx, field, stint.AnalyticsFilter{}, 0); !errors.Is(err, stint.ErrInvalid) {
				t.Errorf("by %q the error is %v", field, err)
			}
		}
	}},
	{"Jobs are found that were tried again, and that had a long attempt", func(t *T) {
		no := stint.Ending{Outcome: stint.OutcomeFailed, Err: errors.New("no")}
		w := t.join("k")
		fails := func(n int, took ...time.Duration) stint.ID {
			id := t.enqueue(job("k", stint.Retry(retry.Fixed(1, time.Millisecond))))[0]
			for i := range n {
				x := w.Conclude(w.One(), no)
				x.Started = x.Ended.Add(-took[i])
				if _, err := w.TryFinish(t.ctx, x); err != nil {
					t.Fatal(err)
				}
				if i+1 < n {
					t.due()
					t.promoteAll(1)
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
		if _, err := w.TryFinish(t.ctx, x); err != nil {
			t.Fatal(err)
		}
		short := t.enqueue(job("k"))[0]
		w.Complete(w.One())
		lost := t.enqueue(job("k"))[0]
		w.Beat(w.One().Pos)
		w.Leave()
		w = t.join("k")
		done := t.enqueue(job("k", stint.Queue("done")))[0]
		w.Finish(stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartNormal}, w.Claim(lane("done"), 1)...)
		w.Finish(stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartNormal}, w.Claim(lane("done"), 1)...)
		w.Complete(w.Claim(lane("done"), 1)...)
		for _, c := range []struct {
			f    stint.Filter
			want []stint.ID
		}{
			{stint.Filter{Attempts: 1}, []stint.ID{lost, waits, twice}},
			{stint.Filter{Attempts: 1, Before: lost}, []stint.ID{waits, twice}},
			{stint.Filter{Attempts: 1, States: []stint.State{stint.Failed}}, []stint.ID{twice}},
			{stint.Filter{Attempts: 1, States: []stint.State{stint.Retrying}}, []stint.ID{waits}},
			{stint.Filter{Attempts: 2}, nil},
			{stint.Filter{Longer: stint.LongAttempt}, []stint.ID{long, twice}},
			{stint.Filter{Longer: stint.LongAttempt, Before: long}, []stint.ID{twice}},
			{stint.Filter{Longer: time.Minute}, []stint.ID{long}},
			{stint.Filter{Longer: 500 * time.Millisecond, Kind: "k"}, []stint.ID{long, twice}},
			{stint.Filter{Longer: 2 * time.Hour}, nil},
			{stint.Filter{Longer: time.Second, Attempts: 1}, []stint.ID{twice}},
			{stint.Filter{Longer: time.Second, Outcome: stint.OutcomeFailed}, []stint.ID{twice}},
			{stint.Filter{Attempts: 1, Limit: 1}, []stint.ID{lost}},
			{stint.Filter{Attempts: 1, Kind: "other"}, nil},
			{stint.Filter{States: []stint.State{stint.Failed}}, []stint.ID{twice}},
			{stint.Filter{States: []stint.State{stint.Completed}}, []stint.ID{done, short, long}},
		} {
			if got := t.list(c.f); !slices.Equal(got, c.want) {
				t.Errorf("%+v: %v, want %v", c.f, got, c.want)
			}
		}
		w.Leave()
	}},
}

// everywhere brings jobs where they can be: ready, returned, waiting, due and not
// yet promoted, undecided, cancelled, claimed, and ended.
func (t *T) everywhere() *Worker {
	t.Helper()
	w := t.join("k", "other")
	one := func(j stint.NewJob, end *stint.Ending) stint.ID {
		id := t.enqueue(j)[0]
		if entries := w.Claim(lane(cmp.Or(j.Queue, stint.DefaultQueue)), 1); end != nil {
			w.Finish(*end, entries...)
		}
		return id
	}
	one(job("k"), &completed)
	one(job("k"), nil)
	one(job("other", stint.Tag("x")), nil)
	one(job("k", stint.Tag("x")), &stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront})
	one(job("k", stint.Retry(retry.Fixed(1, time.Hour))), &stint.Ending{Outcome: stint.OutcomeFailed, Err: errors.New("no")})
	one(job("k", stint.Retry(retry.Function("unknown"))), &stint.Ending{Outcome: stint.OutcomeFailed, Err: errors.New("no")})
	cancelled := t.enqueue(job("k"), job("k", stint.In(time.Hour)), job("k", stint.In(2*time.Millisecond)))
	t.enqueue(
		job("k"), job("k", stint.Queue("q")), job("other", stint.Tag("x")),
		job("k", stint.In(time.Millisecond)),
		job("k", stint.Queue("q"), stint.In(2*time.Hour)), job("other", stint.Tag("x"), stint.In(time.Hour)),
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

func (t *T) analyze(f stint.AnalyticsFilter) stint.Analytics {
	t.Helper()
	a, err := t.analyst().Analyze(t.ctx, f)
	t.must(err)
	return a
}

// dueBy writes groups as value:jobs, with - for those that say nothing.
func (t *T) dueBy(field stint.Field, f stint.AnalyticsFilter, limit int) string {
	t.Helper()
	groups, err := t.analyst().DueBy(t.ctx, field, f, limit)
	t.must(err)
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
