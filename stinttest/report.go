package stinttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Report is what a drain has done, in order.
type Report struct {
	Runs []Run
	Left []Left // what has not ended, oldest first
}

// Run is one attempt, or the end of a job that did not start because it had
// expired.
type Run struct {
	Job     stint.Job     // as its handler saw it
	At      time.Time     // when it began, in the test's time
	After   time.Duration // how much of that had passed since the drain began
	Took    time.Duration // by the clock
	Outcome stint.Outcome
	Final   bool            // whether the job has ended
	Reason  string          // why, when it has
	Result  json.RawMessage // what the handler returned, or nil
	Failure *stint.Failure  // its error, or nil
	Next    time.Duration   // how long the job waits after it, when it does
}

// Left is a job that has not ended, and why.
type Left struct {
	Job stint.JobInfo
	Why string

	mistake bool // of the test
}

func runOf(job *stint.Job, x store.Completion) Run {
	r := Run{
		Job: *job, At: x.Started, Outcome: x.Outcome, Final: x.Final, Reason: x.Reason, Result: x.Result, Failure: x.Error,
	}
	if !x.Started.IsZero() {
		r.Took = x.Ended.Sub(x.Started)
	}
	if x.Final {
		r.Reason = x.Outcome.FinalReason(x.Reason)
	}
	if x.Next != nil && x.Next.Wait {
		r.Next = x.Next.Delay
	}
	return r
}

// Failed reports whether the run did not do its work: it ended in an error, or
// could not begin in time.
func (r Run) Failed() bool {
	return r.Outcome == stint.OutcomeFailed || r.Outcome == stint.OutcomeLost || r.Outcome == stint.OutcomeExpired
}

// Err is the error that a failed run ended with, as text: the handler's own
// value was stored and is gone. It is nil when the run did not fail.
func (r Run) Err() error {
	switch {
	case !r.Failed():
		return nil
	case r.Failure != nil:
		return errors.New(r.Failure.Message)
	}
	return errors.New(r.Reason)
}

// String is the run in a line.
func (r Run) String() string {
	s := fmt.Sprintf("job %d (%s), attempt %d: %s", r.Job.ID, r.Job.Kind, r.Job.Attempt, r.Outcome)
	if text := r.note(); text != "" {
		s += ": " + text
	}
	return s
}

// note is what there is to say about how it ended.
func (r Run) note() string {
	var parts []string
	if r.Failure != nil {
		text, _, _ := strings.Cut(r.Failure.Message, "\n")
		parts = append(parts, text)
	}
	if r.Final && r.Outcome.State() != stint.Completed && r.Reason != "" && r.Reason != r.Outcome.String() {
		parts = append(parts, "("+r.Reason+")")
	}
	if r.Next > 0 {
		parts = append(parts, fmt.Sprintf("(again in %v)", r.Next))
	}
	return strings.Join(parts, " ")
}

// Failed lists the runs that did not do their work, also those that were retried: of a job that failed twice and then
// completed, two.
func (r *Report) Failed() []Run {
	return r.runs(Run.Failed)
}

// Of lists the runs of a kind.
func (r *Report) Of(kind string) []Run {
	return r.runs(func(run Run) bool { return run.Job.Kind == kind })
}

func (r *Report) runs(wanted func(Run) bool) (list []Run) {
	for _, run := range r.Runs {
		if wanted(run) {
			list = append(list, run)
		}
	}
	return list
}

// String is a table of the runs and of what is left.
func (r *Report) String() string {
	return table("after\tjob\tkind\tattempt\toutcome\ttook\t", func(w io.Writer) {
		for _, run := range r.Runs {
			fmt.Fprintf(w, "%v\t%d\t%s\t%d\t%s\t%v\t%s\n",
				run.After, run.Job.ID, run.Job.Kind, run.Job.Attempt, run.Outcome, run.Took.Round(time.Microsecond), run.note())
		}
		for _, left := range r.Left {
			fmt.Fprintf(w, "-\t%d\t%s\t%d\t%s\t\t%s\n", left.Job.ID, left.Job.Kind, left.Job.Attempt, left.Job.State, left.Why)
		}
	})
}

// last is the report with its last runs only.
func (r *Report) last(n int) *Report {
	return &Report{Runs: r.Runs[max(0, len(r.Runs)-n):], Left: r.Left}
}

// table aligns rows, without spaces at the ends of lines.
func table(head string, rows func(io.Writer)) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	rows(w)
	_ = w.Flush()
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
