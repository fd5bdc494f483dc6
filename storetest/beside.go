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
