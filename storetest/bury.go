package storetest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var buryTests = []test{
	{"The judge sees each unfinished entry once, and whether it was announced", func(t *T) {
		t.enqueue(jobs(6, "k")...)
		w := t.join("k")
		all := append(w.Claim(lane(stint.DefaultQueue), 4), w.Claim(lane(stint.DefaultQueue), 2)...)
		w.Heartbeat(all[3].Pos)
		w.Heartbeat(all[1].Pos, all[5].Pos, all[0].Pos)
		w.Complete(all[0], all[2])
		begun := map[store.Position]bool{}
		n := must(Bury(t.ctx, t.Store, store.Burial{Engine: w.Info.Token}, func(e *store.Entry, announced bool) store.Completion {
			_, twice := begun[e.Pos]
			expect(t, !twice, "position %d was judged twice", e.Pos)
			expect(t, e.Kind == "k" && e.ID != 0 && sameJSON(e.Args, []byte("{}")), "the judge sees %+v", e)
			begun[e.Pos] = announced
			return Judge(e, announced)
		}))(t)
		want := map[store.Position]bool{all[1].Pos: true, all[3].Pos: false, all[4].Pos: false, all[5].Pos: true}
		expect(t, n == 4 && len(begun) == 4, "%d entries were concluded and %d judged, want 4", n, len(begun))
		for pos, announced := range want {
			equal(t, begun[pos], announced, "position %d: announced is %v, want %v", pos)
		}
	}},
	{"What the judge says is recorded, and comes first in line", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		held := w.ClaimAll()
		w.Heartbeat(held[1].Pos)
		fresh := t.enqueue(jobs(2, "k")...)
		before := t.now()
		w.Leave()
		after := t.now()
		front := store.LaneOf(stint.DefaultQueue, 0, store.PartFront, "").ID
		next := t.join("k")
		got := next.Claim(front, 10)
		need(t, slices.Equal(jobIDs(got), ids), "the front lane has %v, want %v", jobIDs(got), ids)
		expect(t, slices.Equal(jobIDs(next.Claim(lane(stint.DefaultQueue), 10)), fresh), "new work is not where it was")
		for i, e := range got {
			want := [][3]int{{1, 0, 1}, {2, 1, 0}, {1, 0, 1}}[i]
			equal(t, [3]int{e.Attempt, e.Losses, e.Suspect}, want, "job %d has attempt, losses, suspicion %v, want %v", e.ID)
			x := t.info(e.ID).Attempts[0]
			o := []stint.Outcome{stint.OutcomeReturned, stint.OutcomeLost, stint.OutcomeReturned}[i]
			expect(t, x.Outcome == o && x.Engine == int64(w.Info.Token) && !x.Final && !x.Finished.Before(before) &&
				!x.Finished.After(after),
				"job %d: recorded %+v, want %s between %v and %v", e.ID, x, o, before, after)
		}
		next.Complete(got...)
	}},
	{"Each loss is counted, also the one that ends the job", func(t *T) {
		id := t.enqueue(job("k", stint.MaxLosses(2)))[0]
		first := t.enqueue(job("k", stint.MaxLosses(0)))[0]
		for i, state := range []stint.State{stint.Available, stint.Failed} {
			w := t.join("k")
			entries := w.ClaimAll()
			w.Heartbeat(positions(entries)...)
			w.Leave()
			info, listed := t.info(id), must(t.Store.Jobs(t.ctx, store.Filter{Before: first}))(t)
			expect(t, info.State == state && info.Losses == i+1 && listed[0].Losses == i+1,
				"after %d losses it is %s with %d, and listed with %d", i+1, info.State, info.Losses, listed[0].Losses)
			equal(t, t.info(first).Losses, 1, "of what may be lost once %d losses are counted, want %d")
		}
		ended := t.enqueue(job("k", stint.MaxLosses(3)))[0]
		w := t.join("k")
		w.Heartbeat(w.One().Pos)
		w.Leave()
		w = t.join("k")
		w.Finish(failedFinally, w.One())
		equal(t, t.info(ended).Losses, 1, "of what was lost once and then failed %d losses are counted, want %d")
	}},
	{"The roster shows how many slots an engine has by its last beat, or by its join", func(t *T) {
		w := t.join("k")
		w.Info.Slots = 4
		for _, c := range [][2]int{{0, 4}, {40, 40}, {25, 25}, {0, 4}} {
			t.must(errOf(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Slots: c[0]})))
			roster, err := t.Store.Engines(t.ctx)
			t.must(err)
			if len(roster) != 1 || roster[0].Slots != c[1] {
				t.Errorf("after a beat that says %d slots the roster is %+v, want %d slots", c[0], roster, c[1])
			}
		}
	}},
	{"An engine that beat lately is left alone", func(t *T) {
		t.enqueue(job("k"))
		w := t.join("k")
		e := w.One()
		w.Release() // so that its beats count
		never := func(e *store.Entry, begun bool) store.Completion {
			t.Errorf("a living engine was judged")
			return Judge(e, begun)
		}
		for range 2 {
			fails(t, errOf(Bury(t.ctx, t.Store, store.Burial{Engine: w.Info.Token, Unless: time.Hour}, never)), store.ErrAlive, "the burial gives %v, want ErrAlive")
			w.Heartbeat()
		}
		w.Complete(e)
	}},
	{"An engine that has not beaten for long enough is buried", func(t *T) {
		t.enqueue(job("k"))
		w := t.join("k")
		w.ClaimAll()
		w.Release()
		time.Sleep(30 * time.Millisecond)
		n, err := Bury(t.ctx, t.again(), store.Burial{Engine: w.Info.Token, Unless: 10 * time.Millisecond, Why: "silent"}, Judge)
		expect(t, err == nil && n == 1, "the burial concluded %d, error %v", n, err)
	}},
	{"Of several engines the one that is named is buried, by what its own beats say", func(t *T) {
		t.enqueue(jobs(6, "k")...)
		t.join("k") // it says nothing
		var all []*Worker
		for range 5 {
			all = append(all, t.join("k"))
		}
		slices.SortFunc(all, func(a, b *Worker) int { return cmp.Compare(a.Info.Token, b.Info.Token) })
		silent := all[2]
		held := silent.Claim(lane(stint.DefaultQueue), 2)
		silent.Heartbeat(held[1].Pos)
		silent.Release()
		time.Sleep(30 * time.Millisecond)
		for _, w := range all {
			if w != silent {
				w.Complete(w.Claim(lane(stint.DefaultQueue), 1)...)
				w.Release()
				t.must(errOf(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Number: 1, Low: 100})))
			}
		}
		begun := map[store.Position]bool{}
		n, err := Bury(t.ctx, t.Store, store.Burial{Engine: silent.Info.Token, Unless: 25 * time.Millisecond}, func(e *store.Entry, announced bool) store.Completion {
			begun[e.Pos] = announced
			return Judge(e, announced)
		})
		want := map[store.Position]bool{held[0].Pos: false, held[1].Pos: true}
		expect(t, err == nil && n == 2 && maps.Equal(begun, want),
			"the burial concluded %d and saw %v, error %v; want %v", n, begun, err, want)
		for _, w := range all {
			if w != silent {
				t.engine(w)
			}
		}
	}},
	{"The buried can do nothing any more, and their token does not come back", func(t *T) {
		t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		e := w.Claim(lane(stint.DefaultQueue), 1)[0]
		w.Leave()
		fails(t, errOf(w.TryClaim(t.ctx, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1, Wait: true})), store.ErrBuried,
			"its claim gives %v")
		refuses(t, w, store.ErrBuried, w.Conclude(e, completed))
		fails(t, errOf(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Running: []store.Position{e.Pos}})), store.ErrBuried,
			"its beat gives %v")
		all := must(t.Store.Engines(t.ctx))(t)
		expect(t, len(all) == 0, "the roster still has %v", all)
		expect(t, !t.ledger().Buried[w.Info.Token].IsZero(), "the ledger does not know that it was buried")
	}},
	{"An engine that holds nothing leaves nothing", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		equal(t, w.Leave(), 0, "leaving concluded %d entries, want %d")
		equal(t, t.join("k").Leave(), 0, "leaving without a claim concluded %d entries, want %d")
		t.states(ids, stint.Completed)
	}},
	{"The judge may end a job, or hand it on to another part", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		held := w.ClaimAll()
		ends := map[store.Position]store.Result{
			held[0].Pos: {Outcome: stint.OutcomeCancelled, Note: "nobody wants it"},
			held[1].Pos: {Outcome: stint.OutcomeReturned, Part: store.PartKind},
			held[2].Pos: {Outcome: stint.OutcomeReturned, Part: store.PartNormal},
		}
		t.must(errOf(Bury(t.ctx, t.Store, store.Burial{Engine: w.Info.Token}, func(e *store.Entry, begun bool) store.Completion {
			return store.Conclude(e, ends[e.Pos], time.Now(), 0)
		})))
		for i, want := range []stint.State{stint.Cancelled, stint.Available, stint.Available} {
			t.state(ids[i], want)
		}
		heir := t.join("k")
		for i, part := range []store.Part{store.PartKind, store.PartNormal} {
			got := heir.Claim(store.LaneOf(stint.DefaultQueue, 0, part, "k").ID, 10)
			equalAll(t, jobIDs(got), ids[i+1:i+2], "the %s lane has %v, want %v", part)
		}
	}},
}

// holdTests are about stores that know without beats which engines live.
var holdTests = []test{
	{"An engine whose place is held is left alone, however old its beat", func(t *T) {
		h, other := as[store.LivenessLocker](t), t.again()
		w := t.joinHeld(t.Store)
		time.Sleep(30 * time.Millisecond)
		expect(t, holds(h, w), "its place is not held")
		t.places(other, w, true)
		for _, s := range []Store{t.Store, other} {
			never := func(e *store.Entry, begun bool) store.Completion {
				t.Errorf("a living engine was judged")
				return Judge(e, begun)
			}
			fails(t, errOf(Bury(t.ctx, s, store.Burial{Engine: w.Info.Token, Unless: 10 * time.Millisecond}, never)), store.ErrAlive, "the burial gives %v, want ErrAlive")
		}
		w.Heartbeat()
	}},
	{"One that was let go of lives as long as it beats", func(t *T) {
		h, other := as[store.LivenessLocker](t), t.again()
		w := t.joinHeld(t.Store)
		for range 2 {
			h.Release(w.Info.Token)
			expect(t, !holds(h, w), "its place is held still")
		}
		t.places(other, w, false)
		w.Heartbeat()
		expect(t, !holds(h, w), "a beat took the place again")
		fails(t, errOf(Bury(t.ctx, other, store.Burial{Engine: w.Info.Token, Unless: time.Hour}, Judge)), store.ErrAlive,
			"the burial gives %v, want ErrAlive")
		time.Sleep(30 * time.Millisecond)
		_, err := Bury(t.ctx, other, store.Burial{Engine: w.Info.Token, Unless: 10 * time.Millisecond}, Judge)
		expect(t, err == nil, "the burial gives %v", err)
	}},
	{"Who must be buried is, and its place is free when it knows", func(t *T) {
		h := as[store.LivenessLocker](t)
		for _, burier := range []Store{t.Store, t.again()} {
			w := t.joinHeld(t.Store)
			if _, err := Bury(t.ctx, burier, store.Burial{Engine: w.Info.Token}, Judge); err != nil {
				t.Errorf("the burial gives %v", err)
			}
			fails(t, errOf(Bury(t.ctx, burier, store.Burial{Engine: w.Info.Token, Unless: time.Hour}, Judge)), store.ErrBuried, "a second burial gives %v, want ErrBuried")
			fails(t, errOf(t.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{})), store.ErrBuried,
				"the beat gives %v, want ErrBuried")
			expect(t, !holds(h, w), "the place of the buried is held")
		}
	}},
	{"Each engine has a place of its own", func(t *T) {
		h, other := as[store.LivenessLocker](t), t.again()
		a, b, c := t.joinHeld(t.Store), t.joinHeld(t.Store), t.joinHeld(other)
		expect(t, !holds(h, c) && holds(other.(store.LivenessLocker), c),
			"a place is held by a store that its engine did not join by")
		a.Leave()
		expect(t, !holds(h, a) && holds(h, b),
			"one left, and it holds %v, %v; want the other", holds(h, a), holds(h, b))
		t.places(other, b, true)
		t.places(t.Store, c, true)
		expect(t, b.TryJoin(t.ctx) != nil, "a token joined twice")
		t.places(other, b, true)
	}},
	{"Whose engine never joined holds nothing", func(t *T) {
		h, never := as[store.LivenessLocker](t), NewWorker(t, t.Store)
		h.Release(never.Info.Token)
		expect(t, !holds(h, never), "it holds a place")
	}},
}

// joinHeld enters an engine whose place the store may hold.
func (t *T) joinHeld(s Store) *Worker {
	t.Helper()
	w := NewWorker(t.T, s, "k")
	w.Info.MaxOutage = 30 * time.Second
	if err := w.TryJoin(t.ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// holds reports whether a store holds the place of an engine that lives.
func holds(h store.LivenessLocker, w *Worker) bool {
	return h.Vouches(w.Info.Token, time.Now()).After(time.Now())
}

// places checks what a roster says of an engine that lives.
func (t *T) places(s Store, w *Worker, held bool) {
	t.Helper()
	all := must(s.Engines(t.ctx))(t)
	for _, e := range all {
		// One with a longest outage is of a store that asks no more than burials need.
		expect(t, e.Token != w.Info.Token || (e.Held == held || e.MaxOutage > 0) && !e.Gone,
			"the roster says held: %v, gone: %v; want %v and not", e.Held, e.Gone, held)
	}
}
