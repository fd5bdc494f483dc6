package sim

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// How long things take, in fake time.
const (
	troubled = 2 * time.Minute  // of trouble
	drained  = 5 * time.Minute  // after it, within which everything must be done, though one engine with one slot may have to do it
	limit    = 20 * time.Minute // a livelock would spin through centuries
)

// jobs is how many are enqueued, about.
const jobs = 200

// world is everything of one seed.
type world struct {
	trace
	seed       Seed
	bug        Bug
	real       *sqlite.Store
	ground     *ground  // the real one, with what it lacks
	store      anyStore // and with the planted bug
	handlers   *sql.DB  // for the transactions of handlers
	clients    []*process
	historyDir string
	open       transactions
	strays     sync.WaitGroup // calls that arrive late
	over       atomic.Bool    // the trouble is
	calm       chan struct{}  // closed when it is
	done       chan struct{}  // closed when all jobs are
	ticks      atomic.Int64
	cancels    *cancellations
	operations *operations
	pauses     *pauses
	calendar   *calendar // nil when there are no schedules
	linked     bool      // there are flows, and jobs with acts
	retention  store.Retention
	erased     erased

	mu         sync.Mutex // guards what follows
	logs       []*check.Writer
	disturbed  []check.Disturbance
	clean      []int64
	naps       map[string]int
	whims      map[string]*whim
	effects    []*effect
	undecided  map[store.Position]bool // failures that were left to others to decide about
	decisions  map[doubt]int           // how often each was decided
	guests     map[store.Position]*visit
	culprits   map[store.EngineID]bool // engines that died of what they ran alone
	answers    []answer
	violations []string
	presences  map[store.EngineID]*presence
	messages   map[string]*message // by what they say
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
func Run(t *testing.T, seed Seed, bug Bug) *Verdict {
	t.Helper()
	dir := must(os.MkdirTemp(fast(), "stint-sim-"))
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "jobs.db")
	must(0, os.WriteFile(path, template(), 0o644))
	var v *Verdict
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(daybreak(seed)))
		watch := time.AfterFunc(limit, func() { panic(fmt.Sprintf("sim: seed %v: the bubble's time is over", seed)) })
		defer watch.Stop()
		v = run(t.Context(), seed, bug, dir, path)
	})
	return v
}

func run(ctx context.Context, seed Seed, bug Bug, dir, path string) *Verdict {
	real := must(sqlite.Open(ctx, path, sqlite.Config{Poll: -1, Readers: 1, Busy: time.Minute}))
	defer real.Close()
	db, handlers := openDatabase(path), openDatabase(path)
	defer db.Close()
	defer handlers.Close()
	ground := &ground{Store: real, db: db}
	w := &world{
		trace: trace{began: time.Now()}, seed: seed, bug: bug, real: real, ground: ground, store: plant(bug, ground), handlers: handlers,
		historyDir: dir, calm: make(chan struct{}), done: make(chan struct{}), cancels: newCancellations(), operations: newOperations(), pauses: newPauses(),
		naps: map[string]int{}, whims: map[string]*whim{},
		undecided: map[store.Position]bool{}, decisions: map[doubt]int{}, guests: map[store.Position]*visit{}, culprits: map[store.EngineID]bool{}, presences: map[store.EngineID]*presence{},
		linked: linked(seed), messages: map[string]*message{},
	}
	w.calendar = newCalendar(seed)
	w.retention = retentionOf(seed)
	d := roll(seed.N, "world", 0)
	var producers, machines sync.WaitGroup
	for i := range 2 {
		w.clients = append(w.clients, w.newProcess(fmt.Sprintf("client-%d", i), weathers[d.IntN(len(weathers))]))
	}
	for _, p := range w.clients {
		producers.Go(func() { p.produce(roll(seed.N, p.name, 0), db, jobs/2, troubled*3/4) })
	}
	for i := range 3 + d.IntN(4) {
		m := w.newMachine(i)
		machines.Go(m.keep)
	}
	if m := w.newDesk(); m != nil {
		machines.Go(m.keep)
	}
	if w.linked {
		planner, writer := w.newProcess("planner", weathers[roll(seed.N, "planner", 0).IntN(len(weathers))]), w.newProcess("writer", weathers[roll(seed.N, "writer", 0).IntN(len(weathers))])
		w.clients = append(w.clients, planner)
		producers.Go(func() { planner.plan(roll(seed.N, "planner", 1), troubled*3/4) })
		machines.Go(func() { writer.correspond(roll(seed.N, "writer", 1)) })
	}
	people := w.hire()
	if seed.Age < Boundless {
		people.busy.Go(func() { w.tune(roll(seed.N, "tuner", 0)) })
	}
	w.observe(ctx, roll(seed.N, "observer", 0), troubled)
	w.over.Store(true)
	close(w.calm)
	producers.Wait()
	people.busy.Wait()
	time.Sleep(2 * maxLate) // an enqueue that was given up may still arrive
	w.finish(ctx, people)
	close(w.done)
	machines.Wait()
	w.strays.Wait()
	w.look(ctx)
	return w.judge(ctx)
}

// tick counts what happens, for what happens at one instant of fake time.
func (w *world) tick() int64 { return w.ticks.Add(1) }

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

func (w *world) left(engine store.EngineID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clean = append(w.clean, int64(engine))
}

func (w *world) wrong(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// observe passes a while, and now and then looks.
func (w *world) observe(ctx context.Context, d dice, long time.Duration) {
	end := time.After(long)
	for {
		select {
		case <-time.After(d.between(0, long/3)):
			w.look(ctx)
		case <-end:
			return
		}
	}
}

// look checks that the numbers which people see are those of the jobs that they
// see, unless something happens between the two.
func (w *world) look(ctx context.Context) {
	before, err := w.real.Counts(ctx)
	if err != nil {
		w.wrong("count the jobs: %v", err)
		return
	}
	shown, err := w.ground.states(ctx)
	if err != nil {
		w.wrong("see the jobs: %v", err)
		return
	}
	after, err := w.real.Counts(ctx)
	if err != nil || !maps.Equal(before, after) {
		return
	}
	for _, state := range store.States {
		if before[state] != shown[state] {
			w.wrong("%d jobs are counted as %s, and %d are shown", before[state], state, shown[state])
		}
	}
}

// finish resumes the queues and waits until everything is done. In some seeds
// one is left alone at first: what is in the others ends all the same.
func (w *world) finish(ctx context.Context, people *people) {
	people.timekeeper.settle(ctx)
	if w.seed.Age < Twisted && roll(w.seed.N, "shelf", 0).chance(20) {
		shelf := queues[1]
		if _, err := people.porter.Pause(ctx, shelf, "", "for now"); err != nil {
			w.wrong("pause the queue %s: %v", shelf, err)
		}
		people.porter.reopen(shelf)
		w.drain(ctx, shelf)
	}
	people.porter.reopen()
	w.drain(ctx, "")
}

// drain waits until every job is final and no cancellation is left to be
// heeded, but for what waits in a paused queue. With all engines well, nothing may stay behind.
func (w *world) drain(ctx context.Context, paused string) {
	for until := time.Now().Add(drained); ; time.Sleep(500 * time.Millisecond) {
		counts, err := w.counts(ctx, paused)
		if err != nil {
			w.wrong("count the jobs: %v", err)
			return
		}
		open := int64(0)
		for state, n := range counts {
			// What is blocked may wait for what is in a paused queue.
			if !state.Final() && (state != stint.Blocked || paused == "") {
				open += n
			}
		}
		marks := 0
		if open == 0 && paused == "" {
			if marks, err = w.ground.count(ctx, `select count(*) from stint_cancellations`); err != nil {
				w.wrong("count the cancellations: %v", err)
				return
			}
		}
		if open == 0 && marks == 0 {
			return
		}
		if time.Now().After(until) {
			w.wrong("%v after the trouble %d jobs are not done (%v) and %d cancellations are left", drained, open, counts, marks)
			return
		}
	}
}

// counts counts the jobs, but for those of a paused queue that nobody has in
// hand.
func (w *world) counts(ctx context.Context, paused string) (map[stint.State]int64, error) {
	if paused == "" {
		return w.real.Counts(ctx)
	}
	list, err := w.real.Queues(ctx)
	if err != nil {
		return nil, err
	}
	all := map[stint.State]int64{}
	for _, queue := range list {
		for state, n := range queue.Counts {
			if queue.Name != paused || state == stint.Running {
				all[state] += n
			}
		}
	}
	return all, nil
}

// trace is what happened, for whoever has to find out why. Texts are made only
// when somebody reads them.
type trace struct {
	began time.Time

	mu    sync.Mutex
	lines []line
}

type line struct {
	at     time.Duration
	who    string
	jobs   []int64 // that it is about
	format string
	args   []any // never changed after they were handed over
}

func (t *trace) note(who string, jobs []int64, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{time.Since(t.began), who, jobs, format, args})
}

// tell shows the whole story of a few jobs, and the last lines of everything.
func (t *trace) tell(jobs []int64, last int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, job := range jobs {
		fmt.Fprintf(&b, "all about job %d:\n", job)
		for i := range t.lines {
			if slices.Contains(t.lines[i].jobs, job) {
				t.lines[i].print(&b)
			}
		}
	}
	fmt.Fprintf(&b, "the last of %d events:\n", len(t.lines))
	for i := len(t.lines) - min(last, len(t.lines)); i < len(t.lines); i++ {
		t.lines[i].print(&b)
	}
	return b.String()
}

func (l *line) print(b *strings.Builder) {
	fmt.Fprintf(b, "  %11.6f %-9s %s", l.at.Seconds(), l.who, fmt.Sprintf(l.format, l.args...))
	if len(l.jobs) > 0 {
		fmt.Fprintf(b, " %v", l.jobs)
	}
	b.WriteByte('\n')
}
