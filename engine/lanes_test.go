package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// slowLooks is a store with so many lanes that each look takes 20 ms.
type slowLooks struct {
	*sqlite.Store
	looks, claims atomic.Int32
}

func (s *slowLooks) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	s.looks.Add(1)
	time.Sleep(20 * time.Millisecond)
	return s.Store.Look(ctx, known)
}

func (s *slowLooks) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	s.claims.Add(1)
	return s.Store.Claim(ctx, req)
}

func (s *slowLooks) ClaimLanes(ctx context.Context, req store.ClaimRequest, lanes []store.LaneHead) ([]store.Claim, error) {
	s.claims.Add(1)
	return s.Store.ClaimLanes(ctx, req, lanes)
}

func TestManyLanesTakeFewLooksAndFewClaims(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		const queues = 400
		c := &slowLooks{Store: s}
		for i := range queues {
			fill(t, s, "k", 2, fmt.Sprint("queue-", i))
		}
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		stop := start(t, c, mux, engine.Config{Slots: 50})
		time.Sleep(time.Second)
		if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Completed] != 2*queues {
			t.Errorf("after a second counts are %v, %v", counts, err)
		}
		if looks, claims := c.looks.Load(), c.claims.Load(); looks > 20 || claims > 2*queues/10 {
			t.Errorf("%d jobs of %d queues took %d looks and %d claims", 2*queues, queues, looks, claims)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Beside many lanes a look costs more; an idle engine makes fewer of them.
func TestAnIdleEngineLooksLessOftenTheMoreLanesThereAre(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		const queues = 1000 // for each of which it waits 0.2 ms
		l := &looks{Store: s}
		for i := range queues {
			fill(t, s, "k", 1, fmt.Sprint("queue-", i))
		}
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
		stop := start(t, silent{l}, mux, engine.Config{Slots: 50, Poll: 50 * time.Millisecond})
		time.Sleep(10 * time.Second)
		l.gaps()
		time.Sleep(10 * time.Second)
		for _, gap := range l.gaps() {
			if gap < 200 || gap > 250 {
				t.Errorf("it looked again after %d ms, want 200", gap)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
