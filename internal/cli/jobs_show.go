package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/retry"
)

func (a *app) jobsShowCommand() *cobra.Command {
	var id stint.ID
	return a.asks(&cobra.Command{
		Use:   "show ID",
		Short: "Show a job with all of its attempts",
		Long: `Show prints everything that is known of a job: what was enqueued, the engine that
runs it now and has announced so, and of each attempt when and where it ran, how it
ended and what it left. --json prints one object with a list of executions.`,
		Example: "  stint jobs show 12\n  stint jobs show 12 --json | jq '.executions[-1].result'",
		Args:    arguments(1, "ID"),
	}, func(ctx context.Context, db *database, _ []string) (any, func(), error) {
		shown, err := ops.ShowJob.Call(ctx, db, ops.ShowInput{ID: int64(id)})
		if err != nil || a.json {
			return shown, nil, err
		}
		engines, err := view.CrewFor(ctx, db, *shown.JobInfo)
		return shown, func() { a.showJob(shown, engines, time.Now()) }, err
	}, func(_ *cobra.Command, args []string) (err error) {
		id, err = jobID(args[0])
		return err
	})
}

func (a *app) showJob(shown view.Job, engines view.Crew, now time.Time) {
	j := shown.JobInfo
	fmt.Fprintf(a.out, "job %d %s\n\n", j.ID, engines.StateInWords(*j, now))
	t := newTable(a.out)
	field := func(name, value string) {
		if value != "" {
			t.AppendRow([]any{"  " + name, value})
		}
	}
	field("kind", words.Visible(j.Kind))
	field("description", words.Visible(j.Description()))
	field("args", cut(words.Visible(string(plainJSON(j.Args))), 2000))
	if r := shown.RunsOn; r != nil {
		field("runs on", fmt.Sprintf("%s (%s, pid %d), which said so %s", words.Visible(r.Instance), words.Visible(r.Host), r.PID, words.Ago(r.Beat, now)))
	}
	if queue := words.Visible(j.Queue); slices.Contains(engines.Paused, j.Queue) {
		field("queue", queue+" (paused)")
	} else {
		field("queue", queue)
	}
	if j.Priority != 0 {
		field("priority", fmt.Sprint(j.Priority))
	}
	field("tags", words.Visible(strings.Join(j.Tags, ", ")))
	field("urn", words.Visible(j.URN))
	field("source", words.Visible(j.Source))
	if j.Correlation != j.ID.String() {
		field("correlation", words.Visible(j.Correlation))
	}
	if j.Origin.Recovered != 0 {
		field("provenance", fmt.Sprintf("recovered from job %d", j.Origin.Recovered))
	}
	if j.RetriedAs != 0 {
		field("retried as", fmt.Sprintf("job %d", j.RetriedAs))
	}
	if p := j.Origin; p.Schedule != "" {
		of := "run out of turn"
		if !p.Occurrence.IsZero() {
			of = "of " + moment(p.Occurrence)
		}
		field("provenance", fmt.Sprintf("number %d of the schedule %s, %s", p.Nth, words.Visible(p.Schedule), of))
	}
	field("metadata", cut(words.Visible(string(plainJSON(j.Metadata))), 2000))
	field("retry", j.Retry)
	if j.Timeout > 0 {
		field("timeout", retry.FormatDuration(j.Timeout))
	}
	if j.Losses > 0 {
		field("losses", fmt.Sprint(j.Losses))
	}
	field("created", moment(j.Created)+" ("+words.Ago(j.Created, now)+")")
	if j.PendingRetry == "" && !j.Due.Equal(j.Created) {
		field("due", moment(j.Due)+" ("+words.Ago(j.Due, now)+")")
	}
	if !j.StartBy.IsZero() {
		field("start by", moment(j.StartBy)+" ("+words.Ago(j.StartBy, now)+")")
	}
	t.Render()
	for _, x := range j.Attempts {
		a.showExecution(j.Kind, x)
	}
}

func (a *app) showExecution(kind string, x stint.Attempt) {
	fmt.Fprintf(a.out, "\nattempt %d %s\n\n", x.Attempt, view.Outcome(x))
	t := newTable(a.out)
	switch {
	case x.Outcome == stint.OutcomeLost: // when it began nobody knows who is left
		t.AppendRow([]any{"  lost with", view.RanOn(x)})
		t.AppendRow([]any{"  found", moment(x.Finished)})
	case x.Slot > 0:
		t.AppendRow([]any{"  started", moment(x.Started)})
		t.AppendRow([]any{"  took", words.Took(max(0, x.Finished.Sub(x.Started)))})
		t.AppendRow([]any{"  on", view.RanOn(x)})
	case view.NeverTaken(x):
		t.AppendRow([]any{"  ended", moment(x.Finished)})
	default:
		t.AppendRow([]any{"  ended", moment(x.Finished) + ", without having begun"})
		t.AppendRow([]any{"  on", view.RanOn(x)})
	}
	result := view.ResultOf(kind, x.Result)
	for _, line := range result.Facts {
		t.AppendRow([]any{"  " + line[0], line[1]})
	}
	if x.Recoverable != nil && !*x.Recoverable && x.Outcome == stint.OutcomeFailed {
		t.AppendRow([]any{"  recoverable", "no"})
	}
	if x.Error != nil {
		t.AppendRow([]any{"  error", words.Visible(strings.TrimRight(x.Error.Message, "\n"))})
		classes := x.Error.Class
		if len(x.Error.Classes) > 1 {
			classes = strings.Join(x.Error.Classes, ", ")
		}
		t.AppendRow([]any{"  class", words.Visible(classes)})
		if x.Error.Note != "" {
			t.AppendRow([]any{"  note", words.Visible(x.Error.Note)})
		}
	}
	t.Render()
	if body := cmp.Or(result.Output, indented(result.JSON)); body != "" {
		fmt.Fprintf(a.out, "\n%s\n", indent(body, "  | "))
	}
	if x.Error != nil && x.Error.Stack != "" {
		fmt.Fprintf(a.out, "\n%s\n", indent(x.Error.Stack, "  "))
	}
}

// indented formats JSON with one field on each line.
func indented(raw json.RawMessage) string {
	var pretty bytes.Buffer
	if len(raw) == 0 || json.Indent(&pretty, raw, "", "  ") != nil {
		return string(raw)
	}
	return string(plainJSON(pretty.Bytes()))
}

// cut shortens what would fill the screen; --json has all of it.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + fmt.Sprintf(" … (%s bytes, see --json)", words.Count(len(s)))
}
