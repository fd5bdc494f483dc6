package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
)

// A handler calls jobs one after the other and at the same time, in an engine with one slot, and runs again with what came of them.
func TestAHandlerCallsJobs(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		double := stint.NewResultKind[int, int]("double")
		var doubled, refused atomic.Int32
		stint.HandleResult(mux, double, func(_ context.Context, _ *stint.Job, n int) (int, error) {
			doubled.Add(1)
			return 2 * n, nil
		})
		refuse := stint.NewKind[int]("refuse", stint.Retry(retry.Fixed(1, time.Millisecond)))
		stint.Handle(mux, refuse, func(context.Context, *stint.Job, int) error {
			refused.Add(1)
			return errors.New("not today")
		})
		sums := stint.NewResultKind[int, string]("sums", soon)
		stint.HandleResult(mux, sums, func(ctx context.Context, job *stint.Job, n int) (string, error) {
			twice, err := double.Call(ctx, "first", n)
			if err != nil {
				return "", err
			}
			var four, six int
			var errs [2]error
			var both sync.WaitGroup
			both.Go(func() { four, errs[0] = double.Call(ctx, "four", 2*n) })
			both.Go(func() { six, errs[1] = double.Call(ctx, "six", 3*n) })
			both.Wait()
			if err := errors.Join(errs[:]...); err != nil {
				return "", err
			}
			err = refuse.Call(ctx, "refuse", 1)
			failed, ok := errors.AsType[*stint.JobError](err)
			if !ok {
				return "", err
			}
			if job.Attempt == 1 {
				return "", errors.New("after the calls")
			}
			return fmt.Sprint(twice, four, six, " ", failed.Kind, " ", failed.Failure.Message), nil
		})
		start(t, s, mux, engine.Config{Slots: 1})
		id, err := sums.Enqueue(t.Context(), stint.NewClient(s), 5)
		if err != nil {
			t.Fatal(err)
		}
		job := until(t, s, id, stint.Completed)
		if got, err := sums.Result(job); err != nil || got != "10 20 30 refuse not today" || doubled.Load() != 3 || refused.Load() != 2 {
			t.Errorf("it came to %q, %v; %d were doubled, %d refused", got, err, doubled.Load(), refused.Load())
		}
		if x := job.Attempts[0]; x.Outcome != stint.OutcomeSnoozed || !strings.HasPrefix(x.Reason, `awaits the end of job `) {
			t.Errorf("its first run ended as %+v", x)
		}
	})
}

// What a handler calls is cancelled with it, and what it does wrong is said.
func TestACallThatIsCancelledOrWrong(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		waits := stint.NewKind[struct{}]("waits")
		begun := make(chan stint.ID, 1)
		stint.Handle(mux, waits, func(ctx context.Context, job *stint.Job, _ struct{}) error {
			begun <- job.ID
			<-ctx.Done()
			return ctx.Err()
		})
		calls := stint.NewKind[string]("calls")
		stint.Handle(mux, calls, func(ctx context.Context, _ *stint.Job, what string) error {
			switch what {
			case "a key":
				return waits.Call(ctx, "x", struct{}{}, stint.IdempotencyKey("k"))
			case "no name":
				return waits.Call(ctx, "", struct{}{})
			}
			return waits.Call(ctx, "x", struct{}{})
		})
		start(t, s, mux, engine.Config{Slots: 2})
		client := stint.NewClient(s)
		for _, what := range []string{"a key", "no name"} {
			id, err := calls.Enqueue(t.Context(), client, what)
			if err != nil {
				t.Fatal(err)
			}
			if job := until(t, s, id, stint.Failed); len(job.Attempts) != 1 {
				t.Errorf("%s: it has %d attempts", what, len(job.Attempts))
			}
		}
		id, err := calls.Enqueue(t.Context(), client, "")
		if err != nil {
			t.Fatal(err)
		}
		child := <-begun
		if job := until(t, s, id, stint.Blocked); job.NeedsFirst != child {
			t.Errorf("it waits for %d, not %d", job.NeedsFirst, child)
		}
		if _, err := client.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		until(t, s, id, stint.Cancelled)
		until(t, s, child, stint.Cancelled)
	})
	if err := stint.NewKind[int]("k").Call(t.Context(), "x", 1); !errors.Is(err, stint.ErrNoAttempt) {
		t.Errorf("outside of a handler it gives %v", err)
	}
	run := &stint.Run{Job: &stint.Job{ID: 1}}
	if err := stint.NewKind[int]("k").Call(run.Context(t.Context()), "x", 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without an engine it gives %v", err)
	}
}
