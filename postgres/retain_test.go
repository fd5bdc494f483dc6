package postgres

import (
	"context"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// The history of an engine stays while what it claimed is to be looked through.
func TestAnEngineIsForgottenOnceItsClaimsWereLookedThrough(t *testing.T) {
	s := verified(t)
	w := (&bench{t, s, nil}).join()
	w.Leave()
	exec(t, s, `update stint.engine_history set ended = ended - interval '6 days', swept = false`)
	for _, want := range []int{0, 1} {
		done, err := s.Retain(t.Context(), store.RetainStep{Part: store.RetainEngines, Limit: 10})
		if err != nil || done.Deleted != want {
			t.Errorf("a step says %+v, error %v; want %d forgotten", done, err, want)
		}
		exec(t, s, `update stint.engine_history set swept = true`)
	}
}

// A key that somebody has in hand is looked at by a later step, and holds up none.
func TestAKeyThatSomebodyHasInHandIsForgottenLater(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	for _, key := range []string{"a", "b"} {
		b.enqueue(1, stint.IdempotencyKey(key))
	}
	w := b.join()
	entries := w.ClaimAll()
	w.Complete(entries...)
	_, err := s.Delete(t.Context(), ids(entries))
	must(t, err)
	exec(t, s, `update stint.idempotency set expires = clock_timestamp()`)
	other := begin(t, s)
	_, err = other.Exec(t.Context(), `select from stint.idempotency where key = 'a' for update`)
	must(t, err)
	for range 2 { // beside the other one, and behind it
		if err := b.soon("a step", func(ctx context.Context) error {
			done, err := s.Retain(ctx, store.RetainStep{Part: store.RetainKeys, Limit: 10})
			if err == nil && done.Deleted != 1 {
				t.Errorf("a step says %+v, want one forgotten", done)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		_ = other.Rollback(t.Context())
	}
}
