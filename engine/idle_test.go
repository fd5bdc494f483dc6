package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
)

// drowsy is a store that rings for nobody who did not say that he sleeps.
type drowsy struct {
	*sqlite.Store
	bell chan struct{}

	mu     sync.Mutex
	before func() // what happens before it hears that somebody sleeps
	said   []bool
}

func newDrowsy(s *sqlite.Store) *drowsy { return &drowsy{Store: s, bell: make(chan struct{})} }

func (d *drowsy) Listen(ctx context.Context, ring func()) error {
	for {
		ring()
		select {
		case <-d.bell:
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *drowsy) Asleep(_ context.Context, _ stint.Token, asleep bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.before != nil {
		d.before()
		d.before = nil
	}
	d.said = append(d.said, asleep)
	return nil
}

func TestNothingIsMissedBetweenTheLastLookAndTheSleep(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var id stint.ID
		d := newDrowsy(s)
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { time.Sleep(100 * time.Millisecond); return nil })
		stop := start(t, d, mux, engine.Config{Poll: 10 * time.Minute, Slots: 1})
		time.Sleep(time.Second) // no ring is left over
		for range 50 {
			enqueue(t, s, "k", `{}`)
		}
		d.bell <- struct{}{}
		time.Sleep(3 * time.Second) // it is awake, and has said so
		d.mu.Lock()
		d.before = func() { id = enqueue(t, s, "k", `{}`) }
		d.mu.Unlock()
		time.Sleep(7 * time.Second)
		d.mu.Lock()
		late := id
		d.mu.Unlock()
		if job, err := s.Job(t.Context(), late); err != nil || job.State != stint.Completed {
			t.Errorf("it is %v, error %v", job, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEngineSaysOnceThatItSleepsAndOnceThatItHasNotForLong(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		d := newDrowsy(s)
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { time.Sleep(100 * time.Millisecond); return nil })
		stop := start(t, d, mux, engine.Config{Slots: 1})
		time.Sleep(30 * time.Second)
		for range 100 { // ten seconds
			enqueue(t, s, "k", `{}`)
		}
		d.bell <- struct{}{}
		time.Sleep(30 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(d.said, []bool{true, false, true}) {
			t.Errorf("it said %v", d.said)
		}
	})
}
