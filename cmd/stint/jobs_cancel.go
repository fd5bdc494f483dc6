package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
)

const jobsCancelLong = `Cancel ends jobs that are not wanted any more. One that waits or is available will
not run. One that runs is asked to stop: its handler's context is cancelled, and
it is cancelled when the handler ends with an error. It is not retried.

The exit code is 1 when a job was not there or had ended already.`

func (a *app) jobsCancelCommand() *cobra.Command {
	var why string
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "cancel ID...",
		Short:   "Cancel jobs, also running ones",
		Long:    jobsCancelLong,
		Example: `  stint jobs cancel 42 43 --why "the customer left"`,
		Args:    cobra.MinimumNArgs(1),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		ids, err := jobIDs(args)
		if err != nil {
			return err
		}
		db, err := a.open(ctx, changing)
		if err != nil {
			return err
		}
		defer db.Close()
		canceller, ok := db.roles.(stint.Canceller)
		if !ok {
			return errors.New("this database cannot cancel jobs")
		}
		answers, err := canceller.Cancel(ctx, ids, why)
		if err != nil {
			return err
		}
		return a.tellCancelled(ids, answers)
	}))
	cmd.Flags().StringVar(&why, "why", "", "the reason that is kept with the job")
	return cmd
}

func (a *app) tellCancelled(ids []stint.ID, answers map[stint.ID]stint.Cancellation) error {
	if a.json {
		if err := a.printJSON(answers); err != nil {
			return err
		}
	}
	failed := 0
	for _, id := range ids {
		text := map[stint.Cancellation]string{
			stint.CancelledNow: "is cancelled", stint.CancelAsked: "is running, and was asked to stop",
			stint.CancelTooLate: "had ended already", stint.CancelOfNothing: "does not exist",
		}[answers[id]]
		if answers[id] == stint.CancelTooLate || answers[id] == stint.CancelOfNothing {
			failed++
		}
		if !a.json {
			fmt.Fprintf(a.out, "job %d %s\n", id, text)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d jobs could not be cancelled", failed, len(ids))
	}
	return nil
}
