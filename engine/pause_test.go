package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

func pause(t *testing.T, s any, queue string) {
	t.Helper()
	if _, err := s.(store.Pauser).Pause(t.Context(), queue, "the test", ""); err != nil {
		t.Fatal(err)
	}
}

func resume(t *testing.T, s any, queue string) {
	t.Helper()
	if _, err := s.(store.Pauser).Resume(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
}

// U24: nothing of a paused queue begins, on any engine, until it is resumed.
func TestNothingOfAPausedQueueBeginsUntilItIsResumed(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var runs atomic.Int32
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { runs.Add(1); return nil })
		pause(t, s, "mail")
		before := enqueue(t, s, "k", `{}`, stint.Queue("mail"))
		start(t, s, mux, engine.Config{})                         // works on every queue
		start(t, s, mux, engine.Config{Queues: []string{"mail"}}) // on this one
		until(t, s, enqueue(t, s, "k", `{}`), stint.Completed)    // the others go on
		after := enqueue(t, s, "k", `{}`, stint.Queue("mail"))    // a ring without a look
		late := enqueue(t, s, "k", `{}`, stint.Queue("mail"), stint.Delay(50*time.Millisecond))
		until(t, s, late, stint.Available)
		time.Sleep(200 * time.Millisecond)
		if n := runs.Load(); n != 1 {
			t.Errorf("%d jobs ran, want one", n)
		}
		for _, id := range []stint.ID{before, after, late} {
			if job := until(t, s, id, stint.Available); len(job.Attempts) != 0 {
				t.Errorf("job %d has %d executions", id, len(job.Attempts))
			}
		}
		resume(t, s, "mail")
		resumed := time.Now()
		for _, id := range []stint.ID{before, after, late} {
			until(t, s, id, stint.Completed)
		}
		if wait := time.Since(resumed); wait > 5*time.Second {
			t.Errorf("they ran %v after the resumption", wait)
		}
	})
}

func TestWhatRunsGoesOnWhenItsQueueIsPausedAndWhatDidNotBeginGoesBackUncharged(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began, goOn := make(chan stint.ID, 100), make(chan struct{})
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			began <- job.ID
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		start(t, s, mux, engine.Config{Slots: 1})
		first := enqueue(t, s, "k", `{}`)
		<-began
		var rest []stint.ID
		for range 5 {
			rest = append(rest, enqueue(t, s, "k", `{}`))
		}
		pause(t, s, stint.DefaultQueue)
		time.Sleep(100 * time.Millisecond) // the engine hears of it
		close(goOn)
		until(t, s, first, stint.Completed)
		for _, id := range rest {
			job := until(t, s, id, stint.Available)
			if job.Attempt != 1 {
				t.Errorf("job %d was charged: attempt %d", id, job.Attempt)
			}
		}
		time.Sleep(100 * time.Millisecond)
		if len(began) != 0 {
			t.Errorf("%d began", len(began))
		}
		resume(t, s, stint.DefaultQueue)
		for _, id := range rest {
			until(t, s, id, stint.Completed)
		}
	})
}

// Prefetched work is in the engine's hand when its queue is paused. It is
// looked at again when a slot comes free.
func TestPrefetchedJobsOfAPausedQueueAreReturned(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var runs atomic.Int32
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error {
			runs.Add(1)
			time.Sleep(2 * time.Millisecond) // short, so that the engine prefetches
			return nil
		})
		stop := start(t, s, mux, engine.Config{Slots: 2})
		const n = 3000
		jobs := make([]stint.NewJob, n)
		for i := range jobs {
			jobs[i] = stint.NewJob{Kind: "k"}
		}
		if _, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		pause(t, s, stint.DefaultQueue)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		ran := runs.Load()
		if ran == 0 || ran == n {
			t.Fatalf("%d of %d ran before the pause", ran, n)
		}
		time.Sleep(10 * time.Second)
		counts, err := s.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if runs.Load() != ran || counts[stint.Running] != 0 || counts[stint.Available] != int64(n-ran) {
			t.Errorf("%d ran before the pause and %d in all; people see %v", ran, runs.Load(), counts)
		}
		resume(t, s, stint.DefaultQueue)
		time.Sleep(10 * time.Second)
		if got := runs.Load(); got != n {
			t.Errorf("%d of %d ran after the resumption", got, n)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAPauseIsSeenWhereNobodyRings(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var runs atomic.Int32
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { runs.Add(1); return nil })
		stop := start(t, deaf{s, s}, mux, engine.Config{})
		enqueue(t, s, "k", `{}`)
		time.Sleep(time.Minute)
		pause(t, s, stint.DefaultQueue)
		enqueue(t, s, "k", `{}`)
		time.Sleep(time.Minute)
		if n := runs.Load(); n != 1 {
			t.Errorf("%d jobs ran, want one", n)
		}
		resume(t, s, stint.DefaultQueue)
		time.Sleep(3 * time.Second)
		if n := runs.Load(); n != 2 {
			t.Errorf("%d jobs ran after the resumption, want two", n)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// deaf is a store that pauses queues and cannot ring.
type deaf struct {
	store.Store
	store.Pauser
}
