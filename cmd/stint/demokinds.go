package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// demoKinds are jobs that do what real ones do on a bad day. An engine performs
// them only when it was started with --demo: whoever may enqueue could stop it
// with them.
var demoKinds = []struct {
	declaration stint.Declaration
	handler     stint.Handler
}{
	{demoDeclaration("demo.sleep"), stint.StrictHandler(demoSleep)},
	{demoDeclaration("demo.fail"), stint.StrictHandler(demoFail)},
	{demoDeclaration("demo.fail_no_retry"), stint.StrictHandler(demoFailNoRetry)},
	{demoDeclaration("demo.exit"), stint.StrictHandler(demoExit)},
	{demoDeclaration("demo.memory"), stint.StrictHandler(demoMemory)},
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

func demoDeclaration(name string) stint.Declaration { return demoKind(name).Declaration() }

func demoDeclarations() []stint.Declaration {
	all := []stint.Declaration{demoBuild.Declaration()}
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
		return stint.Invalid("args", "%v", err)
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
		return stint.Invalid("args.times", "%d is negative", a.Times)
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
		return stint.Invalid("args.code", "%d is outside 0 to 255", *a.Code)
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
		return stint.Invalid("args.mib", "%d is outside 0 to %d", a.MiB, 1<<20)
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
		return stint.Invalid("args.how", "%q is neither error nor panic", a.How)
	}
	return nil
}

// demoWorker is what demo.build never gets.
type demoWorker struct{}

// Run implements [stint.Runner].
func (*demoWorker) Run(context.Context, *stint.Job, any) error { return nil }

// newDemoWorker is a constructor that each run calls, and that fails before
// anything could begin to work.
func newDemoWorker(_ context.Context, job *stint.Job) (*demoWorker, error) {
	args, err := stint.DecodeStrict[buildArgs](job.Args)
	switch {
	case err != nil:
		return nil, stint.NoRetry(err)
	case args.How == "panic":
		panic("there is no power")
	}
	return nil, errors.New("there is no oil")
}
