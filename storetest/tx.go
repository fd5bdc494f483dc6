package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var txTests = []test{
	{"Nothing is visible before the commit, everything after", func(t *T) {
		tx := t.begin()
		ids := t.enqueueIn(tx, job("k"), job("k", stint.Delay(time.Hour), stint.Tag("t")))
		t.unseen(ids...)
		t.must(tx.Commit())
		t.states(ids, stint.Available, stint.Scheduled)
		equalAll(t, jobIDs(t.join("k").ClaimAll()), ids[:1], "claimed jobs %v, want %v")
	}},
	{"Nothing is left after a rollback", func(t *T) {
		tx := t.begin()
		ids := t.enqueueIn(tx, job("k", stint.Tag("t")), job("k", stint.Delay(time.Millisecond), stint.Tag("t")))
		t.must(tx.Rollback())
		time.Sleep(5 * time.Millisecond)
		p, err := t.Store.Promote(t.ctx, time.Time{}, 10)
		expect(t, err == nil && p.Moved == 0, "after a rollback %d jobs were promoted, error %v", p.Moved, err)
		t.unseen(ids...)
		found, err := t.Store.Jobs(t.ctx, store.Filter{Tag: "t"})
		expect(t, err == nil && len(found) == 0, "after a rollback %d jobs have its tag, error %v", len(found), err)
	}},
	{"An id that was rolled back is never seen again", func(t *T) {
		tx := t.begin()
		gone := t.enqueueIn(tx, jobs(3, "k")...)
		t.must(tx.Rollback())
		ids := t.enqueue(jobs(3, "k")...)
		got := jobIDs(t.join("k").ClaimAll())
		expect(t, slices.Equal(got, ids), "claimed jobs %v, want %v (rolled back: %v)", got, ids, gone)
	}},
	{"Rolling back to a savepoint takes back what came after it", func(t *T) {
		tx := t.begin()
		sp := t.savepoints(tx)
		first := t.enqueueIn(tx, job("k"))
		t.must(sp.Savepoint("a"))
		second := t.enqueueIn(tx, job("k"), job("k", stint.Delay(time.Hour)))
		t.must(sp.RollbackTo("a"))
		third := t.enqueueIn(tx, job("k"))
		t.must(tx.Commit())
		for _, id := range second {
			if !slices.Contains(third, id) {
				t.absent(id)
			}
		}
		got, want := jobIDs(t.join("k").ClaimAll()), slices.Concat(first, third)
		expect(t, slices.Equal(got, want), "claimed jobs %v, want %v", got, want)
	}},
	{"A prepared transaction decides later, also for a quiet enqueue", func(t *T) {
		for _, commit := range []bool{true, false} {
			tx := t.begin()
			p, ok := tx.(Preparer)
			t.skipIf(!ok, "no prepared transactions")
			ids := t.enqueueQuietly(tx, jobs(2, "k")...)
			t.must(p.Prepare())
			t.unseen(ids...)
			w := t.join("k")
			later := t.enqueue(job("k"))
			equalAll(t, jobIDs(w.ClaimAll()), later, "beside a prepared transaction, jobs %v were claimed, want %v")
			if commit {
				t.must(tx.Commit())
				equalAll(t, jobIDs(w.ClaimAll()), ids, "after COMMIT PREPARED, jobs %v were claimed, want %v")
				continue
			}
			t.must(tx.Rollback())
			got := jobIDs(w.ClaimAll())
			expect(t, len(got) == 0, "after ROLLBACK PREPARED, jobs %v were claimed", got)
		}
	}},
	{"A delay in a long transaction counts from the enqueue, not from its begin", func(t *T) {
		tx := t.begin()
		early := t.enqueueIn(tx, job("k"))[0]
		time.Sleep(60 * time.Millisecond)
		late := t.enqueueIn(tx, job("k", stint.Delay(40*time.Millisecond)))[0]
		t.must(tx.Commit())
		a, b := t.info(early), t.info(late)
		wait := b.Due.Sub(a.Created)
		expect(t, wait >= 95*time.Millisecond, "a job in 40ms, enqueued 60ms after the begin, is due %v after it", wait)
	}},
	{"Several enqueues of one transaction keep their order", func(t *T) {
		tx := t.begin()
		var want []stint.ID
		for range 5 {
			want = append(want, t.enqueueIn(tx, jobs(3, "k")...)...)
		}
		t.must(tx.Commit())
		equalAll(t, jobIDs(t.join("k").ClaimAll()), want, "claimed jobs %v, want %v")
	}},
	{"A transaction larger than any claim comes whole", func(t *T) {
		tx := t.begin()
		ids := t.enqueueIn(tx, jobs(500, "k")...)
		t.must(tx.Commit())
		var got []stint.ID
		w := t.join("k")
		for {
			entries := w.Claim(lane(stint.DefaultQueue), 7)
			if len(entries) == 0 {
				break
			}
			got = append(got, jobIDs(entries)...)
		}
		expect(t, slices.Equal(got, ids), "%d jobs were claimed, not the %d enqueued in their order", len(got), len(ids))
	}},
}

// enqueueIn stores jobs in a caller's transaction.
func (t *T) enqueueIn(tx Tx, jobs ...stint.NewJob) []stint.ID {
	t.Helper()
	return must(stint.NewClient(t.Store).With(tx.Tx()).EnqueueMany(t.ctx, jobs))(t)
}

// enqueueQuietly does so without waking anybody.
func (t *T) enqueueQuietly(tx Tx, jobs ...stint.NewJob) []stint.ID {
	t.Helper()
	h := tx.Tx()
	h.Quiet = true
	return must(stint.NewClient(t.Store).With(h).EnqueueMany(t.ctx, jobs))(t)
}

// absent checks that people do not see the jobs.
func (t *T) absent(ids ...stint.ID) {
	t.Helper()
	for _, id := range ids {
		j, err := t.Store.Job(t.ctx, id)
		expect(t, err != nil, "job %d is seen, as %+v", id, j)
	}
	all := must(t.Store.Jobs(t.ctx, store.Filter{}))(t)
	for _, j := range all {
		expect(t, !slices.Contains(ids, j.ID), "job %d is listed, as %s", j.ID, j.State)
	}
}

// unseen checks that nobody sees the jobs, and a look sees nothing at all.
func (t *T) unseen(ids ...stint.ID) {
	t.Helper()
	t.absent(ids...)
	sights := must(t.Store.Look(t.ctx, store.LaneHints{}))(t)
	for _, s := range sights {
		expect(t, s.Settle, "a look sees work in queue %q, kind %q", s.Queue, s.Kind)
	}
}

// besideTests are about transactions that are open while others work: nobody
// waits for them, and nobody learns anything from them too early.
var besideTests = []test{
	{"A transaction beside busy writers waits for its turn instead of failing", func(t *T) {
		const each = 25
		other := stint.NewClient(t.again())
		errs := atOnce(4, func(i int) error {
			for range each {
				if i%2 == 0 {
					if _, err := other.Enqueue(t.ctx, job("k")); err != nil {
						return err
					}
					continue
				}
				tx, err := t.Begin(t.T, t.Store)
				if err != nil {
					return err
				}
				_, err = stint.NewClient(t.Store).With(tx.Tx()).EnqueueMany(t.ctx, jobs(2, "k"))
				if err != nil {
					return errors.Join(err, tx.Rollback())
				}
				if err := tx.Commit(); err != nil {
					return err
				}
			}
			return nil
		})
		t.must(errors.Join(errs...))
		equal(t, len(t.join("k").ClaimAll()), 6*each, "%d jobs were claimed, want %d")
	}},
	{"What an open transaction said first holds up nobody who says it too", func(t *T) {
		t.skipIf(t.SingleWriter, "an open transaction holds up every writer")
		for i, commit := range []bool{true, false} {
			queue := fmt.Sprint("queue ", i)
			novel := func() stint.NewJob {
				return job(queue, stint.Queue(queue), stint.Priority(7), stint.Tag(queue), stint.Retry(retry.Fixed(50+i, time.Second)))
			}
			first, second := t.begin(), t.begin()
			mine := t.enqueueIn(first, novel())
			want := t.enqueueIn(second, novel())
			want = append(want, t.enqueue(novel())...)
			if commit {
				t.must(first.Commit())
				want = append(want, mine...)
			} else {
				t.must(first.Rollback())
			}
			t.must(second.Commit())
			want = append(want, t.enqueue(novel())...)
			got := t.join(queue).ClaimAll()
			ids := jobIDs(got)
			expect(t, len(ids) == len(want) &&
				slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(want))),
				"claimed %v, want %v", ids, want)
			for _, e := range got {
				noDiff(t, cmp.Diff(novel().Retry.String(), e.Retry.String()), "the policy of job %d (-want +got)", e.ID)
			}
		}
	}},
	{"What was said first in a transaction that rolled back can be said again", func(t *T) {
		novel := func() stint.NewJob {
			return job("novel", stint.Queue("novel"), stint.Tag("novel"), stint.Retry(retry.Fixed(77, time.Second)))
		}
		tx := t.begin()
		t.enqueueIn(tx, novel())
		t.must(tx.Rollback())
		id := t.enqueue(novel())[0]
		other := must(stint.NewClient(t.again()).Enqueue(t.ctx, novel()))(t)
		for i, e := range t.join("novel").ClaimAll() {
			expect(t, e.ID == []stint.ID{id, other}[i] && e.Retry.String() == novel().Retry.String() && len(e.Tags) == 1,
				"claimed %+v", e.Job)
		}
		equal(t, len(t.list(store.Filter{Tag: "novel"})), 2, "%d jobs have the tag, want %d")
	}},
	{"An open transaction holds up neither producers nor claims", func(t *T) {
		t.skipIf(t.SingleWriter, "an open transaction holds up every writer")
		open := t.begin()
		late := t.enqueueIn(open, job("k"))
		w := t.join("k")
		for range 3 {
			ids := t.enqueue(job("k"))
			equalAll(t, jobIDs(w.ClaimAll()), ids, "claimed jobs %v, want %v")
		}
		t.must(open.Commit())
		equalAll(t, jobIDs(w.ClaimAll()), late, "after the commit jobs %v were claimed, want %v")
	}},
}
