package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/jobs"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
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
	if !a.json && !slices.ContainsFunc(engines, func(e store.EngineInfo) bool { return e.Performs(one) }) {
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
		in, err := ops.ExactSchedule(s)
		if err == nil {
			_, err = ops.DeclareSchedule.Call(ctx, db, in)
		}
		if err != nil {
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
			jobs = append(jobs, demoJob("demo.sleep", `{"for": "200ms"}`, stint.Delay(time.Duration(3+i%7)*time.Second)))
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

// demoKinds are jobs that do what real ones do on a bad day. An engine performs
// them only when it was started with --demo: whoever may enqueue could stop it
// with them.
var demoKinds = []struct {
	declaration stint.KindInfo
	handler     stint.Handler
}{
	{demoDeclaration("demo.sleep"), jobs.Strict(demoSleep)},
	{demoDeclaration("demo.fail"), jobs.Strict(demoFail)},
	{demoDeclaration("demo.fail_no_retry"), jobs.Strict(demoFailNoRetry)},
	{demoDeclaration("demo.exit"), jobs.Strict(demoExit)},
	{demoDeclaration("demo.memory"), jobs.Strict(demoMemory)},
}

// demoBuild is performed by what is constructed for each run: see newDemoWorker.
var demoBuild = demoKind("demo.build")

// demoHarmful are those that do harm to the engine that performs them.
var demoHarmful = []string{"demo.exit", "demo.memory"}

// demoQueue keeps sample load apart from work, where somebody looks.
const demoQueue = "demo"

// demoKind is a demo kind: it fails for good within seconds, while somebody
// still looks on.
func demoKind(name string) stint.Kind[any] {
	return stint.NewKind[any](name, stint.Queue(demoQueue), stint.Retry(retry.Fixed(2, 2*time.Second)), stint.Tag("demo"))
}

func demoDeclaration(name string) stint.KindInfo { return demoKind(name).Declaration() }

func demoDeclarations() []stint.KindInfo {
	all := []stint.KindInfo{demoBuild.Declaration()}
	for _, k := range demoKinds {
		all = append(all, k.declaration)
	}
	for _, k := range shopKinds {
		all = append(all, k.declaration())
	}
	return all
}

func addDemoKinds(m *stint.Mux) {
	for _, k := range demoKinds {
		m.Add(k.declaration, k.handler)
	}
	stint.HandleNew(m, demoBuild, newDemoWorker)
	for _, k := range shopKinds {
		m.Add(k.declaration(), k.run)
	}
}

// demoTime is a duration in arguments: "250ms", "2s".
type demoTime struct{ time.Duration }

func (d *demoTime) UnmarshalText(text []byte) (err error) {
	if d.Duration, err = retry.ParseDuration(string(text)); err != nil {
		return valid.Invalid("args", "%v", err)
	}
	return nil
}

func (d demoTime) MarshalText() ([]byte, error) { return []byte(retry.FormatDuration(d.Duration)), nil }

// demoPause waits, and says why it did not wait to the end.
func demoPause(ctx context.Context, d time.Duration) error {
	if wait(ctx, d) {
		return nil
	}
	return context.Cause(ctx)
}

type sleepArgs struct {
	For demoTime `json:"for"` // default 1s
}

func (sleepArgs) Check() error { return nil }

type sleepResult struct {
	Slept demoTime `json:"slept"`
}

// demoSleep takes its time.
func demoSleep(ctx context.Context, _ *stint.Job, args sleepArgs) (*sleepResult, error) {
	began := time.Now()
	err := demoPause(ctx, cmp.Or(args.For.Duration, time.Second))
	return &sleepResult{demoTime{time.Since(began).Round(time.Millisecond)}}, err
}

type failArgs struct {
	Message string `json:"message"`
	Times   int    `json:"times"` // how many attempts fail; 0 is all of them
}

func (a failArgs) Check() error {
	if a.Times < 0 {
		return valid.Invalid("args.times", "%d is negative", a.Times)
	}
	return nil
}

type nothing struct{}

// demoFail fails, and may succeed when it is tried again.
func demoFail(_ context.Context, job *stint.Job, args failArgs) (*nothing, error) {
	if args.Times > 0 && job.Attempt > args.Times {
		return nil, nil
	}
	return nil, fmt.Errorf("%s (attempt %d)", cmp.Or(args.Message, "demo.fail fails"), job.Attempt)
}

type messageArgs struct {
	Message string `json:"message"`
}

func (messageArgs) Check() error { return nil }

// demoFailNoRetry fails in such a way that another attempt makes no sense.
func demoFailNoRetry(_ context.Context, _ *stint.Job, args messageArgs) (*nothing, error) {
	return nil, stint.NoRetry(fmt.Errorf("%s", cmp.Or(args.Message, "demo.fail_no_retry fails for good")))
}

type exitArgs struct {
	Code  *int     `json:"code"`  // default 1
	After demoTime `json:"after"` // default at once
}

func (a exitArgs) Check() error {
	if a.Code != nil && (*a.Code < 0 || *a.Code > 255) {
		return valid.Invalid("args.code", "%d is outside 0 to 255", *a.Code)
	}
	return nil
}

// demoExit ends the engine's process there and then: it tells nobody, and does
// not leave the roster.
func demoExit(ctx context.Context, _ *stint.Job, args exitArgs) (*nothing, error) {
	if err := demoPause(ctx, args.After.Duration); err != nil {
		return nil, err
	}
	code := 1
	if args.Code != nil {
		code = *args.Code
	}
	os.Exit(code)
	return nil, nil
}

type memoryArgs struct {
	MiB  int      `json:"mib"` // default 64
	For  demoTime `json:"for"` // default 1s
	Leak bool     `json:"leak"`
}

func (a memoryArgs) Check() error {
	if a.MiB < 0 || a.MiB > 1<<20 {
		return valid.Invalid("args.mib", "%d is outside 0 to %d", a.MiB, 1<<20)
	}
	return nil
}

type memoryResult struct {
	MiB int `json:"mib"`
}

// leaked is what demo.memory never gives back.
var leaked = make(chan [][]byte, 1)

// demoMemory eats memory, and holds it for a while, or for ever.
func demoMemory(ctx context.Context, _ *stint.Job, args memoryArgs) (*memoryResult, error) {
	const page = 4 << 10
	var eaten [][]byte
	for range cmp.Or(args.MiB, 64) {
		if ctx.Err() != nil {
			break
		}
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += page {
			block[i] = 1 // untouched memory costs nothing
		}
		eaten = append(eaten, block)
	}
	err := demoPause(ctx, cmp.Or(args.For.Duration, time.Second))
	n := 0
	for _, block := range eaten { // in use to here
		n += int(block[0])
	}
	if args.Leak {
		select {
		case before := <-leaked:
			eaten = append(eaten, before...)
		default:
		}
		leaked <- eaten
	}
	return &memoryResult{n}, err
}

type buildArgs struct {
	How string `json:"how"` // error, the default, or panic
}

func (a buildArgs) Check() error {
	if a.How != "" && a.How != "error" && a.How != "panic" {
		return valid.Invalid("args.how", "%q is neither error nor panic", a.How)
	}
	return nil
}

// demoWorker is what demo.build never gets.
type demoWorker struct{}

// Run performs the job: see [stint.HandleNew].
func (*demoWorker) Run(context.Context, *stint.Job, any) error { return nil }

// newDemoWorker is a constructor that each run calls, and that fails before
// anything could begin to work.
func newDemoWorker(_ context.Context, job *stint.Job) (*demoWorker, error) {
	args, err := jobs.Decode[buildArgs](job.Args)
	switch {
	case err != nil:
		return nil, stint.NoRetry(err)
	case args.How == "panic":
		panic("there is no power")
	}
	return nil, errors.New("there is no oil")
}
