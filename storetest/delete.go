package storetest

import (
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var deleteTests = []test{
	{"What ended is deleted with all that is known of it, and nothing else", func(t *T) {
		left := t.enqueue(rich())[0]
		w := t.join("k", rich().Kind)
		w.Complete(w.One())
		before := t.info(left)
		ids := t.enqueue(rich(), job("k", stint.Delay(time.Millisecond)), job("k", stint.Delay(time.Hour)), job("k"))
		t.promoteAfter(15*time.Millisecond, 1)
		w.Finish(returned, w.ClaimAll()...)
		w.Finish(failedFinally, w.ClaimAll()...)
		t.cancel("", ids[2])
		want := map[stint.ID]store.DeleteStatus{}
		for _, id := range ids {
			want[id] = store.DeletedNow
		}
		t.deletes(want)
		t.gone(ids...)
		got := t.list(store.Filter{})
		expect(t, slices.Equal(got, []stint.ID{left}), "there are %v, want %d", got, left)
		got = t.list(store.Filter{Tag: rich().Tags[0]})
		expect(t, slices.Equal(got, []stint.ID{left}), "by tag there are %v, want %d", got, left)
		after := t.info(left)
		expect(t, len(after.Attempts) == len(before.Attempts) && sameJSON(after.Args, before.Args),
			"of what is left people see %+v", after)
		t.recount()
		for id := range want {
			want[id] = store.DeleteNotFound
		}
		t.deletes(want)
	}},
	{"What has not ended is not deleted, wherever it is", func(t *T) {
		all := t.oneOfEach()
		want := map[stint.ID]store.DeleteStatus{}
		for state, id := range all {
			if want[id] = store.DeleteNotFinal; state.Final() {
				want[id] = store.DeletedNow
			}
		}
		w := t.join("k")
		twice := t.enqueue(job("k", stint.Queue("twice")))[0]
		w.Finish(failure, w.Claim(lane("twice"), 1)...)
		t.retry(stint.RerunOptions{}, twice)
		w.Finish(failure, w.Claim(lane("twice"), 1)...)
		want[twice] = store.DeleteNotFinal
		marked := t.enqueue(job("k", stint.Queue("marked")))[0]
		t.cancel("", marked) // its claimer ends it
		want[marked] = store.DeleteNotFinal
		t.deletes(want)
		for state, id := range all {
			if !state.Final() {
				t.state(id, state)
			}
		}
		t.state(marked, stint.Cancelled)
		t.state(twice, stint.Retrying)
		t.recount()
	}},
	{"An outcome that is repeated does not bring back what was deleted, nor what followed", func(t *T) {
		ids := t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		e := w.ClaimAll()
		fails := w.Conclude(e[1], failed)
		fails.Next.Delay = 0
		flush := []store.Completion{
			w.Conclude(e[0], completed), fails,
			w.Conclude(e[2], returned),
		}
		t.must(errOf(w.TryFinish(t.ctx, flush...)))
		t.promoteAll(1)
		w.Complete(w.ClaimAll()...)
		t.deletes(map[stint.ID]store.DeleteStatus{ids[0]: store.DeletedNow, ids[1]: store.DeletedNow, ids[2]: store.DeletedNow})
		// With what the engine repeats comes what it says for the first time.
		n, err := w.TryFinish(t.ctx, append(flush, w.Conclude(e[3], completed))...)
		expect(t, err == nil && n == 1, "the repetition recorded %d, error %v; want the one that is new", n, err)
		t.gone(ids[:3]...)
		t.state(ids[3], stint.Completed)
		again := w.ClaimAll()
		expect(t, len(again) == 0, "claimed %v", jobIDs(again))
		w.Heartbeat()
		n, err = w.TryFinish(t.ctx, flush...)
		expect(t, err == nil && n == 0, "after a beat the repetition recorded %d, error %v", n, err)
		t.gone(ids[:3]...)
	}},
	{"Nobody holds what was deleted, and its engine's burial concludes the rest", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		e := w.ClaimAll()
		w.Complete(e[:2]...)
		t.deletes(map[stint.ID]store.DeleteStatus{ids[0]: store.DeletedNow, ids[1]: store.DeletedNow})
		held := must(t.Store.Held(t.ctx, w.Info.Token, 0))(t)
		expect(t, len(held) == 1 && slices.Equal(held[0].Positions, []store.Position{e[2].Pos}),
			"it holds %+v, want position %d", held, e[2].Pos)
		equal(t, w.Leave(), 1, "its burial concluded %d entries, want %d")
		fails(t, errOf(w.TryFinish(t.ctx, w.Conclude(e[0], completed))), store.ErrBuried, "what it records afterwards gives %v")
		t.gone(ids[:2]...)
		again := t.join("k")
		again.Complete(again.One())
	}},
	{"A lane from which everything was deleted goes on where it was", func(t *T) {
		w := t.join("k")
		last := stint.ID(0)
		for range 3 {
			ids := t.enqueue(jobs(3, "k")...)
			expect(t, ids[0] > last, "job %d came after job %d", ids[0], last)
			last = ids[2]
			got := w.ClaimAll()
			need(t, slices.Equal(jobIDs(got), ids), "claimed %v, want %v", jobIDs(got), ids)
			w.Complete(got...)
			t.deletes(map[stint.ID]store.DeleteStatus{ids[0]: store.DeletedNow, ids[1]: store.DeletedNow, ids[2]: store.DeletedNow})
			left := t.list(store.Filter{})
			expect(t, len(left) == 0, "%v are left", left)
		}
	}},
	{"What was recovered stands without the job that it recovers", func(t *T) {
		old := t.enqueue(rich())[0]
		w := t.join(rich().Kind)
		w.Complete(w.One())
		anew := t.recovers(old, stint.RerunOptions{})
		t.deletes(map[stint.ID]store.DeleteStatus{old: store.DeletedNow})
		e := w.One()
		expect(t, e.ID == anew && sameJSON(e.Args, rich().Args) && e.Origin.Recovered == old,
			"job %d of %d runs, with %s", e.ID, e.Origin.Recovered, e.Args)
		w.Complete(e)
		info := t.info(anew)
		expect(t, sameJSON(info.Args, rich().Args) && info.Origin.Recovered == old, "people see %+v", info)
	}},
}

// gone checks that nothing is left of jobs.
func (t *T) gone(ids ...stint.ID) {
	t.Helper()
	for _, id := range ids {
		fails(t, errOf(t.Store.Job(t.ctx, id)), stint.ErrNotFound, "job %d is shown, error %v", id)
	}
	l := t.ledger()
	for _, e := range l.Entries {
		expect(t, !slices.Contains(ids, e.Job), "job %d has an entry at %d", e.Job, e.Pos)
	}
	for _, x := range l.Executions {
		expect(t, !slices.Contains(ids, x.Job) && !slices.Contains(ids, stint.ID(x.Pos)),
			"job %d has an execution at %d", x.Job, x.Pos)
	}
	for _, w := range l.Waiting {
		expect(t, !slices.Contains(ids, w.Job), "job %d waits", w.Job)
	}
}

// delete deletes jobs whatever comes of it.
func (t *T) delete(ids ...stint.ID) {
	t.Helper()
	t.must(errOf(as[store.Operator](t).Delete(t.ctx, ids)))
}
