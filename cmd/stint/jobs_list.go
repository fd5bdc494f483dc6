package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/internal/words"
)

const jobsListLong = `List shows jobs, the newest first. Filters narrow it down together: a job is
listed when it fits all of them. What is left over is reached by --before with the
last id shown.

` + timesHelp + `

Filters by tag, urn, correlation, schedule, outcome, error, faulty, attempts, longer
(than 5s at least), and the states scheduled, retrying, failed and cancelled look only
at jobs that may fit; with others alone, the search goes through all jobs until it has
found enough.`

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
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List jobs, the newest first",
		Long:    jobsListLong,
		Example: jobsListExample,
		Args:    arguments(0),
	}, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if limit < 1 {
			return usagef("--limit: %d is too few", limit)
		}
		if cmd.Flags().Changed("before") && before < 1 {
			return usagef("--before: %d is not the id of a job", before)
		}
		if err := filters.check(cmd); err != nil {
			return err
		}
		db, err := a.open(ctx, looking)
		if err != nil {
			return err
		}
		defer db.Close()
		filter, err := filters.chosen(ctx, db)
		if err != nil {
			return err
		}
		filter.Before, filter.Limit = stint.ID(before), limit
		if ids {
			return a.listIDs(ctx, db, filter)
		}
		jobs, err := db.Jobs(ctx, filter)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(append([]stint.JobInfo{}, jobs...)) // [] rather than null
		}
		engines, err := view.CrewFor(ctx, db, jobs...)
		if err != nil {
			return err
		}
		a.listJobs(jobs, engines, filter)
		return nil
	}))
	flags := cmd.Flags()
	filters.add(flags)
	flags.IntVar(&limit, "limit", 50, "how many at most")
	flags.Int64Var(&before, "before", 0, "only jobs with a lower id: the way to the next page")
	flags.BoolVar(&ids, "ids", false, "print their ids only, one on each line")
	cmd.MarkFlagsMutuallyExclusive("ids", "json")
	return cmd
}

func (a *app) listIDs(ctx context.Context, db *database, filter stint.Filter) error {
	ids, err := db.Find(ctx, filter)
	for _, id := range ids {
		fmt.Fprintln(a.out, id)
	}
	return err
}

func (a *app) listJobs(jobs []stint.JobInfo, engines view.Crew, filter stint.Filter) {
	if len(jobs) == 0 {
		a.note("no jobs")
		return
	}
	now := time.Now()
	t := newTable(a.out, "id", "state", "kind", "queue", "attempt", "created", "detail", "tags")
	for _, j := range jobs {
		t.AppendRow([]any{
			j.ID, j.State, words.Visible(j.Kind), words.Visible(j.Queue), j.Attempt, words.Ago(j.Created, now), engines.Situation(j, now), words.Visible(strings.Join(j.Tags, " ")),
		})
	}
	t.Render()
	if last := jobs[len(jobs)-1]; len(jobs) == filter.Limit && last.ID > 1 {
		a.note("there may be more: --before %d", last.ID)
	}
}
