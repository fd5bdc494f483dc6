package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var waitingTests = []test{
	{"Only what is due is promoted", func(t *T) {
		ids := t.enqueue(job("k", stint.Delay(10*time.Millisecond)), job("k", stint.Delay(time.Hour)))
		t.promoteAfter(20*time.Millisecond, 1)
		t.states(ids, stint.Available, stint.Scheduled)
		equalAll(t, jobIDs(t.join("k").ClaimAll()), ids[:1], "claimed %v, want %v")
		t.promoteAll(0)
	}},
	{"Nothing is promoted early", func(t *T) {
		id := t.enqueue(job("k", stint.Delay(150*time.Millisecond)))[0]
		due := t.info(id).Due
		for {
			p := must(t.Store.Promote(t.ctx, time.Time{}, 10))(t)
			if p.Moved == 1 {
				break
			}
			time.Sleep(2 * time.Millisecond)
		}
		e := t.peek(id, t.join("k"))
		expect(t, !e.Ready.Before(due), "due at %v, it was ready at %v", due, e.Ready)
	}},
	{"Jobs become ready in the order of their due times, whatever that of their enqueues", func(t *T) {
		var batch []stint.NewJob
		for _, ms := range []int{40, 10, 30, 20, 50} {
			batch = append(batch, job("k", stint.Delay(time.Duration(ms)*time.Millisecond)))
		}
		ids := t.enqueue(batch...)
		fresh := t.enqueue(job("k"))[0]
		t.promoteAfter(70*time.Millisecond, 5)
		want := []stint.ID{fresh, ids[1], ids[3], ids[2], ids[0], ids[4]}
		got := t.join("k").Claim(lane(stint.DefaultQueue), 10)
		equalAll(t, jobIDs(got), want, "claimed %v, want %v")
		expect(t, slices.IsSorted(positions(got)) && distinct(positions(got)), "the positions %v do not rise", positions(got))
	}},
	{"A promoted job keeps its ID and everything said of it", func(t *T) {
		want := rich()
		want.Delay = 10 * time.Millisecond
		id := t.enqueue(want)[0]
		before := t.info(id)
		t.promoteAfter(20*time.Millisecond, 1)
		e := t.join(want.Kind).One()
		job := stint.Job{
			ID: id, Kind: want.Kind, Args: want.Args, Queue: want.Queue, Priority: want.Priority, Attempt: 1,
			MaxLosses: 7, Retry: want.Retry, Timeout: want.Timeout, Tags: want.Tags, URN: want.URN, Source: want.Source,
			Metadata: want.Metadata, StartBy: want.StartBy, Correlation: want.Correlation, Created: before.Created, Due: before.Due,
		}
		noDiff(t, cmp.Diff(job, e.Job, sameJob...), "claimed job (-want +got)")
		expect(t, e.Pos > store.Position(id), "the position %d is not a fresh one: the job is %d", e.Pos, id)
	}},
	{"The limit is respected, and the earliest come first", func(t *T) {
		offsets := make([]time.Duration, 7)
		for i := range offsets {
			offsets[i] = time.Duration(i) * time.Millisecond
		}
		want, at := t.comingUp(offsets...)
		var from time.Time
		for i, moved := range []int{3, 3, 1, 0} {
			p := must(t.Store.Promote(t.ctx, from, 3))(t)
			equal(t, p.Moved, moved, "call %d moved %d, want %d", i+1)
			last := at.Add(time.Duration(3*i+moved-1) * time.Millisecond)
			expect(t, moved <= 0 || p.Until.Equal(last), "call %d moved until %v, want %v", i+1, p.Until, last)
			if moved > 0 {
				from = p.Until
			}
		}
		equalAll(t, jobIDs(t.join("k").ClaimAll()), want, "claimed %v, want %v")
	}},
	{"A scan from a bound sees what is due at it, and not what is before", func(t *T) {
		ids, due := t.comingUp(0, 0, 0, 0, 0, -5*time.Millisecond)
		early := ids[5]
		for i, want := range []int{2, 2, 1, 0} {
			p := must(t.Store.Promote(t.ctx, due, 2))(t)
			equal(t, p.Moved, want, "call %d moved %d, want %d", i+1)
			expect(t, want != 0 || p.Next < 0, "nothing waits behind the bound, and Next is %v", p.Next)
		}
		t.state(early, stint.Scheduled)
		t.promoteAll(1)
	}},
	{"Next tells how long until the next job is due", func(t *T) {
		next := func() time.Duration {
			t.Helper()
			p := must(t.Store.Promote(t.ctx, time.Time{}, 1))(t)
			return p.Next
		}
		d := next()
		expect(t, d < 0, "nothing waits, and Next is %v", d)
		t.enqueue(job("k"))
		d = next()
		expect(t, d < 0, "nothing waits but a job is available, and Next is %v", d)
		t.enqueue(job("k", stint.Delay(2*time.Hour)))
		d = next()
		expect(t, d <= 2*time.Hour && d >= 2*time.Hour-deadline, "a job waits for 2h, and Next is %v", d)
		t.enqueue(job("k", stint.Delay(time.Hour)))
		d = next()
		expect(t, d <= time.Hour && d >= time.Hour-deadline, "a job waits for 1h, and Next is %v", d)
		t.enqueue(jobs(3, "k", stint.Delay(time.Millisecond))...)
		time.Sleep(10 * time.Millisecond)
		for i := range 2 {
			equal(t, next(), 0, "%d jobs are overdue, and Next is %v, want %v", 2-i)
		}
		d = next()
		expect(t, d <= time.Hour && d >= time.Hour-deadline, "after the last due job Next is %v, want nearly 1h", d)
	}},
	{"Many promoters move each job once", func(t *T) {
		const n = 300
		want := t.enqueue(jobs(n, "k", stint.Delay(time.Millisecond))...)
		time.Sleep(10 * time.Millisecond)
		other := t.again()
		var moved [6]int
		errs := atOnce(6, func(i int) error {
			for range 2000 {
				p, err := []Store{t.Store, other}[i%2].Promote(t.ctx, time.Time{}, 7)
				if err != nil || p.Moved == 0 && p.Next < 0 {
					return err
				}
				if moved[i] += p.Moved; moved[i] > n {
					return fmt.Errorf("one promoter moved %d, there are %d", moved[i], n)
				}
				if p.Moved == 0 {
					time.Sleep(time.Millisecond) // the others have what is due in hand
				}
			}
			return errors.New("there is no end to it")
		})
		t.must(errors.Join(errs...))
		sum := 0
		for _, m := range moved {
			sum += m
		}
		got := slices.Sorted(slices.Values(jobIDs(t.join("k").ClaimAll())))
		expect(t, sum == n && slices.Equal(got, want), "%d were promoted and %d claimed, want each of %d once", sum, len(got), n)
	}},
	{"A retried job goes through promotion with its next attempt", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		for attempt := 1; attempt <= 3; attempt++ {
			e := w.One()
			need(t, e.ID == id && e.Attempt == attempt, "claimed job %d, attempt %d; want %d, %d", e.ID, e.Attempt, id, attempt)
			x := w.Conclude(e, failed)
			x.Next.Delay = 5 * time.Millisecond
			t.must(errOf(w.TryFinish(t.ctx, x)))
			t.state(id, stint.Retrying)
			t.promoteAfter(15*time.Millisecond, 1)
			t.state(id, stint.Available)
		}
		w.Complete(w.ClaimAll()...)
	}},
	{"A batch promoted into many lanes reaches all of them", func(t *T) {
		var want []stint.ID
		for _, q := range []string{"a", "b"} {
			for p := range 3 {
				want = append(want, t.enqueue(jobs(2, "k", stint.Queue(q), stint.Priority(p), stint.Delay(time.Millisecond))...)...)
			}
		}
		t.promoteAfter(10*time.Millisecond, len(want))
		equalAll(t, slices.Sorted(slices.Values(jobIDs(t.join("k").ClaimAll()))), want, "claimed %v, want %v")
	}},
}

// comingUp enqueues jobs for instants around one in the near future, and
// returns when all of them are due. On a busy machine that instant may have
// passed when they arrive in the store, so it tries again for a later one.
func (t *T) comingUp(offsets ...time.Duration) ([]stint.ID, time.Time) {
	t.Helper()
	for lead := 30 * time.Millisecond; lead < patience(); lead *= 3 {
		tx := t.begin()
		at := time.Now().Add(lead).Truncate(time.Millisecond)
		var batch []stint.NewJob
		for _, d := range offsets {
			batch = append(batch, job("k", stint.RunAt(at.Add(d))))
		}
		ids := t.enqueueIn(tx, batch...)
		if time.Until(at) < lead/3 {
			t.must(tx.Rollback())
			continue
		}
		t.must(tx.Commit())
		time.Sleep(time.Until(at) + slices.Max(offsets) + 5*time.Millisecond)
		return ids, at
	}
	t.Fatal("the store is too slow for this test")
	return nil, time.Time{}
}
