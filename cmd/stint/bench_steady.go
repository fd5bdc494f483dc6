package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/retry"
)

const benchSteadyLong = `Steady enqueues jobs that do nothing, in bulk, while engines in this process work
them off, and tells how many in each interval: whether the speed lasts. Producers
wait when the backlog is full, so the slower side sets the pace.

With --pin-horizon a snapshot and an idle write transaction are held open from the
start, as a forgotten backup and a forgotten program would do: vacuum can remove
nothing then. With --compare the same is measured first without what is held open,
and each interval has its ratio beside it.`

// steadyReport is what --json prints.
type steadyReport struct {
	load.SteadyResult
	Without  *load.SteadyResult `json:"without,omitempty"` // the same with nothing held open
	Ratio    *steadyRatio       `json:"ratio,omitempty"`
	Settings settings           `json:"settings"`
}

// steadyRatio is the jobs worked per second against those of the run without,
// in the same seconds.
type steadyRatio struct {
	Worked    float64   `json:"worked"` // over the whole time
	First     float64   `json:"first"`
	Last      float64   `json:"last"`
	Median    float64   `json:"median"` // of the medians of both
	Intervals []float64 `json:"intervals"`
}

func (a *app) benchSteadyCommand() *cobra.Command {
	var o load.SteadyOptions
	var held holdFlags
	var compare bool
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "steady",
		Short:   "Measure whether the speed lasts while jobs keep coming",
		Long:    benchSteadyLong,
		Example: "  stint bench steady --pin-horizon --compare --duration 2m --db postgres:///app",
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		if err := checkSteady(o); err != nil {
			return err
		}
		if err := held.check(a.db); err != nil {
			return err
		}
		if err := held.checkCompare(compare); err != nil {
			return err
		}
		var report steadyReport
		if compare {
			without, _, err := a.steady(ctx, o, holdFlags{}, "with nothing held open, ")
			if err != nil {
				return err
			}
			report.Without = &without
		}
		var err error
		if report.SteadyResult, report.Settings, err = a.steady(ctx, o, held, ""); err != nil {
			return err
		}
		report.compare()
		return a.printSteady(report)
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	durationFlag(flags, &o.Duration, "duration", time.Minute, "for how long jobs are enqueued")
	durationFlag(flags, &o.Every, "every", 5*time.Second, "how long an interval is")
	flags.Float64Var(&o.Rate, "rate", 0, "jobs enqueued per second; 0 is as many as can be worked")
	flags.IntVar(&o.Engines, "engines", 1, "how many engines, each with connections of its own")
	flags.IntVar(&o.Slots, "slots", 0, "how many jobs each runs at once (default 4 for each processor)")
	flags.IntVar(&o.Batch, "batch", 1000, "how many jobs are enqueued at a time")
	flags.IntVar(&o.Producers, "producers", 2, "how many enqueue side by side")
	flags.IntVar(&o.Backlog, "backlog", 20_000, "how many jobs wait at most")
	held.add(flags)
	flags.BoolVar(&compare, "compare", false, "measure first with nothing held open, for as long again")
	return cmd
}

// checkSteady finds what can never be measured.
func checkSteady(o load.SteadyOptions) error {
	switch {
	case o.Duration < time.Millisecond || o.Duration > 24*time.Hour:
		return usagef("--duration: it is not between 1ms and 1d")
	case o.Every < time.Millisecond || o.Every > o.Duration:
		return usagef("--every: it is not between 1ms and the duration, %s", retry.FormatDuration(o.Duration))
	case o.Rate < 0 || math.IsNaN(o.Rate) || o.Rate > 10_000_000:
		return usagef("--rate: %v is not between 0 and 10000000 jobs per second", o.Rate)
	case o.Backlog < o.Batch:
		return usagef("--backlog: %d is less than the %d jobs of a batch (--batch)", o.Backlog, o.Batch)
	}
	return atLeast(
		least{"engines", o.Engines, 1}, least{"slots", o.Slots, 0}, least{"batch", o.Batch, 1}, least{"producers", o.Producers, 1},
	)
}

// steady measures once, on a ground of its own.
func (a *app) steady(ctx context.Context, o load.SteadyOptions, held holdFlags, which string) (r load.SteadyResult, s settings, err error) {
	err = a.measure(ctx, func(ctx context.Context, g *ground) error {
		o.Meter, o.Open = &load.Meter{}, g.opener
		s = a.settings(ctx, g)
		s["duration"], s["rate"], s["backlog"] = retry.FormatDuration(o.Duration), o.Rate, o.Backlog
		s["engines"], s["slots"], s["batch"], s["producers"] = o.Engines, cmp.Or(o.Slots, engine.DefaultSlots()), o.Batch, o.Producers
		held.tell(s)
		return held.during(ctx, g, o.Engines, func(ctx context.Context) (err error) {
			begin := time.Now()
			defer a.showLine(func() string {
				return fmt.Sprintf("%s%.0f of %.0f s: enqueued %s, started %s", which,
					time.Since(begin).Seconds(), o.Duration.Seconds(), count(o.Meter.Enqueued.Load()), count(o.Meter.Started.Load()))
			})()
			r, err = load.Steady(ctx, g.roles, o)
			return err
		})
	})
	return r, s, err
}

// compare works out the ratios when there is something to compare with.
func (r *steadyReport) compare() {
	if r.Without == nil {
		return
	}
	w := r.Without
	r.Ratio = &steadyRatio{
		Worked: ratio(r.WorkedPerSecond, w.WorkedPerSecond), First: ratio(r.First, w.First),
		Last: ratio(r.Last, w.Last), Median: ratio(r.Median, w.Median),
	}
	for i := range min(len(r.Intervals), len(w.Intervals)) {
		r.Ratio.Intervals = append(r.Ratio.Intervals, ratio(r.Intervals[i].WorkedPerSecond, w.Intervals[i].WorkedPerSecond))
	}
}

// ratio is 0 where there is nothing to compare with.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (a *app) printSteady(r steadyReport) error {
	if a.json {
		return a.printJSON(r)
	}
	head := []any{"seconds", "enqueued/s", "worked/s", "backlog", "longest wait ms"}
	if r.Without != nil {
		head = append(head, "without", "ratio")
	}
	t := newTable(a.out, head...)
	for i, x := range r.Intervals {
		row := []any{fmt.Sprintf("%.0f", x.At), count(int64(x.EnqueuedPerSecond)), count(int64(x.WorkedPerSecond)), count(x.Backlog), fmt.Sprintf("%.0f", x.LongestWait)}
		if r.Without != nil && i < len(r.Without.Intervals) {
			row = append(row, count(int64(r.Without.Intervals[i].WorkedPerSecond)), fmt.Sprintf("%.2f", r.Ratio.Intervals[i]))
		}
		t.AppendRow(row)
	}
	t.Render()
	fmt.Fprintln(a.out)
	a.printSteadySums(r)
	fmt.Fprintf(a.out, "\nall %s ended; the last of them %.1f s behind the last enqueue\n", counted(r.Enqueued, "job"), r.DrainSeconds)
	r.Settings.print(a.out)
	return nil
}

// printSteadySums shows the figures of the whole time.
func (a *app) printSteadySums(r steadyReport) {
	type row struct {
		name       string
		this, that float64
	}
	w := r.Without
	if w == nil {
		w = &load.SteadyResult{}
	}
	head := []any{"worked/s", ""}
	if r.Without != nil {
		head = append(head, "without", "ratio")
	}
	t := newTable(a.out, head...)
	for _, x := range []row{
		{"whole time", r.WorkedPerSecond, w.WorkedPerSecond}, {"first interval", r.First, w.First}, {"last interval", r.Last, w.Last},
		{"median interval", r.Median, w.Median}, {"least interval", r.Least, w.Least},
	} {
		cells := []any{x.name, count(int64(x.this))}
		if r.Without != nil {
			cells = append(cells, count(int64(x.that)), fmt.Sprintf("%.2f", ratio(x.this, x.that)))
		}
		t.AppendRow(cells)
	}
	t.Render()
}
