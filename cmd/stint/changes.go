package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
)

const changesLong = `Changes lists who changed what by the command line or the API, the newest first,
and what came of it: "unknown" is a change that is being made, or whose process died.
They are kept for 90 days. --json shows what was named and chosen.

` + timesHelp

func (a *app) changesCommand() *cobra.Command {
	var (
		filter       stint.ChangeFilter
		since, until momentValue
	)
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:   "changes",
		Short: "List who changed what",
		Long:  changesLong,
		Example: `  stint changes
  stint changes --subject mail --since 7d
  stint changes --by ann@host --json`,
		Args: arguments(0),
	}, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if filter.Limit < 1 {
			return usagef("--limit: %d is too few", filter.Limit)
		}
		db, err := a.open(ctx, looking)
		if err != nil {
			return err
		}
		defer db.Close()
		now, err := db.now(ctx)
		if err != nil {
			return err
		}
		filter.At = stint.Span{From: since.at(now), To: until.at(now)}
		all, err := db.Changes(ctx, filter)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(append([]stint.Change{}, all...)) // [] rather than null
		}
		a.showChanges(all, now)
		return nil
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&filter.By, "by", "", "only what this one changed")
	flags.StringVar(&filter.Operation, "operation", "", "only this: queues pause, pause-queue")
	flags.StringVar(&filter.Subject, "subject", "", "only what was done to this: a queue, a schedule, the id of a job")
	flags.Var(&since, "since", "only what was changed at this time or later")
	flags.Var(&until, "until", "only what was changed before this time")
	flags.IntVar(&filter.Limit, "limit", 100, "how many at most")
	return cmd
}

func (a *app) showChanges(changes []stint.Change, now time.Time) {
	if len(changes) == 0 {
		a.note("no changes")
		return
	}
	t := newTable(a.out, "when", "by", "way", "operation", "subject", "result")
	for _, c := range changes {
		result := string(c.Result)
		if c.Problem != "" {
			result += ": " + words.Visible(c.Problem)
		}
		t.AppendRow([]any{words.Ago(c.At, now), words.Visible(c.By), words.Visible(c.Way), words.Visible(c.Operation), words.Visible(c.Subject), result})
	}
	t.Render()
}
