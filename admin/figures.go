package admin

import (
	"context"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
)

// sample is what is dear to find out: it is looked at in the background while
// somebody wants it, and so seldom that it costs at most a hundredth of the time.
type sample[T any] struct {
	take func(ctx context.Context) (T, error)

	mu    sync.Mutex
	last  Sampled[T]
	took  time.Duration
	ready chan struct{} // closed when the look that is under way has ended; nil while none is
}

// Sampled is what was found out last.
type Sampled[T any] struct {
	Value T
	At    time.Time // when; zero while nothing is known yet
	Err   error     // why nothing newer is known
}

const (
	leastAge   = 2 * time.Second        // of a sample before a new one is taken
	costShare  = 100                    // one part of this many
	firstLook  = 150 * time.Millisecond // how long a page waits for what is not known yet
	longestSee = time.Minute            // a look that takes longer is given up
)

// get returns what is known, and sees to it that it does not grow old. Only where
// nothing is known does it wait, and not for long.
func (s *sample[T]) get(ctx context.Context) Sampled[T] {
	s.mu.Lock()
	now := time.Now()
	if s.ready == nil && now.Sub(s.last.At) >= max(leastAge, costShare*s.took) {
		s.ready = make(chan struct{})
		go s.look(context.WithoutCancel(ctx))
	}
	ready, known := s.ready, !s.last.At.IsZero()
	s.mu.Unlock()
	if !known {
		select {
		case <-ready:
		case <-ctx.Done():
		case <-time.After(firstLook):
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *sample[T]) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longestSee)
	defer cancel()
	began := time.Now()
	value, err := s.take(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = time.Since(began)
	if err == nil {
		s.last.Value = value
	}
	s.last.At, s.last.Err = time.Now(), err
	close(s.ready)
	s.ready = nil
}

// figures are the samples that pages share.
type figures struct {
	analytics *sample[stint.Analytics]
	queued    *sample[[]stint.DueGroup]
	backlogs  *sample[[]stint.Backlog]
	findings  *sample[[]stint.Finding]
	rates     *sample[[]stint.Stats] // of the last few minutes
	kinds     *sample[[]stint.Stats] // of the last day
	history   *sample[history]
	errors    *sample[stint.ErrorReport]
}

// maxQueues is how many queues pages show.
const maxQueues = 500

func newFigures(store Store, bounded []string) figures {
	return figures{
		analytics: sampled(func(ctx context.Context) (stint.Analytics, error) {
			return store.Analyze(ctx, stint.AnalyticsFilter{})
		}),
		queued: sampled(func(ctx context.Context) ([]stint.DueGroup, error) {
			return store.DueBy(ctx, stint.FieldQueue, stint.AnalyticsFilter{}, maxQueues)
		}),
		backlogs: sampled(func(ctx context.Context) ([]stint.Backlog, error) {
			x, ok := store.(stint.Examiner)
			if !ok {
				return nil, nil
			}
			signs, err := x.Examine(ctx, stint.Examination{})
			return signs.Backlogs, err
		}),
		findings: sampled(func(ctx context.Context) ([]stint.Finding, error) {
			return stint.Diagnose(ctx, store, stint.Examination{Bounded: bounded})
		}),
		rates: sampled(func(ctx context.Context) ([]stint.Stats, error) {
			now, err := view.Now(ctx, store)
			if err != nil {
				return nil, err
			}
			return store.Stats(ctx, stint.StatsFilter{From: now.Add(-rateSpan), Every: time.Minute})
		}),
		kinds: sampled(func(ctx context.Context) ([]stint.Stats, error) {
			now, err := view.Now(ctx, store)
			if err != nil {
				return nil, err
			}
			return store.Stats(ctx, stint.StatsFilter{From: now.Add(-day)})
		}),
		errors: sampled(func(ctx context.Context) (stint.ErrorReport, error) {
			return store.Errors(ctx, stint.ErrorFilter{})
		}),
		history: sampled(func(ctx context.Context) (history, error) {
			now, err := view.Now(ctx, store)
			if err != nil {
				return history{}, err
			}
			return historyOf(ctx, store, now)
		}),
	}
}

func sampled[T any](take func(ctx context.Context) (T, error)) *sample[T] {
	return &sample[T]{take: take}
}
