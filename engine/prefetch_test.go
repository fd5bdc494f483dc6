package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// inHand counts the entries that an engine has claimed and that have not ended.
type inHand struct {
	*sqlite.Store
	takes     time.Duration // a claim
	mu        sync.Mutex
	now, most int
}

func (h *inHand) add(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += n
	h.most = max(h.most, h.now)
}

func (h *inHand) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	time.Sleep(h.takes)
	c, err := h.Store.Claim(ctx, req)
	h.add(len(c.Positions))
	return c, err
}

// However many jobs wait, an engine holds no more of them than its slots and
// what these get through in 25 milliseconds, or as many as are worth a claim in
// 100, as far as it can tell from few; where claims take long, what they get through in 150,
// although they all end at once.
func TestAnEngineHoldsNoMoreThanItsSlotsAndABoundedPrefetch(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		slots       int
		takes       time.Duration
		claim       time.Duration // takes
		n           int
		least, most int // at once in the engine's hands
	}{
		{1, time.Second, 0, 50, 1, 1},
		{10, 100 * ms, 0, 500, 10, 10 + 4*10},
		{10, 5 * ms, 0, 5000, 20, 10 + 4*128},
		{50, 2 * ms, 0, 10_000, 100, 50 + 4*625},
		{40, 20 * ms, 15 * ms, 10_000, 200, 40 + 300},
		{40, 100 * ms, 5 * ms, 2000, 60, 40 + 60},
	} {
		bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
			fill(t, s, "work", c.n, stint.DefaultQueue)
			mux := stint.NewMux()
			h := &inHand{Store: s, takes: c.claim}
			handle(mux, "work", func(context.Context, *stint.Job) error { time.Sleep(c.takes); h.add(-1); return nil })
			stop := start(t, h, mux, engine.Config{Slots: c.slots})
			time.Sleep(2*time.Duration(c.n/c.slots)*c.takes + time.Second)
			if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Completed] != int64(c.n) {
				t.Errorf("counts are %v, %v", counts, err)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if h.most < c.least || h.most > c.most {
				t.Errorf("%d slots, jobs of %v, claims of %v: it held %d entries at once, want %d to %d", c.slots, c.takes, c.claim, h.most, c.least, c.most)
			}
		})
	}
}

// asked keeps the last request for a claim that brought something.
type asked struct {
	*sqlite.Store
	mu   sync.Mutex
	last store.ClaimRequest
}

func (a *asked) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	c, err := a.Store.Claim(ctx, req)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(c.Positions) > 0 {
		a.last = req
	}
	return c, err
}

// What a request promises of those before it, the store need not look at between two beats.
func TestARequestForAClaimTellsWhatIsOpen(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		a := &asked{Store: s}
		mux := stint.NewMux()
		handle(mux, "long", func(context.Context, *stint.Job) error { time.Sleep(time.Minute); return nil })
		handle(mux, "short", func(context.Context, *stint.Job) error { return nil })
		stop := start(t, a, mux, engine.Config{Slots: 4})
		claimed := func(kind string) store.ClaimRequest {
			fill(t, s, kind, 1, stint.DefaultQueue)
			time.Sleep(5 * time.Second)
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.last
		}
		first, long := claimed("short"), claimed("long")
		if first.Low != first.Serial || long.Low != long.Serial || long.Serial <= first.Serial {
			t.Errorf("with nothing open the requests were %+v and %+v", first, long)
		}
		if beside := claimed("short"); beside.Low != long.Serial || beside.Serial <= long.Serial {
			t.Errorf("beside what request %d brought the request was %+v", long.Serial, beside)
		}
		time.Sleep(2 * time.Minute)
		if last := claimed("short"); last.Low != last.Serial {
			t.Errorf("behind it the request was %+v", last)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
