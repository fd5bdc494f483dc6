package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

func TestTheHooksOfALostAttemptAreCalledByTheEngineThatBuries(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		ctx := t.Context()
		var j journal
		var events journal
		mux := stint.NewMux()
		mux.Hook(j.hooks(""))
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		fatal, spared := enqueue(t, s, "work", `{}`, stint.MaxLosses(1), stint.Tag("a")), enqueue(t, s, "work", `{}`)

		// An engine that announces both as running, and is heard of no more.
		const dead store.EngineID = 4711
		if err := s.Join(ctx, store.EngineInfo{Token: dead, Instance: "dead", Slots: 2, TimeToLive: time.Second}, nil); err != nil {
			t.Fatal(err)
		}
		lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "")
		c, err := s.Claim(ctx, store.ClaimRequest{Engine: dead, Serial: 1, Nonce: 1, Lane: lane.ID, Max: 10, Wait: true})
		if err != nil || len(c.Positions) != 2 {
			t.Fatal(c, err)
		}
		if _, err := s.Heartbeat(ctx, dead, store.Heartbeat{Running: c.Positions}); err != nil {
			t.Fatal(err)
		}
		if h, ok := s.(store.LivenessLocker); ok {
			h.Release(dead)
		}
		stop := start(t, s, mux, engine.Config{Slots: 1, OnEvent: func(ev event.Event) {
			if ev.Job != nil {
				events.note(ev.Job.ID, "%s", ev.Type)
			}
			if ev.Type == event.EventFailed {
				events.note(ev.Job.ID, "%v %v %s", ev.Job.Tags, ev.Attempt.Outcome, ev.Attempt.Reason)
			}
		}})
		until(t, s, spared, stint.Completed)
		until(t, s, fatal, stint.Failed)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got, want := j.of(fatal), "failure 1, last 1, finally 1"; got != want {
			t.Errorf("of the job that is lost for good: %s, want %s", got, want)
		}
		// Those of the attempt that is lost run beside the next one.
		if got, one, two := j.of(spared), "failure 1, finally 1", "success 2, finally 2"; got != one+", "+two && got != two+", "+one {
			t.Errorf("of the job that runs again: %s", got)
		}
		if got, want := events.of(fatal), "failed, [a] lost lost"; got != want {
			t.Errorf("the events of the first are %s, want %s", got, want)
		}
		if got, want := events.of(spared), "started, ended"; got != want {
			t.Errorf("the events of the second are %s, want %s", got, want)
		}
	})
}
