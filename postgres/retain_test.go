package postgres

import (
	"context"
	"testing"
	"time"

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

// While a step has deleted and not committed yet, nobody waits for it but who looks at the jobs that
// it deletes; and its commit does not wait for the disk.
func TestAStepOfRetentionHoldsNobodyUp(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	w := b.join()
	b.enqueue(20)
	ended := w.Claim(normal, 10)
	w.Complete(ended...)
	tx := begin(t, s)
	var deleted int
	err := tx.QueryRow(t.Context(), s.sql.in(`select deleted from stint.retain_jobs('', 0, 0, 100, 1, null, '{"": {"completed": 1}}')`)).Scan(&deleted)
	if err != nil || deleted != len(ended) {
		t.Fatalf("the step deleted %d jobs, error %v; want %d", deleted, err, len(ended))
	}
	var waits string
	if err := tx.QueryRow(t.Context(), `show synchronous_commit`).Scan(&waits); err != nil || waits != "off" {
		t.Errorf("its commit waits: %s, error %v", waits, err)
	}
	for what, do := range map[string]func(ctx context.Context) error{
		"a beat": func(ctx context.Context) error {
			_, err := s.Heartbeat(ctx, w.Info.Token, store.Heartbeat{})
			return err
		},
		"a claim and its outcomes": func(context.Context) error { w.Complete(w.Claim(normal, 10)...); return nil },
		"an enqueue":               func(context.Context) error { b.enqueue(10); return nil },
		"a look":                   func(ctx context.Context) error { _, err := s.Look(ctx, store.LaneHints{}); return err },
		"a promotion":              func(ctx context.Context) error { _, err := s.Promote(ctx, time.Time{}, 10); return err },
		"sums":                     func(ctx context.Context) error { _, err := s.SumUp(ctx); return err },
	} {
		if err := b.soon(what, do); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, tx.Rollback(t.Context()))
}
