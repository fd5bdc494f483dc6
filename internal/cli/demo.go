package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

const demoHelp = `demo: Enqueue sample load

Demo enqueues the jobs of a shop, until it is interrupted or --for is over. Orders lead
to charges, invoices and mails; thumbnails, webhooks and reports are made; newsletters
come all at once; some jobs are due later, some fail and succeed when they are tried
again, some fail for good. It adds two schedules, and removes them at its end. The same
--seed makes the same jobs.

With --jobs it enqueues that many jobs at once, and ends. They do what real jobs do on a
bad day: they sleep, fail, or use memory.

All jobs have the tag demo, and queues whose names begin with demo. Only engines that
were started with --demo perform them. With --crash one job ends its engine's process,
again and again, until it has been lost as often as a job may be.

The kinds, for stint enqueue:

  demo.sleep          {"for": "2s"}
  demo.fail           {"message": "no paper", "times": 2}   0 times is always
  demo.fail_no_retry  {"message": "no such customer"}
  demo.exit           {"code": 1, "after": "2s"}            ends the engine's process
  demo.memory         {"mib": 64, "for": "2s", "leak": false}
  demo.build          {"how": "panic"}                      or "error"

and those of the shop, for which the arguments decide: demo.order, demo.charge,
demo.invoice, demo.mail, demo.newsletter, demo.thumbnail, demo.webhook, demo.report,
demo.cleanup.

Examples:
  stint up --demo                in one terminal
  stint demo                     in another: load until Ctrl-C
  stint demo --rate 20 --for 10m --seed 7
  stint demo --jobs 200
  stint jobs list --tag demo`

type demo struct {
	jobs  int           // to enqueue at once; 0 is the load of a shop
	span  time.Duration // of the load; 0 is until it is interrupted
	rate  float64
	seed  uint64
	crash bool
	force bool

	enqueued map[string]int // by kind
}

func (a *app) demoCommand() *cobra.Command {
	d := demo{enqueued: map[string]int{}}
	cmd := a.withJSON(a.does(page(demoHelp), func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		given := cmd.Flags().Changed
		switch {
		case given("jobs") && (given("for") || given("rate") || given("seed")):
			return usagef("--jobs is done at once: --for, --rate and --seed are for load that goes on")
		case given("jobs") && (d.jobs < 1 || d.jobs > 1_000_000):
			return usagef("--jobs: %d is not between 1 and 1,000,000", d.jobs)
		case !(d.rate >= 0.1 && d.rate <= 1000):
			return usagef("--rate: %v is not between 0.1 and 1000", d.rate)
		case given("for") && d.span <= 0:
			return usagef("--for: it ends before it begins")
		case !given("seed"):
			d.seed = rand.Uint64()
		}
		return a.demo(ctx, &d)
	}))
	flags := cmd.Flags()
	flags.IntVarP(&d.jobs, "jobs", "n", 0, "enqueue so many jobs at once, and be done (default load that goes on)")
	durationFlag(flags, &d.span, "for", 0, "for how long to go on (default until Ctrl-C)")
	flags.Float64Var(&d.rate, "rate", 5, "how many jobs a second on average, without those that come from them")
	flags.Uint64Var(&d.seed, "seed", 0, "the seed of chance (default a new one each time)")
	flags.BoolVar(&d.crash, "crash", false, "let one job end its engine's process")
	flags.BoolVar(&d.force, "force", false, "enqueue on a shared database even if no engine ever declared the demo kinds")
	return cmd
}

// demo opens the database, enqueues, and prints what was enqueued.
func (a *app) demo(ctx context.Context, d *demo) error {
	const one = "demo.sleep" // every engine with --demo performs it
	return a.accept(ctx, one, nil, d.force || !a.shared(), nil, func(db *database, _ stint.NewJob) error {
		engines, err := db.Engines(ctx)
		if err != nil {
			return err
		}
		if !a.json && !slices.ContainsFunc(engines, func(e store.EngineInfo) bool { return e.Performs(one) }) {
			a.note("no running engine handles them: %s", a.startOne("stint work --demo"))
		}
		if d.jobs > 0 {
			err = d.enqueue(ctx, db, demoMix(d.jobs), d.crash)
		} else {
			err = a.demoShop(ctx, db, d)
		}
		if err != nil {
			return err
		}
		return a.printDemo(d.enqueued)
	})
}

func (a *app) printDemo(enqueued map[string]int) error {
	sum := 0
	t := newTable(a.out, "kind", "jobs")
	for _, k := range demoKinds {
		if n := enqueued[k.Name]; n > 0 {
			t.AppendRow([]any{k.Name, words.Count(n)})
			sum += n
		}
	}
	if a.json {
		return a.printJSON(map[string]any{"jobs": sum, "kinds": enqueued})
	}
	t.Render()
	return nil
}

// enqueue enqueues jobs, and one that ends its engine's process if that is asked for.
func (d *demo) enqueue(ctx context.Context, db *database, jobs []stint.NewJob, crash bool) error {
	if crash {
		jobs = append(jobs, demoJob("demo.exit", demoArgs{After: httpjob.Duration(2 * time.Second)}))
	}
	for some := range slices.Chunk(jobs, 10_000) { // a server takes no more at a time
		if _, err := stint.NewClient(db).EnqueueMany(ctx, some); err != nil {
			return err
		}
		for _, j := range some {
			d.enqueued[j.Kind]++
		}
	}
	return nil
}

// demoMix is the load of --jobs: every ten jobs are alike.
func demoMix(n int) (jobs []stint.NewJob) {
	for i := range n {
		kind, args, opts := "demo.sleep", demoArgs{}, []stint.Option(nil)
		switch i % 10 {
		default:
			args.For = httpjob.Duration(time.Duration(50+i*37%400) * ms)
		case 4:
			opts = append(opts, stint.Delay(time.Duration(3+i%7)*time.Second))
		case 5:
			kind, args = "demo.fail", demoArgs{Message: "the printer is out of paper", Times: 1}
		case 6:
			kind, args = "demo.fail", demoArgs{Message: "the printer is on fire"}
		case 7:
			kind, args = "demo.fail_no_retry", demoArgs{Message: "there is no such printer"}
		case 8:
			kind, args = "demo.build", demoArgs{How: []string{"error", "panic"}[i/10%2]}
		case 9:
			kind, args = "demo.memory", demoArgs{MiB: 16, For: httpjob.Duration(500 * ms)}
		}
		jobs = append(jobs, demoJob(kind, args, opts...))
	}
	return jobs
}

// longestDemo is how long the schedules go on if the demo was killed.
const longestDemo = 24 * time.Hour

// demoShop enqueues the jobs of a shop until it is interrupted, or the time is over.
func (a *app) demoShop(ctx context.Context, db *database, d *demo) error {
	running, release := interrupted(ctx)
	defer release()
	until := "until Ctrl-C"
	if d.span > 0 {
		limited, cancel := context.WithTimeout(running, d.span)
		defer cancel()
		running, until = limited, "for "+retry.FormatDuration(d.span)
	}
	schedules := shopSchedules(time.Now().Add(cmp.Or(d.span, longestDemo)))
	for _, s := range schedules {
		in, err := ops.ExactSchedule(s)
		if err == nil {
			_, err = ops.DeclareSchedule.Call(ctx, db, in)
		}
		if err != nil {
			return err
		}
	}
	if !a.json {
		a.note("enqueuing about %v jobs a second %s", d.rate, until)
	}
	// An enqueue is never interrupted, only the wait between two of them.
	load := newShopLoad(d.rate, d.seed)
	err := d.enqueue(ctx, db, load.next(), d.crash)
	for err == nil && wait(running, shopBeat) {
		err = d.enqueue(ctx, db, load.next(), false)
	}
	for _, s := range schedules {
		if _, removed := db.RemoveSchedule(ctx, s.Name, "stint demo has ended"); err == nil {
			err = removed
		}
	}
	return err
}

// shopBeat is how often the shop enqueues.
const shopBeat = 250 * time.Millisecond

// The load comes in waves. A newsletter goes out once a minute: a sixth of all jobs,
// at once.
const (
	shopWave        = 90 * time.Second
	shopNewsletters = time.Minute
)

// shopLoad makes the jobs of a shop. The same seed makes the same jobs.
type shopLoad struct {
	dice  *rand.Rand
	rate  float64 // jobs a second on average, without those that come from them
	owed  float64 // the part of a job that is not due yet
	beats int
	order int
}

func newShopLoad(rate float64, seed uint64) *shopLoad {
	return &shopLoad{dice: rand.New(rand.NewPCG(seed, 0)), rate: rate, order: 1000}
}

// next makes the jobs of the next beat.
func (l *shopLoad) next() (jobs []stint.NewJob) {
	l.beats++
	at := time.Duration(l.beats) * shopBeat
	wave := 1 + 0.6*math.Sin(2*math.Pi*at.Seconds()/shopWave.Seconds())
	for l.owed += l.rate * shopBeat.Seconds() * wave * 5 / 6; l.owed >= 1; l.owed-- {
		jobs = append(jobs, l.visit())
	}
	if at%shopNewsletters == shopNewsletters/4 {
		issue := int(at/shopNewsletters) + 1
		for i := range int(l.rate * shopNewsletters.Seconds() / 6) {
			args := shopArgs{"issue": issue, "to": fmt.Sprintf("reader%04d@example.com", i)}
			jobs = append(jobs, demoJob("demo.newsletter", args, stint.Correlation(fmt.Sprint("newsletter ", issue)), fromDemo))
		}
	}
	return jobs
}

var (
	fromDemo      = stint.Source("stint demo")
	shopCustomers = []string{"ada", "alan", "barbara", "donald", "edsger", "frances", "grace", "ken", "leslie", "margaret", "niklaus", "radia"}
)

func (l *shopLoad) visit() stint.NewJob {
	l.order++
	about := stint.URN(fmt.Sprintf("urn:shop:order:%d", l.order))
	args := shopArgs{"order": l.order, "customer": shopCustomers[l.dice.IntN(len(shopCustomers))] + "@example.com"}
	kind, opts := "demo.mail", []stint.Option{fromDemo}
	switch at := l.dice.IntN(100); {
	case at < 40:
		kind, opts = "demo.order", append(opts, about)
		args["total_cents"], args["items"] = 500+l.dice.IntN(20_000), 1+l.dice.IntN(5)
		if at < 8 {
			opts = append(opts, stint.Tag("vip"), stint.Priority(-20))
		}
	case at < 58:
		kind, args = "demo.thumbnail", shopArgs{"image": fmt.Sprintf("products/%d.jpg", l.order), "width": 320 << l.dice.IntN(3)}
	case at < 73:
		kind, args = "demo.webhook", shopArgs{"event": "stock.changed", "product": l.order, "url": "https://partner.example.com/hook"}
	case at < 85:
		args["template"] = "how did you like it"
		opts = append(opts, about, stint.Tag("reminder"), stint.Delay(time.Duration(10+l.dice.IntN(170))*time.Second))
	case at < 96:
		args["template"], opts = "welcome", append(opts, about)
	case at < 99:
		kind, args = "demo.report", shopArgs{"report": "sales", "day": fmt.Sprintf("2026-11-%02d", 1+l.dice.IntN(30))}
	default:
		kind, args = "demo.build", shopArgs{"how": "error"}
	}
	return demoJob(kind, args, opts...)
}

// shopSchedules are those of the shop. They end by themselves if a demo that was killed does
// not remove them.
func shopSchedules(end time.Time) []stint.Schedule {
	sales := demoJob("demo.report", shopArgs{"report": "sales of the minute"})
	cleanup := demoJob("demo.cleanup", shopArgs{"older_than": "30d"})
	return []stint.Schedule{
		{Name: "demo.sales", Recurrence: cron.MustParse("* * * * *"), Zone: "Europe/Berlin", Unique: true, NotAfter: end, Job: sales},
		{Name: "demo.cleanup", Recurrence: cron.MustParse("every 30s"), Zone: "Europe/Berlin", Unique: true, NotAfter: end, Job: cleanup},
	}
}

func demoJob(kind string, args any, opts ...stint.Option) stint.NewJob {
	raw, _ := json.Marshal(args) // of texts and numbers
	i := slices.IndexFunc(demoKinds, func(k stint.KindInfo) bool { return k.Name == kind })
	return demoKinds[i].Job(raw, opts...)
}
