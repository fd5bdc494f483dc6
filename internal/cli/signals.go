package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
)

const jobsSignalHelp = `signal ID NAME [JSON]: Send a signal to a job, whose handler awaits it

Signal sends a job a signal under a name, with a value for its handler: JSON, from
standard input for -, and null if it is left out. A job that is blocked since it awaits
this signal runs at once. For other jobs the signal is kept until their handler awaits
it. A job that has ended gets none.

With --key a command can be repeated: of several signals of a job with the same key, the
first one counts.

Examples:
  stint jobs signal 12 approved
  stint jobs signal 12 approved '{"by": "ann"}' --key order-7`

func (a *app) jobsSignalCommand() *cobra.Command {
	var key string
	cmd := a.does(page(jobsSignalHelp), func(ctx context.Context, cmd *cobra.Command, args []string) error {
		id, err := jobID(args[0])
		if err != nil {
			return err
		}
		value, err := a.jsonArgument("value", args[2:])
		if err != nil {
			return err
		}
		in := ops.SignalInput{JobName: ops.JobName{ID: int64(id)}, Body: ops.NewSignal{Name: args[1], Value: value, Key: key}}
		if err := ops.Check(&in); err != nil {
			return hintInput(err)
		}
		return a.on(changing, func(ctx context.Context, db *database, _ []string) error {
			out, err := ops.SendSignal.Call(ctx, db, in)
			switch {
			case errors.Is(err, stint.ErrEnded):
				return withHint(err, "stint jobs show %d says how; stint jobs retry %d runs it again as a new job", id, id)
			case err != nil:
				return err
			}
			fmt.Fprintln(a.out, ops.SendSignal.Said(&in, &out))
			return nil
		})(ctx, cmd, args)
	})
	nameFlag(cmd.Flags(), &key, "key", "of several signals of the job with this key the first one counts")
	return cmd
}

func (a *app) jobsSignalsCommand() *cobra.Command {
	var id stint.ID
	return a.asks(page(`signals ID: Show the signals that were sent to a job with their whole values

Signals prints the signals of a job in the order of their numbers, with the step of
its handler that took each. Stint jobs show prints them in short.

Examples:
  stint jobs signals 12
  stint jobs signals 12 --json | jq '.[] | select(.step == null).name'`), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		signals, err := ops.Items(ops.ListSignals.Call(ctx, db, ops.JobName{ID: int64(id)}))
		return signals, func(time.Time) { a.listSignals(id, signals) }, err
	}, func(_ *cobra.Command, args []string) (err error) {
		id, err = jobID(args[0])
		return err
	})
}

func (a *app) listSignals(id stint.ID, signals []view.Signal) {
	if len(signals) == 0 {
		a.note("job %d got no signals", id)
	}
	for i, s := range signals {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		taken := "not taken yet"
		if s.Step != "" {
			taken = "taken by step " + words.Visible(s.Step)
		}
		fmt.Fprintf(a.out, "signal %s sent %s, %s", words.Visible(s.Name), moment(s.Sent), taken)
		if s.Key != "" {
			fmt.Fprintf(a.out, ", key %s", words.Visible(s.Key))
		}
		fmt.Fprintln(a.out)
		if len(s.Value) > 0 {
			fmt.Fprintf(a.out, "\n%s\n", indent(indented(s.Value), "  | "))
		}
	}
}

// showSignals prints the signals of a job, with the beginnings of their values.
func (a *app) showSignals(shown view.Job) {
	if len(shown.Signals) == 0 {
		return
	}
	fmt.Fprintln(a.out)
	printTable(a, shown.Signals, "", row{"signal", "sent", "taken by", "value"}, func(s view.Signal) row {
		value := cut(string(plainJSON(s.Value)), 60)
		if s.Bytes > 0 {
			value = fmt.Sprintf("%s bytes, see stint jobs signals %d", words.Count(s.Bytes), shown.ID)
		}
		return row{s.Name, moment(s.Sent), cmp.Or(s.Step, "-"), value}
	})
}
