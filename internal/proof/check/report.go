package check

import (
	"errors"
	"fmt"
	"strings"
)

// Rule names one demand on a history.
type Rule string

// The rules on the history and the jobs.
const (
	RuleCommitted  Rule = "committed"   // every committed enqueue is a job, under the id that was answered
	RuleRolledBack Rule = "rolled back" // no enqueue that was rolled back is a job
	RuleWhole      Rule = "whole"       // of what was enqueued together all is there, or nothing
	RuleStranger   Rule = "stranger"    // every job was enqueued by somebody
	RuleIdentity   Rule = "identity"    // ids and positions are unique, and lead to the same job everywhere
	RuleRecovered  Rule = "recovered"   // a job that does another one again came after it, and that one had ended
	RuleDeleted    Rule = "deleted"     // of a deleted job nothing is left, and nobody runs it again
	RuleDrained    Rule = "drained"     // after a drain every job is final
)

// The rules on the facts alone.
const (
	RulePlace     Rule = "place"     // a job is in exactly one place, its last: an unfinished entry, a wait, or a final execution
	RuleFinal     Rule = "final"     // at most one execution is final, by an outcome that can be, and nothing follows it
	RuleState     Rule = "state"     // the state that people see is that of the place
	RuleExecution Rule = "execution" // an execution concludes one entry of its job, and alone
	RuleAttempt   Rule = "attempt"   // attempts count from one, by one for each charged execution
	RulePolicy    Rule = "policy"    // no more attempts are charged than the policy grants
	RuleLosses    Rule = "losses"    // no job is lost more often than it may be, or begins again where it must not
	RuleClaim     Rule = "claim"     // an entry behind the frontier is in one claim, any other in none, and executions name it
	RuleRoster    Rule = "roster"    // whoever has unfinished entries claimed stands in the roster
	RuleBuried    Rule = "buried"    // a buried engine records nothing
	RuleClean     Rule = "clean"     // an engine that stopped cleanly left nothing behind

	RuleOccurrence Rule = "occurrence" // an occurrence of a schedule has one job
	RuleStep       Rule = "step"       // each step is accepted once, so that all runs are told the same of it, and goes with its job
	RuleNeeds      Rule = "needs"      // a job runs when all that it needs have ended as it wants, and otherwise is skipped or cancelled, as they say
	RuleFlow       Rule = "flow"       // a flow ends when all of its jobs have, and as they did
	RuleKey        Rule = "key"        // a job that is unique until it has ended has its key until then
)

// The rules on runs.
const (
	RuleRun     Rule = "run"     // a handler runs only for an entry that its engine claimed
	RuleOutcome Rule = "outcome" // what is recorded is what the handler said
	RuleRerun   Rule = "rerun"   // a second run follows an outcome that calls for it
	RuleLoss    Rule = "loss"    // what was lost was lost with a buried engine to which something had happened
	RuleOverlap Rule = "overlap" // two runs of a job overlap only as far as a disturbance explains
	RuleLimit   Rule = "limit"   // no more jobs of a limit run at once than it allows, but as far as a disturbance explains
	RuleUnique  Rule = "unique"  // of a unique key no job begins before the one that had the key has ended, likewise
)

// RuleKept is the rule on servers that take each other's place.
const RuleKept Rule = "kept" // after a failover there is nothing that was not there before

// Rules lists every rule.
var Rules = []Rule{
	RuleCommitted, RuleRolledBack, RuleWhole, RuleStranger, RuleIdentity, RuleRecovered, RuleDeleted, RuleDrained,
	RulePlace, RuleFinal, RuleState, RuleExecution, RuleAttempt, RulePolicy, RuleLosses,
	RuleClaim, RuleRoster, RuleBuried, RuleClean, RuleOccurrence, RuleStep, RuleNeeds, RuleFlow, RuleKey,
	RuleRun, RuleOutcome, RuleRerun, RuleLoss, RuleOverlap, RuleLimit, RuleUnique, RuleKept,
}

// Violation is one thing that is wrong. Job is 0 when it concerns no job.
type Violation struct {
	Rule   Rule
	Job    int64
	Detail string
}

// String is the violation in a line.
func (v Violation) String() string {
	if v.Job == 0 {
		return fmt.Sprintf("%s: %s", v.Rule, v.Detail)
	}
	return fmt.Sprintf("%s: job %d: %s", v.Rule, v.Job, v.Detail)
}

// The reasons for running a job again.
const (
	ReasonRetry  = "retry"           // the attempt failed
	ReasonSnooze = "snooze"          // the handler asked for it
	ReasonReturn = "return"          // a stop cut it short
	ReasonCrash  = "crash"           // its process was killed
	ReasonCutOff = "lost connection" // its process was frozen or cut off
)

// Report is the outcome of a comparison.
type Report struct {
	// Violations are the first [Shown] of each rule, in the order of jobs, those
	// of limits in that of their names; Broken counts all of them.
	Violations []Violation
	Broken     map[Rule]int

	Jobs             int // in the database
	Final            int // of these
	Deleted          int // that the test deleted
	Enqueues         int // in the history
	RolledBack       int // of these
	UnknownCommitted int // of those of unknown fate: they are jobs
	UnknownAbsent    int // they are not
	Runs             int // of handlers
	OpenRuns         int // that never ended
	Torn             int // records cut off

	Lost     int            // committed jobs that are nowhere
	Doubled  int            // violations that mean work was done or recorded twice
	Overlaps map[Does]int   // pairs of runs that overlapped and are explained, by what had been done to the first one's process
	Reruns   map[string]int // explained second runs, by reason
	Undone   Undone         // by a failover, and excused
}

// excuse notes overlaps that are explained.
func (r *Report) excuse(does Does, n int) {
	if r.Overlaps == nil {
		r.Overlaps = map[Does]int{}
	}
	r.Overlaps[does] += n
}

// Shown is how many violations of one rule a report spells out.
const Shown = 20

// Err is nil when nothing is wrong, or an error that says all that is known.
func (r *Report) Err() error {
	if len(r.Broken) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("check: the history is wrong\n")
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	for _, rule := range Rules {
		if n := r.Broken[rule]; n > Shown {
			fmt.Fprintf(&b, "  %s: %d more\n", rule, n-Shown)
		}
	}
	b.WriteString(r.String())
	return errors.New(b.String())
}

// String sums the report up in a line.
func (r *Report) String() string {
	wrong := 0
	for _, n := range r.Broken {
		wrong += n
	}
	deleted := ""
	if r.Deleted > 0 {
		deleted = fmt.Sprintf(", %d deleted", r.Deleted)
	}
	undone := ""
	if r.Undone != (Undone{}) {
		undone = fmt.Sprintf("; undone by the failover: %d jobs, %d claims, %d outcomes, %d runs", r.Undone.Jobs, r.Undone.Claims, r.Undone.Outcomes, r.Undone.Runs)
	}
	return fmt.Sprintf("%d jobs (%d final%s), %d runs (%d open), lost %d, doubled %d, violations %d; "+
		"commits rolled back %d, unknown %d (%d committed); reruns %v, overlaps explained %v, records torn %d%s",
		r.Jobs, r.Final, deleted, r.Runs, r.OpenRuns, r.Lost, r.Doubled, wrong,
		r.RolledBack, r.UnknownCommitted+r.UnknownAbsent, r.UnknownCommitted, r.Reruns, r.Overlaps, r.Torn, undone)
}

// broken notes a violation.
func (r *Report) broken(rule Rule, job int64, format string, args ...any) {
	if r.Broken == nil {
		r.Broken = map[Rule]int{}
	}
	r.Broken[rule]++
	if r.Broken[rule] <= Shown {
		r.Violations = append(r.Violations, Violation{rule, job, fmt.Sprintf(format, args...)})
	}
}
