package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/httpjob"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/shelljob"
)

func (a *app) jobsShowCommand() *cobra.Command {
	return a.withJSON(a.does(&cobra.Command{
		Use:   "show ID",
		Short: "Show a job with all of its attempts",
		Long: `Show prints everything that is known of a job: what was enqueued, the engine that
runs it now and has announced so, and of each attempt when and where it ran, how it
ended and what it left. --json prints one object with a list of executions.`,
		Example: "  stint jobs show 12\n  stint jobs show 12 --json | jq '.executions[-1].result'",
		Args:    arguments(1, "ID"),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		id, err := jobID(args[0])
		if err != nil {
			return err
		}
		db, err := a.open(ctx, looking)
		if err != nil {
			return err
		}
		defer db.Close()
		shown, err := db.ShowJob(ctx, id)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(shown)
		}
		engines, err := view.CrewFor(ctx, db, *shown.JobInfo)
		if err != nil {
			return err
		}
		a.showJob(shown, engines, time.Now())
		return nil
	}))
}

func (a *app) showJob(shown view.Job, engines view.Crew, now time.Time) {
	j := shown.JobInfo
	fmt.Fprintf(a.out, "job %d %s\n\n", j.ID, stateInWords(j, engines, now))
	t := newTable(a.out)
	field := func(name, value string) {
		if value != "" {
			t.AppendRow([]any{"  " + name, value})
		}
	}
	field("kind", visible(j.Kind))
	field("args", cut(visible(string(j.Args)), 2000))
	if r := shown.RunsOn; r != nil {
		field("runs on", fmt.Sprintf("%s (%s, pid %d), which said so %s", visible(r.Instance), visible(r.Host), r.PID, ago(r.Beat, now)))
	}
	if queue := visible(j.Queue); slices.Contains(engines.Paused, j.Queue) {
		field("queue", queue+" (paused)")
	} else {
		field("queue", queue)
	}
	if j.Priority != 0 {
		field("priority", fmt.Sprint(j.Priority))
	}
	field("tags", visible(strings.Join(j.Tags, ", ")))
	field("urn", visible(j.URN))
	field("source", visible(j.Source))
	if j.Correlation != j.ID.String() {
		field("correlation", visible(j.Correlation))
	}
	if j.Provenance.Recovered != 0 {
		field("provenance", fmt.Sprintf("recovered from job %d", j.Provenance.Recovered))
	}
	if p := j.Provenance; p.Schedule != "" {
		of := "run out of turn"
		if !p.Occurrence.IsZero() {
			of = "of " + moment(p.Occurrence)
		}
		field("provenance", fmt.Sprintf("number %d of the schedule %s, %s", p.Nth, visible(p.Schedule), of))
	}
	field("metadata", cut(visible(string(j.Metadata)), 2000))
	field("retry", j.Retry)
	if j.Timeout > 0 {
		field("timeout", retry.FormatDuration(j.Timeout))
	}
	if j.Losses > 0 {
		field("losses", fmt.Sprint(j.Losses))
	}
	field("created", moment(j.Created)+" ("+ago(j.Created, now)+")")
	if j.Undecided == "" && !j.Due.Equal(j.Created) {
		field("due", moment(j.Due)+" ("+ago(j.Due, now)+")")
	}
	if !j.StartBy.IsZero() {
		field("start by", moment(j.StartBy)+" ("+ago(j.StartBy, now)+")")
	}
	t.Render()
	for _, x := range j.Executions {
		a.showExecution(j.Kind, x)
	}
}

// stateInWords says a state with what follows from it.
func stateInWords(j *stint.JobInfo, engines view.Crew, now time.Time) string {
	reason := ""
	if w := why(*j); w != "" {
		reason = ": " + visible(w)
	}
	switch s := situation(*j, engines, now); {
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

func (a *app) showExecution(kind string, x stint.ExecutionInfo) {
	outcome := x.Outcome.String()
	if x.Reason != "" && x.Reason != stint.ReasonDone && !strings.Contains(outcome, x.Reason) {
		outcome += ": " + visible(x.Reason)
	}
	never := x.Outcome == stint.OutcomeCancelled && x.Slot == 0 && x.Engine == 0 // nobody had taken it
	if never {
		outcome += " before it began"
	}
	fmt.Fprintf(a.out, "\nattempt %d %s\n\n", x.Attempt, outcome)
	t := newTable(a.out)
	switch {
	case x.Outcome == stint.OutcomeLost: // when it began nobody knows who is left
		t.AppendRow([]any{"  lost with", ranOn(x)})
		t.AppendRow([]any{"  found", moment(x.Finished)})
	case x.Slot > 0:
		t.AppendRow([]any{"  started", moment(x.Started)})
		t.AppendRow([]any{"  took", took(max(0, x.Finished.Sub(x.Started)))})
		t.AppendRow([]any{"  on", ranOn(x)})
	case never:
		t.AppendRow([]any{"  ended", moment(x.Finished)})
	default:
		t.AppendRow([]any{"  ended", moment(x.Finished) + ", without having begun"})
		t.AppendRow([]any{"  on", ranOn(x)})
	}
	summary, body := readable(kind, x.Result)
	for _, line := range summary {
		t.AppendRow([]any{"  " + line[0], line[1]})
	}
	if x.Recoverable != nil && !*x.Recoverable && x.Outcome == stint.OutcomeFailed {
		t.AppendRow([]any{"  recoverable", "no"})
	}
	if x.Error != nil {
		t.AppendRow([]any{"  error", visible(strings.TrimRight(x.Error.Message, "\n"))})
		classes := x.Error.Class
		if len(x.Error.Classes) > 1 {
			classes = strings.Join(x.Error.Classes, ", ")
		}
		t.AppendRow([]any{"  class", visible(classes)})
		if x.Error.Note != "" {
			t.AppendRow([]any{"  note", visible(x.Error.Note)})
		}
	}
	t.Render()
	if body != "" {
		fmt.Fprintf(a.out, "\n%s\n", indent(body, "  | "))
	}
	if x.Error != nil && x.Error.Stack != "" {
		fmt.Fprintf(a.out, "\n%s\n", indent(x.Error.Stack, "  "))
	}
}

// readable takes the results of built-in kinds apart, and shows others as
// JSON.
func readable(kind string, raw json.RawMessage) (summary [][2]string, body string) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, ""
	}
	switch kind {
	case "sh":
		var r shelljob.Result
		if json.Unmarshal(raw, &r) == nil {
			code := fmt.Sprint(r.ExitCode)
			if r.Signal != "" {
				code += " (" + r.Signal + ")"
			}
			return [][2]string{{"exit code", code}}, r.Output
		}
	case "http":
		var r httpjob.Result
		if json.Unmarshal(raw, &r) == nil {
			return [][2]string{{"status", fmt.Sprint(r.Status)}}, r.Body
		}
	}
	pretty, err := json.MarshalIndent(raw, "", "  ")
	if err != nil {
		return nil, string(raw)
	}
	return nil, string(pretty)
}

// cut shortens what would fill the screen; --json has all of it.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + fmt.Sprintf(" … (%s bytes, see --json)", count(len(s)))
}
