package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
)

func (a *app) jobsStepsCommand() *cobra.Command {
	var id stint.ID
	return a.asks(page(`steps ID: Show the recorded steps of a job with their whole results

Steps prints what the steps of a job's handler came to, in the order in which they
ended. Later attempts of the job skip those. Stint jobs show prints them in short.

Examples:
  stint jobs steps 12
  stint jobs steps 12 --json | jq '.[] | select(.name == "charge").result'`), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		steps, err := ops.Items(ops.ListSteps.Call(ctx, db, ops.JobName{ID: int64(id)}))
		return steps, func(time.Time) { a.listSteps(id, steps) }, err
	}, func(_ *cobra.Command, args []string) (err error) {
		id, err = jobID(args[0])
		return err
	})
}

func (a *app) listSteps(id stint.ID, steps []view.Step) {
	if len(steps) == 0 {
		a.note("job %d has no recorded steps", id)
	}
	for i, s := range steps {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		switch {
		case s.IsOpen() && s.IsCall():
			fmt.Fprintf(a.out, "step %s calls job %d since %s\n", words.Visible(s.Name), s.Question.Job, moment(s.Began))
		case s.IsOpen():
			fmt.Fprintf(a.out, "step %s asks since %s, until %s\n", words.Visible(s.Name), moment(s.Began), moment(s.Question.Until))
		default:
			fmt.Fprintf(a.out, "step %s ended %s, took %s\n", words.Visible(s.Name), moment(s.Ended), words.Took(s.Took()))
		}
		if s.Question != nil && s.Question.Text != "" {
			fmt.Fprintf(a.out, "\n%s\n", indent(words.Visible(s.Question.Text), "  | "))
		}
		if len(s.Result) > 0 {
			fmt.Fprintf(a.out, "\n%s\n", indent(indented(s.Result), "  | "))
		}
	}
}

// showSteps prints the steps of a job, with the beginnings of their results.
func (a *app) showSteps(shown view.Job) {
	ended := slices.DeleteFunc(slices.Clone(shown.Steps), view.Step.IsOpen)
	if len(ended) == 0 {
		return
	}
	fmt.Fprintln(a.out)
	printTable(a, ended, "", row{"step", "ended", "took", "result"}, func(s view.Step) row {
		result := cut(cmp.Or(s.AnswerInWords(), string(plainJSON(s.Result))), 60)
		if s.Bytes > 0 {
			result = fmt.Sprintf("%s bytes, see stint jobs steps %d", words.Count(s.Bytes), shown.ID)
		}
		return row{s.Name, moment(s.Ended), s.Took(), result}
	})
}
