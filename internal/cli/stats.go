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
		since, until momentValue

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
	flags.Var(&since, "since", "only what ended in the hour of this time or later")
	flags.Var(&until, "until", "only what ended up to the end of this time's hour")
	flags.BoolVar(&hourly, "hourly", false, "tell each hour by itself")
	flags.BoolVar(&minutely, "minutely", false, "tell each minute of the last two days by itself")
	return cmd
}

func (a *app) showStats(kinds []report.KindStats, every time.Duration) {
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
