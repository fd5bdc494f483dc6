package sqlite

import (
	"context"
	"path/filepath"
	"testing"
)

// late is a context that ends behind the first look at it.
type late struct {
	context.Context
	looks int
}

func (l *late) Err() error {
	if l.looks++; l.looks > 1 {
		return context.Canceled
	}
	return nil
}

// Whoever calls a read off, be it while that begins, leaves its connection as it was.
func TestAReadThatIsCalledOffSpoilsNoOther(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"), Config{Readers: 1})
	for range 5000 {
		_, _ = s.Queues(&late{Context: t.Context()})
	}
	if _, err := s.Queues(t.Context()); err != nil {
		t.Error(err)
	}
}

// A driver that panics, as it did at damaged files, leaves it so as well.
func TestAReadThatPanicsSpoilsNoOther(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"), Config{Readers: 1})
	func() {
		defer func() { _ = recover() }()
		ctx, cancel := context.WithCancel(t.Context())
		_ = s.read(ctx, func(*conn) error { cancel(); panic("damaged") })
	}()
	if _, err := s.Queues(t.Context()); err != nil {
		t.Error(err)
	}
}
