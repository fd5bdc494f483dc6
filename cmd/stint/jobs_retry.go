package main

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
)

const jobsRetryLong = `Retry has jobs run again. One that waits is ready at once, or at the time of --in
or --at; nothing is charged. One that ended is recovered: a new job with the same
arguments and its first attempt ahead of it, which names the old one as where it
comes from. The old one stays what it was. If it was to begin by some time, the new
one is not; one that waits still is, and expires when that is over.

` + selectionHelp + `
Without --state they choose the jobs that are failed or retrying. What was
recovered before is not recovered again by filters.

` + timesHelp + `

The exit code is 1 when a job that was named is ready or runs already, or was not
there.`

func (a *app) jobsRetryCommand() *cobra.Command {
	var (
		again stint.Again
		at    instantValue
	)
	cmd := a.onJobs(&cobra.Command{
		Use:     "retry [ID]...",
		Aliases: []string{"recover"},
		Short:   "Run jobs again: what waits now, what ended as a new job",
		Long:    jobsRetryLong,
		Example: `  stint jobs retry 42
  stint jobs recover 42 --in 1h
  stint jobs retry --outcome lost --finished-after 12h --dry-run`,
		Args: cobra.ArbitraryArgs,
	}, verb{
		name:   "retry",
		states: view.Retriable,
		named: func(ctx context.Context, db *database, ids []stint.ID) (map[stint.ID]fate, error) {
			answers, err := db.Retry(ctx, ids, again)
			return fates(answers, retried), err
		},
		chosen: func(ctx context.Context, db *database, f stint.Filter) iter.Seq2[map[stint.ID]fate, error] {
			return eachFates(db.RetryChosen(ctx, f, again), retried)
		},
	})
	durationFlag(cmd.Flags(), &again.In, "in", 0, "run them that much later, by the database's clock: 90s, 2h")
	cmd.Flags().Var(&at, "at", `run them not before: 2026-03-01T09:00:00+01:00, or local "2026-03-01 09:00", 09:00 (when it is that time next)`)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if again.In != 0 && !at.time.Equal(time.Time{}) {
			return usagef("--in and --at exclude each other")
		}
		again.At = at.time
		return again.Check()
	}
	return cmd
}

func retried(r stint.Retried) fate {
	f := map[stint.Retrial]fate{
		stint.RetryReady:           {text: "is ready now", sum: "ready now"},
		stint.RetryScheduled:       {text: "waits until then", sum: "scheduled"},
		stint.RetryRecovered:       {text: fmt.Sprintf("had ended; it is done again as job %d", r.ID), sum: "recovered"},
		stint.RetryRecoveredBefore: {text: fmt.Sprintf("had ended, and was recovered as job %d before", r.ID), sum: "recovered before"},
		stint.RetryAvailable:       {text: "is ready already", sum: "ready already", failed: true},
		stint.RetryRunning:         {text: "is running", sum: "running", failed: true},
		stint.RetryOfNothing:       {text: "does not exist", sum: "gone meanwhile", failed: true},
	}[r.Answer]
	f.answer = r
	return f
}
