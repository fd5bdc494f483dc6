package load

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/sqliteload"
)

func TestTheLimitIsMeasuredOfBothHalves(t *testing.T) {
	log, err := sqliteload.NewLog(filepath.Join(t.TempDir(), "log.db"), sqliteload.LogOptions{Batch: 100, Taken: 30})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var m Meter
	r, err := Limit(t.Context(), log, 250, &m)
	if err != nil || r.N != 250 || r.EnqueuePerSecond <= 0 || r.WorkPerSecond <= 0 {
		t.Errorf("the figures are odd: %+v, %v", r, err)
	}
	if both := 1 / (1/r.EnqueuePerSecond + 1/r.WorkPerSecond); math.Abs(r.JobsPerSecond/both-1) > 1e-9 {
		t.Errorf("both halves together are %v/s, want %v", r.JobsPerSecond, both)
	}
	if m.Enqueued.Load() != 250 || m.Started.Load() != 250 {
		t.Errorf("the meter shows %d and %d", m.Enqueued.Load(), m.Started.Load())
	}
}

func TestSingleTakesTurnsWithTheBareInsert(t *testing.T) {
	for _, asleep := range []bool{false, true} {
		s := open(t)
		var m Meter
		var inserts, turns atomic.Int64
		var last atomic.Bool // whether the last call was an insert
		insert := func(_ context.Context, producer int) error {
			if producer < 0 || producer > 2 {
				t.Errorf("there is a producer %d", producer)
			}
			inserts.Add(1)
			if !last.Swap(true) {
				turns.Add(1)
			}
			time.Sleep(time.Millisecond)
			return nil
		}
		r, err := Single(t.Context(), turning{s, &last}, SingleOptions{Producers: 3, Duration: 100 * time.Millisecond, Insert: insert, Asleep: asleep, Meter: &m})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []CallRates{r.Enqueue, r.Insert} {
			if c.N < 3*slicePairs || c.PerSecond <= 0 || c.Took.P50 <= 0 || c.Took.P50 > c.Took.P99 {
				t.Errorf("the figures are odd: %+v", c)
			}
		}
		if r.Ratio <= 0 || r.Producers != 3 || r.Asleep != asleep {
			t.Errorf("the figures are odd: %+v", r)
		}
		if turns.Load() < slicePairs+1 {
			t.Errorf("the inserts had %d turns", turns.Load())
		}
		if int64(r.Insert.N) >= inserts.Load() {
			t.Error("the first turn counts")
		}
		counts, err := s.Counts(t.Context())
		if err != nil || counts[stint.Available] != m.Enqueued.Load() || counts[stint.Completed] != 1 {
			t.Errorf("of %d jobs the store counts %v, %v", m.Enqueued.Load(), counts, err)
		}
	}
}

// turning notes when something is enqueued.
type turning struct {
	stint.Store
	last *atomic.Bool
}

func (s turning) Enqueue(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	s.last.Store(false)
	return s.Store.Enqueue(ctx, tx, jobs)
}

func TestAFloorThatFailsEndsTheMeasurement(t *testing.T) {
	broken := errors.New("broken")
	_, err := Single(t.Context(), open(t), SingleOptions{Producers: 2, Duration: 200 * time.Millisecond, Insert: func(context.Context, int) error { return broken }})
	if !errors.Is(err, broken) {
		t.Errorf("single says %v", err)
	}
	_, err = Latency(t.Context(), open(t), LatencyOptions{Rate: 100, Duration: time.Hour, Floor: func(context.Context) error { return broken }})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "the floor") {
		t.Errorf("latency says %v", err)
	}
}

func TestLatencyMeasuresTheFloorAndScheduledJobsBeside(t *testing.T) {
	rounds := 0
	r, err := Latency(t.Context(), open(t), LatencyOptions{
		Rate: 200, Duration: 200 * time.Millisecond, Scheduled: 0.25,
		Floor: func(context.Context) error { rounds++; time.Sleep(time.Millisecond); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.N != 30 || r.Lateness == nil || r.Lateness.N != 10 || r.FloorN != 40 || rounds != 40+warmUp {
		t.Errorf("of 40 jobs: %+v, %+v, with %d rounds", r, r.Lateness, rounds)
	}
	if r.Floor.P50 < 1 || r.Ratio.P50 != r.FromCall.P50/r.Floor.P50 {
		t.Errorf("beside a floor of %+v the ratio of %+v is %+v", *r.Floor, r.FromCall, *r.Ratio)
	}
	if late := r.Lateness.Late; late.P50 < -1 || late.P50 > late.Max || late.Max > 5000 {
		t.Errorf("scheduled jobs are %+v late", late)
	}
}

// ahead is a store whose clock is wrong, and takes its time.
type ahead struct {
	stint.Store
	by   time.Duration
	asks int
}

func (a *ahead) Now(context.Context) (time.Time, error) {
	if a.asks++; a.asks != 3 {
		time.Sleep(2 * time.Millisecond) // only the third answer is quick
	}
	return time.Now().Add(a.by), nil
}

func TestTheStoresClockIsComparedByItsFastestAnswer(t *testing.T) {
	c, err := readClock(t.Context(), &ahead{by: time.Hour})
	if err != nil || c.unknown >= time.Millisecond || (c.offset-time.Hour).Abs() > c.unknown {
		t.Errorf("of a clock that is an hour ahead it says %+v, %v", c, err)
	}
	if c, err := readClock(t.Context(), open(t)); err != nil || c != (clock{}) {
		t.Errorf("of a store without a clock it says %+v, %v", c, err)
	}
}

func TestLatenessIsByTheClockThatDecides(t *testing.T) {
	const ms = time.Millisecond
	l := &latency{base: time.Now(), samples: make([]sample, warmUp+2)}
	s := &l.samples[warmUp+1]
	s.due = l.base.Add(1000 * ms)
	s.started.Store(int64(1003 * ms))
	// The job was due by the other clock at 1000+20 ms; that one turns out to be
	// 22 ms ahead on the whole, so it showed this when it was 998 here.
	got := l.lateness(clock{20 * ms, 1 * ms}, clock{24 * ms, 2 * ms})
	if got == nil || got.N != 1 || got.Late.P50 != 5 || got.ClockOffset != 22 || got.ClockUnknown != 4 {
		t.Errorf("got %+v", got)
	}
}
