package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
)

const demoLong = `Demo enqueues sample load: jobs that sleep, jobs that fail and succeed when they are
tried again, jobs that fail for good or while their handler is built, a few that eat
memory and a few that are due later. They are in the queue demo and have the tag demo.

Engines perform them when they were started with --demo, and only then: with --crash
there is a job among them that ends its engine's process, again and again, until it
has been lost as often as a job may be.

The kinds, for stint enqueue:

  demo.sleep          {"for": "2s"}
  demo.fail           {"message": "no paper", "times": 2}   0 times is always
  demo.fail_no_retry  {"message": "no such customer"}
  demo.exit           {"code": 1, "after": "2s"}            ends the engine's process
  demo.memory         {"mib": 64, "for": "2s", "leak": false}
  demo.build          {"how": "panic"}                      or "error"`

const demoExample = `  stint up --demo                in one terminal
  stint demo --jobs 200          in another
  stint jobs list --tag demo`

// demoReport is what --json prints.
type demoReport struct {
	Jobs  int            `json:"jobs"`
	Kinds map[string]int `json:"kinds"`
}

func (a *app) demoCommand() *cobra.Command {
	var (
		n            int
		crash, force bool
	)
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "demo",
		Short:   "Enqueue sample load",
		Long:    demoLong,
		Example: demoExample,
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		if n < 1 || n > 1_000_000 {
			return usagef("--jobs: %d is not between 1 and 1,000,000", n)
		}
		return a.demo(ctx, demoMix(n, crash), force)
	}))
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&n, "jobs", "n", 50, "how many jobs")
	flags.BoolVar(&crash, "crash", false, "have one job end its engine's process")
	flags.BoolVar(&force, "force", false, "enqueue on a shared database even if no engine ever declared the demo kinds")
	return cmd
}

// demoBatch is how many jobs are enqueued at a time: as many as a server takes.
const demoBatch = 10_000

// demo enqueues jobs and says what they are.
func (a *app) demo(ctx context.Context, jobs []stint.NewJob, force bool) error {
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
	if a.shared() && !force {
		known, err := db.Kinds(ctx)
		if err != nil {
			return err
		}
		if err := knows(known, jobs[0].Kind); err != nil {
			return withHint(err, "engines know the demo kinds when they are started by: stint work --demo (or give --force)")
		}
	}
	for some := range slices.Chunk(jobs, demoBatch) {
		if _, err := stint.NewClient(db).EnqueueMany(ctx, some); err != nil {
			return err
		}
	}
	if created {
		a.note("created %s", a.db.url)
	}
	report := demoReport{Jobs: len(jobs), Kinds: map[string]int{}}
	for _, j := range jobs {
		report.Kinds[j.Kind]++
	}
	if a.json {
		return a.printJSON(report)
	}
	t := newTable(a.out, "kind", "jobs")
	for _, d := range demoDeclarations() {
		if n := report.Kinds[d.Name]; n > 0 {
			t.AppendRow([]any{d.Name, count(n)})
		}
	}
	t.Render()
	engines, err := db.Engines(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(engines, func(e stint.EngineInfo) bool { return e.Performs(jobs[0].Kind) }) {
		a.note("no engine is running that performs them: %s", a.startOne("stint work --demo"))
	}
	return nil
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
