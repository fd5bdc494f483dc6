package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
)

const statsLong = `Stats tells how attempts went, for each kind: all that ever began, also those of
jobs that are gone. Whole hours are counted: since 90 minutes ago means since the
beginning of that hour. With --minutely whole minutes are, and told of the last two
days. Last is the one that ended last, and latency how long
attempts were due before they started, on average.

` + timesHelp

const statsExample = `  stint stats
  stint stats --queue mail --since 1d
  stint stats --kind sh --since 1d --hourly
  stint stats --since 1h --minutely`

func (a *app) statsCommand() *cobra.Command {
	var (
		filter       report.StatsFilter
		since, until timeBound

		hourly, minutely bool
	)
	cmd := a.asks(&cobra.Command{
		Use:     "stats",
		Short:   "Tell how the attempts of each kind went",
		Long:    statsLong,
		Example: statsExample,
		Args:    arguments(0),
	}, func(ctx context.Context, db *database, _ []string) (any, func(), error) {
		now, err := db.now(ctx)
		if err != nil {
			return nil, nil, err
		}
		if filter.From, filter.To = since.at(now), until.at(now); !filter.To.IsZero() && filter.To.Before(filter.From) {
			return nil, nil, usagef("--until is before --since")
		}
		in, err := ops.StatsOf(filter)
		if err != nil {
			return nil, nil, err
		}
		kinds, err := ops.Stats.Call(ctx, db, in)
		return kinds, func() { a.showStats(kinds, filter.Every) }, err
	}, named("kind", "queue"), func(*cobra.Command, []string) error {
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
	flags.SortFlags = false
	flags.StringVar(&filter.Kind, "kind", "", "only this kind")
	flags.StringVar(&filter.Queue, "queue", "", "only what ran in this queue")
	flags.Var(timeBounds.in(&since), "since", "only what ended in the hour of this time or later")
	flags.Var(timeBounds.in(&until), "until", "only what ended up to the end of this time's hour")
	flags.BoolVar(&hourly, "hourly", false, "tell each hour by itself")
	flags.BoolVar(&minutely, "minutely", false, "tell each minute of the last two days by itself")
	return cmd
}

func (a *app) showStats(kinds []report.KindStats, every time.Duration) {
	head := row{"kind", "attempts", "succeeded", "failed", "lost", "last", "mean", "fastest", "longest", "total", "latency", "last ended"}
	if every != 0 {
		head = append(row{map[time.Duration]string{time.Hour: "hour", time.Minute: "minute"}[every]}, head...)
	}
	now := time.Now()
	printTable(a, kinds, "no attempts", head, func(k report.KindStats) row {
		latency := k.Waited / time.Duration(max(1, k.Took.Count))
		cells := row{k.Kind, k.Attempts, k.Succeeded(), k.Failed(), k.Outcomes[stint.OutcomeLost], k.Took.Last, k.Took.Mean(), k.Took.Fastest, k.Took.Longest, k.Took.Total,
			latency, words.Ago(k.LastAt, now)}
		if every != 0 {
			cells = append(row{k.Start.Local().Format("2006-01-02 15:04")}, cells...)
		}
		return cells
	})
}
