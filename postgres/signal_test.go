package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

// A note whose transaction commits after one with a higher number was looked at is still looked at for a
// second, and what is older is not.
func TestNotesAreLookedAtFromAMomentAgo(t *testing.T) {
	var seen notesSeen
	now := time.Now()
	for _, step := range []struct {
		after     time.Duration
		from, saw int64
	}{
		{0, 0, 10}, {notesLag / 2, 0, 20}, {notesLag, 0, 30}, {2 * notesLag, 0, 25}, {5 * notesLag, 30, 40}, {5*notesLag + 1, 30, 0}, {7 * notesLag, 30, 40}, {9 * notesLag, 40, 40},
	} {
		if got := seen.bound(now.Add(step.after)); got != step.from {
			t.Errorf("after %v it begins behind %d, want %d", step.after, got, step.from)
		}
		seen.saw(step.saw)
	}
}

// A job gets as many signals as it may have steps.
func TestAJobGetsTenThousandSignals(t *testing.T) {
	s := newStore(t)
	b := &bench{t, s, nil}
	ids := b.enqueue(2)
	exec(t, s, `insert into stint.signals (job, name, value) select $1, 'a', '1' from generate_series(1, 9999)`, int64(ids[0]))
	b.sends(ids[0], `1`)
	if err := b.signal(stint.Tx{}, ids[0], `1`, ""); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("one more gives %v", err)
	}
	b.sends(ids[1], `1`)
}
