package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/load"
)

const benchBurnLong = `Burn enqueues jobs that do nothing, in bulk, and then works them off with engines
in this process. The figures are the most that the engine can do here; history is
kept, and each job has been committed before it counts.`

// burnReport is what --json prints.
type burnReport struct {
	load.BurnResult
	Settings settings `json:"settings"`
}

func (a *app) benchBurnCommand() *cobra.Command {
	o := load.BurnOptions{}
	var held holdFlags
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "burn",
		Short:   "Measure how many jobs per second can be enqueued and worked",
		Long:    benchBurnLong,
		Example: "  stint bench burn -n 1000000 --db postgres:///app --engines 2",
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		err := atLeast(
			least{"n", o.N, 1}, least{"engines", o.Engines, 1}, least{"slots", o.Slots, 0}, least{"batch", o.Batch, 1}, least{"producers", o.Producers, 1},
		)
		if err != nil {
			return err
		}
		if err = held.check(a.db); err != nil {
			return err
		}
		var report burnReport
		err = a.measure(ctx, func(ctx context.Context, g *ground) (err error) {
			o.Meter, o.Open = &load.Meter{}, g.opener
			s := a.settings(ctx, g)
			s["engines"], s["slots"], s["batch"], s["producers"] = o.Engines, cmp.Or(o.Slots, 4*runtime.GOMAXPROCS(0)), o.Batch, o.Producers
			held.tell(s)
			report.Settings = s
			defer a.showProgress(o.Meter, o.N)()
			return held.during(ctx, g, o.Engines, func(ctx context.Context) error {
				report.BurnResult, err = load.Burn(ctx, g.roles, o)
				return err
			})
		})
		if err != nil {
			return err
		}
		return a.printBurn(report)
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&o.N, "jobs", "n", 100_000, "how many jobs")
	flags.IntVar(&o.Engines, "engines", 1, "how many engines, each with connections of its own")
	flags.IntVar(&o.Slots, "slots", 0, "how many jobs each runs at once (default 4 for each processor)")
	flags.IntVar(&o.Batch, "batch", 5000, "how many jobs are enqueued at a time")
	flags.IntVar(&o.Producers, "producers", 2, "how many enqueue side by side")
	held.add(flags)
	return cmd
}

func (a *app) printBurn(r burnReport) error {
	if a.json {
		return a.printJSON(r)
	}
	t := newTable(a.out, "", "jobs", "seconds", "jobs/s")
	t.AppendRow([]any{"enqueue", count(r.N), fmt.Sprintf("%.2f", r.EnqueueSeconds), count(int64(r.EnqueuePerSecond))})
	t.AppendRow([]any{"work", count(r.N), fmt.Sprintf("%.2f", r.WorkSeconds), count(int64(r.WorkPerSecond))})
	t.Render()
	r.Settings.print(a.out)
	return nil
}
