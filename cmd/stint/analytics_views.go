package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/internal/words"
)

const dueLong = `Due groups the jobs that are due and not claimed by a field: queue, kind, priority,
urn, source, tag, correlation, or a path into their JSON, such as args.customer or
metadata.region.code. The largest groups come first; - stands for jobs that say
nothing.`

func (a *app) dueCommand() *cobra.Command {
	var (
		by    string
		limit int
	)
	cmd := a.analyzes(&cobra.Command{
		Use:   "due",
		Short: "Group what is due by a field",
		Long:  dueLong,
	}, func(ctx context.Context, db *database, filter stint.AnalyticsFilter) error {
		if limit < 1 {
			return usagef("--limit: %d is too few", limit)
		}
		groups, err := db.DueBy(ctx, stint.Field(by), filter, limit)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(append([]stint.DueGroup{}, groups...))
		}
		if len(groups) == 0 {
			a.note("nothing is due")
			return nil
		}
		t := newTable(a.out, by, "jobs")
		for _, g := range groups {
			value := "-"
			if g.Value != nil {
				value = words.Visible(*g.Value)
			}
			t.AppendRow([]any{value, words.Count(g.Jobs)})
		}
		t.Render()
		return nil
	})
	cmd.Flags().StringVar(&by, "by", string(stint.FieldQueue), "the field")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many groups at most")
	return cmd
}

func (a *app) kindAnalyticsCommand() *cobra.Command {
	return a.analyzes(&cobra.Command{
		Use:   "kinds",
		Short: "Tell how long the attempts of each kind took lately",
		Long: `Kinds tells of each kind how many attempts ended in the last minute, how late they
started, and how long they took. Kinds of which none ended are left out; stint stats
tells of a longer time.

` + timesHelp,
	}, func(ctx context.Context, db *database, filter stint.AnalyticsFilter) error {
		kinds, err := db.AnalyzeKinds(ctx, filter)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(append([]stint.KindAnalytics{}, kinds...))
		}
		if len(kinds) == 0 {
			a.note("nothing ended in the last minute")
			return nil
		}
		t := newTable(a.out, "kind", "attempts", "late by 50%", "95%", "99%", "took 50%", "95%", "99%")
		for _, k := range kinds {
			late, took := k.Latency, k.Execution
			t.AppendRow([]any{words.Visible(k.Kind), words.Count(k.Ended), words.Took(late.P50), words.Took(late.P95), words.Took(late.P99),
				words.Took(took.P50), words.Took(took.P95), words.Took(took.P99)})
		}
		t.Render()
		return nil
	})
}

// finds gives a command that lists jobs its action.
func (a *app) finds(cmd *cobra.Command, filter func(f *stint.Filter, now time.Time) error) *cobra.Command {
	limit := 0
	cmd = a.analyzes(cmd, func(ctx context.Context, db *database, f stint.AnalyticsFilter) error {
		if limit < 1 {
			return usagef("--limit: %d is too few", limit)
		}
		now, err := db.now(ctx)
		if err != nil {
			return err
		}
		chosen := stint.Filter{Queue: f.Queue, Kind: f.Kind, Tag: f.Tag, Limit: limit}
		if err := filter(&chosen, now); err != nil {
			return err
		}
		jobs, err := db.Jobs(ctx, chosen)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(append([]stint.JobInfo{}, jobs...))
		}
		engines, err := view.CrewFor(ctx, db, jobs...)
		if err != nil {
			return err
		}
		a.listJobs(jobs, engines, chosen)
		return nil
	})
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most")
	_ = cmd.Flags().MarkHidden("at") // it is about what waits and the last minute
	return cmd
}

func (a *app) delayedCommand() *cobra.Command {
	var before momentValue
	cmd := a.finds(&cobra.Command{
		Use:   "delayed",
		Short: "List the jobs that were due before a time and that nobody has taken",
	}, func(f *stint.Filter, now time.Time) error {
		f.States = []stint.State{stint.Available, stint.Scheduled, stint.Retrying}
		if f.Due.To = before.at(now); f.Due.To.IsZero() {
			f.Due.To = now.Add(-time.Minute)
		}
		return nil
	})
	cmd.Flags().Var(&before, "before", "the time (default a minute ago)")
	return cmd
}

func (a *app) slowCommand() *cobra.Command {
	longer := stint.LongAttempt
	cmd := a.finds(&cobra.Command{
		Use:   "slow",
		Short: "List the jobs with an attempt that took long",
	}, func(f *stint.Filter, _ time.Time) error {
		f.Longer = longer
		if longer <= 0 {
			return settingf("longer", "every attempt takes longer than %v", longer)
		}
		return nil
	})
	durationFlag(cmd.Flags(), &longer, "longer", stint.LongAttempt, "longer than this")
	return cmd
}

func (a *app) attemptsCommand() *cobra.Command {
	more := 1
	cmd := a.finds(&cobra.Command{
		Use:   "attempts",
		Short: "List the jobs that were tried more than once",
	}, func(f *stint.Filter, _ time.Time) error {
		f.Attempts = more
		if more < 1 {
			return settingf("more-than", "%d is too few: every job has an attempt", more)
		}
		return nil
	})
	cmd.Flags().IntVar(&more, "more-than", 1, "how many attempts")
	return cmd
}

func (a *app) countsCommand() *cobra.Command {
	return a.withJSON(a.does(&cobra.Command{
		Use:   "counts",
		Short: "Count the jobs in each state: all that there are",
		Args:  arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		db, err := a.open(ctx, looking)
		if err != nil {
			return err
		}
		defer db.Close()
		counts, err := db.Counts(ctx)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(counts)
		}
		t := newTable(a.out, "state", "jobs")
		for _, state := range stint.States {
			t.AppendRow([]any{state, words.Count(counts[state])})
		}
		t.Render()
		return nil
	}))
}
