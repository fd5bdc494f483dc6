package stint_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

func TestAwaitNeedsARunThatHasSignals(t *testing.T) {
	if _, err := stint.Await[int](t.Context(), "a", time.Hour); !errors.Is(err, stint.ErrNoAttempt) {
		t.Errorf("outside of a handler it gives %v", err)
	}
	byHand := new(stint.Run).Context(t.Context())
	if _, err := stint.Await[int](byHand, "a", time.Hour); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("in a run without steps it gives %v", err)
	}
	before := []stint.RecordedStep{{Name: "a", Result: []byte(`{"value": {"N": 8}, "signal": 1}`)}}
	for want, steps := range map[int]commits{7: {}, 8: {before}} {
		got, err := stint.Await[struct{ N int }]((&stint.Run{Steps: steps}).Context(t.Context()), "a", time.Hour)
		if err != nil || got.N != want {
			t.Errorf("it took %+v, %v, want %d", got, err, want)
		}
	}
}

func TestClientsWithoutSignals(t *testing.T) {
	var none *stint.Client
	if err := none.Signal(t.Context(), 1, "a", nil); !errors.Is(err, stint.ErrNoAttempt) {
		t.Errorf("no client gives %v", err)
	}
	if err := stint.NewClient(struct{ stint.Enqueuer }{}).Signal(t.Context(), 1, "a", nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a store without signals gives %v", err)
	}
}

// sent keeps what a client sends.
type sent struct {
	stint.Enqueuer
	signals []stint.Signal
}

func (s *sent) Signal(_ context.Context, _ stint.Tx, _ stint.ID, signal stint.Signal) error {
	s.signals = append(s.signals, signal)
	return nil
}

func TestWhatIsSentOnceHasAKey(t *testing.T) {
	s := new(sent)
	c := stint.NewClient(s)
	if err := errors.Join(c.Signal(t.Context(), 1, "a", nil), c.SignalOnce(t.Context(), 1, "k", "a", nil)); err != nil {
		t.Fatal(err)
	}
	if s.signals[0].Key != "" || s.signals[1].Key != "k" {
		t.Errorf("they are sent as %+v", s.signals)
	}
}
