package engine

import (
	"testing"

	"github.com/stint-go/stint/store"
)

// Whoever buries the engine reads what it did not promise to be done with.
func TestWhatIsInDoubtIsNotPromisedToBeDone(t *testing.T) {
	h := newInflight()
	serial, _ := h.request(1)
	claim := h.claimed(store.Claim{Serial: serial, Positions: []store.Position{1}})
	h.recorded([]*task{{entry: &store.Entry{Pos: 1}, claim: claim}})
	if low := h.low(); low != serial+1 {
		t.Fatalf("when its outcome is recorded, low is %d", low)
	}
	h.markUnknown(serial) // the store says that it has none
	if low := h.low(); low != serial {
		t.Errorf("when the store says that it is there, low is %d, want %d", low, serial)
	}
	h.resolved(serial)
	if low := h.low(); low != serial+1 {
		t.Errorf("when it was handed back, low is %d", low)
	}
}
