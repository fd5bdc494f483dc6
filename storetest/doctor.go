package storetest

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// doctorTests are about what a store tells of itself. What is made of that is
// package stint's affair.
var doctorTests = []test{
	{"What is ready is told by queue, priority and kind, and what was taken or waits is not", func(t *T) {
		w := t.join("taken")
		t.enqueue(job("taken"), job("taken", stint.Queue("q")))
		w.ClaimAll()
		before := t.clock()
		t.enqueue(job("a"), job("b"), job("a"), job("a", stint.Queue("q")), job("a", stint.Priority(-7)), job("a", stint.Delay(time.Hour)))
		want := []report.Backlog{{Queue: "default", Kind: "a", Jobs: 2}, {Queue: "default", Kind: "b", Jobs: 1}, {Queue: "default", Priority: -7, Kind: "a", Jobs: 1}, {Queue: "q", Kind: "a", Jobs: 1}}
		got := t.backlogs()
		for i, b := range got {
			expect(t, between(b.Oldest, before, t.clock().Add(time.Millisecond)),
				"the first %s is ready since %v, which is before %v or not yet", b.Kind, b.Oldest, before)
			got[i].Oldest = time.Time{}
		}
		noDiff(t, gocmp.Diff(want, got), "(-want +got)")
	}},
	{"Of what is ready it is told whether it waits for limits", func(t *T) {
		as[store.Limiter](t)
		t.enqueue(job("k"), job("k", stint.Limited("l")), job("k", stint.Limited("l")))
		got := t.backlogs()
		slices.SortFunc(got, func(a, b report.Backlog) int { return cmp.Compare(a.Jobs, b.Jobs) })
		expect(t, len(got) == 2 && !got[0].Limited && got[0].Jobs == 1 && got[1].Limited && got[1].Jobs == 2, "told is %+v, want one that waits for none and two that do", got)
	}},
	{"What it takes is told by its parts, and grows with what is enqueued", func(t *T) {
		takes := func() (bytes int64) {
			t.Helper()
			for _, s := range t.examine().Sizes {
				expect(t, s.Name != "" && s.Bytes >= 0 && s.Rows >= 0, "a part is %+v", s)
				bytes += s.Bytes
			}
			return bytes
		}
		before := takes()
		chance := rand.New(rand.NewPCG(1, 2))
		for range 300 { // of what cannot be made smaller
			large := job("k")
			large.Args = fmt.Appendf(nil, "%q", hex.EncodeToString(fmt.Append(nil, chance.Perm(2000))))
			t.enqueue(large)
		}
		grown := takes() - before
		expect(t, grown >= 500_000, "300 jobs of 20 kB take %d bytes", grown)
	}},
	{"What did not begin in time is counted among what is ready", func(t *T) {
		past := stint.StartBy(t.clock().Add(-time.Minute))
		t.enqueue(job("k", past), job("k"), job("k", past), job("k", stint.StartWithin(time.Hour)))
		got := t.backlogs()
		expect(t, len(got) == 1 && got[0].Jobs == 4 && got[0].Late == 2, "told is %+v, want 2 late ones of 4", got)
	}},
	{"Of what is ready in a paused queue is told who paused it", func(t *T) {
		t.enqueue(job("k", stint.Queue("p")), job("k"))
		t.pause("p", true)
		t.pause("empty", true)
		got := t.backlogs()
		need(t, len(got) == 2 && got[0].Paused.IsZero() && got[0].By+got[0].Why == "", "told is %+v", got)
		p := got[1]
		expect(t, p.Queue == "p" && p.By == "who" && p.Why == "why" && p.Paused.Equal(t.queue("p").Paused), "told is %+v", p)
	}},
	{"What is undecided is told by its retry function, since it failed", func(t *T) {
		ids := t.undecided("f", "g", "f")
		t.enqueue(job("k", stint.Delay(time.Hour)))
		got := t.examine().Undecided
		slices.SortFunc(got, func(a, b report.UndecidedBacklog) int { return cmp.Compare(a.Func, b.Func) })
		first := t.info(ids[0]).Finished
		if third := t.info(ids[2]).Finished; third.Before(first) {
			first = third
		}
		second := t.info(ids[1]).Finished
		expect(t, len(got) == 2 && got[0].Func == "f" && got[0].Jobs == 2 && got[0].Oldest.Equal(first) && got[1].Func == "g" &&
			got[1].Jobs == 1 && got[1].Oldest.Equal(second),
			"told is %+v, want two for f since %v and one for g since %v", got, first, second)
	}},
	{"Flows that are open, and what waits for others, are counted", func(t *T) {
		g := t.flow("a b<a c<b")
		t.flow("z")
		f := t.examine().Flows
		expect(t, f.Open == 2 && f.Blocked == 2 && f.Noted.IsZero(), "told is %+v, want 2 flows and 2 jobs", f)
		for _, e := range g.w.ClaimAll() {
			g.w.Complete(e)
		}
		g.plays()
		f = t.examine().Flows
		expect(t, f == report.FlowFacts{}, "after all have ended told is %+v", f)
	}},
	{"What was noted is told until somebody has looked", func(t *T) {
		before := t.clock()
		g := t.flow("")
		f := t.examine().Flows
		expect(t, between(f.Noted, before.Add(-time.Millisecond), t.clock().Add(time.Millisecond)) && f.Open == 0, "noted is %v, enqueued was at %v", f.Noted, before)
		g.promotes()
		expect(t, t.examine().Flows.Noted.IsZero(), "it is noted still: %+v", t.examine().Flows)
	}},
	{"What engines hold that fell silent is counted, and nothing of others", func(t *T) {
		t.enqueue(slices.Concat(jobs(2, "k"), jobs(3, "k", stint.Queue("q")), jobs(4, "k"))...)
		lives, silent := t.join("k"), NewWorker(t, t.Store, "k")
		silent.Info.TimeToLive = time.Millisecond
		t.must(silent.TryJoin(t.ctx))
		// Before, behind and beside what it takes is what another one does.
		lives.Claim(lane("default"), 1)
		lives.Claim(lane("q"), 3)
		taken := silent.Claim(lane("default"), 4)
		lives.Claim(lane("default"), 1)
		silent.Complete(taken[:2]...)
		t.delete(taken[0].ID)
		t.due()
		holds := t.examine().Holds
		_, told := holds[lives.Info.Token]
		expect(t, !told && len(holds) == 1 && holds[silent.Info.Token] == 2,
			"told is %v, want 2 entries of engine %d", holds, silent.Info.Token)
	}},
	{"That retention is behind is told of the engine that deletes, while it lives", func(t *T) {
		keeper, gone := as[report.MetricsKeeper](t), t.join("k")
		gone.Leave()
		deletes, idle := t.join("k"), t.join("k")
		behind := func(w *Worker, late, kept time.Duration) int {
			t.Helper()
			at := t.clock()
			t.must(keeper.WriteMetrics(t.ctx, report.Metrics{Instance: w.Info.Instance, Engine: w.Info.Token, Since: at, At: at,
				Retention: report.RetentionMetrics{Clean: at.Add(-late), Kept: kept}}))
			return countOf(must(report.Diagnose(t.ctx, t.Store, report.Options{}))(t), func(f report.Finding) bool {
				return f.Code == "retention_behind" && f.Figures["token"] == fmt.Sprint(int64(w.Info.Token))
			})
		}
		equal(t, behind(deletes, 5*time.Minute, time.Hour), 0, "of one that is in time there are %d findings, want %d")
		equal(t, behind(deletes, time.Hour, 10*time.Hour), 0, "of one that is late by a tenth there are %d findings, want %d")
		equal(t, behind(idle, 0, 0), 0, "of one that deletes nothing there are %d findings, want %d")
		equal(t, behind(gone, time.Hour, time.Hour), 0, "of one that is gone there are %d findings, want %d")
		equal(t, behind(deletes, 20*time.Minute, time.Hour), 1, "of one that is behind there are %d findings, want %d")
	}},
	{"That steps were not come to is told by kind, of the engines that live, for a day", func(t *T) {
		keeper, gone := as[report.MetricsKeeper](t), t.join("k")
		gone.Leave()
		at := t.clock()
		missed := func(w *Worker, all ...report.MissedStep) {
			t.Helper()
			t.must(keeper.WriteMetrics(t.ctx, report.Metrics{Instance: w.Info.Instance, Engine: w.Info.Token, Since: at, At: at, Missed: all}))
		}
		missed(gone, report.MissedStep{Kind: "k", Step: "gone", Jobs: 1, Last: at})
		missed(t.join("k"), report.MissedStep{Kind: "k", Step: "page #", Jobs: 2, Last: at.Add(-time.Hour)}, report.MissedStep{Kind: "k", Step: "old", Jobs: 9, Last: at.Add(-25 * time.Hour)})
		missed(t.join("k"), report.MissedStep{Kind: "k", Step: "page #", Jobs: 3, Last: at}, report.MissedStep{Kind: "k", Step: "charge", Jobs: 1, Last: at}, report.MissedStep{Kind: "x", Step: "y", Jobs: 1, Last: at})
		var told []string
		for _, f := range must(report.Diagnose(t.ctx, t.Store, report.Options{}))(t) {
			if f.Code == "steps_missed" {
				told = append(told, fmt.Sprintf("%s: %v, %v jobs, %s", f.Subject, f.Figures["steps"], f.Figures["jobs"], f.Severity))
			}
		}
		noDiff(t, gocmp.Diff([]string{"kind k: [charge page #], 5 jobs, warning", "kind x: [y], 1 jobs, warning"}, told), "(-want +told)")
	}},
	{"That a kind fails is told as long as many of its attempts did lately", func(t *T) {
		as[report.StatsStore](t)
		ends := func(n int, end store.Result, want string) {
			t.Helper()
			t.enqueue(slices.Concat(jobs(n, "k"), jobs(n, "well"))...)
			w := t.join("k", "well")
			for _, e := range w.ClaimAll() {
				if e.Kind == "k" {
					w.Finish(end, e)
				} else {
					w.Complete(e)
				}
			}
			w.Leave()
			equal(t, t.found("kind_failing"), want, "found is %q, want %q")
		}
		ends(19, failedFinally, "")
		ends(1, failedFinally, "kind k /errors?kind=k")
		ends(81, completed, "")
		ends(6, failedFinally, "kind k /errors?kind=k")
	}},
	{"That occurrences were missed is told until the schedule fires again", func(t *T) {
		t.declare(every("s"))
		t.tick("s", 1)
		equal(t, t.found("schedule_missed"), "", "found is %q, want %q")
		t.due()
		t.fire(store.FireRequest{}, func(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			return store.Plan{Passed: 3, After: now, Next: now.Add(300 * time.Millisecond)}, nil
		})
		equal(t, t.found("schedule_missed"), "schedule s /schedules/s", "found is %q, want %q")
		time.Sleep(350 * time.Millisecond)
		t.fire(store.FireRequest{}, func(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			return store.Plan{Occurrences: []time.Time{s.Next}, After: s.Next, Next: now.Add(time.Hour)}, nil
		})
		equal(t, t.found("schedule_missed"), "", "fired again, found is %q, want %q")
	}},
	{"Looking changes nothing", func(t *T) {
		t.undecided("f")
		t.enqueue(jobs(3, "k")...)
		t.join("k").Claim(lane("default"), 2)
		before := t.ledger()
		t.examine()
		byPos := cmpopts.SortSlices(func(a, b store.LedgerExecution) bool { return a.Pos < b.Pos })
		noDiff(t, gocmp.Diff(before, t.ledger(), byPos), "(-before +after)")
	}},
	{"A store that is well has no findings of a schema that was changed", func(t *T) {
		findings := must(report.Diagnose(t.ctx, t.Store, report.Options{Deep: true}))(t)
		for _, f := range findings {
			switch f.Code {
			case "fsync_off", "full_page_writes_off", "isolation", "database_copied": // what throw-away servers are, and tests make them
			default:
				t.Errorf("%s: %s %s: %s", f.Severity, f.Code, f.Subject, f.Problem)
			}
		}
	}},
}

// found are the subjects and pages of the findings with a code.
func (t *T) found(code string) string {
	t.Helper()
	var all []string
	for _, f := range must(report.Diagnose(t.ctx, t.Store, report.Options{}))(t) {
		if f.Code == code {
			all = append(all, f.Subject+" "+f.Page)
		}
	}
	return strings.Join(all, ", ")
}

// examine looks, and fails the test where that was not possible.
func (t *T) examine() report.Facts {
	t.Helper()
	x, ok := t.Store.(report.Checker)
	t.skipIf(!ok, "the store tells nothing of itself")
	signs := must(x.Examine(t.ctx, report.Options{}))(t)
	for _, f := range signs.Findings {
		expect(t, f.Code != report.CodeNotChecked, "%s: %s", f.Subject, f.Problem)
	}
	return signs
}

// backlogs are what is told to be ready, by queue, priority falling, and kind.
func (t *T) backlogs() []report.Backlog {
	t.Helper()
	all := t.examine().Backlogs
	slices.SortFunc(all, func(a, b report.Backlog) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}
