package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/store"
)

// flows skips a store that has none.
func flows(t *testing.T, s anyStore) store.FlowReader {
	t.Helper()
	r, ok := s.(store.FlowReader)
	if !ok {
		t.Skip("the store has no flows")
	}
	return r
}

// What came before is read typed: by the edges, and by name. What a running job adds runs before the flow ends.
func TestAFlowRunsInTheOrderOfItsEdges(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		flows(t, s)
		number := stint.NewResultKind[int, int]("number")
		sum := stint.NewResultKind[struct{}, int]("sum")
		mux := stint.NewMux()
		stint.HandleResult(mux, number, func(_ context.Context, _ *stint.Job, n int) (int, error) { return n * 2, nil })
		stint.HandleResult(mux, sum, func(ctx context.Context, job *stint.Job, _ struct{}) (int, error) {
			all, err := number.FromFlow(ctx, "first")
			for n, missing := range number.Needed(ctx) {
				err = errors.Join(err, missing)
				all += n
			}
			if err != nil {
				return 0, err
			}
			if _, err := sum.FromFlow(ctx, "first"); !errors.Is(err, stint.ErrInvalid) {
				return 0, errors.New("the first is read as a sum")
			}
			more := stint.FlowFrom(ctx)
			number.Add(more, "more", all)
			_, err = more.Enqueue(ctx, stint.ClientFrom(ctx))
			return all, err
		})
		start(t, s, mux, engine.Config{Slots: 3})
		f := stint.NewFlow("sums", stint.Tag("monthly"))
		first := number.Add(f, "first", 100)
		parts := number.Each(f, []int{1, 2, 3}, stint.Needs(first))
		total := sum.Add(f, "total", struct{}{}, stint.Needs(parts...))
		id, err := f.Enqueue(t.Context(), stint.NewClient(s))
		if err != nil {
			t.Fatal(err)
		}
		job := until(t, s, id, stint.Completed)
		if !job.IsFlow || job.Kind != "sums" || !slices.Equal(job.Tags, []string{"monthly"}) {
			t.Errorf("the flow is %+v", job)
		}
		if got, err := sum.Result(until(t, s, total.ID(), stint.Completed)); err != nil || got != 212 {
			t.Errorf("the sum is %d, %v; want 212", got, err)
		}
		more, err := flows(t, s).Node(t.Context(), id, "more")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := number.Result(until(t, s, more, stint.Completed)); err != nil || got != 424 {
			t.Errorf("what was added came to %d, %v; want 424", got, err)
		}
	})
}

// A failure runs what waits for one, and cancels what needs a success.
func TestAFlowTakesTheWayOfAFailure(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		flows(t, s)
		var undone atomic.Int32
		mux := stint.NewMux()
		broken, undo := stint.NewKind[struct{}]("broken"), stint.NewKind[struct{}]("undo")
		stint.Handle(mux, broken, func(context.Context, *stint.Job, struct{}) error { return stint.NoRetry(errors.New("broken")) })
		stint.Handle(mux, undo, func(context.Context, *stint.Job, struct{}) error { undone.Add(1); return nil })
		start(t, s, mux, engine.Config{})
		f := stint.NewFlow("order")
		pay := broken.Add(f, "pay", struct{}{})
		ship := undo.Add(f, "ship", struct{}{}, stint.Needs(pay))
		refund := undo.Add(f, "refund", struct{}{}, stint.NeedsFailure(pay))
		id, err := f.Enqueue(t.Context(), stint.NewClient(s))
		if err != nil {
			t.Fatal(err)
		}
		until(t, s, id, stint.Failed)
		until(t, s, ship.ID(), stint.Cancelled)
		until(t, s, refund.ID(), stint.Completed)
		if n := undone.Load(); n != 1 {
			t.Errorf("%d jobs ran after the failure, want 1", n)
		}
	})
}
