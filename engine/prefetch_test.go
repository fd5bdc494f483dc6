package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
)

// inHand counts the entries that an engine has claimed and that have not ended.
type inHand struct {
	*sqlite.Store
	mu        sync.Mutex
	now, most int
}

func (h *inHand) add(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += n
	h.most = max(h.most, h.now)
}

func (h *inHand) Claim(ctx context.Context, req stint.ClaimRequest) (stint.Claim, error) {
	c, err := h.Store.Claim(ctx, req)
	h.add(len(c.Positions))
	return c, err
}

// However many jobs wait, an engine holds no more of them than its slots and
// what these get through in 25 milliseconds, as far as it can tell from few.
func TestAnEngineHoldsNoMoreThanItsSlotsAndABoundedPrefetch(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		slots       int
		takes       time.Duration
		n           int
		least, most int // at once in the engine's hands
	}{
		{1, time.Second, 50, 1, 1},
		{10, 100 * ms, 500, 10, 10 + 4*3},
		{10, 5 * ms, 5000, 20, 10 + 4*50},
		{50, 2 * ms, 20_000, 100, 50 + 4*625},
	} {
		inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
			fill(t, s, "work", c.n, stint.DefaultQueue)
			mux := stint.NewMux()
			h := &inHand{Store: s}
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
				t.Errorf("%d slots, jobs of %v: it held %d entries at once, want %d to %d", c.slots, c.takes, h.most, c.least, c.most)
			}
		})
	}
}
