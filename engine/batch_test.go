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
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// many registers a handler of batches for the kind "many".
func many(mux *stint.Mux, g stint.Gathering, f func(ctx context.Context, jobs []stint.BatchJob[string]) error) *stint.Registration {
	return stint.HandleMany(mux, stint.NewKind[string]("many"), g, f)
}

// enqueueMany enqueues a job for each of the arguments at once.
func enqueueMany(t *testing.T, s stint.Enqueuer, args []string, opts ...stint.Option) []stint.ID {
	t.Helper()
	var jobs []stint.NewJob
	for _, a := range args {
		jobs = append(jobs, stint.KindInfo{Name: "many"}.Job(json.RawMessage(fmt.Sprintf("%q", a)), opts...))
	}
	ids, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func argsOf(jobs []stint.BatchJob[string]) (all []string) {
	for _, j := range jobs {
		all = append(all, j.Args)
	}
	return all
}

func TestEachJobOfABatchHasItsOwnOutcome(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var calls atomic.Int32
		mux := stint.NewMux()
		many(mux, stint.Gather(6, 5*time.Second), func(ctx context.Context, jobs []stint.BatchJob[string]) error {
			if calls.Add(1) > 1 {
				return nil
			}
			// A handler may sort its jobs.
			slices.SortFunc(jobs, func(a, b stint.BatchJob[string]) int { return -strings.Compare(a.Args, b.Args) })
			errs := make([]error, len(jobs))
			for i, j := range jobs {
				switch {
				case j.Job.Attempt != 1 || stint.JobFrom(j.Context()).ID != j.ID:
					errs[i] = errors.New("it is another job")
				case j.Args == "b fails":
					errs[i] = stint.NoRetry(errors.New("no"))
				case j.Args == "c snoozes":
					errs[i] = stint.Snooze(time.Hour)
				case j.Args == "d cancels":
					errs[i] = stint.Cancel("not wanted")
				case j.Args == "e retries":
					errs[i] = errors.New("again")
				default:
					errs[i] = stint.SetResult(j.Context(), j.Args)
				}
			}
			if err := stint.SetResult(ctx, 1); !errors.Is(err, stint.ErrNoAttempt) || stint.JobFrom(ctx) != nil {
				t.Errorf("the context of the call has a job: %v", err)
			}
			return stint.PerJob(errs)
		})
		ids := enqueueMany(t, s, []string{"a", "b fails", "c snoozes", "d cancels", "e retries"}, stint.Retry(retry.Fixed(3, time.Hour)))
		ids = append(ids, enqueue(t, s, "many", `7`, stint.Retry(retry.None()))) // does not decode
		start(t, s, mux, engine.Config{Slots: 1})
		for i, want := range []stint.State{stint.Completed, stint.Failed, stint.Scheduled, stint.Cancelled, stint.Retrying, stint.Failed} {
			job := until(t, s, ids[i], want)
			if x := job.Attempts[0]; len(job.Attempts) != 1 || x.Slot != 1 {
				t.Errorf("%d: its attempts are %+v", i, job.Attempts)
			}
		}
		if x := until(t, s, ids[0], stint.Completed).Attempts[0]; string(x.Result) != `"a"` {
			t.Errorf("the result is %s", x.Result)
		}
		if x := until(t, s, ids[5], stint.Failed).Attempts[0]; !strings.Contains(x.Error.Message, "decode the arguments") {
			t.Errorf("the error is %q", x.Error.Message)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("the handler was called %d times", n)
		}
	})
}

func TestOutcomesThatDoNotFitTheirBatchFailAllJobs(t *testing.T) {
	for name, c := range map[string]struct {
		f    func(jobs []stint.BatchJob[string]) error
		want string
	}{
		"too few":  {func([]stint.BatchJob[string]) error { return stint.PerJob(make([]error, 1)) }, "the handler returned outcomes of 1 jobs for a batch of 2"},
		"too many": {func([]stint.BatchJob[string]) error { return stint.PerJob(make([]error, 3)) }, "the handler returned outcomes of 3 jobs for a batch of 2"},
		"wrapped":  {func([]stint.BatchJob[string]) error { return fmt.Errorf("so: %w", stint.PerJob(make([]error, 2))) }, "must be returned as they are"},
		"one":      {func([]stint.BatchJob[string]) error { return errors.New("all of it") }, "all of it"},
		"panic":    {func([]stint.BatchJob[string]) error { panic("in the batch") }, "panic: in the batch"},
		"exit":     {func([]stint.BatchJob[string]) error { runtime.Goexit(); return nil }, "the handler ended its goroutine (runtime.Goexit)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSQLite(t)
			mux := stint.NewMux()
			many(mux, stint.Gather(2, time.Second), func(ctx context.Context, jobs []stint.BatchJob[string]) error {
				if name == "panic" || name == "exit" {
					_ = stint.SetResult(jobs[0].Context(), nil) // does not count
				}
				return c.f(jobs)
			})
			ids := enqueueMany(t, s, []string{"a", "b"}, stint.Retry(retry.None()))
			start(t, s, mux, engine.Config{Slots: 1})
			for _, id := range ids {
				x := until(t, s, id, stint.Failed).Attempts[0]
				if !strings.Contains(x.Error.Message, c.want) {
					t.Errorf("the error is %q, want %q", x.Error.Message, c.want)
				}
				if name == "panic" && !strings.Contains(x.Error.Stack, "TestOutcomesThatDoNotFitTheirBatchFailAllJobs") {
					t.Errorf("the stack is not that of the call: %s", x.Error.Stack)
				}
			}
		})
	}
}

func TestABatchGathersWithoutASlotForAsLongAsItMay(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		type call struct {
			at   time.Duration
			args string
		}
		var mu sync.Mutex
		var calls []call
		began := time.Now()
		mux := stint.NewMux()
		many(mux, stint.Gather(4, 4*time.Second), func(_ context.Context, jobs []stint.BatchJob[string]) error {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, call{time.Since(began).Round(time.Second), strings.Join(argsOf(jobs), "")})
			return nil
		})
		other := new(atomic.Int32)
		handle(mux, "other", func(context.Context, *stint.Job) error { other.Add(1); return nil })
		stop := start(t, s, mux, engine.Config{Slots: 1})
		enqueueMany(t, s, []string{"a"})
		time.Sleep(time.Second)
		enqueue(t, s, "other", `{}`)
		enqueueMany(t, s, []string{"b"})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		mu.Lock()
		if other.Load() != 1 || len(calls) != 0 {
			t.Errorf("while a batch gathers %d other jobs ran, and %v", other.Load(), calls)
		}
		mu.Unlock()
		roster, err := s.Engines(t.Context())
		if err != nil || len(roster) != 1 {
			t.Fatal(roster, err)
		}
		if begun, err := s.Announced(t.Context(), roster[0].Token); err != nil || len(begun) != 0 {
			t.Errorf("what gathers is announced as running: %v, %v", begun, err)
		}
		time.Sleep(5 * time.Second)                            // at 8 s
		enqueueMany(t, s, []string{"1", "2", "3", "4", "5"})   // the first four at once
		enqueueMany(t, s, []string{"q"}, stint.Queue("other")) // a batch has one queue
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(calls, func(a, b call) int { return strings.Compare(a.args, b.args) })
		want := []call{{8 * time.Second, "1234"}, {12 * time.Second, "5"}, {4 * time.Second, "ab"}, {12 * time.Second, "q"}}
		if !slices.Equal(calls, want) {
			t.Errorf("the calls are %v, want %v", calls, want)
		}
	})
}

func TestABacklogComesInFullBatches(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var mu sync.Mutex
		seen, calls, met := map[string]int{}, 0, make(chan struct{})
		hooked := atomic.Int32{}
		mux := stint.NewMux()
		many(mux, stint.Gather(500, time.Second), func(_ context.Context, jobs []stint.BatchJob[string]) error {
			mu.Lock()
			calls++
			before := len(seen)
			for _, j := range jobs {
				seen[j.Args]++
			}
			const together = 1200 // more than may wait for their hooks
			if before < together && len(seen) >= together {
				close(met)
			}
			mu.Unlock()
			select {
			case <-met:
			case <-time.After(15 * time.Second):
				t.Errorf("%d jobs do not run at once", together)
			}
			return nil
		}).Hook(stint.Hooks{Finally: func(context.Context, *stint.Job, *stint.Attempt) error { hooked.Add(1); return nil }})
		const n = 4000
		args := make([]string, n)
		for i := range args {
			args[i] = fmt.Sprint(i)
		}
		enqueueMany(t, s, args)
		e, err := engine.New(s, mux, engine.Config{Slots: 4, TimeToLive: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, e)
		eventually(t, "all are completed", func() bool {
			counts, err := s.Counts(t.Context())
			return err == nil && counts[stint.Completed] == n
		})
		eventually(t, "no room is taken", func() bool { return e.Busy() == 0 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(seen) != n || calls > 2*n/500+4 || hooked.Load() != n {
			t.Errorf("%d jobs came in %d calls, with hooks of %d", len(seen), calls, hooked.Load())
		}
	})
}

// An engine of one slot that has no pace yet claims one job at a time for others.
func TestABatchIsGatheredInFewClaims(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		c := &counted{drowsy: newDrowsy(s)}
		mux := stint.NewMux()
		var sizes []int
		many(mux, stint.Gather(500, time.Second), func(_ context.Context, jobs []stint.BatchJob[string]) error {
			sizes = append(sizes, len(jobs))
			return nil
		})
		enqueueMany(t, s, make([]string, 500))
		stop := start(t, c, mux, engine.Config{Slots: 1})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if claims := c.claims.Load(); !slices.Equal(sizes, []int{500}) || claims > 20 {
			t.Errorf("the batches %v took %d claims", sizes, claims)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// countReturned counts what an engine returns that has no outcome.
func countReturned(n *atomic.Int64) func(event.Event) {
	return func(e event.Event) {
		if e.Type == event.EventReturned {
			n.Add(int64(e.Count))
		}
	}
}

func TestABatchThatGathersWhenTheEngineStopsGoesBackUncharged(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		many(mux, stint.Gather(10, 5*time.Second), func(context.Context, []stint.BatchJob[string]) error {
			t.Error("the handler was called")
			return nil
		})
		ids := enqueueMany(t, s, []string{"a", "b"})
		var left atomic.Int64
		stop := start(t, s, mux, engine.Config{Slots: 1, OnEvent: countReturned(&left)})
		for _, id := range ids {
			until(t, s, id, stint.Running)
		}
		began := time.Now()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if n := left.Load(); n != 0 {
			t.Errorf("%d jobs were left to the engine's leaving", n)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("the stop waited %v", took)
		}
		for _, id := range ids {
			if job := until(t, s, id, stint.Available); job.Attempt != 1 || len(job.Attempts) != 1 || job.Attempts[0].Outcome != stint.OutcomeReturned {
				t.Errorf("job %d has %+v", id, job.Attempts)
			}
		}
	})
}

func TestABatchThatWaitsForASlotWhenTheEngineStopsGoesBackWhole(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		many(mux, stint.Gather(10, time.Second), func(context.Context, []stint.BatchJob[string]) error {
			t.Error("the handler was called")
			return nil
		})
		handle(mux, "long", func(context.Context, *stint.Job) error { time.Sleep(4 * time.Second); return nil })
		var left atomic.Int64
		stop := start(t, s, mux, engine.Config{Slots: 1, OnEvent: countReturned(&left)})
		ids := enqueueMany(t, s, []string{"a", "b"})
		time.Sleep(500 * time.Millisecond)
		enqueue(t, s, "long", `{}`)
		time.Sleep(700 * time.Millisecond) // the batch is closed, and not yet returned because it waits
		synctest.Wait()
		for _, id := range ids {
			until(t, s, id, stint.Running)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if n := left.Load(); n != 0 {
			t.Errorf("%d jobs were left to the engine's leaving", n)
		}
		for _, id := range ids {
			if job := until(t, s, id, stint.Available); len(job.Attempts) != 1 || job.Attempts[0].Outcome != stint.OutcomeReturned {
				t.Errorf("job %d has %+v", id, job.Attempts)
			}
		}
	})
}

func TestCancellingOneJobOfABatchCancelsOnlyThat(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		began, go_ := make(chan struct{}), make(chan struct{})
		mux := stint.NewMux()
		many(mux, stint.Gather(3, 5*time.Second), func(ctx context.Context, jobs []stint.BatchJob[string]) error {
			if !slices.Equal(argsOf(jobs), []string{"b", "c"}) {
				t.Errorf("the batch has %v", argsOf(jobs))
				return nil
			}
			close(began)
			<-jobs[0].Context().Done()
			if cause := context.Cause(jobs[0].Context()); !errors.Is(cause, stint.ErrCancelled) {
				t.Errorf("the cause is %v", cause)
			}
			if ctx.Err() != nil || jobs[1].Context().Err() != nil {
				t.Error("the others are cancelled too")
			}
			<-go_
			return stint.PerJob([]error{jobs[0].Context().Err(), nil})
		})
		ids := enqueueMany(t, s, []string{"a", "b"})
		start(t, s, mux, engine.Config{Slots: 1})
		for _, id := range ids {
			until(t, s, id, stint.Running)
		}
		cancelJob(t, s, ids[0]) // while it gathers
		ids = append(ids, enqueueMany(t, s, []string{"c"})...)
		<-began
		if got := cancelJob(t, s, ids[1]); got != stint.CancelRequested {
			t.Errorf("cancelling answers %q", got)
		}
		close(go_)
		if job := until(t, s, ids[0], stint.Cancelled); job.Attempts[0].Slot != 0 {
			t.Error("it began although it was cancelled before")
		}
		until(t, s, ids[1], stint.Cancelled)
		until(t, s, ids[2], stint.Completed)
	})
}

func TestTheTimeoutOfOneJobEndsOnlyThatAndTheLastEndsTheCall(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		var ends []time.Duration
		var cause error
		many(mux, stint.Gather(2, time.Second), func(ctx context.Context, jobs []stint.BatchJob[string]) error {
			began := time.Now()
			for _, j := range jobs {
				<-j.Context().Done()
				ends = append(ends, time.Since(began).Round(time.Second))
			}
			<-ctx.Done()
			ends = append(ends, time.Since(began).Round(time.Second))
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		short := enqueueMany(t, s, []string{"short"}, stint.Timeout(time.Second), stint.Retry(retry.None()))[0]
		long := enqueueMany(t, s, []string{"long"}, stint.Timeout(3*time.Second), stint.Retry(retry.None()))[0]
		stop := start(t, s, mux, engine.Config{Slots: 1})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if want := []time.Duration{time.Second, 3 * time.Second, 3 * time.Second}; !slices.Equal(ends, want) || !errors.Is(cause, stint.ErrTimeout) {
			t.Errorf("they end after %v, want %v; %v", ends, want, cause)
		}
		for _, id := range []stint.ID{short, long} {
			if x := until(t, s, id, stint.Failed).Attempts[0]; x.Error.Class != "timeout" {
				t.Errorf("the error is %+v", x.Error)
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestExpiryAndPausesCountWhenTheBatchStarts(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		var got []string
		many(mux, stint.Gather(10, 3*time.Second), func(_ context.Context, jobs []stint.BatchJob[string]) error {
			got = append(got, strings.Join(argsOf(jobs), ""))
			return nil
		})
		stop := start(t, s, mux, engine.Config{Slots: 1})
		late := enqueueMany(t, s, []string{"late"}, stint.StartWithin(time.Second))[0]
		fine := enqueueMany(t, s, []string{"fine"})[0]
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if job := until(t, s, late, stint.Failed); job.Attempts[0].Outcome != stint.OutcomeExpired {
			t.Errorf("it ended as %+v", job.Attempts)
		}
		until(t, s, fine, stint.Completed)
		paused := enqueueMany(t, s, []string{"paused"})[0]
		time.Sleep(time.Second)
		pause(t, s, stint.DefaultQueue)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if job := until(t, s, paused, stint.Available); job.Attempt != 1 || !slices.Equal(got, []string{"fine"}) {
			t.Errorf("%v ran", got)
		}
		resume(t, s, stint.DefaultQueue)
		time.Sleep(10 * time.Second)
		until(t, s, paused, stint.Completed)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMiddlewareThatLimitsABatchOrCallsTwiceDoesNotHangIt(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		var sizes []int
		var last time.Time // call
		permits := make(chan struct{}, 2)
		many(mux, stint.Gather(5, time.Second), func(_ context.Context, jobs []stint.BatchJob[string]) error {
			sizes, last = append(sizes, len(jobs)), time.Now()
			return nil
		}).Use(func(next stint.Handler) stint.Handler {
			return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
				if string(job.Args) == `"refused"` {
					return nil, stint.NoRetry(errors.New("refused"))
				}
				permits <- struct{}{}
				defer func() { <-permits }()
				r, err := next(ctx, job)
				if string(job.Args) == `"twice"` {
					return next(ctx, job)
				}
				return r, err
			}
		})
		ids := enqueueMany(t, s, []string{"refused", "b", "c", "d", "e"})
		stop := start(t, s, mux, engine.Config{Slots: 1})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		until(t, s, ids[0], stint.Failed)
		for _, id := range ids[1:] {
			until(t, s, id, stint.Completed)
		}
		if !slices.Equal(sizes, []int{2, 2}) {
			t.Errorf("the calls had %v jobs", sizes)
		}
		enqueued := time.Now()
		enqueueMany(t, s, []string{"refused", "b"})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if after := last.Sub(enqueued).Round(time.Second); after != time.Second {
			t.Errorf("the call for one beside a refused one came after %v", after)
		}
		sizes, enqueued = nil, time.Now()
		twice := enqueueMany(t, s, []string{"twice"})[0]
		time.Sleep(5 * time.Second)
		until(t, s, twice, stint.Completed)
		if after := last.Sub(enqueued).Round(time.Second); !slices.Equal(sizes, []int{1, 1}) || after != time.Second {
			t.Errorf("the calls had %v jobs, the last one after %v", sizes, after)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestABatchIsUnresponsiveOnceNoneOfItsJobsMayGoOn(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		many(mux, stint.Gather(2, time.Second), func(context.Context, []stint.BatchJob[string]) error {
			time.Sleep(time.Minute)
			return errors.New("late")
		})
		told := map[stint.ID]error{}
		stop := start(t, s, mux, engine.Config{Slots: 1, OnEvent: func(e event.Event) {
			if e.Type == event.EventTrouble && e.Job != nil {
				told[e.Job.ID] = e.Err
			}
		}})
		bounded := enqueueMany(t, s, []string{"bounded"}, stint.Timeout(10*time.Second), stint.Retry(retry.None()))[0]
		other := enqueueMany(t, s, []string{"other"}, stint.Retry(retry.None()))[0]
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if len(told) != 0 {
			t.Errorf("while a job may go on, told is %v", told)
		}
		cancelJob(t, s, other)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if len(told) != 2 || !errors.Is(told[bounded], stint.ErrTimeout) || !errors.Is(told[other], stint.ErrCancelled) {
			t.Errorf("when none may go on, told is %v", told)
		}
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// heartbeats is a store that counts beats, and keeps the longest time between two, in nanoseconds.
type heartbeats struct {
	anyStore
	beats         atomic.Int32
	last, longest atomic.Int64
}

func (b *heartbeats) Heartbeat(ctx context.Context, token store.EngineID, h store.Heartbeat) (store.HeartbeatReply, error) {
	now := time.Now().UnixNano()
	if b.beats.Add(1) > 1 {
		b.longest.Store(max(b.longest.Load(), now-b.last.Load()))
	}
	b.last.Store(now)
	return b.anyStore.Heartbeat(ctx, token, h)
}

func TestABatchIsAnnouncedOnceBeforeWhatMayRunOnlyOnceBegins(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		b := &heartbeats{anyStore: s}
		mux := stint.NewMux()
		many(mux, stint.Gather(20, 5*time.Second), func(_ context.Context, jobs []stint.BatchJob[string]) error {
			roster, err := s.Engines(t.Context())
			if err != nil || len(roster) != 1 {
				t.Error(roster, err)
				return err
			}
			begun, err := s.Announced(t.Context(), roster[0].Token)
			if err != nil || len(begun) != len(jobs) {
				t.Errorf("%d of %d jobs are announced, %v", len(begun), len(jobs), err)
			}
			if n := b.beats.Load(); n > 4 { // one, and what was due
				t.Errorf("%d beats announced a batch of %d", n, len(jobs))
			}
			return err
		})
		ids := enqueueMany(t, s, strings.Split(strings.Repeat("x", 20), ""), stint.MaxLosses(0))
		start(t, b, mux, engine.Config{Slots: 1, TimeToLive: time.Minute})
		for _, id := range ids {
			until(t, s, id, stint.Completed)
		}
	})
}

func TestABatchThatRunsForAWhileIsAnnouncedWhole(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		many(mux, stint.Gather(3, time.Second), func(context.Context, []stint.BatchJob[string]) error {
			time.Sleep(time.Minute)
			return nil
		})
		enqueueMany(t, s, []string{"a", "b", "c"})
		stop := start(t, s, mux, engine.Config{Slots: 1})
		time.Sleep(50 * time.Second)
		synctest.Wait()
		roster, err := s.Engines(t.Context())
		if err != nil || len(roster) != 1 {
			t.Fatal(roster, err)
		}
		if begun, err := s.Announced(t.Context(), roster[0].Token); err != nil || len(begun) != 3 {
			t.Errorf("announced is %v, %v", begun, err)
		}
		time.Sleep(20 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// An engine dies while a batch runs and another one gathers.
func TestTheJobsOfALostBatchRunAgainAndMayHaveRun(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux, seen := stint.NewMux(), make(chan bool, 10)
		many(mux, stint.Gather(3, time.Second), func(_ context.Context, jobs []stint.BatchJob[string]) error {
			for _, j := range jobs {
				seen <- j.MayHaveRun
			}
			return nil
		})
		ids := enqueueMany(t, s, []string{"a", "b", "c"})
		const dead store.EngineID = 4711
		if err := s.Join(t.Context(), store.EngineInfo{Token: dead, Instance: "dead", Slots: 2, TimeToLive: time.Second}, nil); err != nil {
			t.Fatal(err)
		}
		lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "")
		c, err := s.Claim(t.Context(), store.ClaimRequest{Engine: dead, Serial: 1, Nonce: 1, Lane: lane.ID, Max: 10, Wait: true})
		if err != nil || len(c.Positions) != 3 {
			t.Fatal(c, err)
		}
		if _, err := s.Heartbeat(t.Context(), dead, store.Heartbeat{Running: c.Positions[:2]}); err != nil {
			t.Fatal(err)
		}
		if h, ok := s.(store.LivenessLocker); ok {
			h.Release(dead)
		}
		start(t, s, mux, engine.Config{Slots: 1})
		for i, want := range []int{2, 2, 1} {
			job := until(t, s, ids[i], stint.Completed)
			if got := job.Attempts[len(job.Attempts)-1].Attempt; got != want {
				t.Errorf("%d completed in attempt %d, want %d", i, got, want)
			}
		}
		for range 3 {
			if !<-seen {
				t.Error("a handler is not told that its job may have run")
			}
		}
	})
}

func TestAJobThatMayHaveKilledItsProcessComesInNoBatch(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux, calls := stint.NewMux(), atomic.Int32{}
		many(mux, stint.Gather(3, time.Second), func(context.Context, []stint.BatchJob[string]) error {
			calls.Add(1)
			return nil
		})
		ids := enqueueMany(t, s, []string{"a", "b"})
		const dead store.EngineID = 4711
		if err := s.Join(t.Context(), store.EngineInfo{Token: dead, Instance: "dead", Slots: 2, TimeToLive: time.Second}, nil); err != nil {
			t.Fatal(err)
		}
		lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "")
		if c, err := s.Claim(t.Context(), store.ClaimRequest{Engine: dead, Serial: 1, Nonce: 1, Lane: lane.ID, Max: 10, Wait: true}); err != nil || len(c.Positions) != 2 {
			t.Fatal(c, err)
		}
		if h, ok := s.(store.LivenessLocker); ok {
			h.Release(dead)
		}
		alone := store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront, Suspect: 2}
		n, err := s.Bury(t.Context(), store.Burial{Engine: dead, Why: "dead"}, func(e *store.Entry, _ bool) store.Completion {
			return store.Conclude(e, alone, time.Now(), 0)
		})
		if err != nil || n != 2 {
			t.Fatal(n, err)
		}
		start(t, s, mux, engine.Config{Slots: 2})
		for _, id := range ids {
			until(t, s, id, stint.Completed)
		}
		if n := calls.Load(); int(n) != len(ids) {
			t.Errorf("they came in %d calls", n)
		}
	})
}
