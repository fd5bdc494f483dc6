package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/internal/words"
)

const benchLimitLong = `Limit measures how fast this database could be by hand, keeping as much history and
committing as durably: equal rows are stored in bulk (PostgreSQL: by COPY), read in
order, and one row of history is stored for each. Nobody claims, so there could be
no second engine; nothing is scheduled, retried or found again when a process dies.
Burn, steady and mix compare themselves with it: steady and mix, which enqueue and
work at once, with the jobs per second of both halves together.`

// limitReport is what --json prints.
type limitReport struct {
	load.LimitResult
	*spent
	Settings settings `json:"settings,omitempty"`
}

func (a *app) benchLimitCommand() *cobra.Command {
	var n, batch, producers int
	cmd := a.withJSON(a.onDatabase(&cobra.Command{
		Use:     "limit",
		Short:   "Measure what the database could do at most, by hand",
		Long:    benchLimitLong,
		Example: "  stint bench limit -n 1000000 --db postgres:///app",
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		if err := atLeast(least{"jobs", n, 1}, least{"batch", batch, 1}, least{"producers", producers, 1}); err != nil {
			return err
		}
		report, err := measure(ctx, a, func(ctx context.Context, g *ground) (*limitReport, error) {
			s := a.settings(ctx, g)
			s["batch"], s["producers"], s["taken_at_once"] = batch, g.logProducers(producers), takenAtOnce
			r, err := a.limit(ctx, g, n, batch, producers)
			if err == nil {
				r.Settings = s
			}
			return r, err
		})
		if err != nil {
			return err
		}
		return a.printLimit(report)
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&n, "jobs", "n", 100_000, "how many jobs")
	flags.IntVar(&batch, "batch", limitBatch, "how many jobs are stored at a time")
	flags.IntVar(&producers, "producers", limitProducers, "how many store side by side (SQLite has one writer)")
	return cmd
}

// What the limit is measured with, unless somebody says otherwise.
const limitBatch, limitProducers = 5000, 2

// noLimitFlag is for workloads that are compared with the limit.
func noLimitFlag(flags *pflag.FlagSet, noLimit *bool) {
	flags.BoolVar(noLimit, "no-limit", false, "do not measure the limit beside it")
}

// mostBeside is how many jobs the limit is measured with at most beside a
// workload that goes by time: enough for some seconds.
const mostBeside = 1_000_000

// limitBeside measures the limit behind a workload of so many jobs that were
// enqueued and worked at once.
func (a *app) limitBeside(ctx context.Context, g *ground, jobs int64, batch, producers int) (*limitReport, error) {
	return a.limit(ctx, g, int(min(max(1, jobs), mostBeside)), batch, producers)
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
		return fmt.Sprintf("limit: stored %s, worked %s of %s", words.Count(meter.Enqueued.Load()), words.Count(meter.Started.Load()), words.Count(n))
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
	t.AppendRow([]any{"enqueue", words.Count(r.N), fmt.Sprintf("%.2f", r.EnqueueSeconds), words.Count(int64(r.EnqueuePerSecond))})
	t.AppendRow([]any{"work", words.Count(r.N), fmt.Sprintf("%.2f", r.WorkSeconds), words.Count(int64(r.WorkPerSecond))})
	t.AppendRow([]any{"both", words.Count(r.N), fmt.Sprintf("%.2f", r.EnqueueSeconds+r.WorkSeconds), words.Count(int64(r.JobsPerSecond))})
	t.Render()
	a.printSpent(r.spent, nil)
	r.Settings.print(a.out)
	return nil
}
