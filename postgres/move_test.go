package postgres

import (
	"errors"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// A server that took the place of another one is gone on at if it has everything that was
// acknowledged, and only then.
func TestAnEngineGoesOnAtAServerThatLostNothing(t *testing.T) {
	s := newStore(t)
	w, other := storetest.Join(t, s, "k"), storetest.Join(t, s, "k")
	enqueueJobs(t, s, 4)
	claim := w.Claim(normal, 2)
	theirs := other.Claim(normal, 2)
	w.Complete(claim[0])
	other.Complete(theirs[0])
	const beat = 5
	beats := func(w *storetest.Worker) error {
		_, err := s.Heartbeat(t.Context(), w.Info.Token, store.Heartbeat{Number: beat})
		return err
	}
	must(t, beats(w))
	made := w.ClaimOf(claim[1].Pos)
	all := func(change func(*store.Proof)) store.Proof {
		p := store.Proof{Beat: beat, Claims: []store.ClaimRef{made}, Recorded: []store.Position{claim[0].Pos}}
		if change != nil {
			change(&p)
		}
		return p
	}
	moved := func() { exec(t, s, `update stint.beats set timeline = 'another'`) }
	for what, proof := range map[string]store.Proof{
		"a beat":                        all(func(p *store.Proof) { p.Beat++ }),
		"an outcome":                    all(func(p *store.Proof) { p.Recorded = append(p.Recorded, claim[1].Pos) }),
		"an outcome that is another's":  all(func(p *store.Proof) { p.Recorded = append(p.Recorded, theirs[0].Pos) }),
		"a claim in that lane":          all(func(p *store.Proof) { p.Claims[0].Lane++ }),
		"a claim of that number":        all(func(p *store.Proof) { p.Claims[0].N++ }),
		"that claim, but a new of late": all(func(p *store.Proof) { p.Claims[0].Nonce++ }),
	} {
		moved()
		if err := beats(w); !errors.Is(err, store.ErrMoved) || !errors.Is(err, store.ErrBuried) {
			t.Fatalf("after a move the beat gives %v", err)
		}
		if err := s.Move(t.Context(), w.Info.Token, proof); !errors.Is(err, store.ErrBuried) {
			t.Errorf("at a server that lost %s going on gives %v", what, err)
		}
		if err := beats(w); !errors.Is(err, store.ErrMoved) {
			t.Errorf("at a server that lost %s the next beat gives %v", what, err)
		}
	}
	must(t, s.Move(t.Context(), w.Info.Token, all(func(p *store.Proof) { p.Recorded = nil })))
	must(t, beats(w))
	must(t, s.Move(t.Context(), w.Info.Token, all(nil)))
	must(t, beats(w))
	if err := beats(other); !errors.Is(err, store.ErrMoved) {
		t.Errorf("another engine's beat gives %v, though it did not ask whether to go on", err)
	}
	if err := s.Move(t.Context(), 4711, store.Proof{}); !errors.Is(err, store.ErrBuried) {
		t.Errorf("an engine that nobody knows may go on: %v", err)
	}
	// What a beat says at a server that lost something is not believed to have been there.
	moved()
	if _, err := s.Heartbeat(t.Context(), w.Info.Token, store.Heartbeat{Number: beat + 1}); !errors.Is(err, store.ErrMoved) {
		t.Fatal(err)
	}
	if err := s.Move(t.Context(), w.Info.Token, all(func(p *store.Proof) { p.Beat++ })); !errors.Is(err, store.ErrBuried) {
		t.Errorf("a beat that asks counts as one that was there: %v", err)
	}
}

func enqueueJobs(t *testing.T, s *Store, n int) {
	t.Helper()
	jobs := make([]stint.NewJob, n)
	for i := range jobs {
		jobs[i] = stint.NewJob{Kind: "k"}
	}
	if _, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
}
