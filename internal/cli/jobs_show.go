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
	d := a.newDetails(now)
	d.add("kind", j.Kind)
	d.add("description", j.Description())
	d.add("args", j.Args)
	if r := shown.RunsOn; r != nil {
		d.add("runs on", fmt.Sprintf("%s (%s, pid %d), which said so %s", r.Instance, r.Host, r.PID, words.Ago(r.Beat, now)))
	}
	queue := j.Queue
	if slices.Contains(engines.Paused, queue) {
		queue += " (paused)"
	}
	d.add("queue", queue)
	d.add("priority", j.Priority)
	d.add("tags", j.Tags)
	d.add("urn", j.URN)
	d.add("source", j.Source)
	if j.Correlation != j.ID.String() {
		d.add("correlation", j.Correlation)
	}
	if j.Origin.Recovered != 0 {
		d.add("provenance", fmt.Sprintf("recovered from job %d", j.Origin.Recovered))
	}
	if j.RetriedAs != 0 {
		d.add("retried as", fmt.Sprintf("job %d", j.RetriedAs))
	}
	if p := j.Origin; p.Schedule != "" {
		of := "run out of turn"
		if !p.Occurrence.IsZero() {
			of = "of " + moment(p.Occurrence)
		}
		d.add("provenance", fmt.Sprintf("number %d of the schedule %s, %s", p.Nth, p.Schedule, of))
	}
	d.add("metadata", j.Metadata)
	d.add("retry", j.Retry)
	d.add("timeout", j.Timeout)
	d.add("losses", j.Losses)
	d.add("created", j.Created)
	if j.Undecided == "" && !j.Due.Equal(j.Created) {
		d.add("due", j.Due)
	}
	d.add("start by", j.StartBy)
	d.Render()
	for _, x := range j.Executions {
		a.showExecution(j.Kind, x)
	}
}

func (a *app) showExecution(kind string, x stint.Attempt) {
	fmt.Fprintf(a.out, "\nattempt %d %s\n\n", x.Attempt, view.Outcome(x))
	d := a.newDetails(time.Time{})
	switch {
	case x.Outcome == stint.OutcomeLost: // when it began is not known any more
		d.add("lost with", view.RanOn(x))
		d.add("found", moment(x.Finished))
	case x.Slot > 0:
		d.add("started", moment(x.Started))
		d.add("took", words.Took(max(0, x.Finished.Sub(x.Started))))
		d.add("on", view.RanOn(x))
	case view.NeverTaken(x):
		d.add("ended", moment(x.Finished))
	default:
		d.add("ended", moment(x.Finished)+", without having begun")
		d.add("on", view.RanOn(x))
	}
	result := view.ResultOf(kind, x.Result)
	for _, line := range result.Facts {
		d.add(line[0], line[1])
	}
	if x.Recoverable != nil && !*x.Recoverable && x.Outcome == stint.OutcomeFailed {
		d.add("recoverable", "no")
	}
	if x.Error != nil {
		d.add("error", strings.TrimRight(x.Error.Message, "\n"))
		classes := x.Error.Classes
		if len(classes) < 2 {
			classes = []string{x.Error.Class}
		}
		d.add("class", classes)
		d.add("note", x.Error.Note)
	}
	d.Render()
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
