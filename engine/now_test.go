package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

func newEngine(t *testing.T, s store.Store, mux *stint.Mux, c engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.New(s, mux, c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newJob(kind, args string, opts ...stint.Option) stint.NewJob {
	return stint.KindInfo{Name: kind}.Job(json.RawMessage(args), opts...)
}

// runs works with an engine until the test ends, and returns when it has
// joined.
func runs(t *testing.T, e *engine.Engine, s store.Roster) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("the engine stopped with %v", err)
		}
	})
	eventually(t, "the engine has joined, and takes inline runs", func() bool {
		roster, err := s.Engines(t.Context())
		return err == nil && len(roster) == 1 && e.TakesInlineRuns()
	})
	return stop
}

// onEachNow runs a test of RunNow on both stores: by an engine that does not
// run, so that the call joins by itself, and by one that does.
func onEachNow(t *testing.T, fill func(mux *stint.Mux), f func(t *testing.T, s anyStore, e *engine.Engine)) {
	t.Run("alone", func(t *testing.T) {
		onEach(t, func(t *testing.T, s anyStore) {
			mux := stint.NewMux()
			fill(mux)
			f(t, s, newEngine(t, s, mux, engine.Config{Instance: "caller"}))
			if roster, err := s.Engines(t.Context()); err != nil || len(roster) != 0 {
				t.Errorf("the roster still has %v, %v", roster, err)
			}
		})
	})
	t.Run("beside", func(t *testing.T) {
		onEach(t, func(t *testing.T, s anyStore) {
			mux := stint.NewMux()
			fill(mux)
			// It works on another queue: what comes back is looked at first.
			e := newEngine(t, s, mux, engine.Config{Instance: "caller", Queues: []string{"other"}, Slots: 2})
			runs(t, e, s)
			f(t, s, e)
			if roster, err := s.Engines(t.Context()); err != nil || len(roster) != 1 {
				t.Errorf("the roster has %v, %v; want the engine only", roster, err)
			}
		})
	})
}

func runNow(t *testing.T, e *engine.Engine, job stint.NewJob) store.Completion {
	t.Helper()
	x, err := e.RunNow(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func info(t *testing.T, s store.Inspector, id stint.ID) *stint.JobInfo {
	t.Helper()
	job, err := s.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestRunNowHasRunAndRecordedTheJobWhenItReturns(t *testing.T) {
	type key struct{}
	fill := func(mux *stint.Mux) {
		mux.Add(stint.KindInfo{Name: "echo"}, func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
			return fmt.Appendf(nil, `{"id": %d, "attempt": %d, "args": %s, "value": %q}`, job.ID, job.Attempt, job.Args, ctx.Value(key{})), nil
		})
	}
	onEachNow(t, fill, func(t *testing.T, s anyStore, e *engine.Engine) {
		ctx := context.WithValue(t.Context(), key{}, "of the caller")
		x, err := e.RunNow(ctx, newJob("echo", `{"n":1}`, stint.Tag("a"), stint.Queue("mail")))
		if err != nil || !x.Final || x.Outcome != stint.OutcomeCompleted {
			t.Fatalf("the execution is %+v, %v", x, err)
		}
		job := info(t, s, x.Job)
		if job.State != stint.Completed || job.Queue != "mail" || len(job.Tags) != 1 || len(job.Attempts) != 1 {
			t.Errorf("the job is %+v", job)
		}
		var result struct {
			ID, Attempt int64
			Args        struct{ N int }
			Value       string
		}
		kept := job.Attempts[0]
		if err := json.Unmarshal(kept.Result, &result); err != nil || result.ID != int64(x.Job) || result.Attempt != 1 || result.Args.N != 1 || result.Value != "of the caller" {
			t.Errorf("the result is %s, %v", kept.Result, err)
		}
		if kept.Instance != "caller" || kept.Slot < 1 || kept.Started.Before(job.Created) || kept.Finished.Before(kept.Started) {
			t.Errorf("what is recorded is %+v", kept)
		}
	})
}

func TestWhatFailsNowIsInTheQueueWithOneAttemptUsed(t *testing.T) {
	fill := func(mux *stint.Mux) {
		handle(mux, "fails", func(_ context.Context, job *stint.Job) error {
			if job.Attempt == 1 {
				return errors.New("the mail server is away")
			}
			return nil
		})
	}
	onEachNow(t, fill, func(t *testing.T, s anyStore, e *engine.Engine) {
		x := runNow(t, e, newJob("fails", `{}`, stint.Retry(retry.Fixed(3, time.Hour))))
		if x.Final || x.Outcome != stint.OutcomeFailed || x.Error.Message != "the mail server is away" || x.Next == nil || x.Next.Delay != time.Hour {
			t.Errorf("the execution is %+v", x)
		}
		job := info(t, s, x.Job)
		if job.State != stint.Retrying || job.Attempt != 2 || len(job.Attempts) != 1 || job.Due.Sub(job.Attempts[0].Finished).Round(time.Millisecond) != time.Hour {
			t.Errorf("the job is %+v", job)
		}
		// The background takes over when its time has come.
		soon := runNow(t, e, newJob("fails", `{}`, stint.Retry(retry.Fixed(3, 10*time.Millisecond))))
		mux := stint.NewMux()
		fill(mux)
		stop := start(t, s, mux, engine.Config{})
		job = until(t, s, soon.Job, stint.Completed)
		if len(job.Attempts) != 2 || job.Attempts[1].Attempt != 2 {
			t.Errorf("the executions are %+v", job.Attempts)
		}
		_ = stop()
	})
}

func TestFailuresOfEachKindEndARunNowAsTheyEndAnyAttempt(t *testing.T) {
	fill := func(mux *stint.Mux) {
		handle(mux, "final", func(context.Context, *stint.Job) error { return stint.NoRetry(errors.New("no such customer")) })
		handle(mux, "panics", func(context.Context, *stint.Job) error { panic("oh") })
		handle(mux, "slow", func(ctx context.Context, _ *stint.Job) error { <-ctx.Done(); return ctx.Err() })
		handle(mux, "naps", func(context.Context, *stint.Job) error { return stint.Snooze(time.Hour) })
		handle(mux, "gone", func(context.Context, *stint.Job) error { return stint.Cancel("the customer left") })
	}
	onEachNow(t, fill, func(t *testing.T, s anyStore, e *engine.Engine) {
		for _, c := range []struct {
			kind  string
			opts  []stint.Option
			state stint.State
			class string
		}{
			{"final", nil, stint.Failed, "errors.errorString"},
			{"panics", nil, stint.Retrying, "panic"},
			{"panics", []stint.Option{stint.Retry(retry.None())}, stint.Failed, "panic"},
			{"slow", []stint.Option{stint.Timeout(20 * time.Millisecond)}, stint.Retrying, "timeout"},
			{"naps", nil, stint.Scheduled, ""},
			{"gone", nil, stint.Cancelled, ""},
		} {
			x := runNow(t, e, newJob(c.kind, `{}`, c.opts...))
			job := info(t, s, x.Job)
			if job.State != c.state || x.Final != c.state.Final() || len(job.Attempts) != 1 {
				t.Errorf("%s: the job is %s, the execution %+v", c.kind, job.State, x)
			}
			if got := job.Attempts[0].Error; c.class != "" && (got == nil || got.Class != c.class || c.class == "panic" && got.Stack == "") {
				t.Errorf("%s: the error is %+v", c.kind, got)
			}
		}
	})
}

func TestAHandlerThatEndsItsGoroutineDoesNotEndTheCallers(t *testing.T) {
	fill := func(mux *stint.Mux) {
		handle(mux, "exits", func(context.Context, *stint.Job) error { runtime.Goexit(); return nil })
		handle(mux, "returns", func(context.Context, *stint.Job) error { return exiting{} })
	}
	onEachNow(t, fill, func(t *testing.T, s anyStore, e *engine.Engine) {
		for _, kind := range []string{"exits", "returns"} {
			x := runNow(t, e, newJob(kind, `{}`))
			if x.Outcome != stint.OutcomeFailed || !strings.Contains(x.Error.Message, "Goexit") || info(t, s, x.Job).State != stint.Retrying {
				t.Errorf("%s: the execution is %+v", kind, x)
			}
		}
	})
}

func TestACallerThatGivesUpLeavesTheJobToTheQueueUncharged(t *testing.T) {
	type began struct{}
	fill := func(mux *stint.Mux) {
		handle(mux, "long", func(ctx context.Context, job *stint.Job) error {
			if c, ok := ctx.Value(began{}).(chan struct{}); ok {
				close(c)
			}
			if string(job.Args) == `"stubborn"` {
				<-ctx.Done()
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
	}
	onEachNow(t, fill, func(t *testing.T, s anyStore, e *engine.Engine) {
		begin := make(chan struct{})
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), began{}, begin))
		go func() { <-begin; cancel(errors.New("the browser was closed")) }()
		x, err := e.RunNow(ctx, newJob("long", `{}`))
		if err != nil || x.Outcome != stint.OutcomeReturned || x.Final {
			t.Fatalf("the execution is %+v, %v", x, err)
		}
		job := info(t, s, x.Job)
		if job.State != stint.Available || job.Attempt != 1 || job.Attempts[0].Reason != "the caller gave up: the browser was closed" {
			t.Errorf("the job is %+v", job)
		}
		// What completes all the same has completed.
		again := make(chan struct{})
		late, cancelLate := context.WithCancel(context.WithValue(t.Context(), began{}, again))
		go func() { <-again; cancelLate() }()
		x, err = e.RunNow(late, newJob("long", `"stubborn"`))
		if err != nil || x.Outcome != stint.OutcomeCompleted {
			t.Errorf("the execution is %+v, %v", x, err)
		}
	})
}

func TestNobodyElseTakesAJobThatIsRunNow(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var here, there atomic.Int32
		mux, other := stint.NewMux(), stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { here.Add(1); return nil })
		handle(other, "work", func(context.Context, *stint.Job) error { there.Add(1); return nil })
		start(t, s, other, engine.Config{})
		e := newEngine(t, s, mux, engine.Config{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 10 {
					if x, err := e.RunNow(t.Context(), newJob("work", `{}`)); err != nil || x.Outcome != stint.OutcomeCompleted {
						t.Errorf("the execution is %+v, %v", x, err)
					}
				}
			})
		}
		wg.Wait()
		if here.Load() != 40 || there.Load() != 0 {
			t.Errorf("%d ran here and %d there", here.Load(), there.Load())
		}
		enqueue(t, s, "work", `{}`) // the other engine is well
		eventually(t, "a usual job has run", func() bool { return there.Load() == 1 })
	})
}

func TestEventsOfARunNowAreThoseOfAnyRun(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		var mu sync.Mutex
		var seen []string
		e := newEngine(t, s, mux, engine.Config{OnEvent: func(ev event.Event) {
			mu.Lock()
			defer mu.Unlock()
			text := string(ev.Type)
			if ev.Attempt != nil {
				text += " " + ev.Attempt.Outcome.String()
			}
			if ev.Job != nil {
				text += " " + ev.Job.Kind
			}
			seen = append(seen, text)
		}})
		runNow(t, e, newJob("work", `{}`))
		if got, want := strings.Join(seen, ", "), "joined, started work, ended completed work, left"; got != want {
			t.Errorf("the events are %s; want %s", got, want)
		}
	})
}

func TestCancellingReachesAJobThatIsRunNow(t *testing.T) {
	type began struct{}
	fill := func(mux *stint.Mux) {
		handle(mux, "long", func(ctx context.Context, job *stint.Job) error {
			ctx.Value(began{}).(chan stint.ID) <- job.ID
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}
	onEachNow(t, fill, func(t *testing.T, s anyStore, e *engine.Engine) {
		begin := make(chan stint.ID, 1)
		go func() {
			id := <-begin
			if _, err := s.(store.Canceller).Cancel(t.Context(), []stint.ID{id}, "not needed"); err != nil {
				t.Error(err)
			}
		}()
		x, err := e.RunNow(context.WithValue(t.Context(), began{}, begin), newJob("long", `{}`))
		if err != nil {
			t.Fatal(err)
		}
		if job := info(t, s, x.Job); x.Outcome != stint.OutcomeCancelled || job.State != stint.Cancelled || job.Reason != "not needed" {
			t.Errorf("the execution is %+v, the job %s: %s", x, job.State, job.Reason)
		}
	})
}

func TestAnEngineThatStopsWaitsForWhatIsRunNow(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		began, release := make(chan struct{}), make(chan struct{})
		mux := stint.NewMux()
		handle(mux, "long", func(context.Context, *stint.Job) error { close(began); <-release; return nil })
		handle(mux, "quick", func(context.Context, *stint.Job) error { return nil })
		e := newEngine(t, s, mux, engine.Config{Slots: 1})
		stop := runs(t, e, s)
		result := make(chan store.Completion, 1)
		go func() {
			x, err := e.RunNow(t.Context(), newJob("long", `{}`))
			if err != nil {
				t.Error(err)
			}
			result <- x
		}()
		<-began
		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		select {
		case err := <-stopped:
			t.Fatalf("it stopped with %v while a job ran", err)
		case <-time.After(100 * time.Millisecond):
		}
		// It takes no more guests; whoever comes is on his own.
		if x := runNow(t, e, newJob("quick", `{}`)); x.Outcome != stint.OutcomeCompleted {
			t.Errorf("the execution is %+v", x)
		}
		close(release)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if x := <-result; x.Outcome != stint.OutcomeCompleted || x.Slot != 2 {
			t.Errorf("the execution is %+v, want one behind the only slot", x)
		}
	})
}

func TestAfterTheGraceWhatIsRunNowIsCancelledAndReturned(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		began := make(chan struct{})
		mux := stint.NewMux()
		handle(mux, "long", func(ctx context.Context, _ *stint.Job) error { close(began); <-ctx.Done(); return ctx.Err() })
		e := newEngine(t, s, mux, engine.Config{Grace: 50 * time.Millisecond})
		stop := runs(t, e, s)
		go func() { <-began; _ = stop() }()
		x := runNow(t, e, newJob("long", `{}`))
		if x.Outcome != stint.OutcomeReturned || x.Reason != "the engine stopped" {
			t.Errorf("the execution is %+v", x)
		}
	})
}

func TestWhatCannotBeRunNowIsNotEnqueued(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { t.Error("it ran"); return nil })
		e := newEngine(t, s, mux, engine.Config{})
		over, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("too late"))
		for want, call := range map[string]func() (store.Completion, error){
			`no handler for "other"`: func() (store.Completion, error) { return e.RunNow(t.Context(), newJob("other", `{}`)) },
			"waits for no time": func() (store.Completion, error) {
				return e.RunNow(t.Context(), newJob("work", `{}`, stint.Delay(time.Hour)))
			},
			"malformed JSON": func() (store.Completion, error) { return e.RunNow(t.Context(), newJob("work", `{`)) },
			"too late":       func() (store.Completion, error) { return e.RunNow(over, newJob("work", `{}`)) },
			engine.ErrNoImmediate.Error(): func() (store.Completion, error) {
				return newEngine(t, silent{s}, mux, engine.Config{}).RunNow(t.Context(), newJob("work", `{}`))
			},
		} {
			if x, err := call(); err == nil || !strings.Contains(err.Error(), want) || x.Job != 0 {
				t.Errorf("%+v, %v; want %s", x, err, want)
			}
		}
		if counts, err := s.Counts(t.Context()); err != nil || len(counts) != 0 && counts[stint.Available]+counts[stint.Running] != 0 {
			t.Errorf("counts are %v, %v", counts, err)
		}
	})
}

// A caller that does not know whether its RunNow arrived calls again.
func TestOfAKeyOnlyTheFirstIsRunNow(t *testing.T) {
	var ran sync.Map // how often, by source: the stores are tried side by side
	count := func(source string) *atomic.Int64 {
		n, _ := ran.LoadOrStore(source, new(atomic.Int64))
		return n.(*atomic.Int64)
	}
	fill := func(mux *stint.Mux) {
		mux.Add(stint.KindInfo{Name: "work"}, func(_ context.Context, job *stint.Job) (json.RawMessage, error) {
			count(job.Source).Add(1)
			return nil, nil
		})
		handle(mux, "other", func(_ context.Context, job *stint.Job) error { count(job.Source).Add(1); return nil })
	}
	onEachNow(t, fill, func(t *testing.T, s anyStore, e *engine.Engine) {
		from := stint.Source(t.Name())
		job := newJob("work", `{"n":1}`, stint.IdempotencyKey("a"), from)
		first := runNow(t, e, job).Job
		for range 2 {
			x, err := e.RunNow(t.Context(), job)
			var dup *store.DuplicateError
			if !errors.As(err, &dup) || dup.ID != first || dup.Key != "a" || !errors.Is(err, store.ErrDuplicate) || x.Job != first || x.Final {
				t.Errorf("the repetition is answered with %+v, %v; want a duplicate of job %d", x, err, first)
			}
		}
		for _, wrong := range []stint.NewJob{newJob("work", `{"n":2}`, stint.IdempotencyKey("a"), from), newJob("other", `{"n":1}`, stint.IdempotencyKey("a"), from)} {
			if x, err := e.RunNow(t.Context(), wrong); !errors.Is(err, stint.ErrKeyConflict) || x.Job != 0 {
				t.Errorf("something else under the key is answered with %+v, %v", x, err)
			}
		}
		// One that waits in the queue is not run either, but is left to it.
		waiting := enqueue(t, s, "work", `{}`, stint.IdempotencyKey("b"), stint.Queue("nobody's"), from)
		if x, err := e.RunNow(t.Context(), newJob("work", `{}`, stint.IdempotencyKey("b"), from)); !errors.Is(err, store.ErrDuplicate) || x.Job != waiting {
			t.Errorf("what waits is answered with %+v, %v; want a duplicate of job %d", x, err, waiting)
		}
		if state := info(t, s, waiting).State; count(t.Name()).Load() != 1 || state != stint.Available {
			t.Errorf("%d jobs have run, and job %d is %s", count(t.Name()).Load(), waiting, state)
		}
		if r, err := stint.NewClient(s).EnqueueReceipt(t.Context(), job); err != nil || r != (stint.Receipt{ID: first, Duplicate: true}) {
			t.Errorf("an enqueue is answered with %+v, %v; want a duplicate of job %d", r, err, first)
		}
	})
}

func TestMiddlewareSeesDuplicatesOfWhatIsRunNow(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var seen []stint.Receipt
		client := stint.NewClient(s).Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
			return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
				if jobs[0].URN == "known" { // to the middleware
					return []stint.Receipt{{ID: 77, Duplicate: true}}, nil
				}
				receipts, err := next(ctx, tx, jobs)
				seen = append(seen, receipts...)
				return receipts, err
			}
		})
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		e := newEngine(t, s, mux, engine.Config{Client: client})
		job := newJob("work", `{}`, stint.IdempotencyKey("a"))
		first := runNow(t, e, job).Job
		_, err := e.RunNow(t.Context(), job)
		if want := []stint.Receipt{{ID: first}, {ID: first, Duplicate: true}}; !errors.Is(err, store.ErrDuplicate) || !slices.Equal(seen, want) {
			t.Errorf("it saw %+v, want %+v; the caller saw %v", seen, want, err)
		}
		if x, err := e.RunNow(t.Context(), newJob("work", `{}`, stint.URN("known"))); !errors.Is(err, store.ErrDuplicate) || x.Job != 77 {
			t.Errorf("what the middleware calls a duplicate is answered with %+v, %v", x, err)
		}
	})
}

// stiff is the store of a process that freezes: nothing of its beats arrives
// any more, nobody vouches for it, and what it records comes too late.
type stiff struct {
	anyStore
	store.ClaimedEnqueuer
	froze atomic.Bool
	thaw  chan struct{}
}

func (f *stiff) Join(ctx context.Context, e store.EngineInfo, kinds []stint.KindInfo) error {
	err := f.anyStore.Join(ctx, e, kinds)
	if h, ok := f.anyStore.(store.LivenessLocker); ok {
		h.Release(e.Token)
	}
	return err
}

func (f *stiff) Heartbeat(ctx context.Context, token store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	if f.froze.Load() {
		<-f.thaw
	}
	return f.anyStore.Heartbeat(ctx, token, b)
}

func TestAProcessThatFreezesInTheMiddleIsBuriedAndItsJobRunsElsewhereCharged(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		f := &stiff{anyStore: s, ClaimedEnqueuer: s.(store.ClaimedEnqueuer), thaw: make(chan struct{})}
		began, release := make(chan stint.ID, 1), make(chan struct{})
		mux, other := stint.NewMux(), stint.NewMux()
		handle(mux, "work", func(_ context.Context, job *stint.Job) error {
			f.froze.Store(true)
			began <- job.ID
			<-release
			return nil
		})
		handle(other, "work", func(context.Context, *stint.Job) error { return nil })
		result := make(chan error, 1)
		e := newEngine(t, f, mux, engine.Config{Instance: "frozen", TimeToLive: 2 * time.Second})
		go func() {
			x, err := e.RunNow(t.Context(), newJob("work", `{}`))
			if x.Job == 0 {
				err = fmt.Errorf("the execution names no job, %v", err)
			}
			result <- err
		}()
		id := <-began
		start(t, s, other, engine.Config{Instance: "other"})
		job := until(t, s, id, stint.Completed)
		if len(job.Attempts) != 2 || job.Attempts[0].Outcome != stint.OutcomeLost || job.Attempts[0].Instance != "frozen" ||
			job.Attempts[1].Attempt != 2 || job.Attempts[1].Instance != "other" || job.Losses != 1 {
			t.Errorf("the executions are %+v", job.Attempts)
		}
		close(f.thaw)
		close(release)
		if err := <-result; !errors.Is(err, store.ErrBuried) {
			t.Errorf("the late one is told %v, want ErrBuried", err)
		}
		if job := info(t, s, id); len(job.Attempts) != 2 {
			t.Errorf("it was recorded all the same: %+v", job.Attempts)
		}
	})
}

// A call joins the roster for itself, and is buried like any engine. So it must give up like one.
func TestWhatIsRunNowIsCancelledBeforeOthersTakeItOver(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		f := &stiff{anyStore: s, ClaimedEnqueuer: s, thaw: make(chan struct{})}
		time.AfterFunc(time.Minute, func() { close(f.thaw) })
		var took time.Duration
		var why error
		mux := stint.NewMux()
		handle(mux, "work", func(ctx context.Context, _ *stint.Job) error {
			f.froze.Store(true) // no beat is answered any more
			began := time.Now()
			<-ctx.Done()
			took, why = time.Since(began), context.Cause(ctx)
			return why
		})
		const ttl = 8 * time.Second
		if _, err := newEngine(t, f, mux, engine.Config{TimeToLive: ttl}).RunNow(t.Context(), newJob("work", `{}`)); !errors.Is(err, store.ErrBuried) {
			t.Errorf("the caller is told %v, want ErrBuried", err)
		}
		if took > ttl*3/4 || !errors.Is(why, stint.ErrFenced) {
			t.Errorf("it was cancelled after %v, because: %v; want ErrFenced within %v", took, why, ttl*3/4)
		}
	})
}

// cutOff is a store whose answer to an enqueue is lost after the work was done.
type cutOff struct {
	anyStore
	lose atomic.Bool
}

func (d *cutOff) EnqueueClaimed(ctx context.Context, job stint.NewJob, req store.ClaimRequest) (store.Claim, error) {
	c, err := d.anyStore.(store.ClaimedEnqueuer).EnqueueClaimed(ctx, job, req)
	if err == nil && d.lose.Load() {
		return store.Claim{}, errLost
	}
	return c, err
}

func TestAJobWhoseEnqueueWasNotAnsweredRunsOnceInTheBackground(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		for _, running := range []bool{false, true} {
			d := &cutOff{anyStore: s}
			d.lose.Store(true)
			var runsHere atomic.Int32
			mux := stint.NewMux()
			handle(mux, "work", func(context.Context, *stint.Job) error { runsHere.Add(1); return nil })
			e := newEngine(t, d, mux, engine.Config{TimeToLive: time.Second})
			stop := func() error { return nil }
			if running {
				stop = runs(t, e, s)
			}
			if x, err := e.RunNow(t.Context(), newJob("work", `{}`)); !errors.Is(err, errLost) || x.Job != 0 {
				t.Errorf("the answer is %+v, %v", x, err)
			}
			if !running {
				stop = start(t, s, mux, engine.Config{})
			}
			eventually(t, "it has run", func() bool {
				counts, err := s.Counts(t.Context())
				return err == nil && counts[stint.Available]+counts[stint.Running] == 0
			})
			if err := stop(); err != nil || runsHere.Load() != 1 {
				t.Errorf("it ran %d times, %v", runsHere.Load(), err)
			}
		}
	})
}
