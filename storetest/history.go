package storetest

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var historyTests = []test{
	{"Each job that ended is found once, in the time in which it ended", func(t *T) {
		h := as[store.History](t)
		oldest := must(h.Oldest(t.ctx))(t)
		expect(t, oldest.IsZero(), "without jobs the oldest is of %v", oldest)
		begin := t.now()
		ids := t.enqueue(job("k"), job("k", stint.Retry(retry.None())), job("k"), job("k", stint.Delay(time.Hour)), job("k"), job("k"), job("k", stint.Queue("other")))
		w := t.join("k")
		got := w.Claim(lane(stint.DefaultQueue), 10)
		w.Finish(completed, got[0])
		w.Finish(failed, got[1])
		t.waits(w, failed, got[2])
		time.Sleep(2 * time.Millisecond)
		middle := t.now()
		t.cancel("not needed", ids[3]) // it waits
		t.cancel("not needed", ids[4]) // it runs: it has not ended
		t.cancel("not needed", ids[6]) // nobody claims it
		time.Sleep(2 * time.Millisecond)
		late := t.now()
		end := late.Add(time.Hour)
		in := func(from, to time.Time) []stint.ID {
			t.Helper()
			found := must(h.EndedIn(t.ctx, store.TimeRange{From: from, To: to}))(t)
			shown := must(h.Ended(t.ctx, found))(t)
			return slices.DeleteFunc(found, func(id stint.ID) bool { return shown[id] == nil })
		}
		first, second := in(begin, middle), in(middle, late)
		expect(t, slices.Equal(must(h.EndedIn(t.ctx, store.TimeRange{From: begin, To: middle}))(t), first), "a job that was to be retried counts as one that ended")
		expect(t, slices.Equal(first, ids[:2]), "before %v jobs %v ended, want %v", middle, first, ids[:2])
		want := []stint.ID{ids[3], ids[6]}
		expect(t, slices.Equal(second, want), "after it jobs %v ended, want %v", second, want)
		w.Finish(cancelled, got[3])
		for _, e := range w.ClaimAll() {
			if e.ID == ids[2] { // it failed before
				w.Finish(completed, e)
			}
		}
		expect(t, slices.Equal(in(begin, middle), first) && slices.Equal(in(middle, late), second), "what ended before is not the same later")
		last, want := in(late, end), []stint.ID{ids[2], ids[4]}
		expect(t, slices.Equal(last, want), "later jobs %v ended, want %v", last, want)
		oldest = must(h.Oldest(t.ctx))(t)
		expect(t, !oldest.Before(begin) && !oldest.After(middle), "the oldest job is of %v", oldest)
	}},
	{"What ended is shown as one job is, and what is gone as nothing", func(t *T) {
		h := as[store.History](t)
		ids := t.enqueue(job("k"), job("k"), job("k"))
		w := t.join("k")
		got := w.ClaimAll()
		w.Finish(completed, got[0], got[1])
		t.must(errOf(as[store.Operator](t).Delete(t.ctx, ids[1:2])))
		shown := must(h.Ended(t.ctx, ids))(t)
		equal(t, len(shown), 2, "%d jobs have ended or are gone, want %d")
		noDiff(t, cmp.Diff(shown[ids[0]], t.info(ids[0])), "it is shown otherwise than by itself")
		gone, ok := shown[ids[1]]
		expect(t, ok && gone == nil, "a deleted job is shown as %+v, %t", gone, ok)
	}},
}
