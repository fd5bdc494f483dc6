package check

import (
	"slices"
	"testing"
	"time"
)

// cloned is a copy of facts that can be spoilt by itself.
func cloned(f *Facts) *Facts {
	c := *f
	c.Jobs, c.Entries, c.Executions = slices.Clone(f.Jobs), slices.Clone(f.Entries), slices.Clone(f.Executions)
	c.Claims, c.Waiting, c.Roster = slices.Clone(f.Claims), slices.Clone(f.Waiting), slices.Clone(f.Roster)
	return &c
}

// failedOver is a world whose server was lost, and with it two jobs with their
// runs; the claim, the run and the outcome of another; and the outcome of one whose
// engine had left. The ids of the lost ones came again.
func failedOver() *world {
	w := newWorld()
	w.job("kept", Committed, StateAvailable).does(1, OK, OutcomeCompleted, true)
	again := w.job("again", Committed, StateAvailable)
	unsaid := w.job("unsaid", Committed, StateAvailable).claimed(3).runs(3, OK)
	w.row("unsaid").Once = true // that it had begun is lost
	napped := w.job("napped", Committed, StateAvailable).does(1, Snooze, OutcomeSnoozed, false).again()
	kept, pos := cloned(&w.f), w.pos

	w.job("undone", Committed, StateAvailable).does(1, OK, OutcomeCompleted, true)
	w.job("undone too", Committed, StateAvailable).does(1, OK, OutcomeCompleted, true)
	again.claimed(1).runs(1, OK)
	w.f.Claims[len(w.f.Claims)-1].N = 77
	again.ends(1, OutcomeCompleted, true)
	unsaid.ends(3, OutcomeCompleted, true)
	napped.claimed(1) // by the same engine, for the same attempt, and never began
	w.f.Claims[len(w.f.Claims)-1].N = 78
	w.f.Roster = []int64{1, 2} // the third left in good order
	w.opt.Clean = []int64{3}
	had := cloned(&w.f)

	w.f, w.pos = *cloned(kept), pos
	w.opt.Failover = &Failover{Had: had, Kept: kept, At: w.tick()}
	w.job("reborn", Committed, StateAvailable).does(1, OK, OutcomeCompleted, true)
	w.job("reborn too", Committed, StateAvailable).claimed(1)
	again.claimed(2).runs(2, OK).ends(2, OutcomeCompleted, true)
	napped.claimed(2).runs(2, OK).ends(2, OutcomeCompleted, true)
	w.f.Roster, w.f.Buried[3] = []int64{1, 2}, w.wall(w.opt.Failover.At.Add(6*time.Second))
	unsaid.ends(3, OutcomeReturned, false).again().does(2, OK, OutcomeCompleted, true)
	return w
}

func TestWhatAFailoverLostIsExcusedAndCounted(t *testing.T) {
	w := failedOver()
	got := Compare(&w.h, &w.f, w.opt)
	if err := got.Err(); err != nil {
		t.Error(err)
	}
	if want := (Undone{Jobs: 2, Claims: 4, Outcomes: 4, Runs: 3}); got.Undone != want {
		t.Errorf("undone are %+v, want %+v", got.Undone, want)
	}
}

// It stands in the first server's roster still, which is gone.
func TestAnEngineThatAFailoverLeavesItsPlaceMayLeaveInGoodOrder(t *testing.T) {
	w := failedOver()
	w.f.Roster, w.opt.Clean = []int64{1}, append(w.opt.Clean, 2)
	if err := Compare(&w.h, &w.f, w.opt).Err(); err != nil {
		t.Error(err)
	}
}

// afterFailover are histories that a failover does not excuse, for worlds that
// failed over.
var afterFailover = []fault{
	{RuleLosses, "a second run of what must run once, and began behind the failover", func(w *world) {
		w.opt.Failover.Had.Roster = []int64{1} // the second joined later
		once := w.job("once", Committed, StateAvailable).claimed(2).runs(2, OK)
		w.row("once").Once = true
		w.bury(2, Kills, w.tick())
		once.ends(2, OutcomeReturned, false).again().does(1, OK, OutcomeCompleted, true)
	}},
	{RuleClean, "an engine that left the other server in good order, and stands there still", func(w *world) {
		w.opt.Clean = append(w.opt.Clean, 2)
	}},
	{RuleClean, "an engine that left the first server in good order, and stood there still", func(w *world) {
		w.opt.Clean = append(w.opt.Clean, 4)
		w.opt.Failover.Had.Roster = append(w.opt.Failover.Had.Roster, 4)
	}},
	{RuleKept, "a job that the other server began with, and nobody else had", func(w *world) {
		o := w.opt.Failover
		o.Had.Jobs = slices.DeleteFunc(o.Had.Jobs, func(j Job) bool { return j.ID == w.key["kept"] })
		o.Had.Entries = slices.DeleteFunc(o.Had.Entries, func(e Entry) bool { return e.Job == w.key["kept"] })
		o.Had.Executions = slices.DeleteFunc(o.Had.Executions, func(x Execution) bool { return x.Job == w.key["kept"] })
		w.h.Enqueues = slices.DeleteFunc(w.h.Enqueues, func(e Enqueue) bool { return e.Key == "kept" })
		w.h.Enqueues = append(w.h.Enqueues, Enqueue{Key: "kept", Fate: Unknown})
		w.h.Runs = slices.DeleteFunc(w.h.Runs, func(r Run) bool { return r.Job == w.key["kept"] })
		o.Kept.Executions = slices.DeleteFunc(o.Kept.Executions, func(x Execution) bool { return x.Job == w.key["kept"] })
		w.f.Executions = slices.DeleteFunc(w.f.Executions, func(x Execution) bool { return x.Job == w.key["kept"] })
		w.row("kept").State, w.row("kept").Final = StateRunning, false
	}},
	{RuleKept, "a claim that the other server began with, and nobody else had", func(w *world) {
		w.opt.Failover.Kept.Claims = append(w.opt.Failover.Kept.Claims, Claim{Lane: 7, N: 99, Nonce: 99, Positions: []int64{99}})
	}},
	{RuleKept, "an outcome that is another one on the other server", func(w *world) {
		w.opt.Failover.Kept.Executions[0].Outcome = OutcomeFailed
	}},
	{RuleCommitted, "a committed job that neither server had", func(w *world) {
		w.h.Enqueues = append(w.h.Enqueues, Enqueue{Key: "nowhere", Job: 55, Fate: Committed})
	}},
	{RuleCommitted, "a kept job that is gone", func(w *world) {
		w.forget("kept")
		w.h.Runs = slices.DeleteFunc(w.h.Runs, func(r Run) bool { return r.Job == w.key["kept"] })
		w.opt.Failover.Had.Executions = slices.DeleteFunc(w.opt.Failover.Had.Executions, func(x Execution) bool { return x.Job == w.key["kept"] })
		w.opt.Failover.Kept.Executions = slices.DeleteFunc(w.opt.Failover.Kept.Executions, func(x Execution) bool { return x.Job == w.key["kept"] })
		for _, jobs := range [][]Job{w.opt.Failover.Had.Jobs, w.opt.Failover.Kept.Jobs} {
			find(jobs, func(j *Job) bool { return j.ID == w.key["kept"] }).State = StateRunning
			find(jobs, func(j *Job) bool { return j.ID == w.key["kept"] }).Final = false
		}
	}},
	{RuleOverlap, "a run that goes on for too long when its claim is lost", func(w *world) {
		r := find(w.h.Runs, func(r *Run) bool { return r.Job == w.key["again"] && r.Engine == 1 })
		r.End = w.at.Add(time.Minute)
	}},
	{RuleRerun, "a second run for a claim that is lost", func(w *world) {
		r := find(w.h.Runs, func(r *Run) bool { return r.Job == w.key["again"] && r.Engine == 1 })
		r.Pos = 0 // as of handlers that cannot know
		again := *r
		again.Start, again.End = r.End+1, r.End+2
		w.h.Runs = append(w.h.Runs, again)
	}},
	{RuleOutcome, "a lost outcome that was never the handler's", func(w *world) {
		find(w.h.Runs, func(r *Run) bool { return r.Job == w.key["again"] && r.Engine == 1 }).How = Error
	}},
	{RuleOutcome, "an outcome that is believed of a claim that is lost", func(w *world) {
		w.h.Runs = slices.DeleteFunc(w.h.Runs, func(r Run) bool { return r.Engine == 2 })
	}},
}
