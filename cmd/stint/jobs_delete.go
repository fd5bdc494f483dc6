package main

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
)

const jobsDeleteLong = `Delete removes jobs that have ended, with all of their attempts. Others are left
alone; cancel them first. What is deleted cannot be brought back.

` + selectionHelp + `
Without --state they choose among the jobs that have ended.

` + timesHelp + `

The exit code is 1 when a job that was named was not there or has not ended.`

func (a *app) jobsDeleteCommand() *cobra.Command {
	return a.onJobs(&cobra.Command{
		Use:     "delete [ID]...",
		Aliases: []string{"rm"},
		Short:   "Delete jobs that have ended",
		Long:    jobsDeleteLong,
		Example: `  stint jobs delete 42
  stint jobs delete --state completed --finished-before 30d --dry-run`,
		Args: cobra.ArbitraryArgs,
	}, verb{
		name:   "delete",
		states: view.Deletable,
		named: func(ctx context.Context, db *database, ids []stint.ID) (map[stint.ID]fate, error) {
			answers, err := db.Delete(ctx, ids)
			return fates(answers, deleted), err
		},
		chosen: func(ctx context.Context, db *database, f stint.Filter) iter.Seq2[map[stint.ID]fate, error] {
			return eachFates(db.DeleteChosen(ctx, f), deleted)
		},
	})
}

func deleted(answer stint.Deletion) fate {
	f := map[stint.Deletion]fate{
		stint.DeletedNow:      {text: "is deleted", sum: "deleted"},
		stint.DeleteTooEarly:  {text: "has not ended", sum: "left, since they have not ended", failed: true},
		stint.DeleteOfNothing: {text: "does not exist", sum: "gone meanwhile", failed: true},
	}[answer]
	f.answer = answer
	return f
}
