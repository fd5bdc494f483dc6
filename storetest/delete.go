package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

var deleteTests = []test{
	{"What ended is deleted with all that is known of it, and nothing else", func(t *T) {
		left := t.enqueue(rich())[0]
		w := t.join("k", rich().Kind)
		w.Complete(w.One())
		before := t.info(left)
		ids := t.enqueue(rich(), job("k", stint.In(time.Millisecond)), job("k", stint.In(time.Hour)), job("k"))
		t.due()
		t.promoteAll(1)
		w.Finish(stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront}, w.ClaimAll()...)
		w.Finish(stint.Ending{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("no"))}, w.ClaimAll()...)
		t.cancel("", ids[2])
		want := map[stint.ID]stint.Deletion{}
		for _, id := range ids {
			want[id] = stint.DeletedNow
		}
		t.deletes(want)
		t.gone(ids...)
		if got := t.list(stint.Filter{}); !slices.Equal(got, []stint.ID{left}) {
			t.Errorf("there are %v, want %d", got, left)
		}
		if got := t.list(stint.Filter{Tag: rich().Tags[0]}); !slices.Equal(got, []stint.ID{left}) {
			t.Errorf("by tag there are %v, want %d", got, left)
		}
		if after := t.info(left); len(after.Executions) != len(before.Executions) || !sameJSON(after.Args, before.Args) {
			t.Errorf("of what is left people see %+v", after)
		}
		t.recount()
		for id := range want {
			want[id] = stint.DeleteOfNothing
		}
		t.deletes(want)
	}},
	{"What has not ended is not deleted, wherever it is", func(t *T) {
		all := t.oneOfEach()
		want := map[stint.ID]stint.Deletion{}
		for state, id := range all {
			if want[id] = stint.DeleteTooEarly; state.Final() {
				want[id] = stint.DeletedNow
			}
		}
		w := t.join("k")
		twice := t.enqueue(job("k", stint.Queue("twice")))[0]
		w.Finish(failure, w.Claim(lane("twice"), 1)...)
		t.retry(stint.Again{}, twice)
		w.Finish(failure, w.Claim(lane("twice"), 1)...)
		want[twice] = stint.DeleteTooEarly
		marked := t.enqueue(job("k", stint.Queue("marked")))[0]
		t.cancel("", marked) // its claimer ends it
		want[marked] = stint.DeleteTooEarly
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
		failed := w.Conclude(e[1], stint.Ending{Outcome: stint.OutcomeFailed, Err: errors.New("no")})
		failed.Next.Delay = 0
		flush := []stint.Execution{
			w.Conclude(e[0], completed), failed,
			w.Conclude(e[2], stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront}),
		}
		_, err := w.TryFinish(t.ctx, flush...)
		t.must(err)
		t.promoteAll(1)
		w.Complete(w.ClaimAll()...)
		t.deletes(map[stint.ID]stint.Deletion{ids[0]: stint.DeletedNow, ids[1]: stint.DeletedNow, ids[2]: stint.DeletedNow})
		// With what the engine repeats comes what it says for the first time.
		n, err := w.TryFinish(t.ctx, append(flush, w.Conclude(e[3], completed))...)
		if err != nil || n != 1 {
			t.Errorf("the repetition recorded %d, error %v; want the one that is new", n, err)
		}
		t.gone(ids[:3]...)
		t.state(ids[3], stint.Completed)
		if again := w.ClaimAll(); len(again) != 0 {
			t.Errorf("claimed %v", jobIDs(again))
		}
		w.Beat()
		n, err = w.TryFinish(t.ctx, flush...)
		if err != nil || n != 0 {
			t.Errorf("after a beat the repetition recorded %d, error %v", n, err)
		}
		t.gone(ids[:3]...)
	}},
	{"Nobody holds what was deleted, and its engine's burial concludes the rest", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		e := w.ClaimAll()
		w.Complete(e[:2]...)
		t.deletes(map[stint.ID]stint.Deletion{ids[0]: stint.DeletedNow, ids[1]: stint.DeletedNow})
		held, err := t.Store.Held(t.ctx, w.Info.Token, 0)
		t.must(err)
		if len(held) != 1 || !slices.Equal(held[0].Positions, []stint.Position{e[2].Pos}) {
			t.Errorf("it holds %+v, want position %d", held, e[2].Pos)
		}
		if n := w.Leave(); n != 1 {
			t.Errorf("its burial concluded %d entries, want 1", n)
		}
		if _, err := w.TryFinish(t.ctx, w.Conclude(e[0], completed)); !errors.Is(err, stint.ErrBuried) {
			t.Errorf("what it records afterwards gives %v", err)
		}
		t.gone(ids[:2]...)
		again := t.join("k")
		again.Complete(again.One())
	}},
	{"A lane from which everything was deleted goes on where it was", func(t *T) {
		w := t.join("k")
		last := stint.ID(0)
		for range 3 {
			ids := t.enqueue(jobs(3, "k")...)
			if ids[0] <= last {
				t.Errorf("job %d came after job %d", ids[0], last)
			}
			last = ids[2]
			got := w.ClaimAll()
			if !slices.Equal(jobIDs(got), ids) {
				t.Fatalf("claimed %v, want %v", jobIDs(got), ids)
			}
			w.Complete(got...)
			t.deletes(map[stint.ID]stint.Deletion{ids[0]: stint.DeletedNow, ids[1]: stint.DeletedNow, ids[2]: stint.DeletedNow})
			if left := t.list(stint.Filter{}); len(left) != 0 {
				t.Errorf("%v are left", left)
			}
		}
	}},
	{"What was recovered stands without the job that it recovers", func(t *T) {
		old := t.enqueue(rich())[0]
		w := t.join(rich().Kind)
		w.Complete(w.One())
		anew := t.recovers(old, stint.Again{})
		t.deletes(map[stint.ID]stint.Deletion{old: stint.DeletedNow})
		e := w.One()
		if e.ID != anew || !sameJSON(e.Args, rich().Args) || e.Provenance.Recovered != old {
			t.Errorf("job %d of %d runs, with %s", e.ID, e.Provenance.Recovered, e.Args)
		}
		w.Complete(e)
		if info := t.info(anew); !sameJSON(info.Args, rich().Args) || info.Provenance.Recovered != old {
			t.Errorf("people see %+v", info)
		}
	}},
}

// gone checks that nothing is left of jobs.
func (t *T) gone(ids ...stint.ID) {
	t.Helper()
	for _, id := range ids {
		if _, err := t.Store.Job(t.ctx, id); !errors.Is(err, stint.ErrNotFound) {
			t.Errorf("job %d is shown, error %v", id, err)
		}
	}
	l := t.ledger()
	for _, e := range l.Entries {
		if slices.Contains(ids, e.Job) {
			t.Errorf("job %d has an entry at %d", e.Job, e.Pos)
		}
	}
	for _, x := range l.Executions {
		if slices.Contains(ids, x.Job) || slices.Contains(ids, stint.ID(x.Pos)) {
			t.Errorf("job %d has an execution at %d", x.Job, x.Pos)
		}
	}
	for _, w := range l.Waiting {
		if slices.Contains(ids, w.Job) {
			t.Errorf("job %d waits", w.Job)
		}
	}
}

// delete deletes jobs whatever comes of it.
func (t *T) delete(ids ...stint.ID) {
	t.Helper()
	_, err := t.operator().Delete(t.ctx, ids)
	t.must(err)
}
