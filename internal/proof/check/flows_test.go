package check

import (
	"slices"
	"testing"
)

// flow is one that ended, with jobs in it.
func (w *world) flow(key, outcome string, jobs ...string) *Job {
	w.ended(key, outcome, "")
	w.h.Enqueues = w.h.Enqueues[:len(w.h.Enqueues)-1] // it has none of its own
	find(w.f.Executions, func(x *Execution) bool { return x.Job == w.key[key] }).Decided = true
	for _, job := range jobs {
		w.row(job).Flow = w.key[key]
	}
	w.row(key).IsFlow, w.row(key).Key = true, ""
	return w.row(key)
}

// ended is a job that ended and was never ready.
func (w *world) ended(key, outcome, reason string) {
	w.job(key, Committed, StateAvailable).ends(0, outcome, true)
	w.execution(key).Reason, w.execution(key).Charged = reason, false
}

func (w *world) needs(child string, wants Want, parent string) *Need {
	w.f.Needs = append(w.f.Needs, Need{w.key[child], w.key[parent], wants})
	return &w.f.Needs[len(w.f.Needs)-1]
}

// anImport is a flow of which one job failed, with a job for everything that comes of that.
func (w *world) anImport() {
	w.job("fetch", Committed, StateAvailable).does(1, OK, OutcomeCompleted, true)
	w.job("page", Committed, StateAvailable).does(1, Panic, OutcomeFailed, false).again().does(1, Error, OutcomeFailed, true)
	w.job("alarm", Committed, StateAvailable).does(1, OK, OutcomeCompleted, true)
	w.ended("sum", OutcomeCancelled, "needs job 1 (page), which failed")
	w.ended("mail", OutcomeSkipped, "needs job 1 (fetch), which completed")
	w.flow("import", OutcomeFailed, "fetch", "page", "alarm", "sum", "mail")
	w.needs("page", WantsSuccess, "fetch")
	w.needs("alarm", WantsFailure, "page")
	w.needs("alarm", WantsEnd, "fetch")
	w.needs("sum", WantsSuccess, "page")
	w.needs("sum", WantsFailure, "fetch")
	w.needs("mail", WantsFailure, "fetch")
	w.needs("mail", WantsEnd, "page")
}

// clean compares what is right.
func (w *world) clean(t *testing.T) {
	t.Helper()
	if err := Compare(&w.h, &w.f, w.opt).Err(); err != nil {
		t.Error(err)
	}
	for _, v := range Invariants(&w.f) {
		t.Error(v)
	}
}

// Of what a deleted job was told nothing is recorded any more.
func TestStepsThatAreRecordedAsTheyWereToldAreClean(t *testing.T) {
	w := idleWorld()
	retried, deleted := w.key["retried"], w.key["deleted"]
	w.h.Told = []Told{{retried, "charge", "17", 0}, {retried, "charge", "17", 1}, {deleted, "charge", "1", 0}, {deleted, "charge", "1", 1}}
	w.f.Steps = []Step{{retried, "charge", "17"}, {retried, "mail", "18"}}
	w.clean(t)
}

func TestARightFlowIsClean(t *testing.T) {
	w := idleWorld()
	w.anImport()
	w.clean(t)
}

// The alarm was raised by the page that failed, and the page was retried after it.
func TestWhatWasDecidedBeforeARetryStays(t *testing.T) {
	w := idleWorld()
	w.anImport()
	w.again("page", "page").Flow = w.key["import"]
	anew := w.f.Jobs[len(w.f.Jobs)-1].ID
	find(w.f.Executions, func(x *Execution) bool { return x.Job == w.key["import"] }).Outcome = OutcomeCompleted
	w.row("import").State = StateCompleted
	for i := range w.f.Needs {
		if n := &w.f.Needs[i]; n.Parent == w.key["page"] {
			n.Parent = anew
		}
	}
	w.again("sum", "sum").Flow = w.key["import"] // which was cancelled
	w.f.Needs = append(w.f.Needs, Need{w.f.Jobs[len(w.f.Jobs)-1].ID, anew, WantsSuccess})
	w.clean(t)
}

// What was deleted may have ended in any way, so what waited for it may have come to anything.
func TestOfADeletedJobThatIsNeededNothingIsKnown(t *testing.T) {
	w := idleWorld()
	w.anImport()
	drop(w, "page", "mail")
	w.f.Needs = slices.DeleteFunc(w.f.Needs, func(n Need) bool { return n.Child == w.key["page"] })
	w.opt.Deleted = append(w.opt.Deleted, Deletion{Job: w.key["page"], At: w.tick()}, Deletion{Job: w.key["mail"], At: w.tick()})
	w.clean(t)
}

var wrongFlows = []fault{
	{RuleNeeds, "a job that began before the end of what it needs", func(w *world) {
		w.run("fetch").End = w.run("page").Start + 1
	}},
	{RuleNeeds, "a job that began while what it needs had not ended", func(w *world) {
		w.job("open", Committed, StateScheduled)
		w.row("open").IsFlow = true
		w.needs("page", WantsSuccess, "open")
	}},
	{RuleNeeds, "a job that is ready while what it needs has not ended", func(w *world) {
		w.job("open", Committed, StateScheduled)
		w.row("open").IsFlow, w.row("ready").Flow = true, w.key["open"]
		w.needs("ready", WantsSuccess, "open")
	}},
	{RuleNeeds, "a job that began after a failure", func(w *world) {
		w.needs("alarm", WantsSuccess, "page")
		w.f.Needs = slices.DeleteFunc(w.f.Needs, func(n Need) bool { return n.Child == w.key["alarm"] && n.Wants == WantsFailure })
	}},
	{RuleNeeds, "a job that began after what it needs had been skipped", func(w *world) {
		w.needs("alarm", WantsEnd, "mail")
	}},
	{RuleNeeds, "a job that was skipped and was to run", func(w *world) {
		find(w.f.Needs, func(n *Need) bool { return n.Child == w.key["mail"] }).Wants = WantsSuccess
	}},
	{RuleNeeds, "a job that was skipped and was to be cancelled", func(w *world) {
		w.needs("mail", WantsSuccess, "sum")
	}},
	{RuleNeeds, "a job that was cancelled and was to be skipped", func(w *world) {
		find(w.f.Needs, func(n *Need) bool { return n.Child == w.key["sum"] }).Wants = WantsFailure
	}},
	{RuleNeeds, "a job that was cancelled for what it needs and had begun", func(w *world) {
		w.f.Claims = append(w.f.Claims, Claim{Lane: 7, N: 999, Nonce: 9, Engine: 1, Positions: []int64{w.entry("sum").Pos}})
		w.entry("sum").Behind = true
		w.f.Needs = append(w.f.Needs, Need{w.key["sum"], 999, WantsSuccess}) // which is gone
		w.f.Needs = slices.DeleteFunc(w.f.Needs, func(n Need) bool { return n.Child == w.key["sum"] && n.Parent != 999 })
	}},
	{RuleNeeds, "a job that failed and never began", func(w *world) {
		w.ended("late page", OutcomeExpired, "")
		w.row("late page").Flow = w.key["import"]
		w.needs("late page", WantsSuccess, "fetch")
	}},
	{RuleFlow, "a flow that completed although a job failed", func(w *world) {
		w.execution("import").Outcome, w.row("import").State = OutcomeCompleted, StateCompleted
	}},
	{RuleFlow, "a flow that failed although no job did", func(w *world) {
		drop(w, "deleted", "deleted perhaps")
		w.opt.Deleted = nil
		w.flow("empty", OutcomeFailed)
	}},
	{RuleFlow, "a flow that ended before its job", func(w *world) {
		w.row("ready").Flow = w.key["import"]
	}},
	{RuleFlow, "a flow that expired", func(w *world) {
		w.flow("late flow", OutcomeExpired)
	}},
}
