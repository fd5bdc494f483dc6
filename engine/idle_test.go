package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// drowsy is a store that rings for nobody who did not say that he sleeps.
type drowsy struct {
	*sqlite.Store
	bell  chan struct{}
	draws chan store.News // as bell, of jobs that are ready
	rung  atomic.Int32    // calls of Ring

	mu     sync.Mutex
	before func() // what happens before it hears that somebody sleeps
	said   []bool
}

func newDrowsy(s *sqlite.Store) *drowsy {
	return &drowsy{Store: s, bell: make(chan struct{}), draws: make(chan store.News)}
}

func (d *drowsy) Listen(ctx context.Context, ring func(store.News)) error {
	ring(store.News{})
	for {
		select {
		case <-d.bell:
			ring(store.News{})
		case news := <-d.draws:
			ring(news)
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *drowsy) Ring(context.Context) error { d.rung.Add(1); return nil }

func (d *drowsy) Asleep(_ context.Context, _ store.EngineID, asleep bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.before != nil {
		d.before()
		d.before = nil
	}
	d.said = append(d.said, asleep)
	return nil
}

func TestNothingIsMissedBetweenTheLastLookAndTheSleep(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var id stint.ID
		d := newDrowsy(s)
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { time.Sleep(100 * time.Millisecond); return nil })
		stop := start(t, d, mux, engine.Config{Poll: 10 * time.Minute, Slots: 1})
		time.Sleep(time.Second) // no ring is left over
		for range 50 {
			enqueue(t, s, "k", `{}`)
		}
		d.bell <- struct{}{}
		time.Sleep(3 * time.Second) // it is awake, and has said so
		d.mu.Lock()
		d.before = func() { id = enqueue(t, s, "k", `{}`) }
		d.mu.Unlock()
		time.Sleep(7 * time.Second)
		d.mu.Lock()
		late := id
		d.mu.Unlock()
		if job, err := s.Job(t.Context(), late); err != nil || job.State != stint.Completed {
			t.Errorf("it is %v, error %v", job, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEngineSaysOnceThatItSleepsAndOnceThatItHasNotForLong(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		d := newDrowsy(s)
		mux := stint.NewMux()
		handle(mux, "k", func(context.Context, *stint.Job) error { time.Sleep(100 * time.Millisecond); return nil })
		stop := start(t, d, mux, engine.Config{Slots: 1})
		time.Sleep(30 * time.Second)
		for range 100 { // ten seconds
			enqueue(t, s, "k", `{}`)
		}
		d.bell <- struct{}{}
		time.Sleep(30 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(d.said, []bool{true, false, true}) {
			t.Errorf("it said %v", d.said)
		}
	})
}

// looks counts looks, and when they came.
type looks struct {
	*sqlite.Store
	mu sync.Mutex
	at []time.Time
}

func (l *looks) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	l.mu.Lock()
	l.at = append(l.at, time.Now())
	l.mu.Unlock()
	return l.Store.Look(ctx, known)
}

// gaps are the times between looks, in milliseconds.
func (l *looks) gaps() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var gaps []int64
	for i := range len(l.at) - 1 {
		gaps = append(gaps, l.at[i+1].Sub(l.at[i]).Round(time.Millisecond).Milliseconds())
	}
	l.at = nil
	return gaps
}

func TestWhereNobodyRingsAnIdleEngineWaitsLongerAndLongerAndBeginsAnewWithWork(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		config engine.Config
		want   []int64
	}{
		{engine.Config{}, []int64{20, 40, 80, 160, 320, 500, 500}},
		{engine.Config{Poll: 100 * ms}, []int64{20, 40, 80, 100, 100}},
		{engine.Config{Poll: 5 * ms}, []int64{5, 5, 5}},
		{engine.Config{PollFrom: 300 * ms, PollTo: time.Second}, []int64{300, 600, 1000, 1000}},
		{engine.Config{PollFrom: 2 * time.Second}, []int64{2000, 2000}},
		{engine.Config{PollTo: 10 * ms}, []int64{10, 10}},
		{engine.Config{Poll: time.Minute, PollTo: 30 * ms}, []int64{20, 30, 30}},
	} {
		bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
			l := &looks{Store: s}
			mux := stint.NewMux()
			handle(mux, "k", func(context.Context, *stint.Job) error { return nil })
			stop := start(t, silent{l}, mux, c.config)
			time.Sleep(10*time.Second + ms/2) // between two looks of each
			if gaps := l.gaps(); !slices.Equal(gaps[:len(c.want)], c.want) {
				t.Errorf("%+v: it waited %v ms, want %v", c.config, gaps[:len(c.want)], c.want)
			}
			enqueue(t, s, "k", `{}`)
			time.Sleep(10 * time.Second)
			gaps := l.gaps()
			// The look that found the job is followed by one that finds no more.
			i := slices.Index(gaps, 0) + 1
			if i < 1 || !slices.Equal(gaps[i:i+len(c.want)], c.want) {
				t.Errorf("%+v: behind a job it waited %v ms, want %v", c.config, gaps, c.want)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// breaking is a store whose listening breaks as soon as it has begun, or later.
type breaking struct {
	*sqlite.Store
	after time.Duration
	began atomic.Int32
}

func (b *breaking) Listen(ctx context.Context, ring func(store.News)) error {
	b.began.Add(1)
	ring(store.News{})
	doze(ctx, b.after)
	return errors.New("the connection is gone")
}

func TestAListeningThatSoonBreaksIsTriedAgainMoreAndMoreSeldom(t *testing.T) {
	for _, c := range []struct {
		after       time.Duration
		least, most int32 // in a minute
	}{
		{0, 30, 75},               // 50, 100, … 2000 ms apart, or half of that
		{time.Second, 20, 45},     // no better
		{5 * time.Second, 11, 13}, // one that lasts is tried again soon
		{50 * time.Second, 2, 2},
	} {
		bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
			b := &breaking{Store: s, after: c.after}
			stop := start(t, b, stint.NewMux(), engine.Config{})
			time.Sleep(time.Minute)
			if n := b.began.Load(); n < c.least || n > c.most {
				t.Errorf("it broke after %v, and was begun %d times in a minute, want %d to %d", c.after, n, c.least, c.most)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPollsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, c := range []engine.Config{
		{Poll: -1}, {PollFrom: -1}, {PollTo: -1}, {Poll: time.Microsecond}, {PollTo: time.Microsecond},
		{PollFrom: time.Second, PollTo: time.Millisecond},
	} {
		if _, err := engine.New(nil, stint.NewMux(), c); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%+v: the error is %v", c, err)
		}
	}
}

// Beats are most of what an idle fleet asks of its database. Who is not known to live by other means
// sends as many as ever, and so does who has a job.
func TestAnIdleEngineThatIsKnownToLiveBeatsHalfAsOften(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		b := &heartbeats{anyStore: s}
		mux := stint.NewMux()
		handle(mux, "long", func(context.Context, *stint.Job) error { time.Sleep(time.Minute); return nil })
		handle(mux, "short", func(context.Context, *stint.Job) error { time.Sleep(600 * time.Millisecond); return nil })
		start(t, struct {
			*heartbeats
			store.LivenessLocker
		}{b, s}, mux, engine.Config{TimeToLive: 6 * time.Second})
		inAMinute := func() int32 {
			passes(3 * time.Second)
			before := b.beats.Load()
			passes(time.Minute)
			return b.beats.Load() - before
		}
		if n := inAMinute(); n < 19 || n > 21 {
			t.Errorf("an idle engine beats %d times in a minute, want 20", n)
		}
		longest := time.Duration(b.longest.Load())
		for range 40 { // each is announced, and then nothing runs again
			enqueue(t, s, "short", `{}`)
			passes(4300 * time.Millisecond)
		}
		if gap := time.Duration(b.longest.Load()); gap > longest {
			t.Errorf("around short jobs no beat came for %v, want no longer than idle, %v", gap, longest)
		}
		enqueue(t, s, "long", `{}`)
		enqueue(t, s, "long", `{}`)
		if n := inAMinute(); n < 39 || n > 42 {
			t.Errorf("an engine that has a job beats %d times in a minute, want 40", n)
		}
		passes(time.Minute)
		roster, err := s.Engines(t.Context())
		if err != nil || len(roster) != 1 {
			t.Fatal(roster, err)
		}
		s.Release(roster[0].Token)
		if n := inAMinute(); n < 39 || n > 41 {
			t.Errorf("an idle engine for which nobody vouches beats %d times in a minute, want 40", n)
		}
	})
}
