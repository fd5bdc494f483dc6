package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

const jobsCancelLong = `Cancel ends jobs. A job that waits or is available will not run. A job that runs is
asked to stop: the context of its handler is cancelled, and when the handler returns an
error, the job is cancelled and not retried.

` + selectionHelp + `
Without --state they choose among the jobs that have not ended.

` + timesHelp + `

The exit code is 1 when a job that was named was not there or had ended already.`

func (a *app) jobsCancelCommand() *cobra.Command {
	var why string
	cmd := onJobs(a, &cobra.Command{
		Use:   "cancel [ID]...",
		Short: "Cancel jobs, also running ones",
		Long:  jobsCancelLong,
		Example: `  stint jobs cancel 42 43 --why "the customer left"
  stint jobs cancel --tag customer:42 --dry-run`,
		Args: cobra.ArbitraryArgs,
	}, verb[stint.CancelStatus]{
		name: "cancel", past: "cancelled", of: cancelled,
		do: func(ctx context.Context, db *database, s ops.Selection) (ops.Done[stint.CancelStatus], error) {
			return ops.CancelJobs.Call(ctx, db, ops.CancelInput{Body: ops.Cancelling{Selection: s, Why: ops.Why{Why: why}}})
		},
	})
	cmd.Flags().StringVar(&why, "why", "", "the reason that is kept with the job")
	return cmd
}

func cancelled(answer stint.CancelStatus) fate {
	return map[stint.CancelStatus]fate{
		stint.CancelledNow:    {text: "is cancelled", sum: "cancelled"},
		stint.CancelRequested: {text: "is running, and was asked to stop", sum: "asked to stop"},
		stint.CancelTooLate:   {text: "had ended already", sum: "had ended meanwhile", failed: true},
		stint.CancelNotFound:  {text: "does not exist", sum: "gone meanwhile", failed: true},
	}[answer]
}

const jobsRetryLong = `Retry runs jobs again. A job that waits becomes ready at once, or at the time of
--delay or --run-at; this does not count as an attempt. A job that ended is recovered:
a new job gets the same arguments, starts with its first attempt, and names the old job
as its origin. The old job stays as it is. A new job has no time by which it must
begin, even if the old one had. A job that waits keeps that time, and expires then.

` + selectionHelp + `
Without --state they choose the jobs that are failed or retrying. Filters skip a job
that was recovered before, and say how many they skipped. Each new job is printed
after the old one: job 12 → job 34.

` + timesHelp + `

The exit code is 1 when a job that was named is ready or runs already, or was not
there.`

func (a *app) jobsRetryCommand() *cobra.Command {
	var (
		again stint.RerunOptions
		at    time.Time
	)
	cmd := onJobs(a, &cobra.Command{
		Use:     "retry [ID]...",
		Aliases: []string{"recover"},
		Short:   "Run jobs again: what waits now, what ended as a new job",
		Long:    jobsRetryLong,
		Example: `  stint jobs retry 42
  stint jobs recover 42 --delay 1h
  stint jobs retry --outcome lost --finished-after 12h --dry-run`,
		Args: cobra.ArbitraryArgs,
	}, verb[stint.RerunResult]{
		name: "retry", past: "run again", of: retried,
		do: func(ctx context.Context, db *database, s ops.Selection) (ops.Done[stint.RerunResult], error) {
			return ops.RetryJobs.Call(ctx, db, ops.RetryOf(s, again))
		},
	})
	durationFlag(cmd.Flags(), &again.Delay, "delay", 0, "run them that much later, by the database's clock: 90s, 2h")
	cmd.Flags().Var(instants.in(&at), "run-at", `run them not before: 2026-03-01T09:00:00+01:00, or local "2026-03-01 09:00", 09:00 (when it is that time next)`)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if again.Delay != 0 && !at.IsZero() {
			return usagef("--delay and --run-at exclude each other")
		}
		again.RunAt = at
		return again.Check()
	}
	return cmd
}

func retried(r stint.RerunResult) fate {
	return map[stint.RerunStatus]fate{
		stint.RerunReady:           {text: "is ready now", sum: "ready now"},
		stint.RerunScheduled:       {text: "waits until then", sum: "scheduled"},
		stint.RerunRecovered:       {text: fmt.Sprintf("had ended; it is done again as job %d", r.ID), sum: "recovered", made: r.ID},
		stint.RerunRecoveredBefore: {text: fmt.Sprintf("had ended, and job %d does the same already", r.ID), sum: "skipped: a new job does the same already"},
		stint.RerunAvailable:       {text: "is ready already", sum: "ready already", failed: true},
		stint.RerunRunning:         {text: "is running", sum: "running", failed: true},
		stint.RerunNotFound:        {text: "does not exist", sum: "gone meanwhile", failed: true},
	}[r.Answer]
}

const jobsDeleteLong = `Delete removes jobs that have ended, with all of their attempts. Cancel other jobs
first. A deleted job cannot be restored.

` + selectionHelp + `
Without --state they choose among the jobs that have ended.

` + timesHelp + `

The exit code is 1 when a job that was named was not there or has not ended.`

func (a *app) jobsDeleteCommand() *cobra.Command {
	return onJobs(a, &cobra.Command{
		Use:     "delete [ID]...",
		Aliases: []string{"rm"},
		Short:   "Delete jobs that have ended",
		Long:    jobsDeleteLong,
		Example: `  stint jobs delete 42
  stint jobs delete --state completed --finished-before 30d --dry-run`,
		Args: cobra.ArbitraryArgs,
	}, verb[store.DeleteStatus]{
		name: "delete", past: "deleted", of: deleted,
		do: func(ctx context.Context, db *database, s ops.Selection) (ops.Done[store.DeleteStatus], error) {
			return ops.DeleteJobs.Call(ctx, db, ops.DeleteInput{Body: s})
		},
	})
}

func deleted(answer store.DeleteStatus) fate {
	return map[store.DeleteStatus]fate{
		store.DeletedNow:     {text: "is deleted", sum: "deleted"},
		store.DeleteNotFinal: {text: "has not ended", sum: "left, since they have not ended", failed: true},
		store.DeleteNotFound: {text: "does not exist", sum: "gone meanwhile", failed: true},
	}[answer]
}
