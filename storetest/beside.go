package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
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
		if got := t.join("k").ClaimAll(); len(got) != 6*each {
			t.Errorf("%d jobs were claimed, want %d", len(got), 6*each)
		}
	}},
	{"What an open transaction said first holds up nobody who says it too", func(t *T) {
		if t.SingleWriter {
			t.Skip("an open transaction holds up every writer")
		}
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
			if ids := jobIDs(got); len(ids) != len(want) || !slices.Equal(slices.Sorted(slices.Values(ids)), slices.Sorted(slices.Values(want))) {
				t.Errorf("claimed %v, want %v", ids, want)
			}
			for _, e := range got {
				if diff := cmp.Diff(novel().Retry.String(), e.Retry.String()); diff != "" {
					t.Errorf("the policy of job %d (-want +got):\n%s", e.ID, diff)
				}
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
		other, err := stint.NewClient(t.again()).Enqueue(t.ctx, novel())
		t.must(err)
		for i, e := range t.join("novel").ClaimAll() {
			if e.ID != []stint.ID{id, other}[i] || e.Retry.String() != novel().Retry.String() || len(e.Tags) != 1 {
				t.Errorf("claimed %+v", e.Job)
			}
		}
		if got := t.list(stint.Filter{Tag: "novel"}); len(got) != 2 {
			t.Errorf("%d jobs have the tag, want 2", len(got))
		}
	}},
	{"An open transaction holds up neither producers nor claims", func(t *T) {
		if t.SingleWriter {
			t.Skip("an open transaction holds up every writer")
		}
		open := t.begin()
		late := t.enqueueIn(open, job("k"))
		w := t.join("k")
		for range 3 {
			ids := t.enqueue(job("k"))
			if got := jobIDs(w.ClaimAll()); !slices.Equal(got, ids) {
				t.Errorf("claimed jobs %v, want %v", got, ids)
			}
		}
		t.must(open.Commit())
		if got := jobIDs(w.ClaimAll()); !slices.Equal(got, late) {
			t.Errorf("after the commit jobs %v were claimed, want %v", got, late)
		}
	}},
}
