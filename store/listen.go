package store

import (
	"context"
)

// Listener is a store that can tell engines that something happened. It is
// optional: where it is missing, or fails, engines poll.
type Listener interface {
	// Listen calls ring whenever work may have become available or a wait
	// may have become shorter, and once when it has begun to listen, until
	// ctx ends (it then returns nil) or it can listen no more. Signals
	// may come without cause, and may be lost with an error only.
	// ring is not called twice at once, and must not block.
	Listen(ctx context.Context, ring func(News)) error
}

// News is what a signal is about. The zero value is about anything.
type News struct {
	Ready bool   // only about jobs that are ready to be claimed
	Due   bool   // only about jobs that wait: one is due earlier than was known, or what it waits for has happened
	Lot   uint64 // not zero: enough for a few engines, who are drawn by this number

	// Permits is about permits of one gate, or of all gates of the limit that it names. With an Engine,
	// it is about what this one waits for. It is about nothing else then, and Ready is not set: no job
	// became ready, and no wait shorter.
	Permits string
	Engine  EngineID
}

// IdleNotifier is a [Listener] whose signals are dear, so that it may leave those
// for jobs that are ready at once to the times when an engine sleeps. Optional.
type IdleNotifier interface {
	// Asleep says whether an engine is asleep from now on, and to be rung. The
	// engine looks for work once more when it has returned without an error,
	// for what was committed before; for what is committed later, the store
	// rings. An engine that did not say it may be rung for some jobs only.
	// The error is [ErrBuried] when the engine is not in the roster.
	Asleep(ctx context.Context, engine EngineID, asleep bool) error

	// Ring has all engines look for work: what there is, is too much for those that were drawn.
	Ring(ctx context.Context) error
}
