// Package await lets many goroutines wait for things to end, with one look for
// all of them.
//
//	Wait ─┐                     ┌─ every key that is due, in one Look
//	Wait ─┼─▶ waiting keys ─▶ loop ─▶ Look ─▶ those that ended ─▶ their Waits
//	Wait ─┘        ▲
//	Nudge ─────────┘ this process knows that it ended: look now
//
// A key is looked at when its wait begins, and then again after an eighth of the
// time that it has waited, but not sooner than after [Shortest] and not later than
// after [Longest]. So an end is noticed soon compared with how long it
// took, and a wait costs few looks. While nothing is awaited there is no goroutine.
package await

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	Shortest = 25 * time.Millisecond // between two looks at a key, and between two looks that nothing nudged
	Longest  = time.Second           // between two looks at a key

	share    = 9 // the rest after a look is this many times as long as the look, so looks take at most a tenth of the time
	atOnce   = 10_000
	gather   = 2 * time.Millisecond // between two looks, so that waits which begin together share one
	early    = Longest / 4          // how much sooner a key is looked at to share a look
	patience = 30 * time.Second     // for one look
)

// ErrClosed is the error of waits whose hub was closed.
var ErrClosed = errors.New("closed")

// Look returns the values of those keys that have ended. The others are looked at again.
type Look[K comparable, V any] func(ctx context.Context, keys []K) (map[K]V, error)

// Hub has the keys that are waited for. Make one with [New]. Its methods may be called
// concurrently.
type Hub[K comparable, V any] struct {
	look Look[K, V]

	count atomic.Int64 // how many keys are waited for

	mu     sync.Mutex // guards the rest
	keys   map[K]*key[V]
	kick   chan struct{} // for the loop: something is due earlier than it knows
	stop   context.CancelFunc
	ended  chan struct{} // closed when the loop has ended; nil while there is none
	closed bool
}

// key is one thing that is waited for.
type key[V any] struct {
	since  time.Time // when the first wait began
	due    time.Time // when it is looked at next
	nudged bool      // it is looked at without a rest
	seen   bool      // a look at it has succeeded
	err    error     // of the last look
	waits  map[chan result[V]]struct{}
}

type result[V any] struct {
	value V
	err   error
}

// New returns a hub that looks with a function.
func New[K comparable, V any](look Look[K, V]) *Hub[K, V] {
	return &Hub[K, V]{look: look, keys: map[K]*key[V]{}}
}

// Wait returns what became of a key once that ended. An error of the first look
// is returned; after that the wait survives looks that fail, until its context ends.
func (h *Hub[K, V]) Wait(ctx context.Context, id K) (V, error) {
	var none V
	if err := ctx.Err(); err != nil {
		return none, err
	}
	ch := make(chan result[V], 1)
	if err := h.join(id, ch); err != nil {
		return none, err
	}
	select {
	case r := <-ch:
		return r.value, r.err
	case <-ctx.Done():
		err := context.Cause(ctx)
		if last := h.leave(id, ch); last != nil {
			err = fmt.Errorf("%w; the last look failed: %w", err, last)
		}
		return none, err
	}
}

// Any reports whether anything is waited for. It is cheap.
func (h *Hub[K, V]) Any() bool { return h.count.Load() > 0 }

// Nudge looks at a key now, if it is waited for.
func (h *Hub[K, V]) Nudge(id K) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.keys[id]; k != nil {
		k.nudged = true
		h.kickLocked()
	}
}

// Close ends all waits with [ErrClosed], and returns when no look is under way.
func (h *Hub[K, V]) Close() {
	h.mu.Lock()
	h.closed = true
	for id := range h.keys {
		h.settleLocked(id, result[V]{err: ErrClosed})
	}
	ended := h.ended
	if ended != nil {
		h.stop()
		h.kickLocked()
	}
	h.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func (h *Hub[K, V]) join(id K, ch chan result[V]) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	k := h.keys[id]
	if k == nil {
		now := time.Now()
		k = &key[V]{since: now, due: now, nudged: true, waits: map[chan result[V]]struct{}{}}
		h.keys[id] = k
		h.count.Store(int64(len(h.keys)))
	}
	k.waits[ch] = struct{}{}
	if h.ended == nil {
		ctx, stop := context.WithCancel(context.Background())
		h.kick, h.stop, h.ended = make(chan struct{}, 1), stop, make(chan struct{})
		go h.loop(ctx, h.kick)
	}
	h.kickLocked()
	return nil
}

// leave ends one wait, and returns what the last look at its key failed with.
func (h *Hub[K, V]) leave(id K, ch chan result[V]) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.keys[id]
	if k == nil {
		return nil
	}
	delete(k.waits, ch)
	if len(k.waits) == 0 {
		delete(h.keys, id)
		h.count.Store(int64(len(h.keys)))
		h.kickLocked() // the loop may have nothing left to do
	}
	return k.err
}

func (h *Hub[K, V]) kickLocked() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// settleLocked answers all waits for a key.
func (h *Hub[K, V]) settleLocked(id K, r result[V]) {
	k := h.keys[id]
	if k == nil {
		return
	}
	for ch := range k.waits {
		ch <- r
	}
	delete(h.keys, id)
	h.count.Store(int64(len(h.keys)))
}

// loop looks until no key is left.
func (h *Hub[K, V]) loop(ctx context.Context, kick <-chan struct{}) {
	var ready, rested time.Time // when what was nudged may be looked at, and the rest
	for {
		ids, pause, more := h.due(ready, rested)
		if !more {
			return
		}
		if len(ids) == 0 {
			if pause <= gather { // whatever is nudged meanwhile is looked at then as well
				time.Sleep(pause)
				continue
			}
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-kick:
			}
			timer.Stop()
			continue
		}
		began := time.Now()
		limit, cancel := context.WithTimeout(ctx, patience)
		values, err := h.look(limit, ids)
		cancel()
		now := time.Now()
		ready, rested = now.Add(gather), now.Add(max(Shortest, share*now.Sub(began)))
		h.looked(ids, values, err, now)
	}
}

// due returns the keys to look at now, or how long to wait for the next one; without any key the
// loop ends.
func (h *Hub[K, V]) due(ready, rested time.Time) (ids []K, pause time.Duration, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.keys) == 0 {
		h.stop()
		close(h.ended)
		h.ended = nil
		return nil, 0, false
	}
	now := time.Now()
	pause = Longest
	polls := false // then those that are due soon come along
	for _, k := range h.keys {
		wait := max(k.due.Sub(now), rested.Sub(now))
		if k.nudged {
			wait = ready.Sub(now)
		}
		pause = min(pause, wait)
		polls = polls || wait <= 0 && !k.nudged
	}
	if pause > 0 {
		return nil, pause, true
	}
	for id, k := range h.keys {
		if len(ids) < atOnce && (k.nudged && !ready.After(now) || polls && k.due.Before(now.Add(early))) {
			k.nudged = false
			ids = append(ids, id)
		}
	}
	return ids, 0, true
}

// looked tells those whose keys ended, and says when the others are due again.
func (h *Hub[K, V]) looked(ids []K, values map[K]V, err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		k := h.keys[id]
		if k == nil {
			continue
		}
		value, ended := values[id]
		switch k.err = err; {
		case err != nil && !k.seen:
			h.settleLocked(id, result[V]{err: err})
		case err != nil:
			k.due = now.Add(Longest)
		case ended:
			h.settleLocked(id, result[V]{value: value})
		default:
			k.seen = true
			k.due = now.Add(min(Longest, max(Shortest, now.Sub(k.since)/8)))
		}
	}
}
