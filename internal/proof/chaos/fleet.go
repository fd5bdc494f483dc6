//go:build unix

package chaos

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pace"
)

// Fleet starts and ends worker processes, and remembers what was done to them.
type Fleet struct {
	t       testing.TB
	Dir     string // of the history
	History *check.Writer
	Slack   time.Duration // how far the server's clock may be off, where a test sets it
	Seed    uint64        // of what is done, for the account

	mu        sync.Mutex
	done      []check.Disturbance
	harmed    map[string][]span // by process
	deleted   []check.Deletion
	cancelled map[int64]check.Instant // that somebody asked to be cancelled: when it was said to be, or 0
	workers   []string                // all that were ever started
	failover  *check.Failover         // the one that lost something

	began      time.Time
	commit     string         // that it runs, as far as is known
	recoveries []float64      // see [Account]
	made       map[string]int // likewise
}

// span is a time during which a process stood still; without an end it was
// killed.
type span struct{ from, to time.Time }

// NewFleet makes a fleet with a history of its own. Its producers write to
// History.
func NewFleet(t testing.TB) *Fleet {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "history")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := check.Create(dir, "producers")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &Fleet{t: t, Dir: dir, History: w, harmed: map[string][]span{}, cancelled: map[int64]check.Instant{}, began: time.Now(), commit: commit()}
}

// Disturb notes what the test does, for the judge.
func (f *Fleet) Disturb(d check.Disturbance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, d)
}

// Deletes notes that jobs were deleted, or may have been, for the judge.
func (f *Fleet) Deletes(d ...check.Deletion) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deleted = append(f.deleted, d...)
}

// Cancels notes that jobs are about to be cancelled.
func (f *Fleet) Cancels(jobs ...stint.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range jobs {
		f.cancelled[int64(id)] += 0
	}
}

// Cancelled notes that a job was cancelled, as the database said: it is over.
func (f *Fleet) Cancelled(job stint.ID, at check.Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancelled[int64(job)] == 0 {
		f.cancelled[int64(job)] = at
	}
}

// CutOff notes that a process, or without a name every one, cannot reach the
// database for long enough to lose its place in the roster, until that is over.
func (f *Fleet) CutOff(process string) (over func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, check.Disturbance{Does: check.CutsOff, Process: process, From: check.Now()})
	n := len(f.done) - 1
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.done[n].To = check.Now()
	}
}

// Works waits until a job ends that begins from now on, and tells how long that
// took.
func (f *Fleet) Works(ctx context.Context, g *Ground) time.Duration {
	f.t.Helper()
	took, err := g.GoesOn(ctx, pace.Of(time.Minute))
	if err != nil {
		f.t.Fatal(err)
	}
	return took
}

// Recovers does the same when a fault has just ended, and notes it for the
// account.
func (f *Fleet) Recovers(ctx context.Context, g *Ground) time.Duration {
	f.t.Helper()
	took := f.Works(ctx, g)
	f.Recovered(took)
	return took
}

// FailedOver notes that another server is about to take the place of the one
// that the fleet worked on, for the judge. It is read before anybody reaches it;
// what is returned reads the one that is gone, which may take its time.
func (f *Fleet) FailedOver(ctx context.Context, kept *Ground) (had func(*Ground)) {
	f.t.Helper()
	o := &check.Failover{Kept: f.read(ctx, kept), At: check.Now()}
	return func(g *Ground) {
		f.t.Helper()
		o.Had = f.read(ctx, g)
		f.replaced(o)
	}
}

// Forgets notes that the server is about to crash, and has not written all that it
// answered. It is read when nobody reaches it any more; what is returned reads what it
// kept, before anybody does again.
func (f *Fleet) Forgets(ctx context.Context, had *Ground) (kept func(*Ground)) {
	f.t.Helper()
	o := &check.Failover{Had: f.read(ctx, had)}
	return func(g *Ground) {
		f.t.Helper()
		o.Kept, o.At = f.read(ctx, g), check.Now()
		f.replaced(o)
	}
}

func (f *Fleet) read(ctx context.Context, g *Ground) *check.Facts {
	f.t.Helper()
	all, err := facts(ctx, g)
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

func (f *Fleet) replaced(o *check.Failover) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failover = o
}

func (f *Fleet) harm(process string, from, to time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.harmed[process] = append(f.harmed[process], span{from, to})
}

// wasHarmed tells whether a process was dead or stood still at a moment, or
// had only just woken up.
func (f *Fleet) wasHarmed(process string, at time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.harmed[process] {
		if !at.Before(s.from) && (s.to.IsZero() || at.Before(s.to.Add(pace.Of(time.Second)))) {
			return true
		}
	}
	return false
}
