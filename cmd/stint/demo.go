package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

const demoLong = `Demo enqueues sample load, until it is interrupted or --for is over: what happens in a
shop. Orders lead to charges, invoices and mails; thumbnails, webhooks and reports are
made; newsletters come all at once; some jobs are due later, some fail and succeed when
they are tried again, some fail for good. Two schedules belong to it, which are removed
at its end. With --seed the same happens again.

With --jobs it enqueues so many jobs at once that do what real ones do on a bad day,
and is done: they sleep, fail, or eat memory.

All of them have the tag demo, and queues whose names begin so. Engines perform them
when they were started with --demo, and only then: with --crash there is a job among
them that ends its engine's process, again and again, until it has been lost as often
as a job may be.

The kinds, for stint enqueue:

  demo.sleep          {"for": "2s"}
  demo.fail           {"message": "no paper", "times": 2}   0 times is always
  demo.fail_no_retry  {"message": "no such customer"}
  demo.exit           {"code": 1, "after": "2s"}            ends the engine's process
  demo.memory         {"mib": 64, "for": "2s", "leak": false}
  demo.build          {"how": "panic"}                      or "error"

and those of the shop, for which the arguments decide: demo.order, demo.charge,
demo.invoice, demo.mail, demo.newsletter, demo.thumbnail, demo.webhook, demo.report,
demo.cleanup.`

const demoExample = `  stint up --demo                in one terminal
  stint demo                     in another: load until Ctrl-C
  stint demo --rate 20 --for 10m --seed 7
  stint demo --jobs 200
  stint jobs list --tag demo`

// demoReport is what --json prints.
type demoReport struct {
	Jobs  int            `json:"jobs"`
	Kinds map[string]int `json:"kinds"`
}

func (r *demoReport) add(jobs []stint.NewJob) {
	r.Jobs += len(jobs)
	for _, j := range jobs {
		r.Kinds[j.Kind]++
	}
}

// demoFlags say what is enqueued.
type demoFlags struct {
	jobs  int
	crash bool
	force bool

	span time.Duration // 0 goes on until it is interrupted
	rate float64
	seed uint64
}

func (a *app) demoCommand() *cobra.Command {
	var f demoFlags
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "demo",
		Short:   "Enqueue sample load",
		Long:    demoLong,
		Example: demoExample,
		Args:    arguments(0),
	}, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		given := cmd.Flags().Changed
		switch {
		case given("jobs") && (given("for") || given("rate") || given("seed")):
			return usagef("--jobs is done at once: --for, --rate and --seed are for load that goes on")
		case given("jobs") && (f.jobs < 1 || f.jobs > 1_000_000):
			return usagef("--jobs: %d is not between 1 and 1,000,000", f.jobs)
		case !(f.rate >= 0.1 && f.rate <= 1000):
			return usagef("--rate: %v is not between 0.1 and 1000", f.rate)
		case given("for") && f.span <= 0:
			return usagef("--for: it is over before it begins")
		case given("jobs"):
			return a.demo(ctx, f.force, func(ctx context.Context, db *database, report *demoReport) error {
				return enqueueDemo(ctx, db, report, demoMix(f.jobs, f.crash))
			})
		case !given("seed"):
			f.seed = rand.Uint64()
		}
		return a.demo(ctx, f.force, func(ctx context.Context, db *database, report *demoReport) error {
			return a.demoShop(ctx, db, report, f)
		})
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&f.jobs, "jobs", "n", 0, "enqueue so many jobs at once, and be done (default load that goes on)")
	durationFlag(flags, &f.span, "for", 0, "for how long to go on (default until Ctrl-C)")
	flags.Float64Var(&f.rate, "rate", 5, "how many jobs a second on average, without those that come from them")
	flags.Uint64Var(&f.seed, "seed", 0, "what chance begins with (default another number each time)")
	flags.BoolVar(&f.crash, "crash", false, "have one job end its engine's process")
	flags.BoolVar(&f.force, "force", false, "enqueue on a shared database even if no engine ever declared the demo kinds")
	return cmd
}

// demoBatch is how many jobs are enqueued at a time: as many as a server takes.
const demoBatch = 10_000

// demo opens the database, has jobs enqueued, and says what they are.
func (a *app) demo(ctx context.Context, force bool, enqueue func(context.Context, *database, *demoReport) error) error {
	how := creating
	if a.shared() && !force {
		how = looking
	}
	created := a.absent()
	db, err := a.open(ctx, how)
	if err != nil {
		return err
	}
	defer db.Close()
	const one = "demo.sleep" // which whoever performs demo kinds does
	if a.shared() && !force {
		known, err := db.Kinds(ctx)
		if err != nil {
			return err
		}
		if err := knows(known, one); err != nil {
			return withHint(err, "engines know the demo kinds when they are started by: stint work --demo (or give --force)")
		}
	}
	if created {
		a.note("created %s", a.db.url)
	}
	engines, err := db.Engines(ctx)
	if err != nil {
		return err
	}
	if !a.json && !slices.ContainsFunc(engines, func(e stint.EngineInfo) bool { return e.Performs(one) }) {
		a.note("no engine is running that performs them: %s", a.startOne("stint work --demo"))
	}
	report := demoReport{Kinds: map[string]int{}}
	if err := enqueue(ctx, db, &report); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report)
	}
	t := newTable(a.out, "kind", "jobs")
	for _, d := range demoDeclarations() {
		if n := report.Kinds[d.Name]; n > 0 {
			t.AppendRow([]any{d.Name, words.Count(n)})
		}
	}
	t.Render()
	return nil
}

func enqueueDemo(ctx context.Context, db *database, report *demoReport, jobs []stint.NewJob) error {
	for some := range slices.Chunk(jobs, demoBatch) {
		if _, err := stint.NewClient(db).EnqueueMany(ctx, some); err != nil {
			return err
		}
		report.add(some)
	}
	return nil
}

// longestDemo is for how long the schedules go on of a demo that was killed.
const longestDemo = 24 * time.Hour

// demoShop enqueues what happens in a shop until it is interrupted, or time is
// over.
func (a *app) demoShop(ctx context.Context, db *database, report *demoReport, f demoFlags) error {
	running, release := interrupted(ctx)
	defer release()
	if f.span > 0 {
		limited, cancel := context.WithTimeout(running, f.span)
		defer cancel()
		running = limited
	}
	schedules := shopSchedules(time.Now().Add(cmp.Or(f.span, longestDemo)))
	for _, s := range schedules {
		if err := db.Declare(ctx, whoami(), s); err != nil {
			return err
		}
	}
	if !a.json {
		a.note("enqueuing about %v jobs a second %s", f.rate, untilWhen(f.span))
	}
	err := a.shopOpen(running, db, report, newShopLoad(f.rate, f.seed), f.crash)
	for _, s := range schedules {
		if _, removed := db.RemoveSchedule(ctx, s.Name, "stint demo has ended"); err == nil {
			err = removed
		}
	}
	return err
}

func untilWhen(span time.Duration) string {
	if span > 0 {
		return "for " + retry.FormatDuration(span)
	}
	return "until Ctrl-C"
}

// shopOpen enqueues with each beat until the context ends.
func (a *app) shopOpen(ctx context.Context, db *database, report *demoReport, load *shopLoad, crash bool) error {
	beat := time.NewTicker(shopBeat)
	defer beat.Stop()
	for {
		jobs := load.next()
		if crash {
			jobs, crash = append(jobs, demoJob("demo.exit", `{"after": "2s"}`)), false
		}
		// What was begun is ended: only between two beats is it interrupted.
		if err := enqueueDemo(context.WithoutCancel(ctx), db, report, jobs); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-beat.C:
		}
	}
}

// demoMix is the sample load: every ten jobs are alike.
func demoMix(n int, crash bool) []stint.NewJob {
	jobs := make([]stint.NewJob, 0, n+1)
	for i := range n {
		switch i % 10 {
		case 0, 1, 2, 3:
			jobs = append(jobs, demoJob("demo.sleep", fmt.Sprintf(`{"for": "%dms"}`, 50+i*37%400)))
		case 4:
			jobs = append(jobs, demoJob("demo.sleep", `{"for": "200ms"}`, stint.In(time.Duration(3+i%7)*time.Second)))
		case 5:
			jobs = append(jobs, demoJob("demo.fail", `{"message": "the printer is out of paper", "times": 1}`))
		case 6:
			jobs = append(jobs, demoJob("demo.fail", `{"message": "the printer is on fire"}`))
		case 7:
			jobs = append(jobs, demoJob("demo.fail_no_retry", `{"message": "there is no such printer"}`))
		case 8:
			how := []string{"error", "panic"}[i/10%2]
			jobs = append(jobs, demoJob("demo.build", fmt.Sprintf(`{"how": %q}`, how)))
		case 9:
			jobs = append(jobs, demoJob("demo.memory", `{"mib": 16, "for": "500ms"}`))
		}
	}
	if crash {
		jobs = append(jobs, demoJob("demo.exit", `{"after": "2s"}`))
	}
	return jobs
}

func demoJob(kind, args string, opts ...stint.Option) stint.NewJob {
	return demoDeclaration(kind).Job(json.RawMessage(args), opts...)
}
