package storetest

import (
	"time"

	"github.com/stint-go/stint/store"
)

// holdTests are about stores that know without beats which engines live.
var holdTests = []test{
	{"An engine whose place is held is left alone, however old its beat", func(t *T) {
		h, other := as[store.LivenessLocker](t), t.again()
		w := t.join("k")
		time.Sleep(30 * time.Millisecond)
		expect(t, h.Holds(w.Info.Token), "its place is not held")
		t.places(other, w, true)
		for _, s := range []Store{t.Store, other} {
			never := func(e *store.Entry, begun bool) store.Completion {
				t.Errorf("a living engine was judged")
				return Judge(e, begun)
			}
			_, err := Bury(t.ctx, s, store.Burial{Engine: w.Info.Token, Unless: 10 * time.Millisecond}, never)
			fails(t, err, store.ErrAlive, "the burial gives %v, want ErrAlive")
		}
		w.Heartbeat()
	}},
	{"One that was let go of lives as long as it beats", func(t *T) {
		h, other := as[store.LivenessLocker](t), t.again()
		w := t.join("k")
		for range 2 {
			h.Release(w.Info.Token)
			expect(t, !h.Holds(w.Info.Token), "its place is held still")
		}
		t.places(other, w, false)
		w.Heartbeat()
		expect(t, !h.Holds(w.Info.Token), "a beat took the place again")
		fails(t, errOf(Bury(t.ctx, other, store.Burial{Engine: w.Info.Token, Unless: time.Hour}, Judge)), store.ErrAlive,
			"the burial gives %v, want ErrAlive")
		time.Sleep(30 * time.Millisecond)
		_, err := Bury(t.ctx, other, store.Burial{Engine: w.Info.Token, Unless: 10 * time.Millisecond}, Judge)
		expect(t, err == nil, "the burial gives %v", err)
	}},
	{"Who must be buried is, and its place is free when it knows", func(t *T) {
		h := as[store.LivenessLocker](t)
		for _, burier := range []Store{t.Store, t.again()} {
			w := t.join("k")
			if _, err := Bury(t.ctx, burier, store.Burial{Engine: w.Info.Token}, Judge); err != nil {
				t.Errorf("the burial gives %v", err)
			}
			_, err := Bury(t.ctx, burier, store.Burial{Engine: w.Info.Token, Unless: time.Hour}, Judge)
			fails(t, err, store.ErrBuried, "a second burial gives %v, want ErrBuried")
			fails(t, errOf(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{})), store.ErrBuried,
				"the beat gives %v, want ErrBuried")
			expect(t, !h.Holds(w.Info.Token), "the place of the buried is held")
		}
	}},
	{"Each engine has a place of its own", func(t *T) {
		h, other := as[store.LivenessLocker](t), t.again()
		a, b, c := t.join("k"), t.join("k"), Join(t.T, other, "k")
		expect(t, !h.Holds(c.Info.Token) && other.(store.LivenessLocker).Holds(c.Info.Token),
			"a place is held by a store that its engine did not join by")
		a.Leave()
		expect(t, !h.Holds(a.Info.Token) && h.Holds(b.Info.Token),
			"one left, and it holds %v, %v; want the other", h.Holds(a.Info.Token), h.Holds(b.Info.Token))
		t.places(other, b, true)
		t.places(t.Store, c, true)
		expect(t, b.TryJoin(t.ctx) != nil, "a token joined twice")
		t.places(other, b, true)
	}},
	{"Whose engine never joined holds nothing", func(t *T) {
		h, never := as[store.LivenessLocker](t), NewWorker(t, t.Store)
		h.Release(never.Info.Token)
		expect(t, !h.Holds(never.Info.Token), "it holds a place")
	}},
}

// places checks what a roster says of an engine that lives.
func (t *T) places(s Store, w *Worker, held bool) {
	t.Helper()
	all := must(s.Engines(t.ctx))(t)
	for _, e := range all {
		expect(t, e.Token != w.Info.Token || e.Held == held && !e.Gone,
			"the roster says held: %v, gone: %v; want %v and not", e.Held, e.Gone, held)
	}
}
