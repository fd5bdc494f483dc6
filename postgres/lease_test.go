package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stint-go/stint/store"
)

// What is done under one lease may take long. Nobody waits for it who asks for
// another one, nor who asks who holds it.
func TestALeaseIsWaitedForByNobodyWhoDoesNotTakeIt(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	mine, theirs := b.join(), b.join()
	acquire := func(name string, engine store.EngineID, has store.EngineID) func(context.Context) error {
		return func(ctx context.Context) error {
			l, err := s.Acquire(ctx, name, engine, time.Hour)
			if err == nil && l.Engine != has {
				t.Errorf("%d asks for the lease %q, and is told that %d has it, want %d", engine, name, l.Engine, has)
			}
			return err
		}
	}
	me, they := mine.Info.Token, theirs.Info.Token
	must(t, acquire("theirs", they, they)(t.Context()))
	tx := begin(t, s)
	_, err := tx.Exec(t.Context(), `select stint.under('theirs', $1)`, they)
	must(t, err)
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"who asks for it", acquire("theirs", me, they)},
		{"who takes another one", acquire("mine", me, me)},
		{"who renews another one", acquire("mine", me, me)},
		{"what is done under another one", func(ctx context.Context) error {
			_, err := s.Retain(ctx, store.RetainStep{Part: store.RetainKeys, Limit: 1, Under: store.LeaseGuard{Lease: "mine", Engine: me}})
			return err
		}},
		{"who resigns another one", func(ctx context.Context) error { _, err := s.ReleaseLease(ctx, "mine", me); return err }},
		{"who takes it again", acquire("mine", me, me)},
		{"who frees another one", func(ctx context.Context) error { _, _, err := s.Revoke(ctx, "mine", "", ""); return err }},
	} {
		if err := b.soon(step.what, step.do); err != nil {
			t.Error(err)
		}
	}
	// Whoever locks it alone stands in nobody's way who is under another one.
	must(t, tx.Rollback(t.Context()))
	must(t, acquire("other", me, me)(t.Context()))
	_, err = begin(t, s).Exec(t.Context(), `select from stint.leases where name = 'theirs' for update`)
	must(t, err)
	if err := b.soon("what is done under another one", func(ctx context.Context) error {
		_, err := s.Retain(ctx, store.RetainStep{Part: store.RetainKeys, Limit: 1, Under: store.LeaseGuard{Lease: "other", Engine: me}})
		return err
	}); err != nil {
		t.Error(err)
	}
}

// The burial of an engine under whose lease something is being done leaves the lease
// as it is. It is held by nobody then, long before its time is over.
func TestABurialPassesOverALeaseThatSomethingIsDoneUnder(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	dead, next := b.join(), b.join()
	_, err := s.Acquire(t.Context(), "x", dead.Info.Token, time.Hour)
	must(t, err)
	tx := begin(t, s)
	_, err = tx.Exec(t.Context(), `select stint.under('x', $1)`, dead.Info.Token)
	must(t, err)
	if err := b.soon("the burial", func(ctx context.Context) error {
		_, err := s.Bury(ctx, store.Burial{Engine: dead.Info.Token}, judge)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	must(t, tx.Rollback(t.Context()))
	if l, err := s.Acquire(t.Context(), "x", next.Info.Token, time.Hour); err != nil || l.Engine != next.Info.Token {
		t.Errorf("the next one is told %+v, error %v", l, err)
	}
}

// Who gives a lease back while somebody else takes it from him did not have it any more,
// and the other way round.
func TestOfTwoWhoFreeALeaseOneDoes(t *testing.T) {
	s := verified(t)
	w := (&bench{t, s, nil}).join()
	resign := func() (bool, error) { return s.ReleaseLease(t.Context(), "x", w.Info.Token) }
	depose := func() (bool, error) { _, had, err := s.Revoke(t.Context(), "x", "", ""); return had, err }
	for _, c := range []struct {
		first  string
		second func() (bool, error)
	}{{`select stint.resign('x', $1)`, depose}, {`select coalesce(stint.depose('x', '', ''), 0) = $1`, resign}} {
		if has := value[store.EngineID](t, s.pool, `select stint.acquire('x', $1, 3600000000)`, w.Info.Token); has != w.Info.Token {
			t.Fatalf("who asks for it is told that %d has it", has)
		}
		tx := begin(t, s)
		if !value[bool](t, tx, c.first, w.Info.Token) {
			t.Fatalf("%s frees nothing", c.first)
		}
		type answer struct {
			had bool
			err error
		}
		second := make(chan answer, 1)
		go func() { had, err := c.second(); second <- answer{had, err} }()
		blocked(t, s)
		must(t, tx.Commit(t.Context()))
		if a := <-second; a.had || a.err != nil {
			t.Errorf("behind %s the other one freed it too: %v, error %v", c.first, a.had, a.err)
		}
	}
}
