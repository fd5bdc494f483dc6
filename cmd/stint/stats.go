package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
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
		filter       stint.StatsFilter
		since, until momentValue

		hourly, minutely bool
	)
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "stats",
		Short:   "Tell how the attempts of each kind went",
		Long:    statsLong,
		Example: statsExample,
		Args:    arguments(0),
	}, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		if err := named(cmd, "kind", "queue"); err != nil {
			return err
		}
		switch {
		case hourly && minutely:
			return usagef("--hourly and --minutely exclude each other")
		case hourly:
			filter.Every = time.Hour
		case minutely:
			filter.Every = time.Minute
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
		if filter.From, filter.To = since.at(now), until.at(now); !filter.To.IsZero() && filter.To.Before(filter.From) {
			return usagef("--until is before --since")
		}
		kinds, err := db.KindStats(ctx, filter)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(kinds)
		}
		a.showStats(kinds, filter.Every)
		return nil
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&filter.Kind, "kind", "", "only this kind")
	flags.StringVar(&filter.Queue, "queue", "", "only what ran in this queue")
	flags.Var(&since, "since", "only what ended in the hour of this time or later")
	flags.Var(&until, "until", "only what ended up to the end of this time's hour")
	flags.BoolVar(&hourly, "hourly", false, "tell each hour by itself")
	flags.BoolVar(&minutely, "minutely", false, "tell each minute of the last two days by itself")
	return cmd
}

func (a *app) showStats(kinds []stint.KindStats, every time.Duration) {
	if len(kinds) == 0 {
		a.note("no attempts")
		return
	}
	head := []any{"kind", "attempts", "succeeded", "failed", "lost", "last", "mean", "fastest", "longest", "total", "latency", "last ended"}
	switch every {
	case time.Hour:
		head = append([]any{"hour"}, head...)
	case time.Minute:
		head = append([]any{"minute"}, head...)
	}
	now := time.Now()
	t := newTable(a.out, head...)
	for _, k := range kinds {
		latency := time.Duration(0)
		if k.Took.Count > 0 {
			latency = k.Waited / time.Duration(k.Took.Count)
		}
		row := []any{words.Visible(k.Kind), words.Count(k.Attempts), words.Count(k.Succeeded()), words.Count(k.Failed()), words.Count(k.Outcomes[stint.OutcomeLost]),
			words.Took(k.Took.Last), words.Took(k.Took.Mean()), words.Took(k.Took.Fastest), words.Took(k.Took.Longest), words.Took(k.Took.Total), words.Took(latency), words.Ago(k.LastAt, now)}
		if every != 0 {
			row = append([]any{k.Start.Local().Format("2006-01-02 15:04")}, row...)
		}
		t.AppendRow(row)
	}
	t.Render()
}
