package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
)

// journal is what happened to each job, in order.
type journal struct {
	mu    sync.Mutex
	lines map[stint.ID][]string
}

func (j *journal) note(id stint.ID, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lines == nil {
		j.lines = map[stint.ID][]string{}
	}
	j.lines[id] = append(j.lines[id], fmt.Sprintf(format, args...))
}

func (j *journal) of(id stint.ID) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines[id], ", ")
}

// hooks are hooks that write into the journal.
func (j *journal) hooks(name string) stint.Hooks {
	says := func(what string) stint.Hook {
		return func(_ context.Context, job *stint.Job, x *stint.Execution) error {
			j.note(job.ID, "%s%s %d", name, what, x.Attempt)
			return nil
		}
	}
	return stint.Hooks{AfterSuccess: says("success"), AfterFailure: says("failure"), AfterLastFailure: says("last"), Finally: says("finally")}
}

func TestHooksAreCalledInTheirOrderAfterEachAttempt(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		var j journal
		mux := stint.NewMux()
		mux.Hook(j.hooks(""))
		handler := map[string]func(*stint.Job) error{
			"fine":    func(*stint.Job) error { return nil },
			"fails":   func(*stint.Job) error { return errors.New("no") },
			"panics":  func(*stint.Job) error { panic("no") },
			"exits":   func(*stint.Job) error { runtime.Goexit(); return nil },
			"cancels": func(*stint.Job) error { return stint.Cancel("no") },
			"naps": func(*stint.Job) error {
				if strings.Contains(j.of(0), "napped") {
					return nil
				}
				j.note(0, "napped")
				return stint.Snooze(0)
			},
		}
		for kind, f := range handler {
			mux.Add(stint.Declaration{Name: kind}, nothing(f)).Hook(stint.Hooks{
				AfterLastFailure: j.hooks("kind's ").AfterLastFailure, Finally: j.hooks("kind's ").Finally,
			})
		}
		again := stint.Retry(retry.Fixed(1, 0))
		want := map[stint.ID]string{
			enqueue(t, s, "fine", `{}`): "success 1, finally 1, kind's finally 1",
			enqueue(t, s, "fails", `{}`, again): "failure 1, finally 1, kind's finally 1, " +
				"failure 2, last 2, kind's last 2, finally 2, kind's finally 2",
			enqueue(t, s, "panics", `{}`, stint.Retry(retry.None())): "failure 1, last 1, kind's last 1, finally 1, kind's finally 1",
			enqueue(t, s, "exits", `{}`, stint.Retry(retry.None())):  "failure 1, last 1, kind's last 1, finally 1, kind's finally 1",
			enqueue(t, s, "cancels", `{}`):                           "finally 1, kind's finally 1",
			enqueue(t, s, "naps", `{}`):                              "finally 1, kind's finally 1, success 1, finally 1, kind's finally 1",
		}
		// One slot, so that one hook is called at a time.
		stop := start(t, s, mux, engine.Config{Slots: 1})
		for id := range want {
			eventually(t, fmt.Sprintf("job %d has ended", id), func() bool {
				job, err := s.Job(t.Context(), id)
				return err == nil && job.State.Final()
			})
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for id, want := range want {
			if got := j.of(id); got != want {
				t.Errorf("job %d:\ngot  %s\nwant %s", id, got, want)
			}
		}
	})
}

func TestWhatAHookLearnsIsRecordedAlready(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		seen := make(chan string, 10)
		mux := stint.NewMux()
		handle(mux, "fails", func(context.Context, *stint.Job) error { return errors.New("no paper") })
		mux.Hook(stint.Hooks{AfterFailure: func(ctx context.Context, job *stint.Job, x *stint.Execution) error {
			info, err := s.Job(ctx, job.ID)
			if err != nil {
				return err
			}
			next := "none"
			if x.Next != nil {
				next = fmt.Sprintf("attempt %d in %v", x.Next.Attempt, x.Next.Delay)
			}
			seen <- fmt.Sprintf("%s %v, %v %q final %v next %s, recorded %v",
				job.Kind, job.Tags, x.Outcome, x.Error.Message, x.Final, next, len(info.Executions) >= x.Attempt)
			return nil
		}})
		start(t, s, mux, engine.Config{})
		enqueue(t, s, "fails", `{}`, stint.Tag("a"), stint.Retry(retry.Fixed(1, time.Millisecond)))
		for _, want := range []string{
			`fails [a], failed "no paper" final false next attempt 2 in 1ms, recorded true`,
			`fails [a], failed "no paper" final true next none, recorded true`,
		} {
			if got := <-seen; got != want {
				t.Errorf("\ngot  %s\nwant %s", got, want)
			}
		}
	})
}

func TestAHookInTroubleChangesNothingButIsTold(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		var j journal
		var mu sync.Mutex
		var trouble []string
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		for _, f := range []func() error{
			func() error { panic("oh") },
			func() error { return errors.New("no mail") },
			func() error { runtime.Goexit(); return nil },
		} {
			mux.Hook(stint.Hooks{AfterSuccess: func(context.Context, *stint.Job, *stint.Execution) error { return f() }})
		}
		mux.Hook(stint.Hooks{Finally: j.hooks("").Finally})
		stop := start(t, s, mux, engine.Config{Slots: 1, OnEvent: func(ev stint.Event) {
			if ev.Type == stint.EventTrouble {
				mu.Lock()
				defer mu.Unlock()
				trouble = append(trouble, fmt.Sprintf("%d %s: %v", ev.Job.ID, ev.Doing, ev.Err))
			}
		}})
		ids := []stint.ID{enqueue(t, s, "work", `{}`), enqueue(t, s, "work", `{}`)}
		var want []string
		for _, id := range ids {
			if job := until(t, s, id, stint.Completed); len(job.Executions) != 1 || job.Executions[0].Error != nil || job.Reason != "" {
				t.Errorf("the job is %+v", job)
			}
			for _, problem := range []string{"panic: oh", "no mail", "the handler ended its goroutine (runtime.Goexit)"} {
				want = append(want, fmt.Sprintf("%d call the after-success hook of work: %s", id, problem))
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(trouble, want) {
			t.Errorf("the trouble is\n%s\nwant\n%s", strings.Join(trouble, "\n"), strings.Join(want, "\n"))
		}
		for _, id := range ids {
			if got := j.of(id); got != "finally 1" {
				t.Errorf("after the trouble of job %d came %q", id, got)
			}
		}
	})
}

func TestHooksThatBlockHoldUpNoOutcomeAndAStopWaitsForThem(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		var called atomic.Int32
		release := make(chan struct{})
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		mux.Hook(stint.Hooks{Finally: func(context.Context, *stint.Job, *stint.Execution) error {
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
		defer close(release)
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		mux.Hook(stint.Hooks{Finally: func(ctx context.Context, _ *stint.Job, _ *stint.Execution) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			<-release
			return nil
		}})
		var trouble atomic.Int32
		stop := start(t, s, mux, engine.Config{Grace: 7 * time.Second, OnEvent: func(ev stint.Event) {
			if ev.Type == stint.EventTrouble {
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
		mux.Hook(stint.Hooks{Finally: func(ctx context.Context, _ *stint.Job, _ *stint.Execution) error {
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
		mux.Hook(stint.Hooks{Finally: func(context.Context, *stint.Job, *stint.Execution) error {
			<-release
			called.Add(1)
			return nil
		}})
		if _, err := stint.NewClient(s).EnqueueMany(t.Context(), slices.Repeat([]stint.NewJob{{Kind: "hooked"}}, 1100)); err != nil {
			t.Fatal(err)
		}
		stop := start(t, s, mux, engine.Config{Slots: 4, OnEvent: func(ev stint.Event) {
			if ev.Type == stint.EventTrouble && ev.Doing == "begin a job of the kind hooked" {
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

func TestTheHooksOfALostAttemptAreCalledByTheEngineThatBuries(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		ctx := t.Context()
		var j journal
		var events journal
		mux := stint.NewMux()
		mux.Hook(j.hooks(""))
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		fatal, spared := enqueue(t, s, "work", `{}`, stint.MaxLosses(1), stint.Tag("a")), enqueue(t, s, "work", `{}`)

		// An engine that announces both as running, and is heard of no more.
		const dead stint.Token = 4711
		if err := s.Join(ctx, stint.EngineInfo{Token: dead, Instance: "dead", Slots: 2, TimeToLive: time.Second}, nil); err != nil {
			t.Fatal(err)
		}
		lane := stint.LaneOf(stint.DefaultQueue, 0, stint.PartNormal, "")
		c, err := s.Claim(ctx, stint.ClaimRequest{Engine: dead, Serial: 1, Nonce: 1, Lane: lane.ID, Max: 10, Wait: true})
		if err != nil || len(c.Positions) != 2 {
			t.Fatal(c, err)
		}
		if _, err := s.Beat(ctx, dead, stint.Beat{Running: c.Positions}); err != nil {
			t.Fatal(err)
		}
		if h, ok := s.(stint.Holder); ok {
			h.Release(dead)
		}
		stop := start(t, s, mux, engine.Config{OnEvent: func(ev stint.Event) {
			if ev.Job != nil {
				events.note(ev.Job.ID, "%s", ev.Type)
			}
			if ev.Type == stint.EventFailed {
				events.note(ev.Job.ID, "%v %v %s", ev.Job.Tags, ev.Execution.Outcome, ev.Execution.Reason)
			}
		}})
		until(t, s, spared, stint.Completed)
		until(t, s, fatal, stint.Failed)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got, want := j.of(fatal), "failure 1, last 1, finally 1"; got != want {
			t.Errorf("of the job that is lost for good: %s, want %s", got, want)
		}
		if got := j.of(spared); !strings.HasPrefix(got, "failure 1, finally 1") || !strings.HasSuffix(got, "success 2, finally 2") {
			t.Errorf("of the job that runs again: %s", got)
		}
		if got, want := events.of(fatal), "failed, [a] lost lost"; got != want {
			t.Errorf("the events of the first are %s, want %s", got, want)
		}
		if got, want := events.of(spared), "started, ended"; got != want {
			t.Errorf("the events of the second are %s, want %s", got, want)
		}
	})
}

func TestListenersHearStartedEndedAndFailed(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		var j journal
		mux := stint.NewMux()
		handle(mux, "fine", func(context.Context, *stint.Job) error { return nil })
		handle(mux, "fails", func(_ context.Context, job *stint.Job) error {
			job.Tags[0], job.Queue = "spoilt", "spoilt" // its own, and nobody else's
			return errors.New("no")
		})
		handle(mux, "cancels", func(context.Context, *stint.Job) error { return stint.Cancel("no") })
		stop := start(t, s, mux, engine.Config{OnEvent: func(ev stint.Event) {
			switch ev.Type {
			case stint.EventStarted:
				j.note(ev.Job.ID, "started %d %v", ev.Job.Attempt, ev.Job.Started.IsZero())
			case stint.EventEnded:
				j.note(ev.Job.ID, "ended %d %v", ev.Job.Attempt, ev.Execution.Outcome)
			case stint.EventFailed:
				j.note(ev.Job.ID, "failed %d: %s, queue %s, tags %v, args %s", ev.Job.Attempt, ev.Execution.Reason, ev.Job.Queue, ev.Job.Tags, ev.Job.Args)
			}
		}})
		want := map[stint.ID]string{
			enqueue(t, s, "fine", `{}`):    "started 1 false, ended 1 completed",
			enqueue(t, s, "cancels", `{}`): "started 1 false, ended 1 cancelled",
			enqueue(t, s, "fails", `[1]`, stint.Retry(retry.Fixed(1, 0)), stint.Tag("x", "y"), stint.Queue("q")): "started 1 false, ended 1 failed, " +
				"started 2 false, ended 2 failed, failed 2: retries exhausted, queue q, tags [x y], args [1]",
		}
		for id, want := range want {
			eventually(t, fmt.Sprintf("job %d is told of", id), func() bool { return len(j.of(id)) >= len(want) })
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for id, want := range want {
			if got := j.of(id); got != want {
				t.Errorf("\ngot  %s\nwant %s", got, want)
			}
		}
	})
}

func TestAttemptsThatNoHookIsForHoldUpNobody(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var began atomic.Int32
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { began.Add(1); return nil })
		mux.Hook(stint.Hooks{AfterFailure: func(context.Context, *stint.Job, *stint.Execution) error {
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
