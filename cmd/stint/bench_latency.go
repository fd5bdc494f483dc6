package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

const benchLatencyLong = `Latency enqueues jobs that do nothing one at a time, at a rate that leaves the
engine idle, and measures how long each takes to start: from the call of Enqueue,
and from its return. Below zero the handler began before Enqueue had returned.

Between the jobs the floor is measured: one row is inserted and committed, a NOTIFY
goes to a listener in this process, and that reads the row, over the same server
(SQLite: one row is committed and read). A part of the jobs is scheduled for some
instant of the next two seconds; how late these start is a figure of its own. When
they are due is the database's clock to say, so the clocks are compared first.`

// latencyReport is what --json prints.
type latencyReport struct {
	load.LatencyResult
	Settings settings `json:"settings"`
}

func (a *app) benchLatencyCommand() *cobra.Command {
	var o load.LatencyOptions
	cmd := a.withJSON(a.onDatabase(&cobra.Command{
		Use:     "latency",
		Short:   "Measure how long an idle engine takes to start a job",
		Long:    benchLatencyLong,
		Example: "  stint bench latency --rate 50 --duration 10s --db postgres:///app",
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		switch {
		case !(o.Rate > 0 && o.Rate <= 100_000):
			return usagef("--rate: %v is not between 0 and 100000 jobs per second", o.Rate)
		case o.Duration < time.Millisecond || o.Duration > 24*time.Hour:
			return usagef("--duration: it is not between 1ms and 1d")
		case !(o.Scheduled >= 0 && o.Scheduled < 1):
			return usagef("--scheduled: %v is not a part of the jobs, from 0 to below 1", o.Scheduled)
		case o.Slots < 0:
			return usagef("--slots: %d is less than 0", o.Slots)
		}
		report, err := measure(ctx, a, func(ctx context.Context, g *ground) (latencyReport, error) { return a.latency(ctx, g, o) })
		if err != nil {
			return err
		}
		return a.printLatency(report)
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Float64Var(&o.Rate, "rate", 50, "jobs per second")
	durationFlag(flags, &o.Duration, "duration", 10*time.Second, "for how long")
	flags.Float64Var(&o.Scheduled, "scheduled", 0.2, "the part of the jobs that is scheduled")
	flags.IntVar(&o.Slots, "slots", 0, "how many jobs the engine runs at once (default 4 for each processor)")
	return cmd
}

// latency measures on a ground.
func (a *app) latency(ctx context.Context, g *ground, o load.LatencyOptions) (r latencyReport, err error) {
	r.Settings = a.settings(ctx, g)
	r.Settings["rate"], r.Settings["duration"], r.Settings["scheduled"] = o.Rate, retry.FormatDuration(o.Duration), o.Scheduled
	r.Settings["slots"] = cmp.Or(o.Slots, engine.DefaultSlots())
	round, closeTable, err := g.rounds(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, closeTable()) }()
	o.Floor, o.Meter = round, &load.Meter{}
	defer a.showProgress(o.Meter, int(o.Rate*o.Duration.Seconds()))()
	r.LatencyResult, err = load.Latency(ctx, g.roles, o)
	return r, err
}

func (a *app) printLatency(r latencyReport) error {
	if a.json {
		return a.printJSON(r)
	}
	t := newTable(a.out, "milliseconds", "p50", "p95", "p99", "max")
	row := func(name string, q load.Quantiles) {
		t.AppendRow([]any{name, ms(q.P50), ms(q.P95), ms(q.P99), ms(q.Max)})
	}
	row("enqueue to start", r.FromCall)
	row("return to start", r.FromReturn)
	row("enqueue itself", r.EnqueueTook)
	row("floor", *r.Floor)
	if r.Lateness != nil {
		row("scheduled, late", r.Lateness.Late)
	}
	t.Render()
	fmt.Fprintf(a.out, "\nenqueue to start takes %.2f times the floor at p50, %.2f times at p99\n", r.Ratio.P50, r.Ratio.P99)
	fmt.Fprintf(a.out, "%s at once", words.Counted(r.N, "job"))
	if l := r.Lateness; l != nil {
		fmt.Fprintf(a.out, " and %s scheduled", words.Count(l.N))
	}
	fmt.Fprintf(a.out, ", %.0f per second\n", r.Rate)
	if l := r.Lateness; l != nil && l.ClockUnknown > 0 {
		fmt.Fprintf(a.out, "the database's clock less this one: %.3f ms, give or take %.3f\n", l.ClockOffset, l.ClockUnknown)
	}
	r.Settings.print(a.out)
	return nil
}

func ms(v float64) string { return fmt.Sprintf("%.2f", v) }
