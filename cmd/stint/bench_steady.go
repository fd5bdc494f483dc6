package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

const benchSteadyLong = `Steady enqueues jobs that do nothing, in bulk, while engines in this process work
them off, and tells how many in each interval: whether the speed lasts. Producers
wait when the backlog is full, so the slower side sets the pace. Beside each figure
stands its ratio to what the same database takes in and works off by hand in the
same run (stint bench limit).

With --pin-horizon a snapshot and an idle write transaction are held open from the
start, as a forgotten backup and a forgotten program would do: vacuum can remove
nothing then. With --compare the same is measured first without what is held open,
and each interval has its ratio beside it.`

// steadyFlags say how to load.
type steadyFlags struct {
	load.SteadyOptions
	held             holdFlags
	compare, noLimit bool
}

func (a *app) benchSteadyCommand() *cobra.Command {
	var f steadyFlags
	cmd := a.withJSON(a.onDatabase(&cobra.Command{
		Use:     "steady",
		Short:   "Measure whether the speed lasts while jobs keep coming",
		Long:    benchSteadyLong,
		Example: "  stint bench steady --pin-horizon --compare --duration 2m --db postgres:///app",
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		if err := f.check(a.db); err != nil {
			return err
		}
		var without, report steadyReport
		var err error
		if f.compare {
			if without, err = a.steady(ctx, f.without(), "with nothing held open, "); err != nil {
				return err
			}
		}
		if report, err = a.steady(ctx, f, ""); err != nil {
			return err
		}
		if f.compare {
			without.Settings = nil // they are the same
			report.Without, report.WithoutRatio = &without, report.over(without.SteadyResult)
		}
		return a.printSteady(report)
	}))
	f.add(cmd.Flags())
	return cmd
}

func (f *steadyFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	durationFlag(flags, &f.Duration, "duration", time.Minute, "for how long jobs are enqueued")
	durationFlag(flags, &f.Every, "every", 5*time.Second, "how long an interval is")
	flags.Float64Var(&f.Rate, "rate", 0, "jobs enqueued per second; 0 is as many as can be worked")
	flags.IntVar(&f.Engines, "engines", 1, "how many engines, each with connections of its own")
	flags.IntVar(&f.Slots, "slots", 0, "how many jobs each runs at once (default 4 for each processor)")
	flags.IntVar(&f.Batch, "batch", 1000, "how many jobs are enqueued at a time")
	flags.IntVar(&f.Producers, "producers", 2, "how many enqueue side by side")
	flags.IntVar(&f.Backlog, "backlog", 20_000, "how many jobs wait at most")
	noLimitFlag(flags, &f.noLimit)
	f.held.add(flags)
	flags.BoolVar(&f.compare, "compare", false, "measure first with nothing held open, for as long again, and without the limit")
}

// without is the same with nothing held open.
func (f steadyFlags) without() steadyFlags {
	f.held, f.noLimit = holdFlags{}, true
	return f
}

// check finds what can never be measured.
func (f *steadyFlags) check(db databaseFlags) error {
	err := atLeast(
		least{"engines", f.Engines, 1}, least{"slots", f.Slots, 0}, least{"batch", f.Batch, 1}, least{"producers", f.Producers, 1},
	)
	switch {
	case err != nil:
		return err
	case f.Duration < time.Millisecond || f.Duration > 24*time.Hour:
		return usagef("--duration: it is not between 1ms and 1d")
	case f.Every < time.Millisecond || f.Every > f.Duration:
		return usagef("--every: it is not between 1ms and the duration, %s", retry.FormatDuration(f.Duration))
	case f.Rate < 0 || math.IsNaN(f.Rate) || f.Rate > 10_000_000:
		return usagef("--rate: %v is not between 0 and 10000000 jobs per second", f.Rate)
	case f.Backlog < f.Batch:
		return usagef("--backlog: %d is less than the %d jobs of a batch (--batch)", f.Backlog, f.Batch)
	}
	if err := f.held.check(db); err != nil {
		return err
	}
	return f.held.checkCompare(f.compare)
}

// steady measures once, on a ground of its own.
func (a *app) steady(ctx context.Context, f steadyFlags, which string) (steadyReport, error) {
	return measure(ctx, a, func(ctx context.Context, g *ground) (r steadyReport, err error) {
		r.Settings = a.settings(ctx, g)
		f.tell(r.Settings)
		f.Meter, f.Open = &load.Meter{}, g.opener
		err = f.held.during(ctx, g, f.Engines, func(ctx context.Context) (err error) {
			begin := time.Now()
			done := a.showLine(func() string {
				return fmt.Sprintf("%s%.0f of %.0f s: enqueued %s, started %s", which,
					time.Since(begin).Seconds(), f.Duration.Seconds(), words.Count(f.Meter.Enqueued.Load()), words.Count(f.Meter.Started.Load()))
			})
			r.SteadyResult, err = load.Steady(ctx, g.roles, f.SteadyOptions)
			done()
			if err != nil || f.noLimit {
				return err
			}
			if r.Limit, err = a.limitBeside(ctx, g, r.Enqueued, f.Batch, f.Producers); err == nil {
				r.Ratio = r.over(evenly(r.Limit.JobsPerSecond, len(r.Intervals)))
			}
			return err
		})
		return r, err
	})
}

// tell adds to the settings what was asked for.
func (f *steadyFlags) tell(s settings) {
	s["duration"], s["rate"], s["backlog"] = retry.FormatDuration(f.Duration), f.Rate, f.Backlog
	s["engines"], s["slots"], s["batch"], s["producers"] = f.Engines, cmp.Or(f.Slots, engine.DefaultSlots()), f.Batch, f.Producers
	f.held.tell(s)
}
