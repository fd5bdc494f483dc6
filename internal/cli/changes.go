package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

const changesHelp = `changes: List who changed what

Changes lists who changed what by the command line or the API, the newest first,
with the result: "unknown" is a change that is under way, or whose process died.
They are kept for 90 days. --json shows what was named and chosen.

` + timesHelp + `

Examples:
  stint changes
  stint changes --subject mail --since 7d
  stint changes --by ann@host --json`

func (a *app) changesCommand() *cobra.Command {
	var (
		filter       store.ChangeFilter
		since, until timeBound
	)
	cmd := a.asks(page(changesHelp), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		now, err := db.now(ctx)
		if err != nil {
			return nil, nil, err
		}
		filter.At = store.TimeRange{From: since.at(now), To: until.at(now)}
		all, err := db.Changes(ctx, filter)
		if err != nil || a.json {
			return all, nil, err
		}
		engines, err := view.EnginesOf(ctx, db, all)
		return all, func(now time.Time) { a.showChanges(all, engines, now) }, err
	})
	flags := cmd.Flags()
	flags.StringVar(&filter.By, "by", "", "only changes by this person or program")
	flags.StringVar(&filter.Operation, "operation", "", "only this operation: queues pause, jobs cancel")
	flags.StringVar(&filter.Subject, "subject", "", "only changes of this: a queue, a schedule, the id of a job")
	flags.Var(timeBounds.in(&since), "since", "only changes at this time or later")
	flags.Var(timeBounds.in(&until), "until", "only changes before this time")
	countFlag(flags, &filter.Limit, "limit", 100, "how many at most", "")
	return cmd
}

// showChanges shows engines by their names too, which are given by their tokens.
func (a *app) showChanges(changes []store.Change, engines map[string]string, now time.Time) {
	printTable(a, changes, "no changes", row{"when", "by", "way", "operation", "subject", "result"}, func(c store.Change) row {
		subject := c.Subject
		if name := engines[subject]; name != "" && strings.HasPrefix(c.Operation, "engines ") {
			subject = words.Visible(name) + " (" + subject + ")"
		}
		result := string(c.Result)
		if c.Problem != "" {
			result += ": " + c.Problem
		}
		return row{words.Ago(c.At, now), c.By, c.Way, c.Operation, subject, result}
	})
}
