package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

const benchSingleLong = `Single has producers enqueue one job for each transaction, each over a connection of
its own, and compares that with bare inserts of an equal row into a table with equal
indexes. The two take turns in short slices of the time, so that whatever else goes
on meets both.

By default the only engine is busy, so that nobody needs to be woken: that is a
system under load. With --asleep an engine waits for work and is rung.`

// singleReport is what --json prints.
type singleReport struct {
	load.SingleResult
	Settings settings `json:"settings"`
}

func (a *app) benchSingleCommand() *cobra.Command {
	var o load.SingleOptions
	cmd := a.withJSON(a.onDatabase(&cobra.Command{
		Use:     "single",
		Short:   "Measure enqueues of one job for each transaction",
		Long:    benchSingleLong,
		Example: "  stint bench single --producers 16 --duration 20s --db postgres:///app",
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		switch {
		case o.Producers < 1 || o.Producers > 10_000:
			return usagef("--producers: %d is not between 1 and 10000", o.Producers)
		case o.Duration < 10*time.Millisecond || o.Duration > 24*time.Hour:
			return usagef("--duration: it is not between 10ms and 1d")
		}
		a.db.connections = o.Producers + 1 // and what rings
		report, err := measure(ctx, a, func(ctx context.Context, g *ground) (singleReport, error) { return a.single(ctx, g, o) })
		if err != nil {
			return err
		}
		return a.printSingle(report)
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.Producers, "producers", 16, "how many enqueue side by side, each over a connection of its own")
	durationFlag(flags, &o.Duration, "duration", 10*time.Second, "for how long, both together")
	flags.BoolVar(&o.Asleep, "asleep", false, "have an idle engine wait, which is to be woken")
	return cmd
}

// single measures on a ground.
func (a *app) single(ctx context.Context, g *ground, o load.SingleOptions) (r singleReport, err error) {
	r.Settings = a.settings(ctx, g)
	r.Settings["producers"], r.Settings["duration"], r.Settings["asleep"] = o.Producers, retry.FormatDuration(o.Duration), o.Asleep
	insert, closeTable, err := g.inserts(ctx, o.Producers)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, closeTable()) }()
	o.Insert, o.Meter = insert, &load.Meter{}
	begin := time.Now()
	defer a.showLine(func() string {
		return fmt.Sprintf("%.0f of %.0f s: enqueued %s", time.Since(begin).Seconds(), o.Duration.Seconds(), words.Count(o.Meter.Enqueued.Load()))
	})()
	r.SingleResult, err = load.Single(ctx, g.roles, o)
	return r, err
}

func (a *app) printSingle(r singleReport) error {
	if a.json {
		return a.printJSON(r)
	}
	t := newTable(a.out, "", "calls", "per second", "p50 ms", "p99 ms", "max ms")
	for _, row := range []struct {
		name string
		c    load.CallRates
	}{{"enqueue", r.Enqueue}, {"bare insert", r.Insert}} {
		t.AppendRow([]any{row.name, words.Count(row.c.N), words.Count(int64(row.c.PerSecond)), ms(row.c.Took.P50), ms(row.c.Took.P99), ms(row.c.Took.Max)})
	}
	t.Render()
	fmt.Fprintf(a.out, "\nper second, enqueues are %.2f of bare inserts\n", r.Ratio)
	r.Settings.print(a.out)
	return nil
}
