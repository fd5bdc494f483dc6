package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// provoking is a store that does to an engine, now and then, what makes each of
// its counters move.
type provoking struct {
	*sqlite.Store
	claims, flushes, writes atomic.Int64
	drop                    chan struct{} // ends a listening
}

func (p *provoking) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	time.Sleep(time.Millisecond) // no time passes in a bubble by itself
	if p.claims.Add(1) == 2 {
		return store.Claim{Serial: req.Serial}, nil // somebody else was sooner
	}
	return p.Store.Claim(ctx, req)
}

func (p *provoking) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	if p.flushes.Add(1) == 2 {
		return 0, errors.New("the database is away for a moment")
	}
	time.Sleep(time.Millisecond) // no time passes in a bubble by itself
	return p.Store.Finish(ctx, engine, claims, done)
}

func (p *provoking) WriteMetrics(ctx context.Context, m report.Metrics) error {
	if p.writes.Add(1) == 1 {
		return errors.New("the database is away for a moment")
	}
	time.Sleep(time.Millisecond) // no time passes in a bubble by itself
	return p.Store.WriteMetrics(ctx, m)
}

func (p *provoking) Listen(ctx context.Context, ring func(store.News)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.drop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return p.Store.Listen(ctx, ring)
}

// Steps says that each job has recorded a step which its handler has no more.
func (p *provoking) Steps(context.Context, stint.ID) ([]stint.RecordedStep, error) {
	return []stint.RecordedStep{{Name: "old", Result: json.RawMessage(`1`)}}, nil
}

// Whatever an engine counts really moves when that happens, and is what the
// anyStore says as well. The fields are found by reflection, so that none is
// forgotten.
func TestEveryCounterMoves(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		p := &provoking{Store: s, drop: make(chan struct{})}
		mux := stint.NewMux()
		nap := func(d time.Duration, err error) func(context.Context, *stint.Job) error {
			return func(ctx context.Context, _ *stint.Job) error {
				time.Sleep(d)
				return errors.Join(err, ctx.Err())
			}
		}
		handle(mux, "short", nap(time.Millisecond, nil))
		handle(mux, "fails", nap(3*time.Millisecond, stint.NoRetry(errors.New("no"))))
		handle(mux, "long", nap(2*time.Second, nil))
		handle(mux, "steps", func(ctx context.Context, _ *stint.Job) error {
			_, err := stint.Step(ctx, "new", func(context.Context) (int, error) { time.Sleep(time.Millisecond); return 1, nil })
			return err
		})
		handle(mux, "endless", func(ctx context.Context, _ *stint.Job) error { <-ctx.Done(); return ctx.Err() })
		e, err := engine.New(p, mux, engine.Config{Slots: 2, MaxSlots: 3, Instance: "ann", MetricsEvery: 5 * time.Second, Poll: time.Second,
			Retention: store.Retention{KeepFor: store.KeepFor{All: store.Forever}, Queues: map[string]store.KeepFor{"passing": {All: time.Second}}}})
		if err != nil {
			t.Fatal(err)
		}
		if m := e.Metrics(); m.Instance != "ann" || m.Engine != 0 || m.Since.IsZero() || m.Workers.Run != 0 {
			t.Errorf("before it ran it says %+v", m)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		endless := enqueue(t, s, "endless", `{}`)
		time.Sleep(3 * time.Second) // a poll in vain
		if m := e.Metrics(); m.Workers.Running != 1 {
			t.Errorf("while one runs it says %+v", m.Workers)
		}
		for range 400 {
			enqueue(t, s, "short", `{}`)
		}
		enqueue(t, s, "fails", `{}`)
		enqueue(t, s, "steps", `{}`)
		time.Sleep(10 * time.Second)
		for range 3 {
			enqueue(t, s, "long", `{}`)
		}
		enqueue(t, s, "unknown", `{}`)
		// Retention deletes a job that no engine had: what those had is compared below.
		passing := enqueue(t, s, "short", `{}`, stint.Queue("passing"), stint.Delay(time.Hour))
		if _, err := s.Cancel(t.Context(), []stint.ID{passing}, "enough"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		close(p.drop)
		if _, err := s.Cancel(t.Context(), []stint.ID{endless}, "enough"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if r := e.Metrics().Retention; r.Kept != time.Second || time.Since(r.Clean) > 10*time.Second {
			t.Errorf("while it deletes it says %+v", r)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		m := e.Metrics()
		moved(t, "Metrics", reflect.ValueOf(m))
		exact(t, s, m)

		// What is stored is what it says now, but for the writing of that.
		kept, err := s.EngineMetrics(t.Context())
		if err != nil || len(kept) != 1 {
			t.Fatal(kept, err)
		}
		last := kept[0]
		last.At, last.Writer, m.Writer, last.Since = m.At, report.WriterMetrics{}, report.WriterMetrics{}, m.Since
		if !reflect.DeepEqual(last, m) {
			t.Errorf("stored is\n%+v\nand it says\n%+v", last, m)
		}
	})
}

// still are fields that may be zero at the end: what goes on now, and the least
// of what waited, which is found by a test of its own.
var still = map[string]bool{"Metrics.Workers.Running": true, "Metrics.Prefetch.Min": true, "Metrics.Retention.Clean": true, "Metrics.Retention.Kept": true}

// moved fails for each field that is zero.
func moved(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[time.Time](), v.Kind() != reflect.Struct && v.Kind() != reflect.Map:
		if v.IsZero() && !still[name] {
			t.Errorf("%s did not move", name)
		}
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			moved(t, fmt.Sprintf("%s[%v]", name, key), v.MapIndex(key))
		}
	default:
		for i := range v.NumField() {
			moved(t, name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	}
}

// exact compares what an engine counted with what the store has of it.
func exact(t *testing.T, s anyStore, m report.Metrics) {
	t.Helper()
	l, err := s.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var claimed, outcomes, returned, run, succeeded, failed, cancelled int64
	var working time.Duration
	kinds := map[string]report.Durations{}
	for _, c := range l.Claims {
		claimed += int64(len(c.Positions))
	}
	for _, j := range l.Jobs {
		job, err := s.Job(t.Context(), j.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range job.Attempts {
			outcomes++
			if x.Slot == 0 {
				if x.Outcome == stint.OutcomeReturned {
					returned++
				}
				continue
			}
			run++
			switch x.Outcome {
			case stint.OutcomeCompleted:
				succeeded++
			case stint.OutcomeFailed:
				failed++
			case stint.OutcomeCancelled:
				cancelled++
			}
			d := kinds[job.Kind]
			d.Add(x.Finished.Sub(x.Started))
			kinds[job.Kind] = d
			working += x.Finished.Sub(x.Started)
		}
	}
	for name, c := range map[string][2]int64{
		"claimed": {claimed, m.Claimer.Claimed}, "outcomes": {outcomes, m.Finisher.Outcomes}, "returned": {returned, m.Claimer.Returned},
		"run": {run, m.Workers.Run}, "succeeded": {succeeded, m.Workers.Succeeded}, "failed": {failed, m.Workers.Failed},
		"cancelled": {cancelled, m.Workers.Cancelled}, "kinds": {int64(len(kinds)), int64(len(m.Kinds))},
		"claims": {m.Claimer.Took.Count, m.Claimer.Claims}, "flushes": {m.Finisher.Took.Count, m.Finisher.Flushes},
		"writes": {m.Writer.Took.Count, m.Writer.Writes},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: the store says %d, and the engine %d", name, c[0], c[1])
		}
	}
	// The store keeps microseconds of each end of an attempt.
	near := func(name string, a, b time.Duration, n int64) {
		t.Helper()
		if d := (a - b).Abs(); d > time.Duration(2*n)*time.Microsecond {
			t.Errorf("%s: the store says %v, and the engine %v", name, a, b)
		}
	}
	near("working", working, m.Workers.Working, run)
	for kind, want := range kinds {
		got := m.Kinds[kind]
		if got.Count != want.Count {
			t.Errorf("%s: the store says %d, and the engine %d", kind, want.Count, got.Count)
		}
		near(kind+" fastest", want.Fastest, got.Fastest, 1)
		near(kind+" longest", want.Longest, got.Longest, 1)
		near(kind+" total", want.Total, got.Total, want.Count)
		near(kind+" mean", want.Mean(), got.Mean(), 2)
	}
}

func TestMetricsAreExactUnderLoadAndAFewFlushesRecordMany(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		const n = 3000
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		jobs := make([]stint.NewJob, n)
		for i := range jobs {
			jobs[i] = stint.KindInfo{Name: "k"}.Job(nil)
		}
		if _, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(s, mux, engine.Config{Slots: 8})
		if err != nil {
			t.Fatal(err)
		}
		// Read all the while: nobody waits for a reader.
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		eventually(t, "all are done", func() bool { return e.Metrics().Workers.Run == n })
		if x, err := e.RunNow(t.Context(), stint.KindInfo{Name: "k"}.Job(nil)); err != nil || x.Outcome != stint.OutcomeCompleted {
			t.Fatal(x, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if x, err := e.RunNow(t.Context(), stint.KindInfo{Name: "k"}.Job(nil)); err != nil || x.Outcome != stint.OutcomeCompleted {
			t.Fatal(x, err)
		}
		m := e.Metrics()
		exact(t, s, m)
		if m.Workers.Run != n+2 || m.Finisher.Flushes > n/4 || m.Claimer.Claims > n/4 {
			t.Errorf("%d attempts took %d claims and %d flushes", m.Workers.Run, m.Claimer.Claims, m.Finisher.Flushes)
		}
		t.Logf("%d attempts, %d claims, %d flushes", m.Workers.Run, m.Claimer.Claims, m.Finisher.Flushes)
	})
}

func TestCountersGoOnWhenAnEngineJoinsAnewOrRunsAgain(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		e, err := engine.New(s, mux, engine.Config{MetricsEvery: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		tokens := map[store.EngineID]bool{}
		for run := range int64(2) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- e.Run(ctx) }()
			for again := range int64(2) {
				enqueue(t, s, "k", `{}`)
				time.Sleep(10 * time.Second)
				m := e.Metrics()
				if m.Workers.Run != 2*run+again+1 {
					t.Errorf("it counts %d attempts after %d runs and %d burials", m.Workers.Run, run, again)
				}
				tokens[m.Engine] = true
				if again == 0 {
					if _, err := engine.Bury(t.Context(), s, m.Engine, "for a test"); err != nil {
						t.Fatal(err)
					}
					time.Sleep(30 * time.Second)
				}
			}
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		kept, err := s.EngineMetrics(t.Context())
		if err != nil || len(kept) != 1 || kept[0].Workers.Run != 4 || !tokens[kept[0].Engine] || len(tokens) != 4 {
			t.Errorf("kept is %+v of %d tokens, error %v", kept, len(tokens), err)
		}
	})
}

// writer is a function that takes metrics.
type writer func(context.Context, report.Metrics) error

func (w writer) WriteMetrics(ctx context.Context, m report.Metrics) error { return w(ctx, m) }

func TestAWriterThatFailsPanicsOrHangsHoldsUpNothing(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		release := make(chan struct{})
		var mu sync.Mutex
		var got []report.Metrics
		var told []error
		good := writer(func(_ context.Context, m report.Metrics) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, m)
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		e, err := engine.New(s, mux, engine.Config{
			MetricsEvery: time.Second, MetricsWriters: []report.MetricsWriter{
				writer(func(context.Context, report.Metrics) error { return errors.New("full") }),
				writer(func(context.Context, report.Metrics) error { panic("oh") }),
				writer(func(context.Context, report.Metrics) error { runtime.Goexit(); return nil }),
				writer(func(context.Context, report.Metrics) error { <-release; return nil }),
				good,
			},
			OnEvent: func(ev event.Event) {
				mu.Lock()
				defer mu.Unlock()
				if ev.Type == event.EventTrouble && ev.Doing == "write metrics" {
					told = append(told, ev.Err)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		for range 20 {
			began := time.Now()
			id := enqueue(t, s, "k", `{}`)
			time.Sleep(time.Second)
			if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed || job.Finished.Sub(began) > 100*time.Millisecond {
				t.Fatalf("it is %+v, error %v", job, err)
			}
		}
		began := time.Now()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the stop took %v", took)
		}
		close(release)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(got) < 20 || got[len(got)-1].Workers.Run != 20 {
			t.Errorf("the writer that works got %d reports: %+v", len(got), got[len(got)-1])
		}
		panics := 0
		for _, err := range told {
			if _, ok := errors.AsType[*stint.PanicError](err); ok {
				panics++
			}
		}
		if panics == 0 || panics == len(told) {
			t.Errorf("%d of %d troubles are panics", panics, len(told))
		}
		kept, err := s.EngineMetrics(t.Context())
		if err != nil || len(kept) != 1 || kept[0].Workers.Run != 20 {
			t.Errorf("kept is %+v, error %v", kept, err)
		}
	})
}

func TestStoringMetricsCanBeSwitchedOff(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		wrote := 0
		w := writer(func(context.Context, report.Metrics) error { wrote++; return nil })
		for _, c := range []struct {
			config engine.Config
			wrote  bool
		}{
			{engine.Config{MetricsEvery: -1, MetricsWriters: []report.MetricsWriter{w}}, false},
			{engine.Config{MetricsNotStored: true, MetricsWriters: []report.MetricsWriter{w}}, true},
		} {
			wrote = 0
			stop := start(t, s, mux, c.config)
			time.Sleep(time.Minute)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if (wrote > 0) != c.wrote {
				t.Errorf("%d reports were written", wrote)
			}
		}
		if kept, err := s.EngineMetrics(t.Context()); err != nil || len(kept) != 0 {
			t.Errorf("kept is %+v, error %v", kept, err)
		}
	})
}
