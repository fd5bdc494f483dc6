package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// tardy is a store whose answers to what is not final come late.
type tardy struct{ anyStore }

func (s tardy) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	n, err := s.anyStore.Finish(ctx, engine, claims, done)
	if !done[0].Final {
		time.Sleep(100 * time.Millisecond) // for the next attempt to begin
	}
	return n, err
}

func TestListenersHearOfAnEndBeforeTheNextStart(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var j journal
		mux := stint.NewMux()
		handle(mux, "fails", func(context.Context, *stint.Job) error { return errors.New("no") })
		stop := start(t, tardy{s}, mux, engine.Config{Slots: 2, OnEvent: func(ev event.Event) {
			if ev.Type == event.EventStarted || ev.Type == event.EventEnded {
				j.note(ev.Job.ID, "%s %d", ev.Type, ev.Job.Attempt)
			}
		}})
		id := enqueue(t, s, "fails", `{}`, stint.Retry(retry.Fixed(2, 0)))
		until(t, s, id, stint.Failed)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got, want := j.of(id), "started 1, ended 1, started 2, ended 2, started 3, ended 3"; got != want {
			t.Errorf("\ngot  %s\nwant %s", got, want)
		}
	})
}

func TestListenersHearStartedEndedAndFailed(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var j journal
		mux := stint.NewMux()
		handle(mux, "fine", func(context.Context, *stint.Job) error { return nil })
		handle(mux, "fails", func(_ context.Context, job *stint.Job) error {
			job.Tags[0], job.Queue = "spoilt", "spoilt" // its own, and nobody else's
			return errors.New("no")
		})
		handle(mux, "cancels", func(context.Context, *stint.Job) error { return stint.Cancel("no") })
		stop := start(t, s, mux, engine.Config{OnEvent: func(ev event.Event) {
			switch ev.Type {
			case event.EventStarted:
				j.note(ev.Job.ID, "started %d %v", ev.Job.Attempt, ev.Job.Started.IsZero())
			case event.EventEnded:
				j.note(ev.Job.ID, "ended %d %v", ev.Job.Attempt, ev.Attempt.Outcome)
			case event.EventFailed:
				j.note(ev.Job.ID, "failed %d: %s, queue %s, tags %v, args %s", ev.Job.Attempt, ev.Attempt.Reason, ev.Job.Queue, ev.Job.Tags, ev.Job.Args)
			}
		}})
		want := map[stint.ID]string{
			enqueue(t, s, "fine", `{}`):    "started 1 false, ended 1 completed",
			enqueue(t, s, "cancels", `{}`): "started 1 false, ended 1 cancelled",
			enqueue(t, s, "fails", `[1]`, stint.Retry(retry.Fixed(1, 0)), stint.Tag("x", "y"), stint.Queue("q")): "started 1 false, ended 1 failed, " +
				"started 2 false, ended 2 failed, failed 2: retries exhausted, queue q, tags [x y], args [1]",
		}
		for id, want := range want {
			eventually(t, fmt.Sprintf("job %d is told of", id), func() bool { return len(j.of(id)) >= len(want) })
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for id, want := range want {
			if got := j.of(id); got != want {
				t.Errorf("\ngot  %s\nwant %s", got, want)
			}
		}
	})
}

// parting is a store that answers an engine's leave when a beat of that engine
// has found it gone.
type parting struct {
	anyStore
	gone chan struct{} // a beat of an engine that left
}

func (s parting) Heartbeat(ctx context.Context, token store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	orders, err := s.anyStore.Heartbeat(ctx, token, b)
	if errors.Is(err, store.ErrBuried) {
		defer close(s.gone)
	}
	return orders, err
}

func (s parting) Bury(ctx context.Context, b store.Burial, end func(*store.Entry, bool) store.Completion) (int, error) {
	n, err := s.anyStore.Bury(ctx, b, end)
	select {
	case <-s.gone:
		time.Sleep(100 * time.Millisecond) // for the beat to say what it thinks of that
	case <-ctx.Done():
	}
	return n, err
}

func TestWhoLeavesIsNotSaidToBeBuried(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		// An engine that gets no processor for long fences itself: then it sends no beat, or joins again.
		for range 5 {
			var j journal
			joined := make(chan struct{}, 100)
			p := parting{s, make(chan struct{})}
			stop := start(t, p, stint.NewMux(), engine.Config{TimeToLive: pace.Of(time.Second), OnEvent: func(ev event.Event) {
				switch ev.Type {
				case event.EventJoined:
					joined <- struct{}{}
				case event.EventBuried, event.EventLeft:
					j.note(0, "%s", ev.Type)
				}
			}})
			<-joined
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-p.gone:
			default:
				continue
			}
			if len(joined) > 0 {
				continue
			}
			if got := j.of(0); got != "left" {
				t.Errorf("it was told: %s", got)
			}
			return
		}
		t.Error("no beat found the engine gone")
	})
}
