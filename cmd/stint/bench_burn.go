package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

const benchBurnLong = `Burn enqueues jobs that do nothing, in bulk, and then works them off with engines
in this process. The figures are the most that the engine can do here; history is
kept, and each job has been committed before it counts. Beside them stands what the
same database does by hand in the same run (stint bench limit), and, of a server,
what it spent on the jobs: on their whole life, and on whatever else it did.

With --work jobs take some time, and how well the slots were used is a figure. With
--one-by-one each claim takes one job, which is what engines do whose jobs take
long: 8 of them on one queue show what a claim costs. Neither is compared with the
limit, which is about something else.`

// burnFlags say how to burn.
type burnFlags struct {
	load.BurnOptions
	before, waiting int
	noLimit         bool
	held            holdFlags
	compare         bool
}

func (a *app) benchBurnCommand() *cobra.Command {
	var f burnFlags
	cmd := a.withJSON(a.onDatabase(&cobra.Command{
		Use:     "burn",
		Short:   "Measure how many jobs per second can be enqueued and worked",
		Long:    benchBurnLong,
		Example: "  stint bench burn -n 1000000 --db postgres:///app --engines 2",
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		if err := f.check(a.db); err != nil {
			return err
		}
		var without, report burnReport
		var err error
		if f.compare {
			if without, err = a.burn(ctx, f.without()); err != nil {
				return err
			}
		}
		if report, err = a.burn(ctx, f); err != nil {
			return err
		}
		if f.compare {
			without.Settings = nil // they are the same
			report.Without, report.WithoutRatio = &without, report.over(without.BurnResult)
		}
		return a.printBurn(report)
	}))
	f.add(cmd.Flags())
	return cmd
}

func (f *burnFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.IntVarP(&f.N, "jobs", "n", 100_000, "how many jobs")
	flags.IntVar(&f.Engines, "engines", 1, "how many engines, each with connections of its own")
	flags.IntVar(&f.Slots, "slots", 0, "how many jobs each runs at once (default 4 for each processor)")
	flags.IntVar(&f.Batch, "batch", 5000, "how many jobs are enqueued at a time")
	flags.IntVar(&f.Producers, "producers", 2, "how many enqueue side by side")
	durationFlag(flags, &f.Work, "work", 0, "how long each job takes (default no time)")
	flags.BoolVar(&f.OneByOne, "one-by-one", false, "claim one job at a time")
	flags.IntVar(&f.before, "before", 0, "how many jobs are worked off beforehand, unmeasured")
	flags.IntVar(&f.waiting, "waiting", 0, "how many jobs wait for next year meanwhile")
	noLimitFlag(flags, &f.noLimit)
	f.held.add(flags)
	flags.BoolVar(&f.compare, "compare", false, "measure first with nothing held open, and without the limit")
}

// without is the same with nothing held open.
func (f burnFlags) without() burnFlags {
	f.held, f.noLimit = holdFlags{}, true
	return f
}

// check finds what can never be measured.
func (f *burnFlags) check(db databaseFlags) error {
	err := atLeast(
		least{"jobs", f.N, 1}, least{"engines", f.Engines, 1}, least{"slots", f.Slots, 0}, least{"batch", f.Batch, 1},
		least{"producers", f.Producers, 1}, least{"before", f.before, 0}, least{"waiting", f.waiting, 0},
	)
	switch {
	case err != nil:
		return err
	case f.Work < 0 || f.Work > time.Hour:
		return usagef("--work: it is not between 0 and 1h")
	case f.OneByOne && f.Slots > 1:
		return usagef("--one-by-one is one job at a time: --slots %d is not for it, but --engines is", f.Slots)
	case f.OneByOne && f.Work > 0:
		return usagef("--one-by-one measures claims: --work is not for it")
	}
	if err := f.held.check(db); err != nil {
		return err
	}
	return f.held.checkCompare(f.compare)
}

// burn measures once, on a ground of its own.
func (a *app) burn(ctx context.Context, f burnFlags) (burnReport, error) {
	return measure(ctx, a, func(ctx context.Context, g *ground) (burnReport, error) { return a.burnOn(ctx, g, f) })
}

func (a *app) burnOn(ctx context.Context, g *ground, f burnFlags) (r burnReport, err error) {
	f.Open = g.opener
	r.Settings = a.settings(ctx, g)
	f.tell(r.Settings)
	if err := a.prepare(ctx, g, f); err != nil {
		return r, err
	}
	return r, f.held.during(ctx, g, f.Engines, func(ctx context.Context) (err error) {
		f.Around = func(ctx context.Context, run func(context.Context) error) (err error) {
			r.spent, err = g.spending(ctx, f.N, run)
			return err
		}
		f.Meter = &load.Meter{}
		done := a.showProgress(f.Meter, f.N)
		r.BurnResult, err = load.Burn(ctx, g.roles, f.BurnOptions)
		done()
		if err != nil || f.noLimit || f.OneByOne || f.Work > 0 {
			return err
		}
		if r.Limit, err = a.limit(ctx, g, f.N, f.Batch, f.Producers); err != nil {
			return err
		}
		r.Ratio = r.over(load.BurnResult{EnqueuePerSecond: r.Limit.EnqueuePerSecond, WorkPerSecond: r.Limit.WorkPerSecond})
		return nil
	})
}

// prepare fills the ground with what is to be there.
func (a *app) prepare(ctx context.Context, g *ground, f burnFlags) error {
	if f.before > 0 {
		m := &load.Meter{}
		defer a.showLine(func() string {
			return fmt.Sprintf("beforehand: enqueued %s, started %s of %s", words.Count(m.Enqueued.Load()), words.Count(m.Started.Load()), words.Count(f.before))
		})()
		if err := load.History(ctx, g.roles, f.before, m); err != nil {
			return err
		}
	}
	if f.waiting > 0 {
		m := &load.Meter{}
		defer a.showLine(func() string {
			return fmt.Sprintf("beforehand: %s of %s wait", words.Count(m.Enqueued.Load()), words.Count(f.waiting))
		})()
		return load.Waiting(ctx, g.roles, f.waiting, m)
	}
	return nil
}

// tell adds to the settings what was asked for.
func (f *burnFlags) tell(s settings) {
	s["engines"], s["slots"], s["batch"], s["producers"] = f.Engines, cmp.Or(f.Slots, engine.DefaultSlots()), f.Batch, f.Producers
	if f.OneByOne {
		s["slots"] = 1
	}
	s["jobs_before"], s["jobs_waiting"], s["one_by_one"] = f.before, f.waiting, f.OneByOne
	if f.Work > 0 {
		s["work"] = retry.FormatDuration(f.Work)
	}
	f.held.tell(s)
}
