package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

const jobsListLong = `List shows jobs, the newest first. With several filters, a job is listed when it fits
all of them. To see the next page, give the last id shown to --before.

` + timesHelp + `

Filters by tag, urn, correlation, schedule, outcome, error, faulty, attempts, longer
(than 5s at least), and the states scheduled, retrying, failed and cancelled look only
at jobs that may fit; with others alone, the search goes through all jobs until it has
found enough.

The states:

` + statesHelp

// statesHelp explains the states of jobs, where they are listed.
const statesHelp = `  scheduled   not due yet: it was enqueued with a delay or a time
  retrying    failed, and waits for its next attempt
  blocked     waits for something other than a time or an engine: no job does so yet
  available   due, and waits for an engine
  running     claimed by an engine
  completed, failed, cancelled   ended`

const jobsListExample = `  stint jobs list --state failed,retrying --kind sh
  stint jobs list --faulty
  stint jobs list --tag customer:42 --json
  stint jobs list --correlation 12
  stint jobs list --outcome lost --finished-after 12h
  stint jobs watch $(stint jobs list --tag batch --ids)`

func (a *app) jobsListCommand() *cobra.Command {
	var (
		filters filterFlags
		limit   int
		before  int64
		ids     bool
	)
	cmd := a.asks(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List jobs, the newest first",
		Long:    jobsListLong,
		Example: jobsListExample,
		Args:    arguments(0),
	}, func(ctx context.Context, db *database, _ []string) (any, func(), error) {
		filter, err := filters.chosen(ctx, db)
		if err != nil {
			return nil, nil, err
		}
		filter.Before, filter.Limit = stint.ID(before), limit
		if ids {
			found, err := db.Find(ctx, filter)
			return found, func() {
				for _, id := range found {
					fmt.Fprintln(a.out, id)
				}
			}, err
		}
		return a.findJobs(ctx, db, filter)
	}, atLeastOne(&limit), func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("before") && before < 1 {
			return usagef("--before: %d is not the id of a job", before)
		}
		return filters.check(cmd)
	})
	flags := cmd.Flags()
	filters.add(flags)
	flags.IntVar(&limit, "limit", 50, "how many at most")
	flags.Int64Var(&before, "before", 0, "only jobs with a lower id: the way to the next page")
	flags.BoolVar(&ids, "ids", false, "print their ids only, one on each line")
	cmd.MarkFlagsMutuallyExclusive("ids", "json")
	return cmd
}

// atLeastOne checks a limit.
func atLeastOne(limit *int) func(*cobra.Command, []string) error {
	return func(*cobra.Command, []string) error {
		if *limit < 1 {
			return usagef("--limit: %d is too few", *limit)
		}
		return nil
	}
}

// findJobs answers with the jobs that fit a filter.
func (a *app) findJobs(ctx context.Context, db *database, filter store.Filter) (any, func(), error) {
	jobs, err := db.Jobs(ctx, filter)
	if err != nil || a.json {
		return jobs, nil, err
	}
	engines, err := view.CrewFor(ctx, db, jobs...)
	return jobs, func() { a.listJobs(jobs, engines, filter) }, err
}

func (a *app) listJobs(jobs []stint.JobInfo, engines view.Crew, filter store.Filter) {
	now := time.Now()
	columns := row{"id", "state", "kind", "queue", "attempt", "created", "detail", "tags"}
	described := slices.ContainsFunc(jobs, func(j stint.JobInfo) bool { return j.Description() != "" })
	if described {
		columns = append(columns, "description")
	}
	printTable(a, jobs, "no jobs", columns, func(j stint.JobInfo) row {
		cells := row{j.ID, j.State, j.Kind, j.Queue, j.Attempt, words.Ago(j.Created, now), engines.Situation(j, now), strings.Join(j.Tags, " ")}
		if described {
			cells = append(cells, cut(j.Description(), 60))
		}
		return cells
	})
	if len(jobs) == 0 {
		return
	}
	if last := jobs[len(jobs)-1]; len(jobs) == filter.Limit && last.ID > 1 {
		a.note("there may be more: --before %d", last.ID)
	}
}
