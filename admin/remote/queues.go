package remote

import (
	"context"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/api"
)

// Pause implements [stint.Pauser], but that the server keeps who asks by the token,
// and not what is said here.
func (s *Store) Pause(ctx context.Context, queue, _, why string) (bool, error) {
	if err := stint.CheckQueue(queue); err != nil {
		return false, err
	}
	return s.changed(ctx, path("queues", queue, "pause"), api.Why{Why: why})
}

// Resume implements [stint.Pauser].
func (s *Store) Resume(ctx context.Context, queue string) (bool, error) {
	if err := stint.CheckQueue(queue); err != nil {
		return false, err
	}
	return s.changed(ctx, path("queues", queue, "resume"), nil)
}

// changed asks for a change, and whether it was one.
func (s *Store) changed(ctx context.Context, path string, body any) (bool, error) {
	c, err := ask[api.Changed](ctx, s, request{method: "POST", path: path, body: body})
	return c.Changed, err
}

// Paused implements [stint.Pauser].
func (s *Store) Paused(ctx context.Context) ([]string, error) {
	return ask[[]string](ctx, s, request{method: "GET", path: path("paused-queues")})
}

// Queues implements [stint.Pauser].
func (s *Store) Queues(ctx context.Context) ([]stint.QueueInfo, error) {
	return ask[[]stint.QueueInfo](ctx, s, request{method: "GET", path: path("queues")})
}
