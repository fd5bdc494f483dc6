// Package sample keeps values that are expensive to read. A value is read in the background while
// callers ask for it, and so seldom that reading takes at most half a hundredth of the time. A caller
// that asks only once gets a new value, if reading is fast.
package sample

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Sample is one such value. Make one with [New]; its methods may be called concurrently.
type Sample[T any] struct {
	take func(ctx context.Context) (T, error)

	mu    sync.Mutex // guards the rest
	last  Seen[T]
	took  time.Duration
	ready chan struct{} // closed at the end of the look that is under way; nil while there is none
}

// Seen is the result of the last look.
type Seen[T any] struct {
	Value T         // the newest one
	At    time.Time // when the last look ended; zero while there was none
	Err   error     // why that failed
}

// Known reports whether the last look succeeded.
func (s Seen[T]) Known() bool { return !s.At.IsZero() && s.Err == nil }

const (
	leastAge   = 2 * time.Second        // of what is known, before it is read again
	costShare  = 100                    // looks take one part of this many
	sharers    = 2                      // a sample has half of that: a page shows several
	patience   = 150 * time.Millisecond // how long Get waits
	longestSee = time.Minute            // a look that takes longer is given up
)

// Pause is how long to wait after a look that took so long, if n samples share the hundredth of the
// time that looks may take. Each has the same part of it, so an expensive one does not delay others.
func Pause(took time.Duration, n int) time.Duration {
	return max(leastAge, time.Duration(n)*costShare*took)
}

// New returns a sample of the value that a function reads. Its calls do not overlap.
func New[T any](take func(ctx context.Context) (T, error)) *Sample[T] {
	return &Sample[T]{take: take}
}

type hurriedKey struct{}

// Hurried is a context for callers that ask again soon: with it, [Sample.Get] does not wait.
func Hurried(ctx context.Context) context.Context { return context.WithValue(ctx, hurriedKey{}, true) }

// Get returns the last value, and starts a look when that is old. While there is no value, or it is
// two seconds old and the last look was fast, Get waits for the next look, but at most for patience,
// and not if the caller is [Hurried].
func (s *Sample[T]) Get(ctx context.Context) Seen[T] {
	s.mu.Lock()
	age, calm := time.Since(s.last.At), ctx.Value(hurriedKey{}) == nil
	soon := s.took < patience
	if s.ready == nil && (age >= Pause(s.took, sharers) || calm && soon && age >= leastAge) {
		s.ready = make(chan struct{})
		go s.look(context.WithoutCancel(ctx))
	}
	ready := s.ready
	wait := ready != nil && calm && (s.last.At.IsZero() || soon)
	s.mu.Unlock()
	if wait {
		select {
		case <-ready:
		case <-ctx.Done():
		case <-time.After(patience):
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// try takes a look. A panic becomes an error: it would end the program.
func (s *Sample[T]) try(ctx context.Context) (value T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a panic: %v\n%s", v, debug.Stack())
		}
	}()
	return s.take(ctx)
}

func (s *Sample[T]) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longestSee)
	defer cancel()
	began := time.Now()
	value, err := s.try(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.last.Value = value
	}
	s.last.At, s.last.Err = time.Now(), err
	s.took = time.Since(began)
	close(s.ready)
	s.ready = nil
}
