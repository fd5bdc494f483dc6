package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/sqlite"
)

func TestHooksThatBlockHoldUpNoOutcomeAndAStopWaitsForThem(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var called atomic.Int32
		release := make(chan struct{})
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		mux.Hook(stint.Hooks{Finally: func(context.Context, *stint.Job, *stint.Attempt) error {
			<-release
			called.Add(1)
			return nil
		}})
		jobs := slices.Repeat([]stint.NewJob{{Kind: "work"}}, 50)
		if _, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		stop := start(t, s, mux, engine.Config{Slots: 2})
		eventually(t, "all are recorded", func() bool {
			counts, err := s.Counts(t.Context())
			return err == nil && counts[stint.Completed] == 50
		})
		if called.Load() != 0 {
			t.Fatal("the hooks did not block")
		}
		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		eventually(t, "it left the roster", func() bool {
			roster, err := s.Engines(t.Context())
			return err == nil && len(roster) == 0
		})
		close(release)
		if err := <-stopped; err != nil || called.Load() != 50 {
			t.Errorf("it stopped with %v after %d of 50 hooks", err, called.Load())
		}
	})
}

func TestTheGraceEndsHooksAndThoseThatIgnoreItAreLeftBehind(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		causes, release := make(chan error, 1), make(chan struct{})
		var cancelled time.Time
		defer close(release)
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		mux.Hook(stint.Hooks{Finally: func(ctx context.Context, _ *stint.Job, _ *stint.Attempt) error {
			<-ctx.Done()
			cancelled = time.Now()
			causes <- context.Cause(ctx)
			<-release
			return nil
		}})
		var trouble atomic.Int32
		stop := start(t, s, mux, engine.Config{Grace: 7 * time.Second, OnEvent: func(ev event.Event) {
			if ev.Type == event.EventTrouble {
				trouble.Add(1)
			}
		}})
		id := enqueue(t, s, "work", `{}`)
		time.Sleep(time.Second)
		asked := time.Now()
		if err := stop(); err != nil {
			t.Errorf("it stopped with %v", err)
		}
		if took := time.Since(asked); took < 12*time.Second || took > 13*time.Second {
			t.Errorf("it stopped after %v, want the grace of 7s and 5s to notice", took)
		}
		if cause := <-causes; !errors.Is(cause, stint.ErrStopping) || trouble.Load() != 1 {
			t.Errorf("the cause is %v, and %d troubles were told", cause, trouble.Load())
		}
		if after := cancelled.Sub(asked).Round(time.Second); after != 9*time.Second {
			t.Errorf("the hook was cancelled after %v, want the grace of 7s and two seconds", after)
		}
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed {
			t.Errorf("the job is %+v, %v", job, err)
		}
	})
}

func TestAHookThatTakesLongerThanAMinuteIsCancelled(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		took := make(chan time.Duration, 1)
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		mux.Hook(stint.Hooks{Finally: func(ctx context.Context, _ *stint.Job, _ *stint.Attempt) error {
			began := time.Now()
			<-ctx.Done()
			took <- time.Since(began)
			return ctx.Err()
		}})
		stop := start(t, s, mux, engine.Config{})
		enqueue(t, s, "work", `{}`)
		if d := <-took; d != time.Minute {
			t.Errorf("it was cancelled after %v", d)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestHooksThatHangKeepJobsFromBeginningButNotFromOtherEngines(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var began, called, refused atomic.Int32
		release := make(chan struct{})
		mux := stint.NewMux()
		handle(mux, "hooked", func(context.Context, *stint.Job) error { began.Add(1); return nil })
		mux.Hook(stint.Hooks{Finally: func(context.Context, *stint.Job, *stint.Attempt) error {
			<-release
			called.Add(1)
			return nil
		}})
		if _, err := stint.NewClient(s).EnqueueMany(t.Context(), slices.Repeat([]stint.NewJob{{Kind: "hooked"}}, 1100)); err != nil {
			t.Fatal(err)
		}
		stop := start(t, s, mux, engine.Config{Slots: 4, OnEvent: func(ev event.Event) {
			if ev.Type == event.EventTrouble && ev.Doing == "begin a job of the kind hooked" {
				refused.Add(1)
			}
		}})
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if began.Load() != 1004 || refused.Load() != 0 {
			t.Errorf("%d jobs began, want 1004: a thousand and one for each slot", began.Load())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if began.Load() != 1004 || refused.Load() != 4 {
			t.Errorf("%d jobs began, and %d were handed back", began.Load(), refused.Load())
		}
		// An engine whose hooks are well runs the others.
		plain := stint.NewMux()
		handle(plain, "hooked", func(context.Context, *stint.Job) error { return nil })
		stopOther := start(t, s, plain, engine.Config{})
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Completed] != 1100 {
			t.Errorf("of 1100 jobs the store counts %v, %v", counts, err)
		}
		if err := stopOther(); err != nil {
			t.Fatal(err)
		}
		// Once they go on, so does the engine, and all places are free again.
		close(release)
		if _, err := stint.NewClient(s).EnqueueMany(t.Context(), slices.Repeat([]stint.NewJob{{Kind: "hooked"}}, 1100)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if began.Load() != 2104 || called.Load() != 2104 {
			t.Errorf("%d jobs began and %d hooks were called, want 2104", began.Load(), called.Load())
		}
	})
}

func TestAttemptsThatNoHookIsForHoldUpNobody(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var began atomic.Int32
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { began.Add(1); return nil })
		mux.Hook(stint.Hooks{AfterFailure: func(context.Context, *stint.Job, *stint.Attempt) error {
			t.Error("nothing failed")
			return nil
		}})
		if _, err := stint.NewClient(s).EnqueueMany(t.Context(), slices.Repeat([]stint.NewJob{{Kind: "work"}}, 1100)); err != nil {
			t.Fatal(err)
		}
		stop := start(t, s, mux, engine.Config{Slots: 4})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if began.Load() != 1100 {
			t.Errorf("%d jobs began of 1100", began.Load())
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTheHooksOfWhatAStopEndedHaveTime(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var j journal
		began := make(chan struct{})
		mux := stint.NewMux()
		handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
			close(began)
			<-ctx.Done()
			return ctx.Err()
		})
		mux.Hook(j.hooks(""))
		mux.Hook(stint.Hooks{Finally: func(ctx context.Context, job *stint.Job, x *stint.Attempt) error {
			j.note(job.ID, "%v, %v", x.Outcome, ctx.Err())
			return nil
		}})
		id := enqueue(t, s, "long", `{}`)
		stop := start(t, s, mux, engine.Config{Grace: 10 * time.Millisecond})
		<-began
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got, want := j.of(id), "finally 1, returned, <nil>"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
