// Package sample keeps values that are expensive to read. A value is read in the background while
// callers ask for it, and so seldom that reading takes at most half a hundredth of the time. A caller
// that asks only once gets a new value, if reading is fast.
package sample

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Sample is one such value. Make one with [New]; its methods may be called concurrently.
type Sample[T any] struct {
	take func(ctx context.Context) (T, error)
	most time.Duration // the longest pause between looks; 0 is any

	mu    sync.Mutex // guards the rest
	last  Seen[T]
	ended time.Time // when the last look did; zero while there was none
	took  time.Duration
	ready chan struct{} // closed at the end of the look that is under way; nil while there is none
}

// Seen is what is known.
type Seen[T any] struct {
	Value T         // the newest one
	At    time.Time // when the look began that found it, so the value is no older; zero while there is none
	Err   error     // why the last look failed
}

// Known reports whether there is a value, and the last look succeeded.
func (s Seen[T]) Known() bool { return !s.At.IsZero() && s.Err == nil }

// Told returns when the value was found, and why the last look failed.
func (s Seen[T]) Told() (at time.Time, err error) { return s.At, s.Err }

const (
	leastAge   = 2 * time.Second        // of what is known, before it is read again
	costShare  = 100                    // looks take one part of this many
	sharers    = 2                      // a sample has half of that: a page shows several
	patience   = 150 * time.Millisecond // how long Get waits
	longestSee = time.Minute            // a look that takes longer is given up
	freshPause = 5 * time.Second        // the longest between looks of what stays fresh
)

// Pause is how long to wait after a look that took so long, if n samples share the hundredth of the
// time that looks may take. Each has the same part of it, so an expensive one does not delay others.
func Pause(took time.Duration, n int) time.Duration {
	return max(leastAge, time.Duration(n)*costShare*took)
}

// New returns a sample of the value that a function reads. Its calls do not overlap, unless the
// value is forgotten meanwhile.
func New[T any](take func(ctx context.Context) (T, error)) *Sample[T] {
	return &Sample[T]{take: take}
}

// NewFresh is New for what is cheap: looks are at most five seconds apart while callers ask,
// also when the database is so slow that they take more than their share of the time.
func NewFresh[T any](take func(ctx context.Context) (T, error)) *Sample[T] {
	return &Sample[T]{take: take, most: freshPause}
}

// pause is how long to wait after the last look. The mutex is held.
func (s *Sample[T]) pause() time.Duration {
	pause := Pause(s.took, sharers)
	if s.last.Err != nil { // how long it took until it failed says nothing of what it costs
		pause = min(pause, longestSee)
	}
	return min(pause, cmp.Or(s.most, pause))
}

type hurriedKey struct{}

// Hurried is a context for callers that ask again soon: with it, [Sample.Get] does not wait.
func Hurried(ctx context.Context) context.Context { return context.WithValue(ctx, hurriedKey{}, true) }

// IsHurried reports whether a context is of such a caller.
func IsHurried(ctx context.Context) bool { return ctx.Value(hurriedKey{}) != nil }

// Get returns the last value, and starts a look when that is old. While there is no value, or it is
// two seconds old and the last look was fast, Get waits for the next look, but at most for patience,
// and not if the caller is [Hurried].
func (s *Sample[T]) Get(ctx context.Context) Seen[T] {
	s.mu.Lock()
	age, calm := time.Since(s.ended), !IsHurried(ctx)
	soon := s.took < patience
	if s.ready == nil && (age >= s.pause() || calm && soon && age >= leastAge) {
		s.ready = make(chan struct{})
		go s.look(context.WithoutCancel(ctx), s.ready)
	}
	ready := s.ready
	wait := ready != nil && calm && (s.ended.IsZero() || soon)
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

// Forget has the next Get look again, for who has just changed what is read. A look that is
// under way is one of before, and its value is dropped.
func (s *Sample[T]) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.ready = time.Time{}, nil
}

// look reads the value, and closes ready.
func (s *Sample[T]) look(ctx context.Context, ready chan struct{}) {
	defer close(ready)
	ctx, cancel := context.WithTimeout(ctx, longestSee)
	defer cancel()
	began := time.Now()
	value, err := s.try(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready != ready {
		return // it was forgotten
	}
	if err == nil {
		s.last.Value, s.last.At = value, began
	}
	s.last.Err, s.ended, s.took = err, time.Now(), time.Since(began)
	s.ready = nil
}
