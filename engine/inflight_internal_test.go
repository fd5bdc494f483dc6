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

func TestTheNextRequestWakesWhoParked(t *testing.T) {
	h, w := newInflight(), newWakeup()
	serial, _ := h.request(1)
	if h.park(w) {
		t.Error("it parks while a request is on its way")
	}
	h.markUnknown(serial)
	if h.park(w) {
		t.Error("it parks while nobody knows what became of a request")
	}
	if h.resolved(serial); !h.park(w) {
		t.Error("it does not park while nothing is open")
	}
	for _, want := range []int{1, 0} {
		h.request(1)
		if got := len(w.c); got != want {
			t.Errorf("a request notified %d times, want %d", got, want)
		}
		if want > 0 {
			<-w.c
		}
	}
}
