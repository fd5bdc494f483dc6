package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/failure"
)

// A run made by hand keeps its steps, and commits no transaction.
func TestStepsOfARunMadeByHand(t *testing.T) {
	ctx := (&stint.Run{Job: new(stint.Job)}).Context(t.Context())
	calls := 0
	give := func(context.Context) (int, error) { calls++; return 7, nil }
	if n, err := stint.Step(ctx, "a", give); n != 7 || err != nil || calls != 1 {
		t.Errorf("it gives %d after %d calls, %v", n, calls, err)
	}
	if _, err := stint.StepTx(ctx, stint.Tx{Handle: "some"}, "b", give); !errors.Is(err, errors.ErrUnsupported) || calls != 1 {
		t.Errorf("in a transaction it gives %v after %d calls, want ErrUnsupported after 1", err, calls)
	}
}

// chained is an error as some libraries make them of many: the last one unwraps to nothing.
type chained []error

func (c chained) Error() string { return "several" }
func (c chained) Unwrap() error {
	if len(c) == 1 {
		return nil
	}
	return c[1:]
}
func (c chained) As(target any) bool { return errors.As(c[0], target) }

// listed is one that may hold nothing.
type listed []error

func (l listed) Error() string   { return "several" }
func (l listed) Unwrap() []error { return l }

// A run that sleeps has not completed, in whatever its handler wraps that.
func TestARunThatSleepsHasNotCompleted(t *testing.T) {
	for name, wrap := range map[string]func(err error) error{
		"nothing": func(error) error { return nil }, "itself": func(err error) error { return err },
		"a list": func(err error) error { return listed{nil, err, nil} }, "a chain": func(err error) error { return chained{err, err} },
		"joined": func(err error) error { return errors.Join(nil, fmt.Errorf("wrapped: %w", err), err) },
	} {
		run := &stint.Run{Job: new(stint.Job)}
		err := stint.Sleep(run.Context(t.Context()), "a", time.Hour)
		if _, got := run.Settle(nil, wrap(err)); got == nil || !strings.Contains(got.Error(), `step "a" sleeps until`) {
			t.Errorf("after a sleep, %s counts as %v", name, got)
		}
	}
}

// Steps that are under way count.
func TestAJobHasNoMoreThanItsStepsAtTheSameTime(t *testing.T) {
	ctx := (&stint.Run{Job: new(stint.Job)}).Context(t.Context())
	var all sync.WaitGroup
	begun := make(chan error, stint.MaxSteps)
	release := make(chan struct{})
	for i := range stint.MaxSteps {
		all.Go(func() {
			_, err := stint.Step(ctx, fmt.Sprint(i), func(context.Context) (int, error) { begun <- nil; <-release; return i, nil })
			if err != nil {
				begun <- err
			}
		})
	}
	for range stint.MaxSteps {
		if err := <-begun; err != nil {
			t.Fatal(err)
		}
	}
	_, err := stint.Step(ctx, "more", func(context.Context) (int, error) { return 0, nil })
	if err == nil || !strings.Contains(err.Error(), "may have no more") {
		t.Errorf("one more gives %v", err)
	}
	close(release)
	all.Wait()
}

// A job that is run within the StepTx of another has steps of its own.
func TestAnotherJobInAStepTxHasSteps(t *testing.T) {
	outer := (&stint.Run{Job: new(stint.Job), Steps: commits{}}).Context(t.Context())
	n, err := stint.StepTx(outer, stint.Tx{Handle: "some"}, "a", func(ctx context.Context) (int, error) {
		inner := (&stint.Run{Job: new(stint.Job)}).Context(ctx)
		return stint.Step(inner, "a", func(context.Context) (int, error) { return 7, nil })
	})
	if n != 7 || err != nil {
		t.Errorf("it gives %d, %v", n, err)
	}
}

// commits records steps nowhere, and knows of some.
type commits struct{ before []stint.RecordedStep }

func (c commits) Recorded(context.Context) ([]stint.RecordedStep, error) { return c.before, nil }
func (commits) Record(_ context.Context, _ stint.Tx, _ string, _ time.Time, result json.RawMessage) (json.RawMessage, error) {
	return result, nil
}
func (commits) Take(context.Context, string, string, time.Time) (json.RawMessage, error) {
	return json.RawMessage(`{"signal": 1, "value": {"n": 7}}`), nil
}
func (commits) Ask(_ context.Context, name string, q stint.Question) (stint.RecordedStep, error) {
	return stint.RecordedStep{Name: name, Question: &q}, nil
}
func (commits) Now() time.Time { return time.Now() }
func (commits) Err() error     { return nil }

// What a database adds to the text of results does not count.
func TestResultsCountWithoutTheirSpaces(t *testing.T) {
	long := json.RawMessage("[" + strings.Repeat("1, ", 400_000) + "1]") // 0.8 MB, and 1.2 MB with spaces
	var before []stint.RecordedStep
	for i := range 20 {
		before = append(before, stint.RecordedStep{Name: fmt.Sprint(i), Result: long})
	}
	give := func(context.Context) (string, error) { return strings.Repeat("x", 700_000), nil }
	ctx := (&stint.Run{Job: new(stint.Job), Steps: commits{before}}).Context(t.Context())
	if _, err := stint.Step(ctx, "one more", give); err != nil {
		t.Error(err)
	}
	if _, err := stint.Step(ctx, "and another", give); err == nil || !strings.Contains(err.Error(), "are more than 16777216 bytes") {
		t.Errorf("what is too much gives %v", err)
	}
}

// An attempt that sets its result and returns the error of its sleep has not dropped that.
func TestAResultThatIsSetDropsNoSleep(t *testing.T) {
	run := &stint.Run{Job: new(stint.Job)}
	ctx := run.Context(t.Context())
	if err := stint.SetResult(ctx, 1); err != nil {
		t.Fatal(err)
	}
	_, err := run.Settle(nil, stint.Sleep(ctx, "a", time.Hour))
	if err == nil || !strings.Contains(err.Error(), `step "a" sleeps until`) || strings.Contains(err.Error(), "did not return") {
		t.Errorf("it counts as %v", err)
	}
}

// refuses is a database that stores no value.
type refuses struct{ commits }

func (refuses) Record(context.Context, stint.Tx, string, time.Time, json.RawMessage) (json.RawMessage, error) {
	return nil, stint.ErrUnstorable
}

// A result that the database refuses is refused again; what a transaction wrote beside it may differ.
func TestWhatTheDatabaseRefuses(t *testing.T) {
	ctx := (&stint.Run{Job: new(stint.Job), Steps: refuses{}}).Context(t.Context())
	give := func(context.Context) (int, error) { return 1, nil }
	_, plain := stint.Step(ctx, "a", give)
	_, tx := stint.StepTx(ctx, stint.Tx{Handle: "some"}, "b", give)
	if _, final := failure.As[*failure.NoRetry](plain); !final || !errors.Is(plain, stint.ErrUnstorable) {
		t.Errorf("a step gives %v, want one that is not retried", plain)
	}
	if _, final := failure.As[*failure.NoRetry](tx); final || !errors.Is(tx, stint.ErrUnstorable) {
		t.Errorf("in a transaction it gives %v, want one that is retried", tx)
	}
}
