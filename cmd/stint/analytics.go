package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
)

const analyticsLong = `Analytics tells how the work goes: how many jobs are queued (due and not claimed),
postponed (not yet due), running, and zombies (held by engines that do not beat any
more); and of the attempts that ended in the last minute, how many, how late they
started, and how long they took. A percentile is the smallest that so many percent
do not exceed.

Its commands look closer. They cost what waits, runs and ended lately, but for
counts, which counts all jobs.

` + timesHelp

const analyticsExample = `  stint analytics --queue mail
  stint analytics kinds
  stint analytics due --by tag
  stint analytics delayed --before 10m
  stint analytics slow --longer 1m`

// analyticsFlags say which jobs are meant.
type analyticsFlags struct {
	queue, kind, tag string
	at               momentValue
}

func (f *analyticsFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.queue, "queue", "", "only jobs of this queue")
	flags.StringVar(&f.kind, "kind", "", "only jobs of this kind")
	flags.StringVar(&f.tag, "tag", "", "only jobs with this tag")
	flags.Var(&f.at, "at", "the time by which jobs are due or not, and at which the minute ends (default now)")
}

// named finds names that can never be right. An empty one is a mistake, most
// often of a variable in a script, and must not mean all.
func named(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed {
			if err := stint.CheckName("--"+name, f.Value.String()); err != nil {
				return err
			}
		}
	}
	return nil
}

// analyticsView is what a command of analytics shows.
type analyticsView func(ctx context.Context, db *database, filter stint.AnalyticsFilter) error

// analyzes gives a command the flags of analytics and its view.
func (a *app) analyzes(cmd *cobra.Command, view analyticsView) *cobra.Command {
	var flags analyticsFlags
	cmd.Args = arguments(0)
	cmd = a.withJSON(a.does(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if err := named(cmd, "queue", "kind", "tag"); err != nil {
			return err
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
		return view(ctx, db, stint.AnalyticsFilter{Queue: flags.queue, Kind: flags.kind, Tag: flags.tag, At: flags.at.at(now)})
	}))
	flags.add(cmd.Flags())
	return cmd
}

func (a *app) analyticsCommand() *cobra.Command {
	cmd := a.analyzes(&cobra.Command{
		Use:     "analytics",
		Short:   "Tell how the work goes",
		Long:    analyticsLong,
		Example: analyticsExample,
	}, func(ctx context.Context, db *database, filter stint.AnalyticsFilter) error {
		figures, err := db.Analyze(ctx, filter)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(figures)
		}
		a.showAnalytics(figures)
		return nil
	})
	cmd.AddCommand(a.kindAnalyticsCommand(), a.dueCommand(), a.delayedCommand(), a.slowCommand(), a.attemptsCommand(), a.countsCommand())
	return cmd
}

func (a *app) showAnalytics(f stint.Analytics) {
	t := newTable(a.out, "queued", "postponed", "running", "zombies")
	t.AppendRow([]any{words.Count(f.Queued), words.Count(f.Postponed), words.Count(f.Running), words.Count(f.Zombies)})
	t.Render()
	fmt.Fprintf(a.out, "\n%s ended in the last minute, %.4g per second\n", words.Counted(f.Ended, "attempt"), f.PerSecond)
	if f.Ended == 0 {
		return
	}
	fmt.Fprintln(a.out)
	t = newTable(a.out, "", "mean", "50%", "95%", "99%")
	for _, row := range []struct {
		name string
		stint.Spread
	}{{"latency", f.Latency}, {"execution time", f.Execution}} {
		t.AppendRow([]any{row.name, words.Took(row.Mean), words.Took(row.P50), words.Took(row.P95), words.Took(row.P99)})
	}
	t.Render()
}
