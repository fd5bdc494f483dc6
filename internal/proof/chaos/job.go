//go:build unix

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Args are what a job of the workload is told to do.
type Args struct {
	Key    string `json:"key"`              // its name in the history
	Work   int    `json:"work,omitempty"`   // milliseconds to be busy
	Fail   int    `json:"fail,omitempty"`   // attempts that end in an error
	Oops   int    `json:"oops,omitempty"`   // attempts that panic, after those
	Nap    bool   `json:"nap,omitempty"`    // snooze once, at the first attempt
	Exit   bool   `json:"exit,omitempty"`   // end the process, each time; one with Vitals lives on
	Poison string `json:"poison,omitempty"` // one of Deadly or Harmful; of the deadly one with Vitals lives on
	Tx     bool   `json:"tx,omitempty"`     // leave an effect in a transaction that completes the job
	Open   int    `json:"open,omitempty"`   // milliseconds for which that transaction stays open
	Hang   string `json:"hang,omitempty"`   // on the worker of this name, or Anywhere: go on until cancelled or let go
	Deaf   string `json:"deaf,omitempty"`   // on the worker of this name: go on, cancelled or not
	Grant  int    `json:"grant,omitempty"`  // attempts that its policy grants, where that is another one; negative: nobody knows
	Lock   bool   `json:"lock,omitempty"`   // let nobody else run it before this process is gone
	Steps  int    `json:"steps,omitempty"`  // how many it does, each of which takes Work
	Awaits int    `json:"awaits,omitempty"` // how many signals it awaits, one after the other
	Talks  int    `json:"talks,omitempty"`  // how many questions it asks, and jobs it calls, one after the other
	Limit  string `json:"limit,omitempty"`  // the limit that it waits for, one of limits, and its key
}

// limits are those that all workers declare: how many jobs may run at once.
var limits = map[string]int{"few": 3, "each": 1}

// Anywhere stands for the name of each worker, in Args.Hang.
const Anywhere = "*"

// retries is the policy of the workload: more than any job is told to fail.
const retries = 8

// Kind is the kind of every job of the workload.
var Kind = stint.NewKind[Args]("chaos", stint.Retry(retry.Fixed(retries, 20*time.Millisecond)))

// errTold is how an attempt fails that was told to.
var errTold = errors.New("told to fail")

// effects is where jobs with Tx leave their effect. It has no key: what is done
// twice shows.
const effects = `create table if not exists chaos_effects (job bigint not null)`

// complete does the work of a job with Tx.
func complete(ctx context.Context, g *Ground, job *stint.Job, open time.Duration) error {
	tx, err := g.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.rollback(ctx) }() // it must not go on where the engine is cut off
	if err := tx.exec(ctx, `insert into chaos_effects (job) values ($1)`, int64(job.ID)); err != nil {
		return err
	}
	time.Sleep(open)
	return engine.CompleteTx(ctx, tx.Tx, nil)
}

// handler logs the start and the end of each attempt around its work.
func (w *Worker) handler(history *check.Writer, g *Ground, engines *sync.Map) stint.Handler {
	return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
		var args Args
		if err := json.Unmarshal(job.Args, &args); err != nil {
			return nil, err
		}
		who, _ := engines.LoadAndDelete(job.ID)
		token, _ := who.(store.EngineID)
		run := w.end.before(func() check.Running {
			return history.Start(check.Run{Job: int64(job.ID), Attempt: job.Attempt, Engine: int64(token)})
		})
		if args.Exit && !w.Vitals {
			w.end.now()
		}
		how, cause := check.Panic, error(nil)
		defer func() { run.End(how, fmt.Sprint(cause)) }()
		if args.Lock {
			lock, err := w.lock(job)
			if err != nil {
				how, cause = check.Error, err
				return nil, stint.NoRetry(err)
			}
			defer lock.Close()
		}
		if args.Poison != "" {
			return w.poisoned(ctx, args.Poison, &how)
		}
		do := w.busy
		if args.Steps > 0 {
			do = func(ctx context.Context, args *Args) error { return w.inSteps(ctx, args, run) }
		}
		if args.Awaits > 0 {
			do = w.inSignals
		}
		if args.Talks > 0 {
			do = w.inTalks
		}
		if cause = do(ctx, &args); cause != nil {
			how = check.Cancelled
			if end := (store.Result{}); store.AsResult(cause, &end) {
				how = check.Snooze
			}
			return nil, cause
		}
		switch {
		case args.Nap && job.Attempt == 1 && job.Created.Equal(job.Due) && time.Since(job.Created).Abs() < 300*time.Millisecond:
			how = check.Snooze
			return nil, stint.Snooze(300 * time.Millisecond)
		case job.Attempt-job.Losses <= args.Fail:
			how, cause = check.Error, errTold
			return nil, errTold
		case job.Attempt-job.Losses <= args.Fail+args.Oops:
			panic("told to panic")
		case args.Tx:
			if err := complete(ctx, g, job, time.Duration(args.Open)*time.Millisecond); err != nil {
				how, cause = check.Error, err
				if ctx.Err() != nil {
					how = check.Cancelled
				}
				return nil, err
			}
		}
		how = check.OK
		return nil, nil
	}
}

// inSteps does the work in steps, each of which comes to something else each time that it is done.
func (w *Worker) inSteps(ctx context.Context, args *Args, run check.Running) error {
	for i := range args.Steps {
		value, err := stint.Step(ctx, fmt.Sprint(i), func(ctx context.Context) (int64, error) { return rand.Int64(), w.busy(ctx, args) })
		if err != nil {
			return err
		}
		run.Told(fmt.Sprint(i), fmt.Sprint(value))
	}
	return nil
}

// SignalName is that of the signals which inSignals awaits.
const SignalName = "go on"

// inSignals awaits signals, with the work between them.
func (w *Worker) inSignals(ctx context.Context, args *Args) error {
	for i := range args.Awaits {
		if _, err := stint.AwaitAs[int](ctx, fmt.Sprint(i), SignalName, time.Hour); err != nil {
			return err
		}
		if err := w.busy(ctx, args); err != nil {
			return err
		}
	}
	return nil
}

// CalledKey is the key of the nth job that one with Talks calls.
func CalledKey(key string, n int) string { return fmt.Sprint(key, "-called-", n) }

// inTalks asks questions and calls jobs. Steps record which answers it got, with the work between them.
func (w *Worker) inTalks(ctx context.Context, args *Args) error {
	for i := range args.Talks {
		a, err := stint.Ask(ctx, fmt.Sprint("ask ", i), "Go on?", time.Hour, "yes", "no")
		if err != nil {
			return err
		}
		if _, err := stint.Step(ctx, fmt.Sprint("got ", i), func(ctx context.Context) (string, error) { return a.By, w.busy(ctx, args) }); err != nil {
			return err
		}
		if err := Kind.Call(ctx, fmt.Sprint("call ", i), Args{Key: CalledKey(args.Key, i), Work: 1, Grant: -1}, stint.Retry(retry.Forever(20*time.Millisecond)), stint.MaxLosses(1000)); err != nil {
			return err
		}
	}
	return nil
}

// busy does a job's work, or returns why that was cancelled.
func (w *Worker) busy(ctx context.Context, args *Args) error {
	work := time.Duration(args.Work)*time.Millisecond + w.Drag
	switch {
	case args.Deaf == w.Name:
		time.Sleep(Forever)
	case args.Hang == w.Name, args.Hang == Anywhere:
		work = 20 * time.Millisecond
		for _, err := os.Stat(w.path(letGo)); err != nil && ctx.Err() == nil; _, err = os.Stat(w.path(letGo)) {
			time.Sleep(work)
		}
	}
	if work == 0 {
		return nil
	}
	select {
	case <-time.After(work):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// letGo is the file that says that no job need hang any more.
const letGo = "let-go"

// LetGo has the jobs that hang come to their end.
func (f *Fleet) LetGo() {
	if err := os.WriteFile(filepath.Join(filepath.Dir(f.Dir), letGo), nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// path is that of a file which all workers share.
func (w *Worker) path(name string) string { return filepath.Join(filepath.Dir(w.History), name) }

// lock takes a job's lock, or fails if another run has it. It is the kernel's,
// and goes with the process and not before: so a run that gets it after one
// that never ended is beside no living process's.
func (w *Worker) lock(job *stint.Job) (*os.File, error) {
	f, err := os.OpenFile(w.path(fmt.Sprintf("job-%d.lock", job.ID)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another run of job %d still goes on: %w", job.ID, err)
	}
	return f, nil
}

// Bulk is the kind of jobs that do nothing and stand in no history: there may be
// more of them than a judge has room for.
var Bulk = stint.NewKind[int]("bulk")

func nothing(context.Context, *stint.Job, int) error { return nil }

// MixedBulk is such a kind too, but one in MixedEvery of its jobs fails once, by its argument.
var MixedBulk = stint.NewKind[int]("bulk_mixed", stint.Retry(retry.Fixed(retries, 20*time.Millisecond)))

// MixedEvery says how many jobs of MixedBulk have one among them that fails.
const MixedEvery = 50

func mixedBulk(_ context.Context, job *stint.Job, n int) error {
	if n%MixedEvery == 0 && job.Attempt-job.Losses == 1 {
		return errTold
	}
	return nil
}

// Deadly are the jobs that end their process, each in a way that no handler's
// guard can catch, by the name that Args.Poison has for them.
var Deadly = map[string]func(){
	"exits with success":        func() { os.Exit(0) },
	"exits with a failure":      func() { os.Exit(7) },
	"panics beside its handler": func() { go panic("nobody recovers this") },
	"unlocks what is unlocked":  func() { new(sync.Mutex).Unlock() },
	"writes a map at once":      writeAtOnce,
	"overflows the stack":       overflow,
	"reads what is not there":   fault,
	"takes all memory":          hoard,
}

// writeAtOnce writes to a map from several goroutines until the runtime notices.
func writeAtOnce() {
	m := map[int]int{}
	for range 4 {
		go func() {
			for i := 0; ; i++ {
				m[i%16] = i
			}
		}()
	}
	select {}
}

// overflow recurses without end. A smaller stack than the runtime allows by
// itself ends the same way, and leaves the machine its memory.
func overflow() {
	debug.SetMaxStack(16 << 20)
	var deeper func(n [64]int) int
	deeper = func(n [64]int) int { n[0]++; return deeper(n) + n[1] }
	deeper([64]int{})
}

// fault reads from a page that may not be read.
func fault() {
	page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stderr, page[0])
}

// hoard takes memory until the system gives no more, which it does soon.
func hoard() {
	stat, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	var pages uint64
	fmt.Sscan(string(stat), &pages)
	limit := pages*uint64(os.Getpagesize()) + 64<<20
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		panic(err)
	}
	for kept := [][]byte{}; ; {
		kept = append(kept, bytes.Repeat([]byte{1}, 1<<20))
	}
}

// The harmful jobs that go on when their context ends, for a second or less.
const (
	lingers = "ignores its timeout"
	spins   = "works and looks at nothing"
)

// Harmful are the jobs that do harm to nobody but themselves.
var Harmful = map[string]func(ctx context.Context) (json.RawMessage, error){
	"panics with nothing":        func(context.Context) (json.RawMessage, error) { panic(nil) },
	"panics with a broken error": func(context.Context) (json.RawMessage, error) { panic((*broken)(nil)) },
	"panics with a fault":        func(context.Context) (json.RawMessage, error) { return nil, fmt.Errorf("%d", []int{}[zero()]) },
	"ends its goroutine":         func(context.Context) (json.RawMessage, error) { runtime.Goexit(); return nil, nil },
	"returns a broken error":     func(context.Context) (json.RawMessage, error) { return nil, (*broken)(nil) },
	"fails with ten megabytes": func(context.Context) (json.RawMessage, error) {
		return nil, errors.New(strings.Repeat("ü", 5<<20) + "end")
	},
	"fails with odd bytes": func(context.Context) (json.RawMessage, error) { return nil, errors.New("a\x00b\xff\xfec") },
	lingers: func(ctx context.Context) (json.RawMessage, error) {
		<-ctx.Done()
		time.Sleep(time.Second)
		return nil, ctx.Err()
	},
	spins: func(context.Context) (json.RawMessage, error) {
		// By what it did as well as by the clock: a process that gets no processor for a second
		// has not had the time to end anything.
		const work = 5_000_000 // far less than a processor does in a second
		sum := 0
		for began := time.Now(); sum < work || time.Since(began) < time.Second; {
			sum++
		}
		return nil, fmt.Errorf("it came to %d", sum)
	},
	"returns ten megabytes":       returns(`"` + strings.Repeat("x", 10<<20) + `"`),
	"returns what is no JSON":     returns(`{"a":`),
	"returns NUL":                 returns(`{"a":"\u0000"}`),
	"returns odd bytes":           returns("\"\xff\xfe\""),
	"returns half a surrogate":    returns(`"\ud800"`),
	"returns a number beyond all": returns(`1e999999`),
	"returns absurd depth":        returns(strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)),
}

func returns(raw string) func(context.Context) (json.RawMessage, error) {
	return func(context.Context) (json.RawMessage, error) { return json.RawMessage(raw), nil }
}

func zero() int { return int(math.Abs(0)) } // unknown to the compiler and to vet

// broken is an error whose methods panic while there is nothing in it, as a nil
// pointer's do that was returned as an error.
type broken struct{ cause error }

func (e *broken) Error() string { return "broken: " + e.cause.Error() }
func (e *broken) Unwrap() error { return e.cause }

// poisoned does what a job with Poison is told, and says how that ended.
func (w *Worker) poisoned(ctx context.Context, poison string, how *check.How) (json.RawMessage, error) {
	if deadly := Deadly[poison]; deadly != nil {
		if w.Vitals {
			*how = check.OK
			return nil, nil
		}
		w.end.by(deadly)
	}
	result, err := Harmful[poison](ctx)
	if *how = check.OK; err != nil {
		*how = check.Error
	}
	return result, err
}
