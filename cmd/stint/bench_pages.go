package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/internal/pgload"
	"github.com/stint-go/stint/retry"
)

const benchPagesLong = `Pages measures what the dashboard costs: how soon each of its pages answers, how
much of a processor the database spends on one page that somebody leaves open, and
how fast jobs are worked with some pages open, compared with none. Fill the database
beforehand with --before and --waiting: pages are to be quick however much there is.`

// pagesOptions say how to measure.
type pagesOptions struct {
	burnFlags
	rounds, tabs, pairs int
	watch               time.Duration
}

// pagesReport is what --json prints.
type pagesReport struct {
	Pages []pageTimes `json:"pages"`

	// Watching is how much of a processor the server spends on one open page;
	// absent where that cannot be read.
	Watching *load.Median `json:"server_share_of_an_open_page,omitempty"`

	Turns    []turns    `json:"turns"`
	Compared []compared `json:"compared"`
	Late     int64      `json:"late"` // how often an open page could not be made in time
	Settings settings   `json:"settings"`
}

// turns are a burn without and one with pages open.
type turns struct {
	Without turn `json:"without"`
	With    turn `json:"with"`
}

// turn is a burn, and what a server spent on it.
type turn struct {
	load.BurnResult
	*spent
}

// compared is a figure of burns without and with pages open, in the median, and
// the ratio of each two that followed each other.
type compared struct {
	Figure  string      `json:"figure"`
	Without float64     `json:"without"`
	With    float64     `json:"with"`
	Ratio   load.Median `json:"ratio"`
}

// pageTimes are how long a page took.
type pageTimes struct {
	Page string `json:"page"`
	Late int    `json:"late,omitempty"` // how often it could not be made in time
	load.Quantiles
}

func (a *app) benchPagesCommand() *cobra.Command {
	var o pagesOptions
	cmd := a.withJSON(a.onDatabase(&cobra.Command{
		Use:     "pages",
		Short:   "Measure what the dashboard costs",
		Long:    benchPagesLong,
		Example: "  stint bench pages --before 10000000 --waiting 1000000 --db postgres:///app",
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		if err := atLeast(least{"rounds", o.rounds, 1}, least{"tabs", o.tabs, 1}, least{"pairs", o.pairs, 1}); err != nil {
			return err
		}
		if o.watch < 100*time.Millisecond || o.watch > time.Hour {
			return usagef("--watch: it is not between 100ms and 1h")
		}
		if err := o.check(a.db); err != nil {
			return err
		}
		report, err := measure(ctx, a, func(ctx context.Context, g *ground) (pagesReport, error) { return a.pages(ctx, g, o) })
		if err != nil {
			return err
		}
		return a.printPages(report)
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&o.N, "jobs", "n", 1_000_000, "how many jobs are worked with and without pages open")
	flags.IntVar(&o.before, "before", 0, "how many jobs are worked off beforehand")
	flags.IntVar(&o.waiting, "waiting", 0, "how many jobs wait for next year meanwhile")
	flags.IntVar(&o.rounds, "rounds", 21, "how often each page is asked for")
	flags.IntVar(&o.tabs, "tabs", 10, "how many pages are open while jobs are worked")
	flags.IntVar(&o.pairs, "pairs", 6, "how often each is done, in turns")
	durationFlag(flags, &o.watch, "watch", 30*time.Second, "for how long one page is open, and none, six times")
	o.Engines, o.Batch, o.Producers = 1, 5000, 2
	return cmd
}

// pages measures on a ground.
func (a *app) pages(ctx context.Context, g *ground, o pagesOptions) (r pagesReport, err error) {
	o.Open = g.opener
	r.Settings = a.settings(ctx, g)
	o.tell(r.Settings)
	r.Settings["rounds"], r.Settings["tabs"], r.Settings["watch"] = o.rounds, o.tabs, retry.FormatDuration(o.watch)
	r.Settings["pairs"] = o.pairs
	if err := a.prepare(ctx, g, o.burnFlags); err != nil {
		return r, err
	}
	for more := true; more; { // as engines do
		if more, err = g.roles.SumUp(ctx); err != nil {
			return r, err
		}
	}
	board, err := serveBoard(g.roles)
	if err != nil {
		return r, err
	}
	defer board.close()
	if r.Pages, err = board.times(ctx, g.roles, o.rounds); err != nil {
		return r, err
	}
	if r.Watching, err = g.watched(ctx, board, o.watch); err != nil {
		return r, err
	}
	if r.Turns, err = a.turns(ctx, g, board, o); err != nil {
		return r, err
	}
	r.Compared, r.Late = compare(r.Turns), board.late.Load()
	return r, nil
}

// turns burns without and with pages open, in turns: every second time with first.
func (a *app) turns(ctx context.Context, g *ground, b *board, o pagesOptions) ([]turns, error) {
	o.Meter = &load.Meter{}
	defer a.showProgress(o.Meter, 2*o.pairs*o.N)()
	all := make([]turns, o.pairs)
	var order []*turn
	var burns []load.BurnOptions
	add := func(t *turn, tabs int) {
		one := o.BurnOptions
		one.Around = func(ctx context.Context, run func(context.Context) error) error {
			return b.during(ctx, tabs, func(ctx context.Context) (err error) {
				t.spent, err = g.spending(ctx, o.N, run)
				return err
			})
		}
		order, burns = append(order, t), append(burns, one)
	}
	for i := range all {
		if i%2 == 0 {
			add(&all[i].Without, 0)
		}
		add(&all[i].With, o.tabs)
		if i%2 == 1 {
			add(&all[i].Without, 0)
		}
	}
	results, err := load.Burns(ctx, g.roles, burns...)
	for i, t := range order {
		t.BurnResult = results[i]
	}
	return all, err
}

// compare makes figures of turns.
func compare(all []turns) (list []compared) {
	add := func(name string, figure func(turn) float64) {
		var without, with, ratios []float64
		for _, t := range all {
			a, b := figure(t.Without), figure(t.With)
			without, with, ratios = append(without, a), append(with, b), append(ratios, b/a)
		}
		list = append(list, compared{name, load.MedianOf(without).Value, load.MedianOf(with).Value, load.MedianOf(ratios)})
	}
	add("enqueued and worked, per second", func(t turn) float64 { return float64(t.N) / (t.EnqueueSeconds + t.WorkSeconds) })
	add("enqueued, per second", func(t turn) float64 { return t.EnqueuePerSecond })
	add("worked, per second", func(t turn) float64 { return t.WorkPerSecond })
	if !slices.ContainsFunc(all, func(t turns) bool { return !t.Without.knowsCPU() || !t.With.knowsCPU() }) {
		add("server CPU, seconds per million jobs", func(t turn) float64 { return *t.CPUPerMillion })
	}
	return list
}

// knowsCPU reports whether the server's processor time could be read.
func (t turn) knowsCPU() bool { return t.spent != nil && t.CPUPerMillion != nil }

// watches is how often one open page is compared with none: what the server does by
// itself meanwhile, such as a vacuum, is more than what either costs. Of six the
// median is known to lie between the least and the most.
const watches = 6

// watched tells how much of a processor the server spends on one open page.
func (g *ground) watched(ctx context.Context, b *board, span time.Duration) (*load.Median, error) {
	if !g.flags.isPostgres() {
		return nil, b.during(ctx, 1, func(ctx context.Context) error { return pass(ctx, span) })
	}
	probe, err := pgload.NewProbe(ctx, g.flags.withDefaults())
	if err != nil {
		return nil, err
	}
	defer probe.Close()
	spent := func(tabs int) (float64, bool, error) {
		before, err := probe.Read(ctx)
		if err != nil {
			return 0, false, err
		}
		if err := b.during(ctx, tabs, func(ctx context.Context) error { return pass(ctx, span) }); err != nil {
			return 0, false, err
		}
		after, err := probe.Read(ctx)
		u := after.Since(before)
		return u.CPU.Seconds() / span.Seconds(), u.CPUKnown, err
	}
	var all []float64
	for range watches {
		idle, known, err := spent(0)
		if err != nil || !known {
			return nil, err
		}
		open, _, err := spent(1)
		if err != nil {
			return nil, err
		}
		all = append(all, open-idle)
	}
	return new(load.MedianOf(all)), nil
}

// pass lets time pass.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (a *app) printPages(r pagesReport) error {
	if a.json {
		return a.printJSON(r)
	}
	t := newTable(a.out, "page", "p50 ms", "p99 ms", "max ms", "late")
	for _, p := range r.Pages {
		t.AppendRow([]any{p.Page, ms(p.P50), ms(p.P99), ms(p.Max), p.Late})
	}
	t.Render()
	if r.Watching != nil {
		fmt.Fprintf(a.out, "\none open page costs the server %.2f%% of a processor in the median of %d, which lies between %.2f%% and %.2f%%\n",
			100*r.Watching.Value, watches, 100*r.Watching.Low, 100*r.Watching.High)
	}
	fmt.Fprintln(a.out)
	t = newTable(a.out, fmt.Sprintf("medians of %d", len(r.Turns)), "without", fmt.Sprintf("with %v pages open", r.Settings["tabs"]), "ratio", "95% interval")
	for _, c := range r.Compared {
		between := "" // too few turns to tell
		if c.Ratio.High > 0 {
			between = fmt.Sprintf("%.2f–%.2f", c.Ratio.Low, c.Ratio.High)
		}
		digits := 0
		if c.Without < 1000 {
			digits = 2
		}
		t.AppendRow([]any{c.Figure, fmt.Sprintf("%.*f", digits, c.Without), fmt.Sprintf("%.*f", digits, c.With), fmt.Sprintf("%.2f", c.Ratio.Value), between})
	}
	t.Render()
	if r.Late > 0 {
		fmt.Fprintf(a.out, "open pages that could not be made in time: %d\n", r.Late)
	}
	r.Settings.print(a.out)
	return nil
}
