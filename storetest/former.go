package storetest

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// formerTests are about engines that are gone.
var formerTests = []test{
	{"An engine that is gone is listed with why, by whom it was buried and what it held, the last first", func(t *T) {
		t.enqueue(jobs(3, "k")...)
		w, burier, lives := NewWorker(t, t.Store, "k", "x"), t.join("k"), t.join("k")
		w.Info.Queues = []string{"default", "mail"}
		t.must(w.TryJoin(t.ctx))
		held := w.ClaimAll()
		w.Heartbeat(held[1].Pos)
		beat := t.engine(w).Beat
		time.Sleep(2 * time.Millisecond)
		before := t.clock()
		t.must(errOf(Bury(t.ctx, t.Store, store.Burial{Engine: w.Info.Token, Why: store.WhyProcessGone, By: burier.Info.Token}, Judge)))
		after := t.clock().Add(time.Millisecond)
		time.Sleep(2 * time.Millisecond)
		burier.Leave()
		all := t.former(store.FormerFilter{})
		need(t, len(all) == 2 && all[0].Token == burier.Info.Token && all[1].Token == w.Info.Token, "listed are %+v, want %d and %d, and not %d", all, burier.Info.Token, w.Info.Token, lives.Info.Token)
		left, gone := all[0], all[1]
		expect(t, left.Why == store.WhyLeft && left.By == 0 && left.ByInstance == "" && left.Freed == 0 && left.Lost == 0, "of the one that left it is told %+v", left.EngineEnd)
		// Not every store keeps the rest.
		kept := cmpopts.IgnoreFields(store.EngineInfo{}, "Joined", "Beat", "BootID", "PIDStarted", "MaxOutage")
		noDiff(t, cmp.Diff(w.Info, gone.EngineInfo, kept, cmpopts.EquateEmpty()), "the engine (-joined +gone)")
		expect(t, gone.Beat.Equal(beat) && !gone.Joined.IsZero() && !gone.Joined.After(beat), "it joined %v and beat %v, want %v", gone.Joined, gone.Beat, beat)
		expect(t, between(gone.At, before, after), "it ended %v, not between %v and %v", gone.At, before, after)
		gone.At = time.Time{}
		want := store.EngineEnd{Why: store.WhyProcessGone, By: burier.Info.Token, ByInstance: burier.Info.Instance, Freed: 3, Lost: 1, LostAt: positions(held[1:2])}
		noDiff(t, cmp.Diff(want, gone.EngineEnd), "its end (-want +got)")
	}},
	{"Engines that are gone are found by their tokens, by their names and by when they went, up to a number", func(t *T) {
		var all []store.EngineID
		for range 3 {
			w := t.join("k")
			time.Sleep(2 * time.Millisecond)
			w.Leave()
			all = append(all, w.Info.Token)
		}
		last := t.former(store.FormerFilter{})
		need(t, len(last) == 3, "listed are %+v", last)
		for _, c := range []struct {
			filter store.FormerFilter
			want   []store.EngineID
		}{
			{store.FormerFilter{Limit: 2}, []store.EngineID{all[2], all[1]}},
			{store.FormerFilter{Since: last[1].At}, []store.EngineID{all[2], all[1]}},
			{store.FormerFilter{Engines: []store.EngineID{all[0], 4711, all[2]}}, []store.EngineID{all[2], all[0]}},
			{store.FormerFilter{Instance: last[1].Instance}, []store.EngineID{all[1]}},
			{store.FormerFilter{Instance: "nobody"}, nil},
			{store.FormerFilter{Engines: []store.EngineID{all[0]}, Since: last[0].At}, nil},
			{store.FormerFilter{Engines: []store.EngineID{t.join("k").Info.Token}}, nil},
		} {
			var got []store.EngineID
			for _, e := range t.former(c.filter) {
				got = append(got, e.Token)
			}
			expect(t, slices.Equal(got, c.want), "%+v finds %v, want %v", c.filter, got, c.want)
		}
	}},
	{"What was lost with an engine is listed, with what became of it", func(t *T) {
		ids := t.enqueue(jobs(4, "k", stint.Queue("q"))...)
		w, other := t.join("k"), t.join("k")
		q := store.LaneOf("q", 0, store.PartNormal, "").ID
		held := w.Claim(q, 4)
		w.Heartbeat(positions(held[:3])...)
		w.Leave()
		lost := func(of store.EngineID, want ...store.LostAttempt) {
			t.Helper()
			got := must(as[store.EngineHistory](t).LostAttempts(t.ctx, of))(t)
			noDiff(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), "lost with %d (-want +got)", of)
		}
		available := func(id stint.ID) store.LostAttempt {
			return store.LostAttempt{Job: id, Attempt: 1, Kind: "k", Queue: "q", State: stint.Available}
		}
		lost(w.Info.Token, available(ids[0]), available(ids[1]), available(ids[2]))
		again := other.Claim(store.LaneOf("q", 0, store.PartFront, "").ID, 2)
		other.Complete(again...)
		t.delete(ids[1])
		completed := available(ids[0])
		completed.State = stint.Completed
		lost(w.Info.Token, completed, available(ids[2]))
		lost(other.Info.Token)
		lost(4711)
	}},
	{"However much is lost with an engine, it is counted, and the first of it is kept", func(t *T) {
		t.enqueue(jobs(store.LostKept+5, "k")...)
		w := t.join("k")
		w.Heartbeat(positions(w.ClaimAll())...)
		w.Leave()
		gone := t.former(store.FormerFilter{})
		need(t, len(gone) == 1, "listed are %+v", gone)
		equal(t, gone[0].Lost, store.LostKept+5, "%d are counted, want %d")
		equal(t, len(gone[0].LostAt), store.LostKept, "%d are kept, want %d")
	}},
}

// former lists engines that are gone.
func (t *T) former(f store.FormerFilter) []store.FormerEngine {
	t.Helper()
	as[store.EngineHistory](t)
	return must(t.again().(store.EngineHistory).FormerEngines(t.ctx, f))(t)
}
