package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

const analyticsHelp = `analytics: Show how the work goes

Analytics counts the jobs that are queued (due and not claimed), limited (those of them
that a limit lets not start now), postponed (not due yet), running, and orphaned (held by
engines that died; "zombies" in JSON). Of the attempts that ended in the last minute it
shows the number, how late they started, and how long they took. The 95% column is the
time that 95 of 100 attempts did not exceed.

Its commands show more. They read only the jobs that wait, run or ended lately. The
exception is counts, which reads all jobs.

` + timesHelp + `

Examples:
  stint analytics --queue mail
  stint analytics kinds
  stint analytics due --by tag
  stint analytics delayed --before 10m
  stint analytics slow --longer 1m`

type analyticsFlags struct {
	queue, kind, tag string
	at               timeBound
}

func (f *analyticsFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	nameFlag(flags, &f.queue, "queue", "only jobs of this queue")
	nameFlag(flags, &f.kind, "kind", "only jobs of this kind")
	nameFlag(flags, &f.tag, "tag", "only jobs with this tag")
	flags.Var(timeBounds.in(&f.at), "at", "count what was due at this time, and the minute before it (default now)")
}

// analyzes makes a command that asks about the jobs that the flags of analytics choose.
func (a *app) analyzes(cmd *cobra.Command, ask func(ctx context.Context, db *database, filter report.AnalyticsFilter) (any, shower, error)) *cobra.Command {
	var flags analyticsFlags
	cmd = a.asks(cmd, func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		now, err := db.now(ctx)
		if err != nil {
			return nil, nil, err
		}
		return ask(ctx, db, report.AnalyticsFilter{Queue: flags.queue, Kind: flags.kind, Tag: flags.tag, At: flags.at.at(now)})
	})
	flags.add(cmd.Flags())
	return cmd
}

func (a *app) analyticsCommand() *cobra.Command {
	cmd := a.analyzes(page(analyticsHelp), func(ctx context.Context, db *database, filter report.AnalyticsFilter) (any, shower, error) {
		figures, err := db.Analyze(ctx, filter)
		return figures, func(time.Time) { a.showAnalytics(figures) }, err
	})
	cmd.AddCommand(a.kindAnalyticsCommand(), a.dueCommand(), a.delayedCommand(), a.slowCommand(), a.attemptsCommand(), a.countsCommand())
	return cmd
}

func (a *app) showAnalytics(f report.Analytics) {
	printTable(a, []report.Analytics{f}, "", row{"queued", "limited", "postponed", "running", "orphaned"}, func(f report.Analytics) row {
		return row{f.Queued, f.Limited, f.Postponed, f.Running, f.Zombies}
	})
	fmt.Fprintf(a.out, "\n%s ended in the last minute, %.4g per second\n", words.Counted(f.Ended, "attempt"), f.PerSecond)
	if f.Ended == 0 {
		return
	}
	fmt.Fprintln(a.out)
	t := newTable(a.out, "", "mean", "50%", "95%", "99%")
	addRow(t, row{"latency", f.Latency.Mean, f.Latency.P50, f.Latency.P95, f.Latency.P99})
	addRow(t, row{"execution time", f.Execution.Mean, f.Execution.P50, f.Execution.P95, f.Execution.P99})
	t.Render()
}

const dueHelp = `due: Group what is due by a field

Due takes the jobs that are due and that no engine has claimed, and counts them by a
field: queue, kind, priority, urn, source, tag, correlation, or a path into their JSON,
such as args.customer or metadata.region.code. The largest groups come first. Jobs
without the field are counted as -.`

func (a *app) dueCommand() *cobra.Command {
	var (
		by    string
		limit int
	)
	cmd := a.analyzes(page(dueHelp), func(ctx context.Context, db *database, filter report.AnalyticsFilter) (any, shower, error) {
		groups, err := db.DueBy(ctx, report.Field(by), filter, limit)
		return groups, func(time.Time) {
			printTable(a, groups, "nothing is due", row{by, "jobs"}, func(g report.DueGroup) row {
				if g.Value == nil {
					return row{"-", g.Jobs}
				}
				return row{*g.Value, g.Jobs}
			})
		}, err
	})
	cmd.Flags().StringVar(&by, "by", string(report.FieldQueue), "the field")
	countFlag(cmd.Flags(), &limit, "limit", 50, "how many groups at most", "")
	return cmd
}

func (a *app) kindAnalyticsCommand() *cobra.Command {
	return a.analyzes(page(`kinds: Show how long the attempts of each kind took lately

Kinds shows for each kind how many attempts ended in the last minute, how late they
started, and how long they took. Kinds without such attempts are left out; stint stats
shows a longer time.

`+timesHelp), func(ctx context.Context, db *database, filter report.AnalyticsFilter) (any, shower, error) {
		kinds, err := db.AnalyzeKinds(ctx, filter)
		return kinds, func(time.Time) {
			printTable(a, kinds, "nothing ended in the last minute", row{"kind", "attempts", "late by 50%", "95%", "99%", "took 50%", "95%", "99%"}, func(k report.KindAnalytics) row {
				late, took := k.Latency, k.Execution
				return row{k.Kind, k.Ended, late.P50, late.P95, late.P99, took.P50, took.P95, took.P99}
			})
		}, err
	})
}

// finds makes a command that lists the jobs that fit a filter.
func (a *app) finds(help string, filter func(f *store.Filter, now time.Time)) *cobra.Command {
	limit := 0
	cmd := a.analyzes(page(help), func(ctx context.Context, db *database, f report.AnalyticsFilter) (any, shower, error) {
		now, err := db.now(ctx)
		if err != nil {
			return nil, nil, err
		}
		chosen := store.Filter{Queue: f.Queue, Kind: f.Kind, Tag: f.Tag, Limit: limit}
		filter(&chosen, now)
		return a.findJobs(ctx, db, chosen)
	})
	countFlag(cmd.Flags(), &limit, "limit", 50, "how many at most", "")
	_ = cmd.Flags().MarkHidden("at") // it is about what waits and the last minute
	return cmd
}

func (a *app) delayedCommand() *cobra.Command {
	var before timeBound
	cmd := a.finds("delayed: List the jobs that were due before a time and that no engine has taken", func(f *store.Filter, now time.Time) {
		f.States = []stint.State{stint.Available, stint.Scheduled, stint.Retrying, stint.Blocked}
		if f.Due.To = before.at(now); f.Due.To.IsZero() {
			f.Due.To = now.Add(-time.Minute)
		}
	})
	cmd.Flags().Var(timeBounds.in(&before), "before", "the time (default a minute ago)")
	return cmd
}

func (a *app) slowCommand() *cobra.Command {
	var longer time.Duration
	cmd := a.finds("slow: List the jobs with an attempt that took long", func(f *store.Filter, _ time.Time) { f.Longer = longer })
	longerFlag(cmd.Flags(), &longer, store.LongAttempt, "longer than this")
	return cmd
}

func (a *app) attemptsCommand() *cobra.Command {
	var more int
	cmd := a.finds("attempts: List the jobs that were tried more than once", func(f *store.Filter, _ time.Time) { f.Attempts = more })
	countFlag(cmd.Flags(), &more, "more-than", 1, "how many attempts", oneAttempt)
	return cmd
}

func (a *app) countsCommand() *cobra.Command {
	return a.asks(page("counts: Count all jobs in each state\n\nCounts counts all jobs in each state:\n\n"+statesHelp), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		counts, err := db.Counts(ctx)
		return counts, func(time.Time) {
			printTable(a, store.States, "", row{"state", "jobs"}, func(s stint.State) row { return row{s, counts[s]} })
		}, err
	})
}

const statsHelp = `stats: Show how the attempts of each kind went

Stats shows how attempts went, for each kind: all that ever began, also those of jobs
that were deleted. It counts whole hours: since 90 minutes ago means since the beginning
of that hour. With --minutely it counts whole minutes of the last two days. Last is the
attempt that ended last, and latency is how long attempts were due before they started.
Percentiles (p50, p95, p99) are estimates from histograms, off by a quarter at most.

` + timesHelp + `

Examples:
  stint stats
  stint stats --queue mail --since 1d
  stint stats --kind sh --since 1d --hourly
  stint stats --since 1h --minutely`

func (a *app) statsCommand() *cobra.Command {
	var (
		filter       report.StatsFilter
		since, until timeBound

		hourly, minutely bool
	)
	cmd := a.asks(page(statsHelp), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		now, err := db.now(ctx)
		if err != nil {
			return nil, nil, err
		}
		if filter.From, filter.To = since.at(now), until.at(now); !filter.To.IsZero() && filter.To.Before(filter.From) {
			return nil, nil, usagef("--until is before --since")
		}
		filter.Distributed = true
		in, err := ops.StatsOf(filter)
		if err != nil {
			return nil, nil, err
		}
		kinds, err := ops.Items(ops.Stats.Call(ctx, db, in))
		return kinds, func(now time.Time) { a.showStats(kinds, filter.Every, now) }, err
	}, func(*cobra.Command, []string) error {
		switch {
		case hourly && minutely:
			return usagef("--hourly and --minutely exclude each other")
		case hourly:
			filter.Every = time.Hour
		case minutely:
			filter.Every = time.Minute
		}
		return nil
	})
	flags := cmd.Flags()
	nameFlag(flags, &filter.Kind, "kind", "only this kind")
	nameFlag(flags, &filter.Queue, "queue", "only what ran in this queue")
	flags.Var(timeBounds.in(&since), "since", "only what ended in the hour of this time or later")
	flags.Var(timeBounds.in(&until), "until", "only what ended up to the end of this time's hour")
	flags.BoolVar(&hourly, "hourly", false, "show each hour separately")
	flags.BoolVar(&minutely, "minutely", false, "show each minute of the last two days separately")
	return cmd
}

func (a *app) showStats(kinds []report.KindStats, every time.Duration, now time.Time) {
	head := row{"kind", "attempts", "succeeded", "failed", "lost", "last", "p50", "p95", "p99", "mean", "fastest", "longest", "total", "latency p50", "p95", "last ended"}
	if every != 0 {
		head = append(row{map[time.Duration]string{time.Hour: "hour", time.Minute: "minute"}[every]}, head...)
	}
	printTable(a, kinds, "no attempts", head, func(k report.KindStats) row {
		var took, waited report.Percentiles
		if k.Execution != nil {
			took, waited = *k.Execution, *k.Latency
		}
		cells := row{k.Kind, k.Attempts, k.Succeeded(), k.Failed(), k.Outcomes[stint.OutcomeLost], k.Took.Last, took.P50, took.P95, took.P99, k.Took.Mean(), k.Took.Fastest, k.Took.Longest, k.Took.Total,
			waited.P50, waited.P95, words.Ago(k.LastAt, now)}
		if every != 0 {
			cells = append(row{k.Start.Local().Format("2006-01-02 15:04")}, cells...)
		}
		return cells
	})
}
