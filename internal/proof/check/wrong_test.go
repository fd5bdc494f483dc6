package check

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// fault is something wrong with a world, and the only rule that finds it.
type fault struct {
	rule  Rule
	name  string
	spoil func(w *world)
}

// wrong holds, for each rule, histories that only this rule finds wrong.
var wrong = []fault{
	{RuleCommitted, "a committed job is gone", func(w *world) {
		w.forget("ready")
	}},
	{RuleRolledBack, "a rolled back job is there", func(w *world) {
		w.job("taken back too", RolledBack, StateAvailable)
	}},
	{RuleWhole, "half of a transaction", func(w *world) {
		drop(w, "deleted perhaps") // which may be the other half
		w.opt.Deleted = w.opt.Deleted[:1]
		w.forget("there with it")
		w.h.Runs = slices.DeleteFunc(w.h.Runs, func(r Run) bool { return r.Job == w.key["there with it"] })
	}},
	{RuleStranger, "a job that nobody enqueued", func(w *world) {
		w.job("new", Committed, StateAvailable)
		w.h.Enqueues = w.h.Enqueues[:len(w.h.Enqueues)-1]
	}},
	{RuleStranger, "an unknown commit that happened twice", func(w *world) {
		w.job("maybe there", Unknown, StateAvailable)
		w.h.Enqueues = w.h.Enqueues[:len(w.h.Enqueues)-1]
	}},
	{RuleIdentity, "a job that is there twice", func(w *world) {
		w.f.Jobs = append(w.f.Jobs, *w.row("plain"))
	}},
	{RuleIdentity, "a position that is there twice", func(w *world) {
		w.f.Entries = append(w.f.Entries, *w.entry("plain"))
	}},
	{RuleIdentity, "an id that was answered twice", func(w *world) {
		w.h.Enqueues = append(w.h.Enqueues, Enqueue{Key: "other", Fate: Committed, Job: w.key["plain"]})
	}},
	{RuleIdentity, "an id that leads to another job", func(w *world) {
		w.row("plain").Key = "other"
	}},
	{RuleRecovered, "a job that does one again that has not ended", func(w *world) {
		w.again("ready", "ready")
	}},
	{RuleRecovered, "a job that does a later one again", func(w *world) {
		w.again("plain", "plain").Recovers = 998
	}},
	{RuleRecovered, "a job that does another than it says", func(w *world) {
		w.again("plain", "retried")
	}},
	{RuleRecovered, "an enqueued job that is said to do another one again", func(w *world) {
		w.row("retried").Recovers = w.key["plain"]
	}},
	{RuleOccurrence, "an occurrence with two jobs", func(w *world) {
		w.made(1)
		w.made(2)
		w.made(1)
	}},
	{RuleOccurrence, "an occurrence without a job", func(w *world) {
		w.made(1)
		w.f.Occurrences = map[string][]time.Time{"hourly": {midnight.Add(time.Hour), midnight.Add(2 * time.Hour)}}
	}},
	{RuleStep, "steps of a job that is not there", func(w *world) {
		w.f.Kept = []int64{w.key["plain"], 999, w.key["ready"]}
	}},
	{RuleStep, "a step of which two runs were told something else", func(w *world) {
		w.h.Told = []Told{{w.key["retried"], "charge", "17", 0}, {w.key["retried"], "mail", "18", 0}, {w.key["retried"], "charge", "18", 1}}
	}},
	{RuleStep, "a step of which a run was told something else than is recorded", func(w *world) {
		w.h.Told = []Told{{w.key["retried"], "charge", "17", 0}}
		w.f.Steps = []Step{{w.key["retried"], "charge", "18"}}
	}},
	{RuleStep, "a step of which nothing is recorded", func(w *world) {
		w.h.Told = []Told{{w.key["retried"], "charge", "17", 0}}
		w.f.Steps = []Step{{w.key["plain"], "charge", "17"}}
	}},
	{RuleDeleted, "a deleted job that is there", func(w *world) {
		w.opt.Deleted = append(w.opt.Deleted, Deletion{Job: w.key["plain"], At: w.tick()})
	}},
	{RuleDeleted, "a deleted job that is run again", func(w *world) {
		w.forget("plain")
		at := w.run("plain").Start - 1
		w.opt.Deleted = append(w.opt.Deleted, Deletion{Job: w.key["plain"], At: at})
	}},
	{RuleDrained, "a job that is left", func(w *world) {
		w.opt.Drained = true
		drop(w, "scheduled", "retrying", "running", "ending", "marked")
	}},
	{RuleDrained, "a job that is only marked as cancelled", func(w *world) {
		w.opt.Drained = true
		drop(w, "scheduled", "retrying", "running", "ending", "ready")
	}},
	{RulePlace, "a job that is nowhere", func(w *world) {
		w.f.Waiting = slices.DeleteFunc(w.f.Waiting, func(x Waiting) bool { return x.Job == w.key["retrying"] })
	}},
	{RulePlace, "a job that waits no more and has no entry", func(w *world) {
		w.f.Waiting = slices.DeleteFunc(w.f.Waiting, func(x Waiting) bool { return x.Job == w.key["scheduled"] })
	}},
	{RulePlace, "a job that waits and is ready", func(w *world) {
		w.f.Waiting = append(w.f.Waiting, Waiting{Job: w.key["ready"], Attempt: 1})
	}},
	{RulePlace, "a job with two unfinished entries", func(w *world) {
		w.f.Entries = append(w.f.Entries, Entry{Pos: 999, Job: w.key["ready"], Lane: 7, Attempt: 1})
	}},
	{RulePlace, "an unfinished entry that was overtaken", func(w *world) {
		l := w.job("overtaken", Committed, StateAvailable)
		l.again().claimed(1).ends(1, OutcomeReturned, false)
		l.show(StateAvailable, false)
	}},
	{RulePlace, "rows of a job that nobody sees", func(w *world) {
		w.f.Waiting = append(w.f.Waiting, Waiting{Job: 999})
	}},
	{RuleFinal, "two final executions", func(w *world) {
		w.job("twice", Committed, StateAvailable).claimed(1).ends(1, OutcomeExpired, true).again().claimed(1).ends(1, OutcomeExpired, true)
	}},
	{RuleFinal, "a final execution with a successor", func(w *world) {
		w.f.Waiting = append(w.f.Waiting, Waiting{Job: w.key["plain"], Attempt: 1})
	}},
	{RuleFinal, "an end before the last entry", func(w *world) {
		l := w.job("reborn", Committed, StateAvailable).claimed(1).ends(1, OutcomeExpired, true)
		l.again().claimed(1).ends(1, OutcomeReturned, false).show(StateFailed, true)
	}},
	{RuleFinal, "a snooze that is the end", func(w *world) {
		w.job("asleep", Committed, StateAvailable).does(1, Snooze, OutcomeSnoozed, true)
	}},
	{RuleFinal, "an expiry that is not the end", func(w *world) {
		w.job("stale", Committed, StateAvailable).claimed(1).ends(1, OutcomeExpired, false).again()
	}},
	{RuleState, "a ready job that shows as running", func(w *world) {
		w.row("ready").State = StateRunning
	}},
	{RuleState, "a completed job that shows as failed", func(w *world) {
		w.row("plain").State = StateFailed
	}},
	{RuleState, "a waiting job that shows as final", func(w *world) {
		w.row("scheduled").Final = true
	}},
	{RuleExecution, "an entry that was concluded twice", func(w *world) {
		w.f.Executions = append(w.f.Executions, *w.execution("plain"))
	}},
	{RuleExecution, "an execution of no entry", func(w *world) {
		x := *w.execution("plain")
		x.Pos = 999
		w.f.Executions = append(w.f.Executions, x)
	}},
	{RuleAttempt, "a retry that does not count", func(w *world) {
		w.job("stuck", Committed, StateAvailable).does(1, Error, OutcomeFailed, false).waits(StateRetrying)
		w.f.Waiting[len(w.f.Waiting)-1].Attempt = 1
	}},
	{RuleAttempt, "a snooze that counts", func(w *world) {
		l := w.job("charged", Committed, StateAvailable).does(1, Snooze, OutcomeSnoozed, false)
		l.attempt++
		l.again()
	}},
	{RuleAttempt, "an execution of another attempt than its entry", func(w *world) {
		w.execution("plain").Attempt = 2
	}},
	{RuleAttempt, "a handler that was told another attempt", func(w *world) {
		w.run("plain").Attempt = 2
	}},
	{RulePolicy, "one retry too many", func(w *world) {
		w.row("hopeless").ChargedMax = 1
	}},
	{RuleLosses, "a loss that should have been the last", func(w *world) {
		w.row("crashed").LossesMax = 1
	}},
	{RuleLosses, "a second run of what must run once, when its engine could not record the end of the first", func(w *world) {
		w.row("unsaid").Once = true
	}},
	{RuleLosses, "a second run of what must run once, behind a crash", func(w *world) {
		w.row("crashed").Once = true
	}},
	{RuleClaim, "an entry that was stepped over", func(w *world) {
		w.entry("ready").Behind = true
		w.row("ready").State = StateRunning
	}},
	{RuleClaim, "a claimed entry that will be taken again", func(w *world) {
		w.entry("plain").Behind = false
	}},
	{RuleClaim, "an entry that was taken twice", func(w *world) {
		w.f.Claims = append(w.f.Claims, Claim{Lane: 7, N: 999, Nonce: 9, Engine: 1, Positions: []int64{w.entry("plain").Pos}})
	}},
	{RuleClaim, "an outcome recorded under another claim", func(w *world) {
		w.execution("plain").Nonce = 9
	}},
	{RuleClaim, "an outcome recorded by another engine", func(w *world) {
		w.f.Roster = append(w.f.Roster, 5)
		w.execution("plain").Engine = 5
	}},
	{RuleClaim, "an outcome that names a claim of nobody", func(w *world) {
		w.execution("unwanted").Nonce = 9
	}},
	{RuleRoster, "an entry held by the dead", func(w *world) {
		w.f.Roster = nil
		drop(w, "ending")
	}},
	{RuleBuried, "an outcome later than the burial", func(w *world) {
		w.job("ghost", Committed, StateAvailable).does(3, OK, OutcomeCompleted, true)
	}},
	{RuleBuried, "a buried engine in the roster", func(w *world) {
		w.f.Roster = append(w.f.Roster, 3)
	}},
	{RuleClean, "a clean stop that left something claimed", func(w *world) {
		w.opt.Clean = append(w.opt.Clean, 1)
	}},
	{RuleClean, "a clean stop that lost something", func(w *world) {
		w.opt.Clean = append(w.opt.Clean, 3)
	}},
	{RuleRun, "a handler that ran for no job", func(w *world) {
		w.h.Runs = append(w.h.Runs, Run{Job: 999, Attempt: 1, Start: 1, End: 2, How: OK})
	}},
	{RuleRun, "a handler that ran at no entry", func(w *world) {
		w.h.Runs = append(w.h.Runs, Run{Job: w.key["plain"], Pos: 999, Attempt: 1, Start: 1, End: 2, How: OK})
	}},
	{RuleRun, "a handler that ran what nobody claimed", func(w *world) {
		w.h.Runs = append(w.h.Runs, Run{Job: w.key["ready"], Attempt: 1, Start: 1, End: 2, How: OK})
	}},
	{RuleRun, "a handler that ran what another engine claimed", func(w *world) {
		w.run("plain").Engine = 3
	}},
	{RuleOutcome, "a success that was recorded as a failure", func(w *world) {
		w.run("hopeless").How = OK
	}},
	{RuleOutcome, "a failure that was recorded as a success", func(w *world) {
		w.run("plain").How = Error
	}},
	{RuleOutcome, "a success that was handed back by a living engine", func(w *world) {
		w.job("wasted", Committed, StateAvailable).does(1, OK, OutcomeReturned, false).again().does(1, OK, OutcomeCompleted, true)
	}},
	{RuleOutcome, "a success that a clean stop handed back", func(w *world) {
		w.job("wasted", Committed, StateAvailable).does(2, OK, OutcomeReturned, false).again()
		w.opt.Clean = append(w.opt.Clean, 2)
		drop(w, "crashed", "unsaid")
	}},
	{RuleOutcome, "a success that an engine handed back which was told to stop", func(w *world) {
		w.run("stopped").How = OK
	}},
	{RuleOutcome, "a failure that was handed back before its engine was told to stop", func(w *world) {
		r := w.run("stopped")
		r.How, *w.stop() = Error, r.End+1
	}},
	{RuleOutcome, "a run that was cut short, recorded as not begun", func(w *world) {
		w.execution("stopped").Unbegun = true
	}},
	{RuleOutcome, "a success that was recorded as cancelled", func(w *world) {
		w.job("unheard", Committed, StateAvailable).does(1, OK, OutcomeCancelled, true)
	}},
	{RuleOutcome, "a cancellation that was recorded before the handler ended", func(w *world) {
		w.job("unheard", Committed, StateAvailable).does(1, Open, OutcomeCancelled, true)
	}},
	{RuleOutcome, "a success that the handler recorded, and that is not there", func(w *world) {
		w.run("hopeless").How = Recorded
	}},
	{RuleOutcome, "a success that the handler recorded, and that was lost with its engine", func(w *world) {
		w.row("unsaid").CompletesItself = true
		w.run("unsaid").How = Recorded
	}},
	{RuleOutcome, "a success that the handler recorded, of an entry without an outcome", func(w *world) {
		w.run("ending").How = Recorded
	}},
	{RuleOutcome, "a failure that was recorded as a success, beside a job that completes itself", func(w *world) {
		w.row("hopeless").CompletesItself = true
		w.run("plain").How = Error
	}},
	{RuleOutcome, "an outcome recorded before the handler ended", func(w *world) {
		r := w.run("plain")
		r.How, r.End = Open, 0
	}},
	{RuleOutcome, "an outcome without a handler", func(w *world) {
		w.h.Runs = slices.DeleteFunc(w.h.Runs, func(r Run) bool { return r.Job == w.key["plain"] })
	}},
	{RuleOutcome, "a handler that ran for what had expired", func(w *world) {
		w.h.Runs = append(w.h.Runs, Run{Job: w.key["late"], Attempt: 1, Start: 1, End: 2, How: OK})
	}},
	{RuleRerun, "an entry that was started twice", func(w *world) {
		r := *w.run("plain")
		r.Start, r.End = r.End+1, r.End+2
		w.h.Runs = append(w.h.Runs, r)
	}},
	{RuleRerun, "an attempt that was run twice", func(w *world) {
		r := w.run("plain")
		r.Pos = 0
		again := *r
		again.Start, again.End = r.End+1, r.End+2
		w.h.Runs = append(w.h.Runs, again)
	}},
	{RuleLoss, "a loss with an engine that was not buried", func(w *world) {
		w.job("let go", Committed, StateAvailable).claimed(1).ends(1, OutcomeLost, false).again()
	}},
	{RuleLoss, "a loss to which nothing happened", func(w *world) {
		w.opt.Disturbances = slices.DeleteFunc(w.opt.Disturbances, func(d Disturbance) bool { return d.Does == Kills })
		w.h.Processes[1].Stopped = w.run("crashed").Start
	}},
	{RuleLoss, "a cancelled job that lost its success to nothing that happened", func(w *world) {
		w.opt.Disturbances = slices.DeleteFunc(w.opt.Disturbances, func(d Disturbance) bool { return d.Does == Kills })
		drop(w, "crashed", "unsaid")
		w.job("too slow", Committed, StateAvailable).claimed(2).runs(2, OK).ends(2, OutcomeCancelled, true)
		w.f.Buried[2] = w.wall(w.tick())
	}},
	{RuleLoss, "a loss before anything happened", func(w *world) {
		w.job("too early", Committed, StateAvailable).claimed(2).runs(2, OK).ends(2, OutcomeLost, false).again()
		drop(w, "crashed", "unsaid")
		w.opt.Disturbances[0].From = w.tick()
	}},
	{RuleLoss, "a handler that its engine cancelled for nothing", func(w *world) {
		w.opt.Disturbances = slices.DeleteFunc(w.opt.Disturbances, func(d Disturbance) bool { return d.Does == Stops })
	}},
	{RuleLoss, "a handler that its engine cancelled before it was told to stop", func(w *world) {
		*w.stop() = w.run("stopped").End + 1
	}},
	{RuleOverlap, "an overlap behind a stop in good order", func(w *world) {
		d := &w.opt.Disturbances[1]
		w.opt.Disturbances = append(w.opt.Disturbances, Disturbance{Does: Stops, Process: d.Process, From: d.From, To: d.To},
			Disturbance{Does: Kills, Engine: 3, From: w.run("frozen").Start - 1}) // for the loss
		w.opt.Disturbances[1].Does = Kills
		w.opt.Disturbances[1].From = w.run("frozen").Start - 1
	}},
	{RuleOverlap, "a retry that began before the end", func(w *world) {
		w.run("retried").End = w.at
	}},
	{RuleOverlap, "an overlap longer than the bound", func(w *world) {
		w.run("frozen").End += Instant(time.Minute)
	}},
	{RuleOverlap, "an overlap with a handler whose engine knew that it is cut off", func(w *world) {
		w.opt.Disturbances[1].Does = CutsOff
	}},
	{RuleOverlap, "a rerun before the burial, as this machine dates it", func(w *world) {
		w.opt.Slack = time.Hour
		w.opt.Burials = map[int64]time.Time{3: w.wall(w.at.Add(time.Minute))}
		w.opt.Disturbances[1].To = w.at.Add(time.Minute)
	}},
	{RuleOverlap, "two runs at once of what was deleted then", func(w *world) {
		r := *w.run("deleted")
		r.Start++
		w.h.Runs = append(w.h.Runs, r)
	}},
	{RuleOverlap, "a rerun before the burial", func(w *world) {
		w.opt.Disturbances[1].To = w.at.Add(time.Minute)
		w.f.Buried[3] = w.wall(w.at.Add(time.Minute))
	}},
	{RuleOverlap, "a process that is not known to have died", func(w *world) {
		w.opt.Disturbances[0].Does = CutsOff
	}},
	{RuleOverlap, "an outage that was over long before", func(w *world) {
		w.opt.Disturbances = append(slices.Delete(w.opt.Disturbances, 1, 2),
			Disturbance{Does: CutsOff, To: w.run("frozen").Start.Add(-11 * time.Second)},
			Disturbance{Does: Kills, Engine: 3, From: w.run("frozen").Start - 1}) // for the loss
		w.opt.Bound = time.Hour
	}},
	{RuleLoss, "a loss long behind what happened to its process", func(w *world) {
		r := w.run("frozen")
		r.End = r.Start + 1
		for i := range w.opt.Disturbances {
			if d := &w.opt.Disturbances[i]; d.Does == Freezes {
				d.From, d.To = 1, w.run("frozen").Start.Add(-11*time.Second)
			}
		}
	}},
	{RuleOverlap, "a kept handler that never ends", func(w *world) {
		w.row("frozen").Kept = true
		r := w.run("frozen")
		r.How, r.End = Open, 0
	}},
	{RuleOverlap, "a stale start after the rerun", func(w *world) {
		r := w.run("frozen")
		r.Start, r.End = w.at.Add(time.Minute), w.at.Add(2*time.Minute)
		w.opt.Disturbances[1].To = r.Start
	}},
	{RuleLimit, "one more than a limit allows", func(w *world) {
		w.limit(2, "plain", "maybe there", "there with it")
		w.run("plain").End, w.run("maybe there").End = w.at, w.at
	}},
	{RuleLimit, "a job beside one whose process is frozen and was not buried yet", func(w *world) {
		w.limit(1, "frozen", "beside")
		r := w.run("beside")
		r.Start, r.End = w.run("frozen").Start+1, w.run("frozen").Start+2
	}},
	{RuleLimit, "a job beside one that had completed before its process was frozen, and went on", func(w *world) {
		w.limit(1, "plain", "beside")
		find(w.f.Claims, func(c *Claim) bool { return c.Positions[0] == w.key["plain"] }).Engine = 3
		w.execution("plain").Engine = 3
		r := w.run("plain")
		r.Engine, r.Process, r.End = 3, 2, w.run("beside").Start+1
	}},
	{RuleUnique, "two at once of a unique key", func(w *world) {
		w.unique("plain", "beside")
		w.run("plain").End = w.run("beside").Start + 1
	}},
	{RuleUnique, "a retry after another one of its key", func(w *world) {
		w.unique("plain", "retried")
		r := w.run("plain")
		r.Start = w.run("retried").End + 1
		r.End = r.Start + 1
	}},
	{RuleKey, "an unfinished job whose unique key another one has", func(w *world) {
		w.row("scheduled").Keyless = true
	}},
}

// drop takes jobs out of both accounts.
func drop(w *world, keys ...string) {
	for _, key := range keys {
		w.forget(key)
		w.h.Enqueues = slices.DeleteFunc(w.h.Enqueues, func(e Enqueue) bool { return e.Key == key })
		w.h.Runs = slices.DeleteFunc(w.h.Runs, func(r Run) bool { return r.Job == w.key[key] })
	}
}

func TestEachRuleFindsWhatIsWrong(t *testing.T) {
	tested := map[Rule]bool{}
	for _, c := range wrong {
		tested[c.rule] = true
		c.isFound(t, idleWorld())
	}
	for _, c := range wrongFlows {
		tested[c.rule] = true
		w := idleWorld()
		w.anImport()
		c.isFound(t, w)
	}
	for _, c := range afterFailover {
		tested[c.rule] = true
		c.isFound(t, failedOver())
	}
	for _, rule := range Rules {
		if !tested[rule] {
			t.Errorf("nothing wrong is tested for rule %q", rule)
		}
	}
}

func (c *fault) isFound(t *testing.T, w *world) {
	t.Run(string(c.rule)+"/"+c.name, func(t *testing.T) {
		c.spoil(w)
		got := Compare(&w.h, &w.f, w.opt)
		for _, v := range got.Violations {
			t.Log(v)
		}
		if rules := slices.Collect(maps.Keys(got.Broken)); len(rules) != 1 || rules[0] != c.rule {
			t.Errorf("found by %q, want only %q", rules, c.rule)
		}
		if got.Err() == nil {
			t.Error("the report has no error")
		}
	})
}
