package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

const benchHelp = `bench: Measure throughput and latency

Bench measures this machine and database: how many jobs that do nothing can be
enqueued in bulk and worked off per second, and how long an idle engine takes to
start one that is enqueued by itself. Each job has been committed before it counts,
and history is kept.

It works in a schema of its own, or for SQLite in a file of its own in the same
directory, and removes it. Other jobs are not touched, though the server is kept
busy; on the same machine it shares the processors with what is measured.

Examples:
  stint bench -n 1000000 --db postgres:///app`

// benchReport is the result, as --json prints it.
type benchReport struct {
	Jobs             int     `json:"jobs"`
	EnqueuePerSecond float64 `json:"enqueue_per_s"`
	WorkPerSecond    float64 `json:"work_per_s"`
	Single           int     `json:"single_jobs"`
	StartP50         float64 `json:"enqueue_to_start_p50_ms"`
	StartP99         float64 `json:"enqueue_to_start_p99_ms"`
	Slots            int     `json:"slots"`
	Processors       int     `json:"processors"`
	Version          string  `json:"stint"`
}

func (a *app) benchCommand() *cobra.Command {
	var o struct {
		jobs, slots int
		duration    time.Duration
	}
	cmd := a.withJSON(a.onDatabase(page(benchHelp), func(ctx context.Context, _ *cobra.Command, _ []string) error {
		switch {
		case o.jobs < 1:
			return usagef("--jobs: %d is less than 1", o.jobs)
		case o.slots < 0:
			return usagef("--slots: %d is less than 0", o.slots)
		case o.duration < 100*time.Millisecond || o.duration > time.Hour:
			return usagef("--duration: it is not between 100ms and 1h")
		}
		r, err := a.bench(ctx, o.jobs, o.slots, o.duration)
		if err != nil {
			return err
		}
		return a.printBench(r)
	}))
	flags := cmd.Flags()
	flags.IntVarP(&o.jobs, "jobs", "n", 100_000, "how many jobs are enqueued in bulk and worked")
	flags.IntVar(&o.slots, "slots", 0, "how many jobs the engine runs at once (default 4 for each processor)")
	durationFlag(flags, &o.duration, "duration", 5*time.Second, "for how long jobs are enqueued one at a time")
	return cmd
}

// bench measures in a schema or file of its own, and removes that whatever happens.
// It prints nothing before: a reader that closes its pipe, as head does, ends the
// process.
func (a *app) bench(ctx context.Context, jobs, slots int, duration time.Duration) (r benchReport, err error) {
	if err := a.db.check(); err != nil {
		return r, err
	}
	ctx, release := interrupted(ctx)
	defer release()
	var b [4]byte
	rand.Read(b[:])
	own, name := a.db, "stint_bench_"+hex.EncodeToString(b[:])
	if own.isPostgres() {
		own.schema = name
	} else {
		// A directory on the same disk, since SQLite keeps files beside the database.
		dir := filepath.Join(filepath.Dir(own.url), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		own.url = filepath.Join(dir, defaultFile)
	}
	// A signal must not interrupt the installation: the part that was committed
	// would stay.
	db, err := a.openSchema(context.WithoutCancel(ctx), creating, own)
	if err != nil {
		return r, err
	}
	defer db.Close()
	if own.isPostgres() {
		defer func() { err = errors.Join(err, db.roles.Uninstall(context.WithoutCancel(ctx))) }()
	}
	m := &benchmark{store: db.roles, client: stint.NewClient(db.roles), slots: slots}
	r = benchReport{Jobs: jobs, Slots: cmp.Or(slots, engine.DefaultSlots()), Processors: runtime.GOMAXPROCS(0), Version: version()}
	if err = m.burn(ctx, &r); err == nil {
		err = m.latency(ctx, &r, duration)
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted; nothing is left over")
	}
	return r, err
}

func (a *app) printBench(r benchReport) error {
	if a.json {
		return a.printJSON(r)
	}
	t := newTable(a.out)
	t.AppendRow([]any{"enqueued in bulk, jobs/s", words.Count(int64(r.EnqueuePerSecond))})
	t.AppendRow([]any{"worked, jobs/s", words.Count(int64(r.WorkPerSecond))})
	t.AppendRow([]any{"enqueue to start, p50 ms", fmt.Sprintf("%.2f", r.StartP50)})
	t.AppendRow([]any{"enqueue to start, p99 ms", fmt.Sprintf("%.2f", r.StartP99)})
	t.Render()
	_, err := fmt.Fprintf(a.out, "\n%s in bulk, %s one at a time; %d slots, %d processors\n",
		words.Counted(r.Jobs, "job"), words.Count(r.Single), r.Slots, r.Processors)
	return err
}

type benchmark struct {
	store  fullStore
	client *stint.Client
	slots  int
}

var benchKind = stint.KindInfo{Name: "bench", Retry: retry.None()}

// work runs an engine while something is done, and returns when it has recorded
// every outcome.
func (m *benchmark) work(ctx context.Context, handle func(job *stint.Job), do func(ctx context.Context) error) error {
	mux := stint.NewMux()
	mux.Add(benchKind, func(_ context.Context, job *stint.Job) (json.RawMessage, error) {
		handle(job)
		return nil, nil
	})
	e, err := engine.New(m.store, mux, engine.Config{Slots: m.slots})
	if err != nil {
		return err
	}
	doing, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	running, stop := context.WithCancel(ctx)
	defer stop()
	result := make(chan error, 1)
	go func() {
		err := e.Run(running)
		ended(cmp.Or(err, errors.New("the engine ended"))) // while it was needed
		result <- err
	}()
	err = do(doing)
	stop()
	return errors.Join(err, <-result)
}

// burn enqueues jobs in bulk and has them worked off, one after the other.
func (m *benchmark) burn(ctx context.Context, r *benchReport) error {
	const batch = 5000
	jobs := slices.Repeat([]stint.NewJob{benchKind.Job(nil)}, min(r.Jobs, batch))
	begin := time.Now()
	for left := r.Jobs; left > 0; left -= batch {
		if _, err := m.client.EnqueueMany(ctx, jobs[:min(left, batch)]); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
	}
	r.EnqueuePerSecond = float64(r.Jobs) / time.Since(begin).Seconds()
	started, done := atomic.Int64{}, make(chan struct{})
	begin = time.Now()
	err := m.work(ctx, func(*stint.Job) {
		if started.Add(1) == int64(r.Jobs) {
			close(done)
		}
	}, func(ctx context.Context) error {
		_, err := receive(ctx, done)
		return err
	})
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	r.WorkPerSecond = float64(r.Jobs) / time.Since(begin).Seconds()
	counts, err := m.store.Counts(ctx)
	if n := counts[stint.Completed]; err == nil && n != int64(r.Jobs) {
		err = fmt.Errorf("of %d jobs the history has %d", r.Jobs, n)
	}
	return err
}

// latency enqueues single jobs, 50 a second, which leaves the engine idle.
func (m *benchmark) latency(ctx context.Context, r *benchReport, d time.Duration) error {
	const gap, warmUp = 20 * time.Millisecond, 5
	began := make(chan time.Time, 1)
	var took []time.Duration
	err := m.work(ctx, func(*stint.Job) { began <- time.Now() }, func(ctx context.Context) error {
		for i := range warmUp + int(d/gap) {
			called := time.Now()
			if _, err := m.client.Enqueue(ctx, benchKind.Job(nil)); err != nil {
				return fmt.Errorf("enqueue: %w", err)
			}
			at, err := receive(ctx, began)
			if err != nil {
				return err
			}
			if i >= warmUp { // connections are open and statements prepared
				took = append(took, at.Sub(called))
			}
			// The gap varies, so that it is not in step with any polling.
			wait(ctx, time.Until(called.Add(gap+time.Duration(i%7)*time.Millisecond)))
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	slices.Sort(took)
	at := func(q float64) float64 { return took[int(math.Ceil(q*float64(len(took))))-1].Seconds() * 1e3 }
	r.Single, r.StartP50, r.StartP99 = len(took), at(0.50), at(0.99)
	return nil
}

// receive waits for a value, or for a channel to be closed.
func receive[T any](ctx context.Context, from <-chan T) (v T, err error) {
	select {
	case v = <-from:
		return v, nil
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}
