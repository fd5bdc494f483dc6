package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestARightHistoryIsClean(t *testing.T) {
	w := busyWorld()
	w.opt.Drained = true
	want := &Report{
		Jobs: 14, Final: 14, Deleted: 2, Enqueues: 19, Runs: 21, OpenRuns: 1,
		RolledBack: 1, UnknownCommitted: 2, UnknownAbsent: 2, Overlaps: map[Does]int{Freezes: 1},
		Reruns: map[string]int{ReasonRetry: 2, ReasonSnooze: 1, ReasonReturn: 1, ReasonCrash: 2, ReasonCutOff: 1},
	}
	got := Compare(&w.h, &w.f, w.opt)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := got.Err(); err != nil {
		t.Error(err)
	}
	if got := Invariants(&w.f); got != nil {
		t.Errorf("invariants: %v", got)
	}
}

// The handler cannot know its position, and both entries are attempt 1 of the
// same engine.
func TestARunThatSnoozedIsNotTakenForTheEntryThatWasCancelledUnbegun(t *testing.T) {
	w := newWorld()
	w.job("snoozed", Committed, StateAvailable).does(1, Snooze, OutcomeSnoozed, false).again().claimed(1).ends(1, OutcomeCancelled, true)
	w.run("snoozed").Pos = 0
	if err := Compare(&w.h, &w.f, w.opt).Err(); err != nil {
		t.Error(err)
	}
}

// What the second run came to could not be recorded before its engine was buried.
// It would suit the first entry better, and then there were none for the first run.
func TestARunThatIsAlikeAnEarlierOneDoesNotTakeItsEntry(t *testing.T) {
	w := newWorld()
	w.job("snoozed", Committed, StateAvailable).does(1, Snooze, OutcomeSnoozed, false).again().
		claimed(1).runs(1, Snooze).ends(1, OutcomeReturned, false).again().does(2, OK, OutcomeCompleted, true)
	w.opt.Disturbances = []Disturbance{{Does: Kills, Process: "one", From: w.at}}
	w.f.Buried[1], w.f.Roster = w.wall(w.at), []int64{2, 3}
	for i := range w.h.Runs {
		w.h.Runs[i].Pos = 0
	}
	if err := Compare(&w.h, &w.f, w.opt).Err(); err != nil {
		t.Error(err)
	}
}

// The first entry came back before the handler began. What that said, which did not learn that it had
// completed its job itself, would suit the first one better.
func TestARunIsNotTakenForAnEntryThatHadItsOutcomeBefore(t *testing.T) {
	w := newWorld()
	w.job("unsure", Committed, StateAvailable).claimed(1).ends(1, OutcomeReturned, false).again().does(1, Cancelled, OutcomeCompleted, true)
	w.execution("unsure").Unbegun = true
	w.row("unsure").CompletesItself = true
	w.run("unsure").Pos = 0
	if err := Compare(&w.h, &w.f, w.opt).Err(); err != nil {
		t.Error(err)
	}
}

// The same within the slack, where the clocks do not tell which came first.
func TestARunIsNotTakenForAnEntryThatDidNotBeginAtAboutThatTime(t *testing.T) {
	w := newWorld()
	w.job("unsure", Committed, StateAvailable).claimed(1).ends(1, OutcomeReturned, false).again().does(1, Cancelled, OutcomeCompleted, true)
	w.execution("unsure").Unbegun = true
	w.row("unsure").CompletesItself = true
	w.run("unsure").Pos = 0
	w.opt.Slack = time.Hour
	if err := Compare(&w.h, &w.f, w.opt).Err(); err != nil {
		t.Error(err)
	}
}

func TestAnUnfinishedHistoryIsClean(t *testing.T) {
	w := idleWorld()
	got := Compare(&w.h, &w.f, w.opt)
	if err := got.Err(); err != nil {
		t.Error(err)
	}
	if got.Jobs != 20 || got.Final != 14 {
		t.Errorf("%d jobs, %d final; want 20 and 14", got.Jobs, got.Final)
	}
}

// What a frozen process went on with had been taken over, and so its limit is free; also what it was about to begin.
func TestAStaleRunHoldsNothing(t *testing.T) {
	for name, late := range map[string]bool{"amid a run": false, "before it": true} {
		t.Run(name, func(t *testing.T) {
			w := busyWorld()
			w.limit(1, "frozen", "beside")
			w.unique("frozen", "beside")
			if r := w.run("frozen"); late {
				d := find(w.opt.Disturbances, func(d *Disturbance) bool { return d.Does == Freezes })
				d.To = w.run("beside").Start
				r.Start, r.End = d.To+1, d.To+2
			}
			if err := Compare(&w.h, &w.f, w.opt).Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestARunThatEndsAsItBeginsIsBeforeOneThatBeginsThen(t *testing.T) {
	w := busyWorld()
	w.limit(1, "plain", "maybe there")
	r := w.run("maybe there")
	r.Start = w.run("plain").Start
	r.End = r.Start
	if err := Compare(&w.h, &w.f, w.opt).Err(); err != nil {
		t.Error(err)
	}
}

// From when it says that it has completed, it holds nothing.
func TestAJobThatCompletesItselfHoldsALimitUntilThen(t *testing.T) {
	w := busyWorld()
	w.limit(1, "plain", "maybe there")
	w.row("plain").CompletesItself = true
	w.run("plain").End = w.at
	if err := Compare(&w.h, &w.f, w.opt).Err(); err != nil {
		t.Error(err)
	}
}

// A handler sees neither its position nor its engine.
func TestRunsWithoutPositionFindTheirEntries(t *testing.T) {
	w, v := idleWorld(), idleWorld()
	for i := range w.h.Runs {
		w.h.Runs[i].Pos, w.h.Runs[i].Engine = 0, 0
	}
	want, got := Compare(&v.h, &v.f, v.opt), Compare(&w.h, &w.f, w.opt)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-with +without)\n%s", diff)
	}
}

func TestEmptyAccountsAreClean(t *testing.T) {
	if err := Compare(new(History), new(Facts), Options{Drained: true}).Err(); err != nil {
		t.Error(err)
	}
}

func TestOptionsAllowWhatTheyName(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(w *world)
	}{
		{"strangers", func(w *world) {
			w.job("new", Committed, StateAvailable)
			w.h.Enqueues = w.h.Enqueues[:len(w.h.Enqueues)-1]
			w.opt.Strangers = true
		}},
		{"a success recorded by the handler itself", func(w *world) {
			w.run("plain").How = Error
			w.row("plain").CompletesItself = true
		}},
		{"a handler that knows that it recorded its success", func(w *world) {
			w.run("plain").How = Recorded
		}},
		{"a handler that goes on when its engine was buried", func(w *world) {
			w.run("frozen").End += Instant(time.Minute)
			w.row("frozen").Kept = true
		}},
		{"a success that a buried engine could not record of a job that was cancelled", func(w *world) {
			w.job("too slow", Committed, StateAvailable).claimed(2).runs(2, OK).ends(2, OutcomeCancelled, true)
			w.f.Buried[2] = w.wall(w.tick())
		}},
		{"a failure about which somebody else decided that it is the last", func(w *world) {
			w.job("judged", Committed, StateAvailable).does(1, Error, OutcomeFailed, false).again().ends(2, OutcomeFailed, true)
			x := &w.f.Executions[len(w.f.Executions)-1]
			x.Decided, x.Charged, x.Nonce = true, false, 0
		}},
		{"a job that is done again", func(w *world) {
			w.again("plain", "plain")
		}},
		{"a job that is done again and was deleted since", func(w *world) {
			w.again("plain", "plain")
			drop(w, "plain")
		}},
		{"a handler that a thawed process begins when its job has run elsewhere", func(w *world) {
			for i := range w.h.Runs {
				w.h.Runs[i].Pos = 0
			}
			thaw := find(w.opt.Disturbances, func(d *Disturbance) bool { return d.Does == Freezes }).To
			w.run("frozen").Start, w.run("frozen").End = thaw.Add(time.Millisecond), thaw.Add(time.Second)
		}},
		{"a longer bound", func(w *world) {
			w.run("frozen").End += Instant(time.Minute)
			w.opt.Bound = 2 * time.Minute
		}},
		{"a clock that is off", func(w *world) {
			w.f.Buried[3] = w.wall(w.at.Add(time.Minute))
			w.opt.Slack = time.Hour
		}},
		{"an outcome that a clock dates behind the burial", func(w *world) {
			w.job("ghost", Committed, StateAvailable).does(3, OK, OutcomeCompleted, true)
			w.opt.Slack = time.Hour
		}},
		{"a handler that does not listen", func(w *world) {
			w.run("frozen").End += Instant(time.Hour)
			w.opt.Disturbances = append(w.opt.Disturbances, Disturbance{Does: Deafens, Engine: 3})
		}},
		{"an outage for all", func(w *world) {
			w.opt.Disturbances = append(slices.Delete(w.opt.Disturbances, 1, 2), Disturbance{Does: CutsOff})
			w.row("frozen").Lingers = true
			w.opt.Bound = time.Hour
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := idleWorld()
			c.spoil(w)
			if err := Compare(&w.h, &w.f, w.opt).Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAReportShowsTheFirstOfEachRuleAndCountsAll(t *testing.T) {
	w := newWorld()
	for i := range 100 {
		w.job(number(int64(i)), RolledBack, StateAvailable)
	}
	got := Compare(&w.h, &w.f, w.opt)
	if len(got.Violations) != Shown || got.Broken[RuleRolledBack] != 100 {
		t.Errorf("%d shown, %d counted; want %d and 100", len(got.Violations), got.Broken[RuleRolledBack], Shown)
	}
	if text := got.Err().Error(); !strings.Contains(text, "rolled back: 80 more") {
		t.Errorf("the error does not say how many more:\n%s", text)
	}
}
