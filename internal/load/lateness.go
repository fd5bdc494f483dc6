package load

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/stint-go/stint"
)

// Lateness is how long after they were due scheduled jobs started. Below zero
// one started early, as far as two clocks can be compared.
type Lateness struct {
	N    int       `json:"n"`
	Late Quantiles `json:"late_ms"`

	// The database's clock less the one of this process, and how far either
	// way that may be wrong: half of the fastest of some questions. Both are 0
	// where the database has no clock of its own.
	ClockOffset  float64 `json:"clock_offset_ms"`
	ClockUnknown float64 `json:"clock_uncertainty_ms"`
}

// The soonest and the latest that a scheduled job is due after its enqueue.
const (
	soonest = 50 * time.Millisecond
	latest  = 2 * time.Second
)

// soon is a random time between them; a short measurement waits no longer than
// it measures.
func (l *latency) soon() time.Duration {
	return soonest + rand.N(max(1, min(latest, l.Duration)-soonest))
}

// isScheduled spreads the scheduled jobs evenly over all of them.
func (l *latency) isScheduled(i int) bool {
	return math.Floor(float64(i+1)*l.Scheduled) > math.Floor(float64(i)*l.Scheduled)
}

// lateness works out how late scheduled jobs were, by what was known of the
// clocks before and after.
func (l *latency) lateness(before, after clock) *Lateness {
	mean := before.mean(after)
	var late []time.Duration
	for i := range l.samples[warmUp:] {
		if s := &l.samples[warmUp+i]; !s.due.IsZero() {
			// It was due there when the clock showed so, whatever that was here.
			due := s.due.Sub(l.base) + before.offset - mean.offset
			late = append(late, time.Duration(s.started.Load())-due)
		}
	}
	if len(late) == 0 {
		return nil
	}
	return &Lateness{N: len(late), Late: QuantilesOf(late), ClockOffset: inMS(mean.offset), ClockUnknown: inMS(mean.unknown)}
}

// clock is what is known of the store's clock at one moment.
type clock struct {
	offset  time.Duration // how far it is ahead of the one of this process
	unknown time.Duration // how far that may be wrong, either way
}

// there is an instant of this process by the store's clock.
func (c clock) there(t time.Time) time.Time { return t.Add(c.offset).Round(0) }

// mean is what is known between two moments.
func (c clock) mean(d clock) clock {
	return clock{(c.offset + d.offset) / 2, max(c.unknown, d.unknown) + (c.offset-d.offset).Abs()/2}
}

// clockQuestions is how often the store is asked for the time; the fastest
// answer says most.
const clockQuestions = 20

// readClock compares the store's clock with the one of this process. It is the
// same where the store has none.
func readClock(ctx context.Context, store stint.Store) (best clock, err error) {
	asked, ok := store.(stint.Clock)
	if !ok {
		return clock{}, nil
	}
	best.unknown = math.MaxInt64
	for range clockQuestions {
		before := time.Now()
		there, err := asked.Now(ctx)
		if err != nil {
			return best, fmt.Errorf("compare the clocks: %w", err)
		}
		half := time.Since(before) / 2
		if half < best.unknown {
			best = clock{there.Sub(before.Add(half)), half}
		}
	}
	return best, nil
}
