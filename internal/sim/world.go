package sim

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/check"
	"github.com/stint-go/stint/sqlite"
)

// How long things take, in fake time.
const (
	troubled = 2 * time.Minute  // of trouble
	drained  = 2 * time.Minute  // after it, within which everything must be done
	limit    = 20 * time.Minute // a livelock would spin through centuries
)

// jobs is how many are enqueued, about.
const jobs = 200

// world is everything of one seed.
type world struct {
	trace
	seed       uint64
	bug        Bug
	real       *sqlite.Store
	store      store // the real one, with the planted bug
	historyDir string
	open       transactions
	strays     sync.WaitGroup // calls that arrive late
	over       atomic.Bool    // the trouble is
	calm       chan struct{}  // closed when it is
	done       chan struct{}  // closed when all jobs are

	mu         sync.Mutex // guards what follows
	logs       []*check.Writer
	disturbed  []check.Disturbance
	clean      []int64
	naps       map[string]int
	violations []string
}

// Verdict is what came of a seed.
type Verdict struct {
	Report     *check.Report
	Violations []string
	trace      *trace
	suspects   []int64
}

// Story tells what led to the violations: all about the first jobs that they
// name, and how everything ended.
func (v *Verdict) Story() string {
	return v.trace.tell(v.suspects[:min(3, len(v.suspects))], 80)
}

// Trace tells everything that happened.
func (v *Verdict) Trace() string { return v.trace.tell(nil, math.MaxInt) }

// Run runs a seed with a bug planted, or none, in a bubble of its own.
func Run(t *testing.T, seed uint64, bug Bug) *Verdict {
	t.Helper()
	dir, err := os.MkdirTemp(fast(), "stint-sim-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "jobs.db")
	if err := install(path); err != nil {
		t.Fatal(err)
	}
	var v *Verdict
	synctest.Test(t, func(t *testing.T) {
		watch := time.AfterFunc(limit, func() { panic(fmt.Sprintf("sim: seed %d: the bubble's time is over", seed)) })
		defer watch.Stop()
		v, err = run(t.Context(), seed, bug, dir, path)
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return v
}

func run(ctx context.Context, seed uint64, bug Bug, dir, path string) (*Verdict, error) {
	real, err := sqlite.Open(ctx, path, sqlite.Config{Poll: -1, Readers: 1, Busy: time.Minute})
	if err != nil {
		return nil, err
	}
	defer real.Close()
	db, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	w := &world{
		trace: trace{began: time.Now()}, seed: seed, bug: bug, real: real, store: plant(bug, real, db), historyDir: dir,
		calm: make(chan struct{}), done: make(chan struct{}), naps: map[string]int{},
	}
	d := roll(seed, "world", 0)
	var producers, machines sync.WaitGroup
	for i := range 2 {
		p, err := w.newProcess(fmt.Sprintf("client-%d", i), weathers[d.IntN(len(weathers))])
		if err != nil {
			return nil, err
		}
		producers.Go(func() { p.produce(roll(seed, p.name, 0), db, jobs/2, troubled*3/4) })
	}
	for i := range 3 + d.IntN(4) {
		m := w.newMachine(i)
		machines.Go(m.keep)
	}
	time.Sleep(troubled)
	w.over.Store(true)
	close(w.calm)
	producers.Wait()
	time.Sleep(2 * maxLate) // an enqueue that was given up may still arrive
	w.drain(ctx)
	close(w.done)
	machines.Wait()
	w.strays.Wait()
	return w.judge(ctx)
}

// nap tells whether a job snoozes this time.
func (w *world) nap(a args) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.naps[a.Key] >= a.Naps {
		return false
	}
	w.naps[a.Key]++
	return true
}

func (w *world) disturb(d check.Disturbance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disturbed = append(w.disturbed, d)
}

func (w *world) keepLog(log *check.Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs = append(w.logs, log)
}

func (w *world) left(engine stint.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clean = append(w.clean, int64(engine))
}

func (w *world) wrong(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}
