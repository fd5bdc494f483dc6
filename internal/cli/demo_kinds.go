package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/jobs"
	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/retry"
)

// demoBasics are jobs that do what real ones do on a bad day. An engine performs
// them only when it was started with --demo: some of them stop it.
var demoBasics = []struct {
	name string
	run  func(context.Context, *stint.Job, demoArgs) (*demoResult, error)
}{
	{"demo.sleep", func(ctx context.Context, _ *stint.Job, args demoArgs) (*demoResult, error) {
		began := time.Now()
		err := demoPause(ctx, cmp.Or(time.Duration(args.For), time.Second))
		return &demoResult{Slept: httpjob.Duration(time.Since(began).Round(time.Millisecond))}, err
	}},
	{"demo.fail", func(_ context.Context, job *stint.Job, args demoArgs) (*demoResult, error) {
		if args.Times > 0 && job.Attempt > args.Times {
			return nil, nil
		}
		return nil, fmt.Errorf("%s (attempt %d)", cmp.Or(args.Message, "demo.fail fails"), job.Attempt)
	}},
	{"demo.fail_no_retry", func(_ context.Context, _ *stint.Job, args demoArgs) (*demoResult, error) {
		return nil, stint.NoRetry(errors.New(cmp.Or(args.Message, "demo.fail_no_retry fails for good")))
	}},
	{"demo.exit", demoExit},
	{"demo.memory", demoMemory},
}

// demoHarmful are those that harm the engine that performs them.
var demoHarmful = []string{"demo.exit", "demo.memory"}

// demoBuild has a worker that is constructed for each run: see newDemoWorker.
var demoBuild = demoKind("demo.build")

// demoKinds are all demo kinds, in the order in which they are listed.
var demoKinds = func() []stint.KindInfo {
	all := []stint.KindInfo{demoBuild.Declaration()}
	for _, k := range demoBasics {
		all = append(all, demoKind(k.name).Declaration())
	}
	for _, k := range shopKinds {
		all = append(all, k.declaration())
	}
	return all
}()

// demoKind is a kind in a queue of its own. It fails for good within seconds, while
// people still look on.
func demoKind(name string) stint.Kind[any] {
	return stint.NewKind[any](name, stint.Queue("demo"), stint.Retry(retry.Fixed(2, 2*time.Second)), stint.Tag("demo"))
}

func addDemoKinds(m *stint.Mux) {
	for _, k := range demoBasics {
		m.Add(demoKind(k.name).Declaration(), jobs.Strict(k.run))
	}
	stint.HandleNew(m, demoBuild, newDemoWorker)
	for _, k := range shopKinds {
		m.Add(k.declaration(), jobs.Strict(k.run))
	}
}

// demoArgs are the arguments of the kinds that are no shop's. Each uses some of them.
type demoArgs struct {
	For     httpjob.Duration `json:"for,omitzero"`      // sleep, memory; default 1s
	Message string           `json:"message,omitempty"` // fail, fail_no_retry
	Times   int              `json:"times,omitempty"`   // fail: how many attempts; 0 is all of them
	Code    *int             `json:"code,omitempty"`    // exit; default 1
	After   httpjob.Duration `json:"after,omitzero"`    // exit
	MiB     int              `json:"mib,omitempty"`     // memory; default 64
	Leak    bool             `json:"leak,omitempty"`    // memory
	How     string           `json:"how,omitempty"`     // build: error, the default, or panic
}

// Check implements [jobs.Checked].
func (a demoArgs) Check() error {
	switch {
	case a.Times < 0:
		return valid.Invalid("args.times", "%d is negative", a.Times)
	case a.Code != nil && (*a.Code < 0 || *a.Code > 255):
		return valid.Invalid("args.code", "%d is outside 0 to 255", *a.Code)
	case a.MiB < 0 || a.MiB > 1<<20:
		return valid.Invalid("args.mib", "%d is outside 0 to %d", a.MiB, 1<<20)
	case a.How != "" && a.How != "error" && a.How != "panic":
		return valid.Invalid("args.how", "%q is neither error nor panic", a.How)
	}
	return nil
}

type demoResult struct {
	Slept httpjob.Duration `json:"slept,omitzero"`
	MiB   int              `json:"mib,omitempty"`
}

// demoPause waits, or returns why ctx ended.
func demoPause(ctx context.Context, d time.Duration) error {
	if wait(ctx, d) {
		return nil
	}
	return context.Cause(ctx)
}

// demoExit ends the engine's process at once. The engine does not leave the roster.
func demoExit(ctx context.Context, _ *stint.Job, args demoArgs) (*demoResult, error) {
	err := demoPause(ctx, time.Duration(args.After))
	if err == nil {
		os.Exit(*cmp.Or(args.Code, new(1)))
	}
	return nil, err
}

// leaked is the memory that demo.memory never frees.
var leaked sync.Map

// demoMemory uses memory, and holds it for a while or for ever.
func demoMemory(ctx context.Context, _ *stint.Job, args demoArgs) (*demoResult, error) {
	var blocks [][]byte
	for range cmp.Or(args.MiB, 64) {
		if ctx.Err() != nil {
			break
		}
		blocks = append(blocks, bytes.Repeat([]byte{1}, 1<<20)) // untouched memory costs nothing
	}
	err := demoPause(ctx, cmp.Or(time.Duration(args.For), time.Second))
	runtime.KeepAlive(blocks)
	if args.Leak {
		leaked.Store(&blocks, blocks)
	}
	return &demoResult{MiB: len(blocks)}, err
}

// demoWorker is never constructed.
type demoWorker struct{}

// Run implements [stint.Runner].
func (*demoWorker) Run(context.Context, *stint.Job, any) error { return nil }

// newDemoWorker is the constructor of demo.build. Each run calls it, and it fails.
func newDemoWorker(_ context.Context, job *stint.Job) (*demoWorker, error) {
	args, err := jobs.Decode[demoArgs](job.Args)
	if err != nil {
		return nil, stint.NoRetry(err)
	}
	if args.How == "panic" {
		panic("there is no power")
	}
	return nil, errors.New("there is no oil")
}

// shopKind is a kind of job of a shop. What a job of it does follows from its kind,
// its arguments and, if a schedule made it, its number, so that it does the same
// wherever it runs.
type shopKind struct {
	name, queue string
	from, to    time.Duration // that a job takes
	then        string        // the kind of the job that follows a success, if any
	defaults    []stint.Option
	troubles    []shopTrouble
}

// shopTrouble is an error of some jobs of a kind.
type shopTrouble struct {
	percent int
	times   int // attempts that fail: 0 is all of them
	err     error
}

// once is the number of attempts of a job for which another attempt makes no sense.
const once = -1

// classed is an error with a class, as those of programs have.
func classed(class, message string) error {
	err := errors.New(message)
	retry.ErrorClass(class, err)
	return err
}

var (
	errRefused = classed("connection_refused", "call the partner: connection refused")
	errImage   = errors.New("the image has no end") // a panic
)

const ms = time.Millisecond

var shopKinds = []shopKind{
	{"demo.order", "demo.shop", 20 * ms, 120 * ms, "demo.charge", nil, []shopTrouble{
		{2, once, classed("out_of_stock", "reserve the items: out of stock")},
	}},
	{"demo.charge", "demo.payments", 100 * ms, 900 * ms, "demo.invoice", []stint.Option{stint.Priority(-10)}, []shopTrouble{
		{8, 2, classed("gateway_timeout", "charge the card: the gateway did not answer in time")},
		{4, once, classed("card_declined", "charge the card: the card was declined")},
	}},
	{"demo.invoice", "demo.documents", 200 * ms, 700 * ms, "demo.mail", nil, nil},
	{"demo.mail", "demo.mail", 30 * ms, 150 * ms, "", nil, []shopTrouble{
		{6, 1, classed("greylisted", "deliver: 451 try again later")},
		{2, once, classed("unknown_mailbox", "deliver: 550 no such mailbox")},
	}},
	{"demo.newsletter", "demo.mail", 20 * ms, 80 * ms, "", []stint.Option{stint.Priority(50), stint.Tag("newsletter")}, nil},
	{"demo.thumbnail", "demo.media", 300 * ms, 2500 * ms, "", nil, []shopTrouble{{3, 0, errImage}}},
	{"demo.webhook", "demo.webhooks", 50 * ms, 400 * ms, "", nil, []shopTrouble{{10, 3, errRefused}, {3, 0, errRefused}}},
	{"demo.report", "demo.reports", 2000 * ms, 9000 * ms, "", []stint.Option{stint.Timeout(8 * time.Second)}, nil}, // some take too long
	{"demo.cleanup", "demo.shop", 500 * ms, 1000 * ms, "", nil, nil},
}

// declaration declares the kind. Failures are tried again soon, while people still look
// on.
func (k shopKind) declaration() stint.KindInfo {
	all := []stint.Option{stint.Queue(k.queue), stint.Retry(retry.Exponential(4, 2*time.Second)), stint.Timeout(time.Minute), stint.Tag("demo")}
	return stint.NewKind[any](k.name, append(all, k.defaults...)...).Declaration()
}

// shopArgs are the arguments of the kinds of the shop, for people to read.
type shopArgs map[string]any

// Check implements [jobs.Checked].
func (shopArgs) Check() error { return nil }

type shopResult struct {
	Took   httpjob.Duration `json:"took"`
	Handed string           `json:"handed_to,omitempty"`
	Next   stint.ID         `json:"next,omitempty"`
}

func (k shopKind) run(ctx context.Context, job *stint.Job, args shopArgs) (*shopResult, error) {
	dice := diceOf(job.Kind, args, job.Origin.Nth)
	takes := k.from + time.Duration(dice.Int64N(int64(k.to-k.from)))
	if err := demoPause(ctx, takes); err != nil {
		return nil, err
	}
	if err := k.trouble(dice, job.Attempt); err != nil {
		return nil, err
	}
	result := &shopResult{Took: httpjob.Duration(takes.Round(time.Millisecond)), Handed: k.then}
	if k.then == "" {
		return result, nil
	}
	// With a key: a job that was lost with its engine runs again and comes here again.
	next := demoJob(k.then, args, stint.IdempotencyKey(fmt.Sprintf("%s:%d", k.then, job.ID)), stint.URN(job.URN))
	var err error
	if result.Next, err = stint.ClientFrom(ctx).Enqueue(ctx, next); err != nil {
		return nil, err
	}
	return result, nil
}

// trouble is the error of an attempt, if it fails.
func (k shopKind) trouble(dice *rand.Rand, attempt int) error {
	at := dice.IntN(100)
	for _, t := range k.troubles {
		if at -= t.percent; at >= 0 {
			continue
		}
		switch {
		case t.times > 0 && attempt > t.times:
			return nil
		case t.err == errImage:
			panic(t.err.Error())
		case t.times == once:
			return stint.NoRetry(t.err)
		}
		return t.err
	}
	return nil
}

// diceOf are the same for the same kind, arguments and number, whatever the order of the
// arguments.
func diceOf(kind string, args any, nth int64) *rand.Rand {
	text, _ := json.Marshal(args) // as they were decoded
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%s %s %d", kind, text, nth)
	return rand.New(rand.NewPCG(sum.Sum64(), 0))
}
