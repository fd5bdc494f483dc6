package stint

import "context"

// Listener is a store that can tell engines that something happened. It is
// optional: where it is missing, or fails, engines poll.
type Listener interface {
	// Listen calls ring whenever work may have become available or a wait
	// may have become shorter, and once when it has begun to listen, until
	// ctx ends (it then returns nil) or it can listen no more. Signals carry
	// no data, may come without cause, and may be lost with an error only.
	// ring must not block.
	Listen(ctx context.Context, ring func()) error
}
