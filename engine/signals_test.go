package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

type decision struct {
	By string
	OK bool
}

func send(t *testing.T, s stint.Enqueuer, id stint.ID, name string, value any) {
	t.Helper()
	if err := stint.NewClient(s).Signal(t.Context(), id, name, value); err != nil {
		t.Fatal(err)
	}
}

// blocked waits until a job waits for signals, and returns it.
func blocked(t *testing.T, s anyStore, id stint.ID, names ...string) *stint.JobInfo {
	t.Helper()
	job := until(t, s, id, stint.Blocked)
	if !slices.Equal(job.Awaits, names) {
		t.Fatalf("job %d awaits %q, want %q", id, job.Awaits, names)
	}
	return job
}

// A handler waits for a signal without a slot, whether that comes before it waits or while it does, and
// takes it once, also when it fails after that.
func TestAHandlerAwaitsASignal(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var runs atomic.Int32
		mux := stint.NewMux()
		kind := stint.NewResultKind[struct{}, []decision]("asks", soon)
		stint.HandleResult(mux, kind, func(ctx context.Context, job *stint.Job, _ struct{}) (all []decision, err error) {
			runs.Add(1)
			for n := range 3 {
				d, err := stint.AwaitAs[decision](ctx, fmt.Sprint("approval ", n), "approved", 24*time.Hour)
				if err != nil {
					return nil, fmt.Errorf("wait: %w", err)
				}
				all = append(all, d)
			}
			if job.Attempt == 1 {
				return nil, errors.New("after the last one")
			}
			return all, nil
		})
		handle(mux, "other", func(context.Context, *stint.Job) error { return nil })
		start(t, s, mux, engine.Config{Slots: 1})
		id, err := kind.Enqueue(t.Context(), stint.NewClient(s), struct{}{}, stint.Delay(200*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		send(t, s, id, "approved", decision{"before", true})
		send(t, s, id, "another", decision{"another", true})
		job := blocked(t, s, id, "approved")
		if a := job.Attempts; job.Attempt != 1 || len(a) != 1 || a[0].Outcome != stint.OutcomeSnoozed || !strings.HasPrefix(a[0].Reason, `awaits the signal "approved" until `) ||
			time.Until(job.Due) < 23*time.Hour || job.State != stint.Blocked {
			t.Errorf("it is at attempt %d, due in %v: %+v", job.Attempt, time.Until(job.Due), a)
		}
		until(t, s, enqueue(t, s, "other", `{}`), stint.Completed)
		send(t, s, id, "approved", decision{"meanwhile", false})
		send(t, s, id, "approved", decision{"at last", true})
		send(t, s, id, "approved", decision{"too much", true})
		job = until(t, s, id, stint.Completed)
		got, err := kind.Result(job)
		if want := []decision{{"before", true}, {"meanwhile", false}, {"at last", true}}; err != nil || !slices.Equal(got, want) || job.Attempt != 2 {
			t.Errorf("it took %v at attempt %d after %d runs, want %v; %v", got, job.Attempt, runs.Load(), want, err)
		}
		sent, err := s.(store.SignalReader).Signals(t.Context(), id)
		if err != nil || len(sent) != 5 || sent[0].Step != "approval 0" || sent[1].Step != "" || sent[4].Step != "" || sent[4].Name != "approved" {
			t.Errorf("the signals are %+v, %v", sent, err)
		}
		if err := stint.NewClient(s).Signal(t.Context(), id, "approved", nil); !errors.Is(err, stint.ErrEnded) {
			t.Errorf("a signal after the end gives %v", err)
		}
	})
}

// The time of a wait counts from the first run that comes to it, whatever happens since, and what comes after it
// changes nothing.
func TestAWaitThatIsOverStaysOver(t *testing.T) {
	inBubble(t, 100*time.Hour, func(t *testing.T, s *sqlite.Store) {
		var starts []time.Duration
		began := time.Now()
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			starts = append(starts, time.Since(began).Round(time.Minute))
			_, err := stint.Await[int](ctx, "late", 10*time.Hour)
			if job.Attempt == 1 {
				return errors.Join(errors.New("in its place comes something else"), err)
			}
			if !errors.Is(err, stint.ErrNoSignal) {
				return err
			}
			if err := stint.Sleep(ctx, "a while", time.Hour); err != nil {
				return err
			}
			return nil
		})
		stop := start(t, aloof{lonely{s}, s}, mux, engine.Config{TimeToLive: time.Hour, Poll: time.Minute})
		id := enqueue(t, s, "k", `{}`, stint.Retry(retry.Fixed(1, time.Hour)))
		time.Sleep(10*time.Hour + 30*time.Minute)
		send(t, s, id, "late", 1)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		want := []time.Duration{0, time.Hour, 10 * time.Hour, 11 * time.Hour}
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed || !slices.Equal(starts, want) {
			t.Errorf("it is %s, %v; it began after %v, want %v: %+v", job.State, err, starts, want, job.Attempts)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Of waits at the same time the first signal has the job run again; a sleep beside them is slept to its end.
func TestWaitsAtTheSameTime(t *testing.T) {
	inBubble(t, 100*time.Hour, func(t *testing.T, s *sqlite.Store) {
		var starts []time.Duration
		began := time.Now()
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			starts = append(starts, time.Since(began).Round(time.Minute))
			errs := make([]error, 4)
			var all sync.WaitGroup
			all.Go(func() { errs[0] = stint.Sleep(ctx, "a while", 5*time.Hour) })
			all.Go(func() { _, errs[1] = stint.Await[string](ctx, "a", 8*time.Hour) })
			all.Go(func() { _, errs[2] = stint.AwaitAs[string](ctx, "b too", "b", 50*time.Hour) })
			all.Wait()
			if _, errs[3] = stint.Step(ctx, "after", func(context.Context) (int, error) { return 1, nil }); errs[3] == nil && len(starts) < 4 {
				t.Error("a step of a run that waits was done")
			}
			return nil // and drops the errors
		})
		stop := start(t, aloof{lonely{s}, s}, mux, engine.Config{TimeToLive: time.Hour, Poll: time.Second})
		id := enqueue(t, s, "k", `{}`, stint.Retry(retry.None()))
		time.Sleep(time.Hour)
		synctest.Wait()
		job, err := s.Job(t.Context(), id)
		if err != nil || job.State != stint.Blocked || !slices.Equal(job.Awaits, []string{"a", "b"}) ||
			!strings.HasSuffix(job.Attempts[0].Reason, "its handler did not return the error that stint.Await gave it") {
			t.Errorf("it is %s and awaits %q: %+v, %v", job.State, job.Awaits, job.Attempts, err)
		}
		send(t, s, id, "a", "one")
		time.Sleep(9 * time.Hour)
		send(t, s, id, "b", "another")
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []time.Duration{0, time.Hour, 5 * time.Hour, 10 * time.Hour}
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed || !slices.Equal(starts, want) {
			t.Errorf("it is %s, %v; it began after %v, want %v: %+v", job.State, err, starts, want, job.Attempts)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// What a handler or a sender does that is wrong is told.
func TestMistakesWithSignals(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		does := map[string]func(ctx context.Context) error{
			"no name": func(ctx context.Context) error { _, err := stint.Await[int](ctx, "", 0); return err },
			"a long name": func(ctx context.Context) error {
				_, err := stint.Await[int](ctx, strings.Repeat("x", 241), 0)
				return err
			},
			"another type": func(ctx context.Context) error {
				_, err := stint.Await[int](ctx, "text", time.Hour)
				if !errors.Is(err, stint.ErrStepChanged) {
					return errors.New("it is no ErrStepChanged")
				}
				return err
			},
			"twice": func(ctx context.Context) error {
				_, _ = stint.Await[string](ctx, "text", time.Hour)
				_, err := stint.Await[string](ctx, "text", time.Hour)
				return err
			},
		}
		want := map[string]string{
			"no name": "signal: the name is empty", "a long name": "step: its name has more than 240 bytes",
			"another type": `step "text" took the signal {"`, "twice": `the step "text" is called at signals_test.go:`,
		}
		mux := stint.NewMux()
		kind := stint.NewKind[string]("k")
		stint.Handle(mux, kind, func(ctx context.Context, _ *stint.Job, which string) error { return does[which](ctx) })
		c := stint.NewClient(s)
		var ids = map[string]stint.ID{}
		for name := range does {
			id, err := kind.Enqueue(t.Context(), c, name)
			if err != nil {
				t.Fatal(err)
			}
			ids[name] = id
			send(t, s, id, "text", "text")
		}
		start(t, s, mux, engine.Config{})
		for name, id := range ids {
			job := until(t, s, id, stint.Failed)
			if a := job.Attempts[len(job.Attempts)-1]; len(job.Attempts) != 1 || !strings.Contains(a.Error.Message, want[name]) {
				t.Errorf("%s: after %d runs it says %q, want %q", name, len(job.Attempts), a.Error.Message, want[name])
			}
		}
		for what, err := range map[string]error{
			"no name":      c.Signal(t.Context(), 1, "", nil),
			"no key":       c.SignalOnce(t.Context(), 1, "", "a", nil),
			"a long key":   c.SignalOnce(t.Context(), 1, strings.Repeat("x", 256), "a", nil),
			"a long value": c.Signal(t.Context(), 1, "a", strings.Repeat("x", 1<<20)),
		} {
			if !errors.Is(err, stint.ErrInvalid) {
				t.Errorf("a signal with %s gives %v", what, err)
			}
		}
		if err := c.Signal(t.Context(), 1<<40, "a", nil); !errors.Is(err, stint.ErrNotFound) {
			t.Errorf("a signal to nobody gives %v", err)
		}
		if err := c.Signal(t.Context(), 1, "a", make(chan int)); err == nil {
			t.Error("what JSON does not know was sent")
		}
	})
}

// A handler that waits again after its wait has ended the run, as what tries again does, takes nothing in that run: the
// next one, which the signal brings about, does.
func TestARunThatAWaitEndedTakesNoMore(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		kind := stint.NewResultKind[struct{}, string]("k")
		var runs atomic.Int32
		stint.HandleResult(mux, kind, func(ctx context.Context, job *stint.Job, _ struct{}) (string, error) {
			got, err := stint.Await[string](ctx, "approved", time.Hour)
			if runs.Add(1) == 1 {
				send(t, s, job.ID, "approved", "in between")
				return stint.Await[string](ctx, "approved", time.Hour)
			}
			return got, err
		})
		start(t, s, mux, engine.Config{})
		id := enqueue(t, s, "k", `{}`)
		job := until(t, s, id, stint.Completed)
		if got, err := kind.Result(job); err != nil || got != "in between" || runs.Load() != 2 {
			t.Errorf("after %d runs it has %q, %v", runs.Load(), got, err)
		}
	})
}

// Signals are sent in the moment in which the handler begins to wait for them: before it looks, between its look and its suspension, and
// after that. STINT_RACES says how many, for a longer run.
func TestASignalThatMeetsTheSuspensionIsTaken(t *testing.T) {
	const each = 10
	races := 1000
	if text := os.Getenv("STINT_RACES"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		races = n
	}
	onEach(t, func(t *testing.T, s anyStore) {
		type wait struct {
			job stint.ID
			n   int
		}
		var (
			mu    sync.Mutex
			asked = map[stint.ID]int{} // how many signals, by the runs of a job
			runs  atomic.Int64
			waits = make(chan wait, 1000)
		)
		mux := stint.NewMux()
		kind := stint.NewKind[struct{}]("races", stint.Retry(retry.None()))
		stint.Handle(mux, kind, func(ctx context.Context, job *stint.Job, _ struct{}) error {
			runs.Add(1)
			for n := range each {
				mu.Lock()
				first := n == asked[job.ID]
				if first {
					asked[job.ID]++
				}
				mu.Unlock()
				if first {
					waits <- wait{job.ID, n}
				}
				value, err := stint.AwaitAs[int](ctx, fmt.Sprint(n), fmt.Sprint(n), time.Hour)
				if err != nil {
					return err
				}
				if value != n {
					return fmt.Errorf("signal %d is %d", n, value)
				}
			}
			return nil
		})
		start(t, s, mux, engine.Config{Slots: 20})
		client := stint.NewClient(s)
		var senders sync.WaitGroup
		for range 20 {
			senders.Go(func() {
				for w := range waits {
					switch {
					case w.n == 0 && w.job%20 == 0:
						// However slow the machine is, some come after the suspension.
						until(t, s, w.job, stint.Blocked)
					case rand.IntN(2) == 0:
						time.Sleep(rand.N(3 * time.Millisecond))
					}
					if err := client.Signal(t.Context(), w.job, fmt.Sprint(w.n), w.n); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for left := races / each; left > 0; left -= 500 {
			ids, err := client.EnqueueMany(t.Context(), slices.Repeat([]stint.NewJob{newJob("races", `{}`, stint.Retry(retry.None()))}, min(left, 500)))
			if err != nil {
				t.Fatal(err)
			}
			limit, cancel := context.WithTimeout(t.Context(), pace.Of(time.Minute))
			for _, id := range ids {
				if job, err := client.Await(limit, id); err != nil || job.State != stint.Completed {
					cancel()
					t.Fatalf("job %d: %+v, %v", id, job, err)
				}
			}
			cancel()
		}
		close(waits)
		senders.Wait()
		suspended := runs.Load() - int64(races/each)
		t.Logf("%d signals, of which %d came after a suspension", races, suspended)
		if suspended == 0 || suspended >= int64(races) {
			t.Error("they met no suspension, or nothing else")
		}
	})
}
