package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/store"
)

// ready makes an engine that notes what it performs, in order.
func ready(t *testing.T, s anyStore, got *[]string, c engine.Config) *engine.Engine {
	mux := stint.NewMux()
	handle(mux, "note", func(ctx context.Context, job *stint.Job) error {
		*got = append(*got, string(job.Args))
		if string(job.Args) == `"parent"` {
			_, err := stint.ClientFrom(ctx).Enqueue(ctx, newJob("note", `"child"`))
			return err
		}
		return nil
	})
	return newEngine(t, s, mux, c)
}

func runReady(t *testing.T, e *engine.Engine) (told []string) {
	t.Helper()
	n, err := e.RunReady(t.Context(), func(job *stint.Job, x store.Completion) bool {
		told = append(told, fmt.Sprint(string(job.Args), " ", x.Outcome))
		return true
	})
	if err != nil || n != len(told) {
		t.Fatalf("%d were run and %v told, %v", n, told, err)
	}
	return told
}

func TestWhatIsReadyRunsOneByOneWithAllThatItEnqueues(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var got []string
		e := ready(t, s, &got, engine.Config{Queues: []string{"default", "rests"}})
		for text, opts := range map[string][]stint.Option{
			`"late"`: {stint.Delay(time.Hour)}, `"paused"`: {stint.Queue("rests")}, `"elsewhere"`: {stint.Queue("other")},
		} {
			enqueue(t, s, "note", text, opts...)
		}
		enqueue(t, s, "stranger", `"stranger"`)
		enqueue(t, s, "note", `"parent"`)
		enqueue(t, s, "note", `"first"`, stint.Priority(-5))
		gone := enqueue(t, s, "note", `"gone"`)
		enqueue(t, s, "note", `"expired"`, stint.StartBy(time.Now().Add(-time.Hour)))
		if _, err := s.(store.Canceller).Cancel(t.Context(), []stint.ID{gone}, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := s.(store.Pauser).Pause(t.Context(), "rests", "", ""); err != nil {
			t.Fatal(err)
		}
		told := runReady(t, e)
		if want := []string{`"first" completed`, `"parent" completed`, `"expired" expired`, `"child" completed`}; !slices.Equal(told, want) {
			t.Errorf("told was %v, want %v", told, want)
		}
		if want := []string{`"first"`, `"parent"`, `"child"`}; !slices.Equal(got, want) {
			t.Errorf("%v ran, want %v", got, want)
		}
		if again := runReady(t, e); len(again) != 0 {
			t.Errorf("then %v ran", again)
		}
		if roster, err := s.Engines(t.Context()); err != nil || len(roster) != 0 {
			t.Errorf("the roster still has %v, %v", roster, err)
		}
	})
}

func TestWhoeverIsToldEndsTheRun(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var got []string
		e := ready(t, s, &got, engine.Config{})
		enqueue(t, s, "note", `1`)
		enqueue(t, s, "note", `2`)
		n, err := e.RunReady(t.Context(), func(*stint.Job, store.Completion) bool { return false })
		if err != nil || n != 1 || !slices.Equal(got, []string{"1"}) {
			t.Errorf("%d were run: %v, %v", n, got, err)
		}
	})
}

func TestACallerWhoGivesUpLeavesWhatIsReadyToOthersUncharged(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		mux := stint.NewMux()
		handle(mux, "waits", func(ctx context.Context, _ *stint.Job) error {
			cancel(enough)
			<-ctx.Done()
			return ctx.Err()
		})
		id, next := enqueue(t, s, "waits", `1`), enqueue(t, s, "waits", `2`)
		n, err := newEngine(t, s, mux, engine.Config{}).RunReady(ctx, nil)
		if n != 1 || !errors.Is(err, enough) {
			t.Errorf("%d ran, %v", n, err)
		}
		for _, id := range []stint.ID{id, next} {
			if job := info(t, s, id); job.State != stint.Available || job.Attempt != 1 {
				t.Errorf("job %d is %s at attempt %d", id, job.State, job.Attempt)
			}
		}
	})
}

func TestHooksHaveEndedBeforeTheNextReadyJobBegins(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var got []string
		mux := stint.NewMux()
		handle(mux, "note", func(_ context.Context, job *stint.Job) error {
			got = append(got, "job "+string(job.Args))
			return nil
		}).Hook(stint.Hooks{Finally: func(_ context.Context, job *stint.Job, _ *stint.Attempt) error {
			time.Sleep(30 * time.Millisecond)
			got = append(got, "hook "+string(job.Args))
			return nil
		}})
		enqueue(t, s, "note", `1`)
		enqueue(t, s, "note", `2`)
		if _, err := newEngine(t, s, mux, engine.Config{}).RunReady(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if want := []string{"job 1", "hook 1", "job 2", "hook 2"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}
