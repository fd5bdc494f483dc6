//go:build unix

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stint-go/stint/internal/proof/check"
)

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
	lingers = "ignores its time-out"
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
		sum := 0
		for began := time.Now(); time.Since(began) < time.Second; {
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
