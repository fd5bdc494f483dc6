package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

func cancelJob(t *testing.T, s anyStore, id stint.ID) stint.CancelStatus {
	t.Helper()
	answers, err := s.(store.Canceller).Cancel(t.Context(), []stint.ID{id}, "nobody wants it")
	if err != nil {
		t.Fatal(err)
	}
	return answers[id]
}

func TestARunningJobIsCancelledFromAnywhere(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began, cause, answered := make(chan struct{}), make(chan error, 1), make(chan struct{})
		handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
			close(began)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			<-answered // or it may be over when the store looks
			return ctx.Err()
		})
		start(t, s, mux, engine.Config{})
		id := enqueue(t, s, "long", `{}`)
		<-began
		asked := time.Now()
		if got := cancelJob(t, s, id); got != stint.CancelRequested {
			t.Errorf("cancelling answers %q", got)
		}
		close(answered)
		if err := <-cause; !errors.Is(err, stint.ErrCancelled) {
			t.Errorf("the cause is %v", err)
		}
		if wait := time.Since(asked); wait > time.Second {
			t.Errorf("the handler was told after %v", wait)
		}
		if job := until(t, s, id, stint.Cancelled); job.Reason != "nobody wants it" || len(job.Attempts) != 1 {
			t.Errorf("the reason is %q after %d executions", job.Reason, len(job.Attempts))
		}
	})
}

// onTheWay cancels what was claimed before its engine hears of the claim, and brings no other news.
type onTheWay struct {
	*sqlite.Store
	cancelled chan struct{}
}

func (o onTheWay) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	c, err := o.Store.Claim(ctx, req)
	for _, entry := range c.Entries {
		_, _ = o.Cancel(ctx, []stint.ID{entry.ID}, "nobody wants it")
		o.cancelled <- struct{}{}
		time.Sleep(time.Second)
	}
	return c, err
}

func (o onTheWay) Listen(ctx context.Context, ring func(store.News)) error {
	for {
		ring(store.News{})
		select {
		case <-o.cancelled:
		case <-ctx.Done():
			return nil
		}
	}
}

func TestAJobThatIsCancelledOnItsWayToASlotIsToldSoon(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		var told time.Duration
		handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
			began := time.Now()
			<-ctx.Done()
			told = time.Since(began)
			return ctx.Err()
		})
		enqueue(t, s, "long", `{}`)
		stop := start(t, onTheWay{s, make(chan struct{})}, mux, engine.Config{TimeToLive: 20 * time.Second})
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if told == 0 || told > 6*time.Second {
			t.Errorf("it was told after %v", told)
		}
	})
}

func TestJobsThatWereHeldBehindCancelledOnesAreToldSoonToo(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		var first, last time.Time
		var ids []stint.ID
		const quick, pause = 200, 5 * time.Millisecond // an engine holds some of those whose last ones were over soon
		ran := 0
		handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
			if ran++; ran <= quick {
				time.Sleep(pause)
				return nil
			}
			<-ctx.Done()
			if last = time.Now(); first.IsZero() {
				first = last
			}
			return ctx.Err()
		})
		for range quick + 20 {
			ids = append(ids, enqueue(t, s, "long", `{}`))
		}
		stop := start(t, unheard{lonely{s}, s}, mux, engine.Config{Slots: 1, TimeToLive: 2 * time.Second})
		time.Sleep(quick*pause + 100*time.Millisecond)
		var held []stint.ID
		for _, id := range ids {
			if job, err := s.Job(t.Context(), id); err == nil && job.State == stint.Running {
				held = append(held, id)
			}
		}
		if len(held) < 3 {
			t.Fatalf("the engine holds %d jobs, and was to hold some behind the one that runs", len(held))
		}
		if _, err := s.Cancel(t.Context(), held, "nobody wants them"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, id := range held {
			until(t, s, id, stint.Cancelled)
		}
		if took := last.Sub(first); took > 2*time.Second {
			t.Errorf("the last of %d was told %v after the first", len(held), took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// unheard is a store that notifies of nothing.
type unheard struct {
	store.Store
	store.Canceller
}

func TestACancellationOfWhichNobodyHeardIsFoundAlsoAfterIdleHours(t *testing.T) {
	inBubble(t, 4*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		began, told := make(chan struct{}), make(chan struct{})
		handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
			close(began)
			<-ctx.Done()
			close(told)
			return ctx.Err()
		})
		stop := start(t, unheard{lonely{s}, s}, mux, engine.Config{TimeToLive: 20 * time.Second})
		time.Sleep(90 * time.Minute)
		id := enqueue(t, s, "long", `{}`)
		<-began
		if _, err := s.Cancel(t.Context(), []stint.ID{id}, "nobody wants it"); err != nil {
			t.Fatal(err)
		}
		from := time.Now()
		<-told
		if took := time.Since(from); took > 6*time.Second {
			t.Errorf("it was told after %v", took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAHandlerThatFinishesAllTheSameHasCompletedItsCancelledJob(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began := make(chan struct{})
		handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
			close(began)
			<-ctx.Done()
			return nil
		})
		start(t, s, mux, engine.Config{})
		id := enqueue(t, s, "long", `{}`)
		<-began
		cancelJob(t, s, id)
		until(t, s, id, stint.Completed)
	})
}

func TestCancelledJobsNeverBegin(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var runs atomic.Int32
		mux := stint.NewMux()
		handle(mux, "never", func(context.Context, *stint.Job) error { runs.Add(1); return nil })
		available := enqueue(t, s, "never", `{}`)
		scheduled := enqueue(t, s, "never", `{}`, stint.Delay(100*time.Millisecond))
		for _, id := range []stint.ID{available, scheduled} {
			if got := cancelJob(t, s, id); got != stint.CancelledNow {
				t.Errorf("cancelling answers %q", got)
			}
			until(t, s, id, stint.Cancelled)
		}
		start(t, s, mux, engine.Config{})
		eventually(t, "both have their final execution", func() bool {
			a, _ := s.Job(t.Context(), available)
			b, _ := s.Job(t.Context(), scheduled)
			return len(a.Attempts) == 1 && len(b.Attempts) == 1
		})
		time.Sleep(150 * time.Millisecond)
		if runs.Load() != 0 {
			t.Errorf("%d of them ran", runs.Load())
		}
	})
}

func TestACancelledJobIsNotRetried(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began, fail := make(chan struct{}), make(chan struct{})
		handle(mux, "fails", func(context.Context, *stint.Job) error {
			close(began)
			<-fail // it does not look at its context
			return errors.New("no")
		})
		start(t, s, mux, engine.Config{})
		id := enqueue(t, s, "fails", `{}`, stint.Retry(retry.Forever(time.Millisecond)))
		<-began
		cancelJob(t, s, id)
		close(fail)
		until(t, s, id, stint.Cancelled)
	})
}

func TestADrainedEngineEndsItsJobsAndLeaves(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began, release := make(chan struct{}, 9), make(chan struct{})
		handle(mux, "long", func(context.Context, *stint.Job) error {
			began <- struct{}{}
			<-release
			return nil
		})
		e, err := engine.New(s, mux, engine.Config{Slots: 1, TimeToLive: time.Second, Grace: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- e.Run(t.Context()) }()
		running, left := enqueue(t, s, "long", `{}`), enqueue(t, s, "long", `{}`)
		<-began
		roster, err := s.Engines(t.Context())
		if err != nil || len(roster) != 1 {
			t.Fatal(roster, err)
		}
		if err := s.Drain(t.Context(), roster[0].Token); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		close(release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		until(t, s, running, stint.Completed)
		until(t, s, left, stint.Available)
	})
}

func TestKeptHandlersGoOnWhenTheirEngineWasBuried(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began, ended := make(chan struct{}, 2), make(chan error, 2)
		kept := stint.NewKind[struct{}]("kept").Keep()
		stint.Handle(mux, kept, func(ctx context.Context, job *stint.Job, _ struct{}) error {
			began <- struct{}{}
			if job.Attempt == 1 {
				select {
				case <-ctx.Done():
				case <-time.After(700 * time.Millisecond):
				}
				ended <- ctx.Err()
			}
			return nil
		})
		start(t, s, mux, engine.Config{TimeToLive: time.Second})
		id := enqueue(t, s, "kept", `{}`)
		<-began
		buryLiving(t, s)
		if err := <-ended; err != nil {
			t.Errorf("its context ended: %v", err)
		}
		// What it came to is not recorded: the second run is.
		if job := until(t, s, id, stint.Completed); len(job.Attempts) != 2 || job.Attempt != 2 {
			t.Errorf("attempt %d, %d executions", job.Attempt, len(job.Attempts))
		}
	})
}
