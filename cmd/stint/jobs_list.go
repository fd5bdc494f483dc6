package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
)

const jobsListLong = `List shows jobs, the newest first. Filters narrow it down together: a job is
listed when it fits all of them. What is left over is reached by --before with the
last id shown.`

const jobsListExample = `  stint jobs list --state failed --kind sh
  stint jobs list --tag customer:42 --json
  stint jobs list --correlation 12`

func (a *app) jobsListCommand() *cobra.Command {
	var (
		filter stint.Filter
		state  string
		before int64
	)
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List jobs, the newest first",
		Long:    jobsListLong,
		Example: jobsListExample,
		Args:    arguments(0),
	}, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if filter.Limit < 1 {
			return usagef("--limit: %d is too few", filter.Limit)
		}
		if cmd.Flags().Changed("before") && before < 1 {
			return usagef("--before: %d is not the id of a job", before)
		}
		filter.State, filter.Before = stint.State(state), stint.ID(before)
		db, err := a.open(ctx, looking)
		if err != nil {
			return err
		}
		defer db.Close()
		jobs, err := db.Jobs(ctx, filter)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(append([]stint.JobInfo{}, jobs...)) // [] rather than null
		}
		a.listJobs(jobs, filter)
		return nil
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	var states []string
	for _, s := range stint.States {
		states = append(states, string(s))
	}
	choiceFlag(flags, &state, "state", "", "only jobs in this state", states...)
	flags.StringVar(&filter.Kind, "kind", "", "only jobs of this kind")
	flags.StringVar(&filter.Queue, "queue", "", "only jobs of this queue")
	flags.StringVar(&filter.Tag, "tag", "", "only jobs with this tag")
	flags.StringVar(&filter.URN, "urn", "", "only jobs about this thing")
	flags.StringVar(&filter.Source, "source", "", "only jobs from there")
	flags.StringVar(&filter.Correlation, "correlation", "", "only jobs that come from each other: an id that they were given, or the first one's own")
	flags.IntVar(&filter.Limit, "limit", 50, "how many at most")
	flags.Int64Var(&before, "before", 0, "only jobs with a lower id: the way to the next page")
	return cmd
}

func (a *app) listJobs(jobs []stint.JobInfo, filter stint.Filter) {
	if len(jobs) == 0 {
		a.note("no jobs")
		return
	}
	now := time.Now()
	t := newTable(a.out, "id", "state", "kind", "queue", "attempt", "created", "detail", "tags")
	for _, j := range jobs {
		t.AppendRow([]any{
			j.ID, j.State, visible(j.Kind), visible(j.Queue), j.Attempt, ago(j.Created, now), situation(j, now), visible(strings.Join(j.Tags, " ")),
		})
	}
	t.Render()
	if last := jobs[len(jobs)-1]; len(jobs) == filter.Limit && last.ID > 1 {
		a.note("there may be more: --before %d", last.ID)
	}
}

// situation is the one thing about a job's state that people ask next.
func situation(j stint.JobInfo, now time.Time) string {
	switch {
	case j.State.Final() && j.Reason != "":
		return ago(j.Finished, now) + ", " + visible(j.Reason)
	case j.State.Final():
		return ago(j.Finished, now)
	case slices.Contains([]stint.State{stint.Scheduled, stint.Retrying}, j.State):
		return "due " + ago(j.Due, now)
	case j.State == stint.Available:
		return "waits for an engine"
	case j.State == stint.Running && !j.Begun:
		return "taken by an engine"
	}
	return ""
}

// ranOn is where an attempt took place.
func ranOn(x stint.ExecutionInfo) string {
	if x.Instance == "" {
		return "an engine that is forgotten"
	}
	return fmt.Sprintf("%s (%s, pid %d, slot %d)", visible(x.Instance), visible(x.Host), x.PID, x.Slot)
}
