package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/store"
)

func TestGracefulStopFinishesWhatRunsAndReturnsTheRest(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began, release := make(chan struct{}, 100), make(chan struct{})
		var ended atomic.Int32
		handle(mux, "work", func(context.Context, *stint.Job) error {
			began <- struct{}{}
			<-release
			ended.Add(1)
			return nil
		})
		for range 10 {
			enqueue(t, s, "work", `{}`)
		}
		stop := start(t, s, mux, engine.Config{Slots: 3})
		for range 3 {
			<-began
		}
		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		time.Sleep(50 * time.Millisecond)
		close(release)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		if ended.Load() != 3 {
			t.Errorf("%d jobs ended, want the three that ran", ended.Load())
		}
		counts, err := s.Counts(t.Context())
		if err != nil || counts[stint.Completed] != 3 || counts[stint.Available] != 7 {
			t.Errorf("counts are %v, %v; want 3 completed and 7 available", counts, err)
		}
		if roster, err := s.Engines(t.Context()); len(roster) != 0 || err != nil {
			t.Errorf("the roster is %v, %v", roster, err)
		}
	})
}

func TestAfterTheGraceHandlersAreCancelledAndTheirJobsReturned(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began := make(chan struct{})
		cause := make(chan error, 1)
		handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
			close(began)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return errors.New("interrupted")
		})
		id := enqueue(t, s, "long", `{}`)
		stop := start(t, s, mux, engine.Config{Grace: 50 * time.Millisecond})
		<-began
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if err := <-cause; !errors.Is(err, stint.ErrStopping) {
			t.Errorf("the cause is %v", err)
		}
		job := until(t, s, id, stint.Available)
		if job.Attempt != 1 || job.Attempts[0].Outcome != stint.OutcomeReturned {
			t.Errorf("it is at attempt %d after %v", job.Attempt, job.Attempts[0].Outcome)
		}
	})
}

func TestAnEngineThatWasBuriedRecordsNothingAndJoinsAnew(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began := make(chan struct{}, 2)
		cause := make(chan error, 2)
		handle(mux, "long", func(ctx context.Context, job *stint.Job) error {
			began <- struct{}{}
			if job.Attempt > 1 {
				return nil
			}
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil
		})
		id := enqueue(t, s, "long", `{}`)
		start(t, s, mux, engine.Config{TimeToLive: time.Second})
		<-began
		buryLiving(t, s)
		if err := <-cause; !errors.Is(err, stint.ErrFenced) {
			t.Errorf("the cause is %v", err)
		}
		job := until(t, s, id, stint.Completed)
		if len(job.Attempts) != 2 || job.Attempts[0].Outcome != stint.OutcomeLost || job.Attempts[1].Attempt != 2 {
			t.Errorf("the executions are %+v", job.Attempts)
		}
	})
}

// faulty is a store whose answers can be lost after the work was done.
type faulty struct {
	anyStore
	claims, finishes atomic.Int32 // how many answers to lose
}

var errLost = errors.New("the answer was lost")

func (f *faulty) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	c, err := f.anyStore.Claim(ctx, req)
	if err == nil && len(c.Positions) > 0 && f.claims.Add(-1) >= 0 {
		return store.Claim{}, errLost
	}
	return c, err
}

func (f *faulty) Finish(ctx context.Context, token store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	n, err := f.anyStore.Finish(ctx, token, claims, done)
	if err == nil && f.finishes.Add(-1) >= 0 {
		return 0, errLost
	}
	return n, err
}

func TestLostAnswersLoseNoJobAndRunNoneTwice(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		f := &faulty{anyStore: s}
		f.claims.Store(3)
		f.finishes.Store(5)
		mux := stint.NewMux()
		var runs atomic.Int32
		handle(mux, "work", func(context.Context, *stint.Job) error { runs.Add(1); return nil })
		jobs := make([]stint.NewJob, 300)
		for i := range jobs {
			jobs[i] = stint.NewJob{Kind: "work"}
		}
		if _, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		stop := start(t, f, mux, engine.Config{Slots: 5, TimeToLive: time.Second, Poll: 20 * time.Millisecond})
		eventually(t, "all have ended", func() bool {
			counts, err := s.Counts(t.Context())
			return err == nil && counts[stint.Completed] == 300
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if runs.Load() != 300 {
			t.Errorf("%d runs of 300 jobs", runs.Load())
		}
	})
}

// silent is a store that cannot call.
type silent struct{ store.Store }

func TestWithoutCallsTheEnginePolls(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		start(t, silent{s}, mux, engine.Config{})
		time.Sleep(100 * time.Millisecond)
		job := until(t, s, enqueue(t, s, "work", `{}`), stint.Completed)
		if wait := job.Started.Sub(job.Created); wait > 700*time.Millisecond {
			t.Errorf("it waited %v", wait)
		}
	})
}

func TestPrefetchedWorkThatFindsNoSlotGoesBack(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		release := make(chan struct{})
		handle(mux, "mixed", func(_ context.Context, job *stint.Job) error {
			if string(job.Args) == `"slow"` {
				<-release
			}
			return nil
		})
		var jobs []stint.NewJob
		for i := range 3000 {
			args := `"fast"`
			if i == 2000 || i == 2001 {
				args = `"slow"`
			}
			jobs = append(jobs, stint.NewJob{Kind: "mixed", Args: json.RawMessage(args)})
		}
		ids, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs)
		if err != nil {
			t.Fatal(err)
		}
		first := start(t, s, mux, engine.Config{Slots: 2})
		until(t, s, ids[2001], stint.Running)
		// Both slots of the first engine are taken; another one finishes the rest.
		start(t, s, mux, engine.Config{Slots: 2})
		until(t, s, ids[2999], stint.Completed)
		eventually(t, "only the slow ones are left", func() bool {
			counts, err := s.Counts(t.Context())
			return err == nil && counts[stint.Completed] == 2998
		})
		close(release)
		if err := first(); err != nil {
			t.Fatal(err)
		}
	})
}
