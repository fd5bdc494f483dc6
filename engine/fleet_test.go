package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/storetest"
)

// Each claim costs the server about as much for a few jobs as for many, and engines that claim often
// wait for each other.
func TestTheClaimsOfABacklogAreFew(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, store *sqlite.Store) {
		const n = 5000
		fill(t, store, "work", n, stint.DefaultQueue)
		s := &counted{drowsy: newDrowsy(store)}
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { time.Sleep(10 * time.Millisecond); return nil })
		stop := start(t, s, mux, engine.Config{Slots: 10})
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got, claims := s.positions.Load(), s.claims.Load(); got != n || got/claims < 40 {
			t.Errorf("%d of %d jobs were claimed by %d claims, want 40 or more by each", got, n, claims)
		}
	})
}

// What any of them would find need not be looked for by all of them all the time.
func TestInALargeFleetEachEngineLooksLessOften(t *testing.T) {
	const during = 60
	asked := func(others int) (looks, promotions int32) {
		bubble(t, time.Hour, func(t *testing.T, store *sqlite.Store) {
			var fleet []*storetest.Worker
			for range others {
				w := storetest.NewWorker(t, store, "work")
				w.Info.Queues = nil
				if err := w.TryJoin(t.Context()); err != nil {
					t.Fatal(err)
				}
				fleet = append(fleet, w)
			}
			s := &counted{drowsy: newDrowsy(store)}
			mux := stint.NewMux()
			handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
			stop := start(t, s, mux, engine.Config{})
			for range during / 2 {
				time.Sleep(2 * time.Second)
				for _, w := range fleet {
					w.Heartbeat()
				}
			}
			looks, promotions = s.looks.Load(), s.promotions.Load()
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
		return looks, promotions
	}
	looks, promotions := asked(4)
	if looks < during*9/10 || promotions < during*9/10 {
		t.Errorf("in a fleet of five each looks %d and promotes %d times in %d s, want once a second", looks, promotions, during)
	}
	looks, promotions = asked(49)
	if looks > during/4 || promotions > during/4 {
		t.Errorf("in a fleet of fifty each looks %d and promotes %d times in %d s, want once in ten seconds", looks, promotions, during)
	}
}
