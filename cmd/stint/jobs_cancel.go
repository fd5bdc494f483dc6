package main

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
)

const jobsCancelLong = `Cancel ends jobs that are not wanted any more. One that waits or is available will
not run. One that runs is asked to stop: its handler's context is cancelled, and
it is cancelled when the handler ends with an error. It is not retried.

` + selectionHelp + `
Without --state they choose among the jobs that have not ended.

` + timesHelp + `

The exit code is 1 when a job that was named was not there or had ended already.`

func (a *app) jobsCancelCommand() *cobra.Command {
	var why string
	cmd := a.onJobs(&cobra.Command{
		Use:   "cancel [ID]...",
		Short: "Cancel jobs, also running ones",
		Long:  jobsCancelLong,
		Example: `  stint jobs cancel 42 43 --why "the customer left"
  stint jobs cancel --tag customer:42 --dry-run`,
		Args: cobra.ArbitraryArgs,
	}, verb{
		name:   "cancel",
		states: view.Cancellable,
		named: func(ctx context.Context, db *database, ids []stint.ID) (map[stint.ID]fate, error) {
			answers, err := db.Cancel(ctx, ids, why)
			return fates(answers, cancelled), err
		},
		chosen: func(ctx context.Context, db *database, f stint.Filter) iter.Seq2[map[stint.ID]fate, error] {
			return eachFates(db.CancelChosen(ctx, f, why), cancelled)
		},
	})
	cmd.Flags().StringVar(&why, "why", "", "the reason that is kept with the job")
	return cmd
}

func cancelled(answer stint.Cancellation) fate {
	f := map[stint.Cancellation]fate{
		stint.CancelledNow:    {text: "is cancelled", sum: "cancelled"},
		stint.CancelAsked:     {text: "is running, and was asked to stop", sum: "asked to stop"},
		stint.CancelTooLate:   {text: "had ended already", sum: "had ended meanwhile", failed: true},
		stint.CancelOfNothing: {text: "does not exist", sum: "gone meanwhile", failed: true},
	}[answer]
	f.answer = answer
	return f
}
