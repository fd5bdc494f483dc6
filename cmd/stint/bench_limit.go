package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/load"
)

const benchLimitLong = `Limit measures how fast this database could be by hand, keeping as much history and
committing as durably: equal rows are stored in bulk (PostgreSQL: by COPY), read in
order, and one row of history is stored for each. Nobody claims, so there could be
no second engine; nothing is scheduled, retried or found again when a process dies.
It is what stint bench burn compares itself with.`

// limitReport is what --json prints.
type limitReport struct {
	load.LimitResult
	*spent
	Settings settings `json:"settings,omitempty"`
}

func (a *app) benchLimitCommand() *cobra.Command {
	var n, batch, producers int
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "limit",
		Short:   "Measure what the database could do at most, by hand",
		Long:    benchLimitLong,
		Example: "  stint bench limit -n 1000000 --db postgres:///app",
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		if err := atLeast(least{"jobs", n, 1}, least{"batch", batch, 1}, least{"producers", producers, 1}); err != nil {
			return err
		}
		var report *limitReport
		err := a.measure(ctx, func(ctx context.Context, g *ground) (err error) {
			s := a.settings(ctx, g)
			s["batch"], s["producers"], s["taken_at_once"] = batch, g.logProducers(producers), takenAtOnce
			if report, err = a.limit(ctx, g, n, batch, producers); err == nil {
				report.Settings = s
			}
			return err
		})
		if err != nil {
			return err
		}
		return a.printLimit(report)
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&n, "jobs", "n", 100_000, "how many jobs")
	flags.IntVar(&batch, "batch", 5000, "how many jobs are stored at a time")
	flags.IntVar(&producers, "producers", 2, "how many store side by side (SQLite has one writer)")
	return cmd
}

// logProducers is how many of them there really are.
func (g *ground) logProducers(n int) int {
	if g.flags.isPostgres() {
		return n
	}
	return 1
}

// limit measures the limit on a ground, and leaves nothing there.
func (a *app) limit(ctx context.Context, g *ground, n, batch, producers int) (_ *limitReport, err error) {
	log, closeLog, err := g.log(ctx, producers, batch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeLog()) }()
	meter := &load.Meter{}
	defer a.showLine(func() string {
		return fmt.Sprintf("limit: stored %s, worked %s of %s", count(meter.Enqueued.Load()), count(meter.Started.Load()), count(n))
	})()
	r := &limitReport{}
	r.spent, err = g.spending(ctx, n, func(ctx context.Context) (err error) {
		r.LimitResult, err = load.Limit(ctx, log, n, meter)
		return err
	})
	return r, err
}

func (a *app) printLimit(r *limitReport) error {
	if a.json {
		return a.printJSON(r)
	}
	t := newTable(a.out, "", "jobs", "seconds", "jobs/s")
	t.AppendRow([]any{"enqueue", count(r.N), fmt.Sprintf("%.2f", r.EnqueueSeconds), count(int64(r.EnqueuePerSecond))})
	t.AppendRow([]any{"work", count(r.N), fmt.Sprintf("%.2f", r.WorkSeconds), count(int64(r.WorkPerSecond))})
	t.Render()
	a.printSpent(r.spent, nil)
	r.Settings.print(a.out)
	return nil
}
