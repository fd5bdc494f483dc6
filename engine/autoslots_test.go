package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
)

// atOnce counts what runs, and the most that ran.
type atOnce struct{ now, most atomic.Int64 }

func (a *atOnce) begin() (end func()) {
	n := a.now.Add(1)
	for most := a.most.Load(); n > most && !a.most.CompareAndSwap(most, n); most = a.most.Load() {
	}
	return func() { a.now.Add(-1) }
}

func TestAnEngineFindsMoreSlotsForHandlersThatWait(t *testing.T) {
	s := openSQLite(t)
	mux := stint.NewMux()
	var ran atOnce
	handle(mux, "work", func(ctx context.Context, _ *stint.Job) error {
		defer ran.begin()()
		time.Sleep(100 * time.Millisecond)
		return nil
	})
	fill(t, s, "work", 20_000, stint.DefaultQueue)
	var changes atomic.Int64
	e, err := engine.New(s, mux, engine.Config{Slots: 4, MaxSlots: 64, Grace: time.Second, OnEvent: func(e event.Event) {
		if e.Type == event.EventSlots {
			changes.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, e)
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until) && ran.most.Load() < 24; {
		time.Sleep(10 * time.Millisecond)
	}
	m := e.Metrics().Workers
	roster, err := s.Engines(t.Context())
	if err != nil || len(roster) != 1 || roster[0].Slots < 4 || roster[0].Slots > 64 {
		t.Errorf("the roster has %+v, %v", roster, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := ran.most.Load(); n < 24 || n > 64 || m.Slots < 16 || m.MaxSlots != 64 || m.SlotsWhy == "" || changes.Load() == 0 {
		t.Errorf("%d jobs ran at once, of 4 to 64; it says %d slots (%s) after %d changes", n, m.Slots, m.SlotsWhy, changes.Load())
	}
}

// Handlers that calculate are as fast together as one at a time.
func TestAnEngineFindsNoMoreSlotsForHandlersThatCalculate(t *testing.T) {
	s := openSQLite(t)
	mux := stint.NewMux()
	processor := make(chan struct{}, 2) // of which each job takes a slice at a time
	var ran atOnce
	var slots atomic.Int64 // the most that there were
	handle(mux, "work", func(context.Context, *stint.Job) error {
		defer ran.begin()()
		for range 4 {
			processor <- struct{}{}
			time.Sleep(5 * time.Millisecond)
			<-processor
		}
		return nil
	})
	fill(t, s, "work", 20_000, stint.DefaultQueue)
	slots.Store(4)
	e, err := engine.New(s, mux, engine.Config{Slots: 4, MaxSlots: 64, Grace: 5 * time.Second, OnEvent: func(e event.Event) {
		if e.Type == event.EventSlots {
			slots.Store(max(slots.Load(), int64(e.Count)))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, e)
	seen := map[int64]int{}
	for range 200 {
		time.Sleep(50 * time.Millisecond)
		seen[e.Metrics().Workers.Slots]++
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	usual := int64(0)
	for n := range seen {
		if seen[n] > seen[usual] {
			usual = n
		}
	}
	if n := ran.most.Load(); n > slots.Load() {
		t.Errorf("%d jobs ran at once, and it had %d slots at most", n, slots.Load())
	}
	if usual > 8 {
		t.Errorf("it had %d slots for most of the time, where 2 are enough and 4 are the least: %v", usual, seen)
	}
}

func TestSlotsThatAnEngineFindsHaveSensibleBounds(t *testing.T) {
	s := openSQLite(t)
	host, err := engine.New(s, stint.NewMux(), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]engine.Config{
		"less than the least": {Slots: 8, MaxSlots: 7},
		"negative":            {MaxSlots: -1},
		"too many":            {MaxSlots: 32_001},
		"for each queue":      {MaxSlots: 100, QueueSlots: map[string]int{"mail": 4}},
		"beside another one":  {MaxSlots: 1000, Slots: 1, Beside: host},
	} {
		_, err := engine.New(s, stint.NewMux(), c)
		if invalid, ok := errors.AsType[*stint.InvalidError](err); !ok || invalid.Field != "slots" {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if _, err := engine.New(s, stint.NewMux(), engine.Config{Slots: 8, MaxSlots: 8}); err != nil {
		t.Error(err)
	}
}
