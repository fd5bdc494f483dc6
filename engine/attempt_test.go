package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
)

func TestAHandlerEnqueuesWithTheClientOfItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		child := make(chan stint.ID, 2)
		follow := func(ctx context.Context, kind string) error {
			id, err := stint.ClientFrom(ctx).Enqueue(ctx, stint.NewJob{Kind: kind})
			child <- id
			return err
		}
		mux := stint.NewMux()
		handle(mux, "parent", func(ctx context.Context, job *stint.Job) error {
			if stint.JobFrom(ctx) != job {
				return errors.New("the context leads to another job")
			}
			return follow(ctx, "child")
		}).Hook(stint.Hooks{AfterSuccess: func(ctx context.Context, job *stint.Job, _ *stint.Attempt) error {
			if err := stint.SetResult(ctx, "too late"); !errors.Is(err, stint.ErrNoAttempt) {
				return fmt.Errorf("a hook set a result: %v", err)
			}
			return follow(ctx, stint.JobFrom(ctx).Kind+"_hook")
		}})
		handle(mux, "child", func(context.Context, *stint.Job) error { return nil })
		handle(mux, "parent_hook", func(context.Context, *stint.Job) error { return nil })
		// The client of the configuration is the one that they get.
		client := stint.NewClient(s).Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
			return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
				stint.URN(fmt.Sprintf("parent:%d", stint.JobFrom(ctx).ID))(&jobs[0])
				return next(ctx, tx, jobs)
			}
		})
		for _, c := range []struct {
			config engine.Config
			urn    bool
		}{{engine.Config{}, false}, {engine.Config{Client: client}, true}} {
			stop := start(t, s, mux, c.config)
			parent := enqueue(t, s, "parent", `{}`)
			until(t, s, parent, stint.Completed)
			for _, kind := range []string{"child", "parent_hook"} {
				job := until(t, s, <-child, stint.Completed)
				if want := fmt.Sprintf("parent:%d", parent); job.Kind != kind || (job.URN == want) != c.urn {
					t.Errorf("the %s has the urn %q", job.Kind, job.URN)
				}
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAHandlerLearnsOfItsAttemptAndTheOneBefore(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var j journal
		mux := stint.NewMux()
		handle(mux, "work", func(ctx context.Context, job *stint.Job) error {
			before, err := stint.JobFrom(ctx).Previous(ctx)
			if err != nil {
				t.Error(err)
			}
			told := "no run before"
			if before != nil {
				told = before.Outcome.String()
				if before.Error != nil {
					told += ": " + before.Error.Message
				}
				if before.Started.IsZero() || before.Finished.Before(before.Started) || job.Started.Before(before.Finished) {
					t.Errorf("run %v to %v was before %v", before.Started, before.Finished, job.Started)
				}
			}
			j.note(job.ID, "%d (last %v) %s", job.Attempt, job.Last(), told)
			switch {
			case before == nil:
				return stint.Snooze(0)
			default:
				return fmt.Errorf("no %d", job.Attempt)
			}
		})
		// A detour by an engine that does not know the kind is no run.
		other := stint.NewMux()
		handle(other, "other", func(context.Context, *stint.Job) error { return nil })
		stop := start(t, s, other, engine.Config{})
		id := enqueue(t, s, "work", `{}`, stint.Retry(retry.Fixed(2, 0)))
		eventually(t, "it was handed back", func() bool {
			job, err := s.Job(t.Context(), id)
			return err == nil && len(job.Attempts) == 1
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		start(t, s, mux, engine.Config{})
		until(t, s, id, stint.Failed)
		want := "1 (last false) no run before, 1 (last false) snoozed, 2 (last false) failed: no 1, 3 (last true) failed: no 2"
		if got := j.of(id); got != want {
			t.Errorf("\ngot  %s\nwant %s", got, want)
		}
	})
}

func TestAStoreThatShowsNothingHasNoPreviousRuns(t *testing.T) {
	s := openSQLite(t)
	told := make(chan error, 1)
	mux := stint.NewMux()
	handle(mux, "work", func(ctx context.Context, _ *stint.Job) error {
		_, err := stint.JobFrom(ctx).Previous(ctx)
		told <- err
		return nil
	})
	start(t, silent{s}, mux, engine.Config{})
	enqueue(t, s, "work", `{}`)
	if err := <-told; !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("it says %v", err)
	}
}
