// Package sample keeps what is dear to find out: it is looked at in the background
// while somebody wants it, and so seldom that looking takes at most half a
// hundredth of the time. Whoever asks once, and not again and again, is told what is
// new where that is soon found out.
package sample

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Sample is one thing that is looked at. Make one with [New]; its methods may be
// called concurrently.
type Sample[T any] struct {
	take func(ctx context.Context) (T, error)

	mu    sync.Mutex // guards the rest
	last  Seen[T]
	took  time.Duration
	ready chan struct{} // closed when the look that is under way has ended; nil while none is
}

// Seen is what was found out last.
type Seen[T any] struct {
	Value T         // the newest that is known
	At    time.Time // when the last look ended; zero while there was none
	Err   error     // why that found nothing out
}

// Known reports whether the last look found something out.
func (s Seen[T]) Known() bool { return !s.At.IsZero() && s.Err == nil }

const (
	leastAge   = 2 * time.Second        // of what is known, before it is read again
	costShare  = 100                    // looking takes one part of this many
	sharers    = 2                      // a sample has half of that: a page shows several
	patience   = 150 * time.Millisecond // how long one waits
	longestSee = time.Minute            // a look that takes longer is given up
)

// Pause is how long to wait after a look that took so long, when n share the
// hundredth of the time that looking may take: each has the same part of it, so one
// that is dear makes no other wait.
func Pause(took time.Duration, n int) time.Duration {
	return max(leastAge, time.Duration(n)*costShare*took)
}

// New returns a sample of what a function finds out. It is not called by two at
// once.
func New[T any](take func(ctx context.Context) (T, error)) *Sample[T] {
	return &Sample[T]{take: take}
}

type hurriedKey struct{}

// Hurried is a context for those who come again soon: with it, [Sample.Get] does
// not wait.
func Hurried(ctx context.Context) context.Context { return context.WithValue(ctx, hurriedKey{}, true) }

// Get returns what is known, and sees to it that it does not grow old. While nothing
// is known, or what is known is two seconds old and the last look was soon done, it
// waits for the next look, but not for long and not for those in a hurry.
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

// try takes a look. A panic is an error like any other: nobody else would recover
// it, and it must not end the program.
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
