package engine_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/sqlite"
)

// What waits for a slot that is not free for long goes back, also when the engine had nothing before for a while.
func TestAfterAPauseWhatWaitsForASlotGoesBackToo(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "quick", func(context.Context, *stint.Job) error { time.Sleep(time.Millisecond); return nil })
		handle(mux, "long", func(context.Context, *stint.Job) error { time.Sleep(20 * time.Second); return nil })
		var returned atomic.Int32
		e := newEngine(t, s, mux, engine.Config{Slots: 1, OnEvent: func(e event.Event) {
			if e.Type == event.EventReturned {
				returned.Add(int32(e.Count))
			}
		}})
		stop, wait := running(t, e)
		quick := slices.Repeat([]stint.NewJob{{Kind: "quick"}}, 50)
		many := func(jobs []stint.NewJob) {
			if _, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs); err != nil {
				t.Fatal(err)
			}
		}
		many(quick)
		time.Sleep(2 * time.Second) // in which it has nothing, and still knows how fast these are
		many(append([]stint.NewJob{{Kind: "long"}}, quick...))
		time.Sleep(5 * time.Second)
		if returned.Load() == 0 {
			t.Error("nothing was handed back in five seconds in which no slot was free")
		}
		stop()
		if err := wait(); err != nil {
			t.Error(err)
		}
	})
}
