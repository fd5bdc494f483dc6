package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/load"
)

const benchLatencyLong = `Latency enqueues jobs that do nothing one at a time, at a rate that leaves the
engine idle, and measures how long each takes to start: from the call of Enqueue,
and from its return. Below zero the handler began before Enqueue had returned.`

// latencyReport is what --json prints.
type latencyReport struct {
	load.LatencyResult
	Settings settings `json:"settings"`
}

func (a *app) benchLatencyCommand() *cobra.Command {
	var o load.LatencyOptions
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "latency",
		Short:   "Measure how long an idle engine takes to start a job",
		Long:    benchLatencyLong,
		Example: "  stint bench latency --rate 50 --duration 10s --db postgres:///app",
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		switch {
		case o.Rate <= 0 || o.Rate > 100_000:
			return usagef("--rate: %v is not between 0 and 100000 jobs per second", o.Rate)
		case o.Duration < time.Millisecond || o.Duration > 24*time.Hour:
			return usagef("--duration: it is not between 1ms and 1d")
		}
		var report latencyReport
		err := a.measure(ctx, func(ctx context.Context, g *ground) (err error) {
			o.Meter = &load.Meter{}
			report.Settings = a.settings(ctx, g)
			defer a.showProgress(o.Meter, int(o.Rate*o.Duration.Seconds()))()
			report.LatencyResult, err = load.Latency(ctx, g.roles, o)
			return err
		})
		if err != nil {
			return err
		}
		return a.printLatency(report)
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Float64Var(&o.Rate, "rate", 50, "jobs per second")
	durationFlag(flags, &o.Duration, "duration", 10*time.Second, "for how long")
	return cmd
}

func (a *app) printLatency(r latencyReport) error {
	if a.json {
		return a.printJSON(r)
	}
	t := newTable(a.out, "milliseconds", "p50", "p95", "p99", "max")
	for _, row := range []struct {
		name string
		q    load.Quantiles
	}{{"enqueue to start", r.FromCall}, {"return to start", r.FromReturn}, {"enqueue itself", r.EnqueueTook}} {
		t.AppendRow([]any{row.name, ms(row.q.P50), ms(row.q.P95), ms(row.q.P99), ms(row.q.Max)})
	}
	t.Render()
	fmt.Fprintf(a.out, "\n%s, %.0f per second\n", counted(r.N, "job"), r.Rate)
	r.Settings.print(a.out)
	return nil
}

func ms(v float64) string { return fmt.Sprintf("%.2f", v) }
