package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin"
	"github.com/stint-go/stint/admin/guard"
	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/internal/pgload"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

const benchPagesLong = `Pages measures what the dashboard costs: how soon each of its pages answers, how
much of a processor the database spends on one page that somebody leaves open, and
how fast jobs are worked with some pages open, compared with none. Fill the database
beforehand with --before and --waiting: pages are to be quick however much there is.`

// pagesOptions say how to measure.
type pagesOptions struct {
	burnFlags
	rounds, tabs int
	watch        time.Duration
}

// pagesReport is what --json prints.
type pagesReport struct {
	Pages []pageTimes `json:"pages"`

	// Watching is how much of a processor the server spent on one open page;
	// absent where that cannot be read.
	Watching *float64 `json:"server_share_of_an_open_page,omitempty"`

	Without  load.BurnResult `json:"without"`
	With     load.BurnResult `json:"with"`
	Ratio    float64         `json:"work_ratio"`
	Settings settings        `json:"settings"`
}

// pageTimes are how long a page took.
type pageTimes struct {
	Page string `json:"page"`
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
		if err := atLeast(least{"rounds", o.rounds, 1}, least{"tabs", o.tabs, 1}); err != nil {
			return err
		}
		if o.watch < time.Second || o.watch > time.Hour {
			return usagef("--watch: it is not between 1s and 1h")
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
	durationFlag(flags, &o.watch, "watch", 30*time.Second, "for how long one page is open")
	o.Engines, o.Batch, o.Producers = 1, 5000, 2
	return cmd
}

// pages measures on a ground.
func (a *app) pages(ctx context.Context, g *ground, o pagesOptions) (r pagesReport, err error) {
	o.Open = g.opener
	r.Settings = a.settings(ctx, g)
	o.tell(r.Settings)
	r.Settings["rounds"], r.Settings["tabs"], r.Settings["watch"] = o.rounds, o.tabs, retry.FormatDuration(o.watch)
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
	if r.Without, err = load.Burn(ctx, g.roles, o.BurnOptions); err != nil {
		return r, err
	}
	r.With, err = board.during(ctx, o.tabs, func(ctx context.Context) (load.BurnResult, error) {
		return load.Burn(ctx, g.roles, o.BurnOptions)
	})
	r.Ratio = r.With.WorkPerSecond / r.Without.WorkPerSecond
	return r, err
}

// board is a dashboard that is served to nobody but this process.
type board struct {
	url    string
	server *http.Server
}

func serveBoard(store roles) (*board, error) {
	handler, err := admin.New(store, admin.Config{Guard: guard.Config{Stranger: guard.Admin}})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &board{"http://" + l.Addr().String(), &http.Server{Handler: handler, ReadHeaderTimeout: healthHeaders}}
	go func() { _ = b.server.Serve(l) }() // until it is closed
	return b, nil
}

func (b *board) close() { _ = b.server.Close() }

// get asks for a page.
func (b *board) get(ctx context.Context, path string) (time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, nil)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return 0, err
	}
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s answers %s", path, answer.Status)
	}
	return time.Since(began), nil
}

// times asks for every page, in turns.
func (b *board) times(ctx context.Context, store roles, rounds int) ([]pageTimes, error) {
	paths := []string{
		"/", "/jobs", "/jobs?state=available", "/jobs?state=completed", "/jobs?state=failed", "/jobs?state=scheduled", "/jobs?tag=none", "/jobs?error=none",
		"/queues", "/kinds", "/errors", "/schedules", "/engines", "/database", "/figures", "/changes",
	}
	newest, err := store.Find(ctx, stint.Filter{Limit: 1})
	if err != nil {
		return nil, err
	}
	for _, id := range newest {
		paths = append(paths, "/jobs/"+id.String())
	}
	took := map[string][]time.Duration{}
	for range rounds {
		for _, path := range paths {
			d, err := b.get(ctx, path)
			if err != nil {
				return nil, err
			}
			took[path] = append(took[path], d)
		}
	}
	var all []pageTimes
	for _, path := range paths {
		all = append(all, pageTimes{path, load.QuantilesOf(took[path])})
	}
	return all, nil
}

// watched tells how much of a processor the server spends on one open page.
func (g *ground) watched(ctx context.Context, b *board, span time.Duration) (*float64, error) {
	if !g.flags.isPostgres() {
		_, err := b.during(ctx, 1, func(ctx context.Context) (load.BurnResult, error) { return load.BurnResult{}, pass(ctx, span) })
		return nil, err
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
		if _, err := b.during(ctx, tabs, func(ctx context.Context) (load.BurnResult, error) { return load.BurnResult{}, pass(ctx, span) }); err != nil {
			return 0, false, err
		}
		after, err := probe.Read(ctx)
		u := after.Since(before)
		return u.CPU.Seconds() / span.Seconds(), u.CPUKnown, err
	}
	idle, known, err := spent(0)
	if err != nil || !known {
		return nil, err
	}
	open, _, err := spent(1)
	return new(max(0, open-idle)), err
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

// during does something while so many pages are open.
func (b *board) during(ctx context.Context, tabs int, do func(ctx context.Context) (load.BurnResult, error)) (load.BurnResult, error) {
	open, shut := context.WithCancel(ctx)
	var (
		all sync.WaitGroup
		mu  sync.Mutex
		bad []error
	)
	paths := []string{"/", "/jobs", "/queues", "/engines", "/jobs?state=running"}
	for i := range tabs {
		all.Go(func() {
			if err := b.tab(open, paths[i%len(paths)]); err != nil && open.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				bad = append(bad, err)
			}
		})
	}
	r, err := do(ctx)
	shut()
	all.Wait()
	return r, errors.Join(append(slices.Clip(bad), err)...)
}

// tabPause is how soon a page is fetched again behind the last time, as its script
// does.
const tabPause = 2 * time.Second

// tab does what a browser does with an open page, until its context ends: it
// listens to the page's events, and fetches the page again when it changed.
func (b *board) tab(ctx context.Context, path string) error {
	if _, err := b.get(ctx, path); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/events?"+url.Values{"page": {path}}.Encode(), nil)
	if err != nil {
		return err
	}
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		return fmt.Errorf("the events of %s answer %s", path, stream.Status)
	}
	fetched := time.Now()
	lines := bufio.NewScanner(stream.Body)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) != "event: change" {
			continue
		}
		if err := pass(ctx, time.Until(fetched.Add(tabPause))); err != nil {
			return nil
		}
		if _, err := b.get(ctx, path); err != nil {
			return err
		}
		fetched = time.Now()
	}
	return lines.Err()
}

func (a *app) printPages(r pagesReport) error {
	if a.json {
		return a.printJSON(r)
	}
	t := newTable(a.out, "page", "p50 ms", "p99 ms", "max ms")
	for _, p := range r.Pages {
		t.AppendRow([]any{p.Page, ms(p.P50), ms(p.P99), ms(p.Max)})
	}
	t.Render()
	if r.Watching != nil {
		fmt.Fprintf(a.out, "\none open page costs the server %.2f%% of a processor\n", 100**r.Watching)
	}
	fmt.Fprintf(a.out, "\nwork: %s jobs a second, with %v pages open %s: %.2f\n",
		words.Count(int64(r.Without.WorkPerSecond)), r.Settings["tabs"], words.Count(int64(r.With.WorkPerSecond)), r.Ratio)
	r.Settings.print(a.out)
	return nil
}
