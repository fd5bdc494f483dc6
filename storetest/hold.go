package storetest

import (
	"errors"
	"time"

	"github.com/stint-go/stint"
)

// holdTests are about stores that know without beats which engines live.
var holdTests = []test{
	{"An engine whose place is held is left alone, however old its beat", func(t *T) {
		h, other := t.holder(), t.again()
		w := t.join("k")
		time.Sleep(30 * time.Millisecond)
		if !h.Holds(w.Info.Token) {
			t.Errorf("its place is not held")
		}
		t.places(other, w, true)
		for _, s := range []Store{t.Store, other} {
			never := func(e *stint.Entry, begun bool) stint.Execution {
				t.Errorf("a living engine was judged")
				return Judge(e, begun)
			}
			_, err := Bury(t.ctx, s, stint.Burial{Engine: w.Info.Token, Unless: 10 * time.Millisecond}, never)
			if !errors.Is(err, stint.ErrAlive) {
				t.Errorf("the burial gives %v, want ErrAlive", err)
			}
		}
		w.Beat()
	}},
	{"One that was let go of lives as long as it beats", func(t *T) {
		h, other := t.holder(), t.again()
		w := t.join("k")
		for range 2 {
			h.Release(w.Info.Token)
			if h.Holds(w.Info.Token) {
				t.Errorf("its place is held still")
			}
		}
		t.places(other, w, false)
		w.Beat()
		if h.Holds(w.Info.Token) {
			t.Errorf("a beat took the place again")
		}
		if _, err := Bury(t.ctx, other, stint.Burial{Engine: w.Info.Token, Unless: time.Hour}, Judge); !errors.Is(err, stint.ErrAlive) {
			t.Errorf("the burial gives %v, want ErrAlive", err)
		}
		time.Sleep(30 * time.Millisecond)
		if _, err := Bury(t.ctx, other, stint.Burial{Engine: w.Info.Token, Unless: 10 * time.Millisecond}, Judge); err != nil {
			t.Errorf("the burial gives %v", err)
		}
	}},
	{"Who must be buried is, and its place is free when it knows", func(t *T) {
		h := t.holder()
		for _, burier := range []Store{t.Store, t.again()} {
			w := t.join("k")
			if _, err := Bury(t.ctx, burier, stint.Burial{Engine: w.Info.Token}, Judge); err != nil {
				t.Errorf("the burial gives %v", err)
			}
			_, err := Bury(t.ctx, burier, stint.Burial{Engine: w.Info.Token, Unless: time.Hour}, Judge)
			if !errors.Is(err, stint.ErrBuried) {
				t.Errorf("a second burial gives %v, want ErrBuried", err)
			}
			if _, err := t.Store.Beat(t.ctx, w.Info.Token, stint.Beat{}); !errors.Is(err, stint.ErrBuried) {
				t.Errorf("the beat gives %v, want ErrBuried", err)
			}
			if h.Holds(w.Info.Token) {
				t.Errorf("the place of the buried is held")
			}
		}
	}},
	{"Each engine has a place of its own", func(t *T) {
		h, other := t.holder(), t.again()
		a, b, c := t.join("k"), t.join("k"), Join(t.T, other, "k")
		if h.Holds(c.Info.Token) || !other.(stint.Holder).Holds(c.Info.Token) {
			t.Errorf("a place is held by a store that its engine did not join by")
		}
		a.Leave()
		if h.Holds(a.Info.Token) || !h.Holds(b.Info.Token) {
			t.Errorf("one left, and it holds %v, %v; want the other", h.Holds(a.Info.Token), h.Holds(b.Info.Token))
		}
		t.places(other, b, true)
		t.places(t.Store, c, true)
		if err := b.TryJoin(t.ctx); err == nil {
			t.Errorf("a token joined twice")
		}
		t.places(other, b, true)
	}},
	{"Whose engine never joined holds nothing", func(t *T) {
		h, never := t.holder(), NewWorker(t, t.Store)
		h.Release(never.Info.Token)
		if h.Holds(never.Info.Token) {
			t.Errorf("it holds a place")
		}
	}},
}

// places checks what a roster says of an engine that lives.
func (t *T) places(s Store, w *Worker, held bool) {
	t.Helper()
	all, err := s.Engines(t.ctx)
	t.must(err)
	for _, e := range all {
		if e.Token == w.Info.Token && (e.Held != held || e.Gone) {
			t.Errorf("the roster says held: %v, gone: %v; want %v and not", e.Held, e.Gone, held)
		}
	}
}
