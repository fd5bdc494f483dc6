package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
)

var double = stint.NewResultKind[int, int]("double", stint.Retry(retry.Fixed(1, time.Minute)))

// doubles runs an engine on a new file until the test ends: it doubles what is positive, refuses
// zero, and fails at the rest. -2 succeeds at the second attempt.
func doubles(t *testing.T) (*sqlite.Store, *stint.Client) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	mux := stint.NewMux()
	stint.HandleResult(mux, double, func(_ context.Context, job *stint.Job, n int) (int, error) {
		switch {
		case n == 0:
			return 0, stint.Cancel("nothing to double")
		case n > 0 || n == -2 && job.Attempt == 2:
			return 2 * n, nil
		}
		return 0, errors.New("it is negative")
	})
	stint.Handle(mux, stint.NewKind[int]("other"), func(context.Context, *stint.Job, int) error { return nil })
	e, err := engine.New(store, mux, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = store.Close()
	})
	return store, stint.NewClient(store)
}

func TestAwaitAnswersWithTheResultOrSaysWhyThereIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := doubles(t)
		var id stint.ID
		await := func(n int) (int, error) {
			var err error
			if id, err = double.Enqueue(t.Context(), client, n); err != nil {
				t.Fatal(err)
			}
			return double.Await(t.Context(), client, id)
		}
		began := time.Now()
		if n, err := await(21); n != 42 || err != nil {
			t.Errorf("21 came to %d, %v", n, err)
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("this process recorded the end, and it was known after %v", took)
		}
		if n, err := await(-2); n != -4 || err != nil {
			t.Errorf("at the second attempt it came to %d, %v", n, err)
		}
		if took := time.Since(began); took < time.Minute {
			t.Errorf("it waited for %v, not until the retry", took)
		}
		_, err := await(-1)
		failed, ok := errors.AsType[*stint.JobError](err)
		if !ok || failed.State != stint.Failed || failed.Reason != retry.ReasonExhausted || failed.Failure.Message != "it is negative" || errors.Is(err, stint.ErrCancelled) {
			t.Errorf("the error is %#v", err)
		}
		if want := fmt.Sprintf("stint: job %d (double) failed: retries exhausted: it is negative", id); err.Error() != want {
			t.Errorf("it reads %q, want %q", err, want)
		}
		_, err = await(0)
		if !errors.Is(err, stint.ErrCancelled) || err.Error() != fmt.Sprintf("stint: job %d (double) was cancelled: nothing to double", id) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestAwaitRefusesWhatItCannotWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := doubles(t)
		other := stint.NewResultKind[int, int]("other")
		id, err := other.Enqueue(t.Context(), client, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := double.Await(t.Context(), client, id); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("of another kind the error is %v", err)
		}
		if _, err := other.Await(t.Context(), client, id); !errors.Is(err, stint.ErrNoResult) {
			t.Errorf("without a result the error is %v", err)
		}
		if err := other.Kind.Await(t.Context(), client, id); err != nil {
			t.Errorf("it completed, and the error is %v", err)
		}
		if err := other.Kind.Await(t.Context(), client, 99); !errors.Is(err, stint.ErrNotFound) {
			t.Errorf("of none the error is %v", err)
		}
		in := client.With(stint.Tx{Handle: 1})
		if err := other.Kind.Await(t.Context(), in, id); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "in a transaction") {
			t.Errorf("in a transaction the error is %v", err)
		}
		if _, err := (*stint.Client)(nil).Await(t.Context(), 1); !errors.Is(err, stint.ErrNoAttempt) {
			t.Errorf("of no client the error is %v", err)
		}
	})
}

// onlyEnqueues is a store without any other role.
type onlyEnqueues struct{ stint.Enqueuer }

func TestAClientSaysWhatItsStoreCannotDo(t *testing.T) {
	c := stint.NewClient(onlyEnqueues{})
	_, job := c.Job(t.Context(), 1)
	_, cancel := c.Cancel(t.Context(), 1)
	_, again := c.Retry(t.Context(), 1)
	_, await := c.Await(t.Context(), 1)
	for what, err := range map[string]error{"Job": job, "Cancel": cancel, "Retry": again, "Await": await} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
}

func TestAClientShowsCancelsAndRetriesJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, client := doubles(t)
		ctx := t.Context()
		id, err := double.Enqueue(ctx, client, 1, stint.Delay(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if answers, err := client.Cancel(ctx, id, 99); err != nil || answers[id] != stint.CancelledNow || answers[99] != stint.CancelNotFound {
			t.Errorf("cancelled: %v, %v", answers, err)
		}
		if job, err := client.Job(ctx, id); err != nil || job.State != stint.Cancelled {
			t.Errorf("it is %+v, %v", job, err)
		}
		answers, err := client.Retry(ctx, id)
		if err != nil || answers[id].Answer != stint.RerunRecovered {
			t.Fatalf("retried: %v, %v", answers, err)
		}
		if n, err := double.Await(ctx, client, answers[id].ID); n != 2 || err != nil {
			t.Errorf("it came to %d, %v", n, err)
		}
		if _, err := client.Job(ctx, 99); !errors.Is(err, stint.ErrNotFound) {
			t.Errorf("of none the error is %v", err)
		}
		var bad *json.UnmarshalTypeError
		wrong := stint.NewResultKind[int, string]("double")
		if _, err := wrong.Await(ctx, stint.NewClient(store), answers[id].ID); !errors.As(err, &bad) {
			t.Errorf("of a result of another type the error is %v", err)
		}
	})
}
