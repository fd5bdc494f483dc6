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
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

const benchMixLong = `Mix enqueues jobs as programs have them while engines in this process work: three
queues, three priorities, some attempts that fail and are tried again, some jobs
that are scheduled, and each job with work and arguments of its own size. A handler
sleeps for as long as its work takes. Producers keep a backlog, and wait when it is
full. At the end the database is asked whether every job ended as it was to, in as
many attempts. The same seed draws the same jobs.

Beside the jobs per second stands what the same database takes in and works off by
hand in the same run, of jobs without arguments (stint bench limit): how far handlers
and their slots are from being held up by it.`

// The bounds of what a mix draws from.
const (
	leastArgs, mostArgs = 100, 1 << 20
	mostAhead           = 24 * time.Hour
)

// mixReport is what --json prints.
type mixReport struct {
	load.MixResult
	Limit    *limitReport `json:"limit,omitempty"`
	Ratio    float64      `json:"ratio,omitempty"` // of the jobs per second to the limit's
	Settings settings     `json:"settings"`
}

// mixFlags are what a mix is made of, as people say it.
type mixFlags struct {
	o                  load.MixOptions
	failing, scheduled float64 // percent
	work               pollValue
	args               sizesValue
	noLimit            bool
}

func (a *app) benchMixCommand() *cobra.Command {
	f := mixFlags{work: pollValue{from: time.Millisecond, to: 50 * time.Millisecond}, args: sizesValue{100, 4096}}
	cmd := a.withJSON(a.onDatabase(&cobra.Command{
		Use:     "mix",
		Short:   "Measure jobs as programs have them, and check that each ended",
		Long:    benchMixLong,
		Example: "  stint bench mix -n 50000 --engines 2 --slots 50 --db postgres:///app",
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		o, err := f.options()
		if err != nil {
			return err
		}
		report, err := measure(ctx, a, func(ctx context.Context, g *ground) (r mixReport, err error) {
			o.Meter, o.Open = &load.Meter{}, g.opener
			r.Settings = a.settings(ctx, g)
			f.tell(r.Settings)
			done := a.showProgress(o.Meter, o.N)
			r.MixResult, err = load.Mix(ctx, g.roles, o)
			done()
			if err != nil || f.noLimit {
				return r, err
			}
			if r.Limit, err = a.limitBeside(ctx, g, int64(o.N), limitBatch, limitProducers); err == nil {
				r.Ratio = ratio(r.JobsPerSecond, r.Limit.JobsPerSecond)
			}
			return r, err
		})
		if err != nil {
			return err
		}
		return a.printMix(report)
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&f.o.N, "jobs", "n", 20_000, "how many jobs")
	flags.Uint64Var(&f.o.Seed, "seed", 1, "what is drawn depends on it alone")
	flags.IntVar(&f.o.Engines, "engines", 1, "how many engines, each with connections of its own")
	flags.IntVar(&f.o.Slots, "slots", 0, "how many jobs each runs at once (default 4 for each processor)")
	flags.IntVar(&f.o.Producers, "producers", 2, "how many enqueue side by side")
	flags.IntVar(&f.o.Backlog, "backlog", 0, "how many jobs are kept waiting (default 4 for each slot)")
	flags.Float64Var(&f.failing, "failing", 5, "percent of attempts that fail")
	flags.Float64Var(&f.scheduled, "scheduled", 10, "percent of jobs that are scheduled")
	durationFlag(flags, &f.o.Ahead, "ahead", 5*time.Second, "how far ahead they are scheduled at most")
	flags.Var(&f.work, "work", "how long a job takes, or from..to")
	flags.Var(&f.args, "args", "bytes of arguments, or from..to")
	noLimitFlag(flags, &f.noLimit)
	return cmd
}

// options checks what was said.
func (f *mixFlags) options() (load.MixOptions, error) {
	o := f.o
	for _, p := range []struct {
		name  string
		value float64
	}{{"failing", f.failing}, {"scheduled", f.scheduled}} {
		if math.IsNaN(p.value) || p.value < 0 || p.value > 100 {
			return o, usagef("--%s: %v is not between 0 and 100 percent", p.name, p.value)
		}
	}
	if o.Ahead < time.Millisecond || o.Ahead > mostAhead {
		return o, usagef("--ahead: it is not between 1ms and 1d")
	}
	o.Failing, o.Scheduled = f.failing/100, f.scheduled/100
	o.Work = load.Range[time.Duration]{From: cmp.Or(f.work.every, f.work.from), To: cmp.Or(f.work.every, f.work.to)}
	o.Args = load.Range[int]{From: f.args.from, To: f.args.to}
	return o, atLeast(
		least{"jobs", o.N, 1}, least{"engines", o.Engines, 1}, least{"slots", o.Slots, 0}, least{"producers", o.Producers, 1}, least{"backlog", o.Backlog, 0},
	)
}

// tell adds to the settings what the mix is made of.
func (f *mixFlags) tell(s settings) {
	slots := cmp.Or(f.o.Slots, engine.DefaultSlots())
	s["jobs"], s["seed"], s["engines"], s["slots"], s["producers"] = f.o.N, f.o.Seed, f.o.Engines, slots, f.o.Producers
	s["backlog"] = cmp.Or(f.o.Backlog, 4*f.o.Engines*slots)
	s["failing_percent"], s["scheduled_percent"], s["ahead"] = f.failing, f.scheduled, retry.FormatDuration(f.o.Ahead)
	s["work"], s["args_bytes"] = f.work.String(), f.args.String()
}

func (a *app) printMix(r mixReport) error {
	if a.json {
		return a.printJSON(r)
	}
	t := newTable(a.out)
	used := "the backlog was never full"
	if r.Utilization > 0 {
		used = fmt.Sprintf("%.1f%%", 100*r.Utilization)
	}
	for _, row := range [][]any{
		{"jobs/s", words.Count(int64(r.JobsPerSecond))}, {"seconds", fmt.Sprintf("%.2f", r.Seconds)},
		{"completed", words.Count(r.Completed)}, {"failed for good", words.Count(r.Failed)},
		{"attempts", words.Count(r.Attempts)}, {"retries", words.Count(r.Retries)}, {"slots in use", used},
	} {
		t.AppendRow(row)
	}
	t.Render()
	fmt.Fprintln(a.out)
	t = newTable(a.out, "due to start, ms", "jobs", "p50", "p95", "p99", "max")
	for _, p := range r.Start {
		t.AppendRow([]any{fmt.Sprintf("priority %d", p.Priority), words.Count(p.N), ms(p.P50), ms(p.P95), ms(p.P99), ms(p.Max)})
	}
	if q := r.Lateness; q.N > 0 {
		t.AppendRow([]any{"scheduled", words.Count(q.N), ms(q.P50), ms(q.P95), ms(q.P99), ms(q.Max)})
	}
	t.Render()
	if l := r.Limit; l != nil {
		fmt.Fprintf(a.out, "\nthe limit takes in and works off %s jobs/s; this is %.4f of it\n", words.Count(int64(l.JobsPerSecond)), r.Ratio)
	}
	fmt.Fprintf(a.out, "\nall %s ended as they were to\n", words.Counted(r.N, "job"))
	r.Settings.print(a.out)
	return nil
}
