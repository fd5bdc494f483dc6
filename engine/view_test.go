package engine_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// tardyLooks is a store where looks take long, so that each is trusted for long, and that has no news.
type tardyLooks struct{ *sqlite.Store }

const slowLook = 500 * time.Millisecond

func (s tardyLooks) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	time.Sleep(slowLook)
	return s.Store.Look(ctx, known)
}

func (s tardyLooks) LookSince(ctx context.Context, m store.Mark) (store.Appended, error) {
	time.Sleep(slowLook)
	return s.Store.LookSince(ctx, m)
}

func (s tardyLooks) Listen(ctx context.Context, ring func(store.News)) error {
	ring(store.News{})
	<-ctx.Done()
	return nil
}

// What dead engines held goes first, also while an engine that has buried one still trusts a look from
// before.
func TestWhoBuriesAnEngineLooksForWhatItHeldAtOnce(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		const dead, slots = 5, 4
		for i := range dead {
			token := store.EngineID(4711 + i)
			if err := s.Join(t.Context(), store.EngineInfo{Token: token, Instance: fmt.Sprint("dead", i), Slots: 1, TimeToLive: time.Duration(6+3*i) * time.Second}, nil); err != nil {
				t.Fatal(err)
			}
			enqueue(t, s, "held", "{}")
			lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "")
			if c, err := s.Claim(t.Context(), store.ClaimRequest{Engine: token, Serial: 1, Nonce: 1, Lane: lane.ID, Max: 1, Wait: true}); err != nil || len(c.Positions) != 1 {
				t.Fatal(c, err)
			}
			s.Release(token)
		}
		fill(t, s, "work", 20_000, stint.DefaultQueue)
		var mu sync.Mutex
		var buried, began []time.Time
		note := func(all *[]time.Time) { mu.Lock(); defer mu.Unlock(); *all = append(*all, time.Now()) }
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { time.Sleep(10 * time.Millisecond); return nil })
		handle(mux, "held", func(context.Context, *stint.Job) error { note(&began); return nil })
		stop := start(t, tardyLooks{s}, mux, engine.Config{Slots: slots, OnEvent: func(e event.Event) {
			if e.Type == event.EventBurial {
				note(&buried)
			}
		}})
		time.Sleep(40 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if len(buried) != dead || len(began) != dead {
			t.Fatalf("%d engines were buried, and %d jobs of theirs began", len(buried), len(began))
		}
		for i, at := range buried {
			if waited := began[i].Sub(at); waited > 2*slowLook {
				t.Errorf("what engine %d held began %v after its burial, want %v at most", i, waited, 2*slowLook)
			}
		}
	})
}

// A look costs as much as a claim, and while all that is known comes after the lane of a backlog it would show nothing
// else. Where others have their turn, or are new, they are found soon.
func TestWhileTheFirstLaneHasABacklogLooksAreSeldom(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, store *sqlite.Store) {
		fill(t, store, "work", 20_000, stint.DefaultQueue)
		s := &counted{drowsy: newDrowsy(store)}
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { time.Sleep(10 * time.Millisecond); return nil })
		began := make(chan time.Time, 1)
		handle(mux, "urgent", func(context.Context, *stint.Job) error { began <- time.Now(); return nil })
		stop := start(t, s, mux, engine.Config{Slots: 10})
		time.Sleep(time.Second)
		looks, claims := s.looks.Load(), s.claims.Load()
		time.Sleep(5 * time.Second)
		if looks, claims = s.looks.Load()-looks, s.claims.Load()-claims; looks > 25 || claims < 50 {
			t.Errorf("in 5 s it looked %d times for %d claims, want 4 times a second", looks, claims)
		}
		for _, c := range []struct {
			other stint.Option
			most  time.Duration
		}{
			{stint.Queue("other"), 400}, {stint.Queue("other"), 160}, {stint.Queue("other"), 160}, // at first its lane is new
			{stint.Priority(-1), 400}, {stint.Priority(-1), 100}, {stint.Priority(-1), 100},
		} {
			enqueued := time.Now()
			enqueue(t, store, "urgent", `{}`, c.other)
			if waited := (<-began).Sub(enqueued); waited > c.most*time.Millisecond {
				t.Errorf("what goes before the others begins after %v, want %d ms", waited, c.most)
			}
			time.Sleep(33 * time.Millisecond)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// slowFirst is a store whose first look takes long, as on a server that is not warm.
type slowFirst struct {
	*sqlite.Store
	slow  sync.Once
	since atomic.Int64 // looks at what was appended
}

func (s *slowFirst) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	s.slow.Do(func() { time.Sleep(slowLook) })
	return s.Store.Look(ctx, known)
}

func (s *slowFirst) LookSince(ctx context.Context, m store.Mark) (store.Appended, error) {
	s.since.Add(1)
	return s.Store.LookSince(ctx, m)
}

// An engine that takes looks at its few lanes for dear learns of urgent work only from what was appended, and when
// that is much only after several times what it believes a look to cost.
func TestOneSlowLookDoesNotMakeLooksDear(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		slow := &slowFirst{Store: s}
		fill(t, s, "work", 1000, stint.DefaultQueue)
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { time.Sleep(10 * time.Millisecond); return nil })
		stop := start(t, slow, mux, engine.Config{Slots: 4})
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if n := slow.since.Load(); n > 0 {
			t.Errorf("it looked %d times only at what was appended", n)
		}
	})
}
