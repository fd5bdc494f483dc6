package stint_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stint-go/stint"
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

// Steps that are under way count.
func TestAJobHasNoMoreThanItsStepsAtTheSameTime(t *testing.T) {
	ctx := (&stint.Run{Job: new(stint.Job)}).Context(t.Context())
	var all sync.WaitGroup
	var begun sync.WaitGroup
	begun.Add(stint.MaxSteps)
	release := make(chan struct{})
	for i := range stint.MaxSteps {
		all.Go(func() {
			_, err := stint.Step(ctx, fmt.Sprint(i), func(context.Context) (int, error) { begun.Done(); <-release; return i, nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	begun.Wait()
	_, err := stint.Step(ctx, "more", func(context.Context) (int, error) { return 0, nil })
	if err == nil || !strings.Contains(err.Error(), "may have no more") {
		t.Errorf("one more gives %v", err)
	}
	close(release)
	all.Wait()
}
