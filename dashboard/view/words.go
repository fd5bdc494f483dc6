package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/jobs/shelljob"
	"github.com/stint-go/stint/retry"
)

// Situation is what people ask next about a job's state.
func (c Crew) Situation(j stint.JobInfo, now time.Time) string {
	faulty := func(s string) string {
		if j.Faulty {
			return strings.TrimPrefix(s+", faulty", ", ")
		}
		return s
	}
	switch {
	case j.State.Final() && Why(j) != "":
		return words.Ago(j.Finished, now) + ", " + words.Visible(Why(j))
	case j.State.Final():
		return words.Ago(j.Finished, now)
	case j.PendingRetry != "":
		return faulty("waits for an engine with the retry function " + words.Visible(j.PendingRetry))
	case j.State == stint.Retrying:
		return faulty(fmt.Sprintf("attempt %d due %s", j.Attempt, words.Ago(j.Due, now)))
	case j.State == stint.Scheduled:
		return faulty("due " + words.Ago(j.Due, now))
	case j.State == stint.Blocked && AwaitsInWords(j) != "":
		return faulty(AwaitsInWords(j) + ", otherwise due " + words.Ago(j.Due, now))
	case NeedsInWords(j) != "":
		return faulty(NeedsInWords(j))
	case j.State == stint.Blocked:
		return faulty("due " + words.Ago(j.Due, now))
	case j.State == stint.Available:
		return faulty(c.WaitsForInWords(j, now))
	case j.State == stint.Running && !j.Begun:
		return faulty("taken by an engine")
	}
	return faulty("")
}

// RetryInWords is the text of a retry policy for people: see [retry.Policy.Lines].
func RetryInWords(policy string) []string {
	p, err := retry.Parse(policy)
	if err != nil {
		return []string{policy}
	}
	return p.Lines()
}

// StateInWords says a job's state with what follows from it.
func (c Crew) StateInWords(j stint.JobInfo, now time.Time) string {
	reason := ""
	if w := Why(j); w != "" {
		reason = ": " + words.Visible(w)
	}
	switch s := c.Situation(j, now); {
	case j.State == stint.Cancelled:
		return "is cancelled" + reason
	case j.State.Final():
		return string(j.State) + reason
	case s == "":
		return "is " + string(j.State)
	default:
		return "is " + string(j.State) + ", " + s
	}
}

// Why is a job's reason, where that tells more than its state.
func Why(j stint.JobInfo) string {
	if j.Reason == retry.ReasonDone || j.Reason == retry.ReasonCancelled {
		return ""
	}
	return j.Reason
}

// RanOn is where an attempt took place.
func RanOn(x stint.Attempt) string {
	if x.Instance == "" {
		return "an engine that is no longer known"
	}
	slot := ""
	if x.Slot > 0 {
		slot = fmt.Sprintf(", slot %d", x.Slot)
	}
	return fmt.Sprintf("%s (%s, pid %d%s)", words.Visible(x.Instance), words.Visible(x.Host), x.PID, slot)
}

// Outcome says how an attempt ended, with the reason where that tells more.
func Outcome(x stint.Attempt) string {
	outcome := x.Outcome.String()
	tells := x.Reason != "" && x.Reason != retry.ReasonDone && !strings.Contains(outcome, x.Reason)
	if NeverTaken(x) && x.Outcome == stint.OutcomeCancelled {
		outcome += " before it began"
	}
	if tells {
		outcome += ": " + words.Visible(x.Reason)
	}
	return outcome
}

// NeverTaken reports whether a job ended that no engine had taken: it was cancelled before, skipped, or is a flow.
func NeverTaken(x stint.Attempt) bool {
	byItself := x.Outcome == stint.OutcomeCancelled || x.Outcome == stint.OutcomeSkipped || x.Outcome == stint.OutcomeCompleted ||
		x.Outcome == stint.OutcomeFailed && x.Error == nil
	return byItself && x.Slot == 0 && x.Engine == 0
}

// Unbegun reports whether an attempt ended that certainly did not begin, though an engine had taken it.
func Unbegun(x stint.Attempt) bool {
	return x.Slot == 0 && !NeverTaken(x) && x.Outcome != stint.OutcomeLost && x.Reason != retry.ReasonMayHaveBegun && x.Reason != retry.ReasonBystander
}

// Result is the result of an attempt, for people.
type Result struct {
	Facts  [][2]string     // names and values, of the built-in kinds
	Output string          // text of the built-in kinds
	JSON   json.RawMessage // of all others
}

// ResultOf takes the results of the built-in kinds apart.
func ResultOf(kind string, raw json.RawMessage) Result {
	if len(raw) == 0 || string(raw) == "null" {
		return Result{}
	}
	switch kind {
	case "sh":
		var r shelljob.Result
		if json.Unmarshal(raw, &r) == nil {
			code := fmt.Sprint(r.ExitCode)
			if r.Signal != "" {
				code += " (" + r.Signal + ")"
			}
			return Result{Facts: [][2]string{{"exit code", code}}, Output: r.Output}
		}
	case "http":
		var r httpjob.Result
		if json.Unmarshal(raw, &r) == nil {
			result := Result{Facts: [][2]string{{"status", fmt.Sprint(r.Status)}}, Output: r.Body}
			if r.Callback != nil { // which says more than the body of a 202
				result.Output, result.JSON = "", r.Callback
			}
			return result
		}
	}
	return Result{JSON: raw}
}
