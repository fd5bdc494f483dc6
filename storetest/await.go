package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var awaitTests = []test{
	{"A job that has ended is answered at once, with all of its attempts", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Finish(store.Result{Outcome: stint.OutcomeCompleted, Result: json.RawMessage(`{"n": 1}`)}, w.One())
		got := must(as[store.Awaiter](t).Await(t.ctx, id))(t)
		expect(t, got.ID == id && got.State == stint.Completed && len(got.Attempts) == 1 && sameJSON(got.Attempts[0].Result, json.RawMessage(`{"n": 1}`)),
			"it is answered %+v", got)
	}},
	{"Who waits learns of every end, through this store and another, and of nothing before", func(t *T) {
		as[store.Awaiter](t) // or skip all of it
		for name, finish := range map[string]Store{"this store": t.Store, "another": t.again()} {
			t.Run(name, func(tt *testing.T) {
				ids := t.enqueue(jobs(4, "k")...)
				ends := t.awaits(ids...)
				w := Join(tt, finish, "k")
				got := w.ClaimAll()
				time.Sleep(60 * time.Millisecond)
				ends.none(tt)
				w.Complete(got[0])
				w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("no paper"))}, got[1])
				w.Finish(store.Result{Outcome: stint.OutcomeCancelled, Note: "by itself"}, got[2])
				for i, want := range []stint.State{stint.Completed, stint.Failed, stint.Cancelled} {
					if job := ends.next(tt, ids[i]); job.State != want {
						tt.Errorf("job %d is %s, want %s", ids[i], job.State, want)
					}
				}
				job := t.info(ids[1])
				expect(tt, job.Attempts[0].Error.Message == "no paper", "the failure is %+v", job.Attempts[0].Error)
				ends.none(tt)
				w.Complete(got[3])
				ends.next(tt, ids[3])
				w.Leave()
			})
		}
	}},
	{"A job that is tried again is waited for until its last attempt", func(t *T) {
		id := t.enqueue(job("k"))[0]
		ends := t.awaits(id)
		w := t.join("k")
		w.Finish(failed, w.One())
		t.state(id, stint.Retrying)
		time.Sleep(60 * time.Millisecond)
		ends.none(t)
		t.retry(stint.RerunOptions{}, id)
		w.Complete(w.One())
		got := ends.next(t, id)
		expect(t, got.State == stint.Completed && len(got.Attempts) == 2, "it is answered %+v", got)
	}},
	{"What is cancelled before it begins has ended, and what runs has not", func(t *T) {
		ids := t.enqueue(job("k", stint.Delay(time.Hour)), job("k", stint.Queue("ready")), job("k", stint.Queue("runs")))
		w := t.join("k")
		runs := w.Claim(lane("runs"), 1)
		ends := t.awaits(ids...)
		t.cancels(map[stint.ID]stint.CancelStatus{ids[0]: stint.CancelledNow, ids[1]: stint.CancelledNow, ids[2]: stint.CancelRequested}, "why")
		for _, id := range ids[:2] {
			got := ends.next(t, id)
			expect(t, got.State == stint.Cancelled && got.Reason == "why", "it is answered %+v", got)
		}
		time.Sleep(60 * time.Millisecond)
		ends.none(t)
		w.Complete(runs...)
		equal(t, ends.next(t, ids[2]).State, stint.Completed, "what ran to its end is %s, want %s")
		t.none(w)
	}},
	{"What does not exist, what was deleted meanwhile, and the place of a later attempt are not found", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Finish(returned, w.One())
		e := w.One()
		for _, none := range []stint.ID{0, -1, 1 << 60, stint.ID(e.Pos)} {
			fails(t, errOf(as[store.Awaiter](t).Await(t.ctx, none)), stint.ErrNotFound,
				"of job %d the error is %v, want ErrNotFound", none)
		}
		other := t.again()
		wait := make(chan error, 1)
		go func() {
			for {
				if job, err := as[store.Awaiter](t).Await(t.ctx, id); err != nil || job.State != stint.Completed {
					wait <- err
					return
				}
			}
		}()
		w.Complete(e)
		t.must(errOf(as[store.Operator](&T{T: t.T, Store: other}).Delete(t.ctx, []stint.ID{id})))
		fails(t, <-wait, stint.ErrNotFound, "the error is %v, want ErrNotFound")
	}},
	{"Waiting ends with its context, and leaves nothing behind", func(t *T) {
		id := t.enqueue(job("k"))[0]
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.ctx, 50*time.Millisecond, cause)
		defer cancel()
		fails(t, errOf(as[store.Awaiter](t).Await(ctx, id)), cause, "the error is %v, want the context's cause")
		t.state(id, stint.Available)
	}},
	{"What is not committed is not found", func(t *T) {
		t.skipIf(t.SingleWriter, "an open transaction holds up every writer")
		tx := t.begin()
		id := t.enqueueIn(tx, job("k"))[0]
		fails(t, errOf(as[store.Awaiter](t).Await(t.ctx, id)), stint.ErrNotFound, "the error is %v, want ErrNotFound")
	}},
	{"Many wait for many, and for the same", func(t *T) {
		const n = 1200
		ids := t.enqueue(jobs(n, "k")...)
		var all sync.WaitGroup
		for i := range 2 * n {
			all.Go(func() {
				job, err := as[store.Awaiter](t).Await(t.ctx, ids[i%n])
				expect(t, err == nil && job.ID == ids[i%n] && job.State == stint.Completed,
					"of job %d: %+v, %v", ids[i%n], job, err)
			})
		}
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		all.Wait()
	}},
}

// awaited are the ends of jobs as those learn of them who wait.
type awaited struct {
	mu   sync.Mutex
	ends map[stint.ID]chan *stint.JobInfo
}

// awaits waits for jobs, each in a goroutine of its own.
func (t *T) awaits(ids ...stint.ID) *awaited {
	t.Helper()
	store := as[store.Awaiter](t)
	a := &awaited{ends: map[stint.ID]chan *stint.JobInfo{}}
	for _, id := range ids {
		ch := make(chan *stint.JobInfo, 1)
		a.ends[id] = ch
		go func() {
			job, err := store.Await(t.ctx, id)
			expect(t, err == nil, "await job %d: %v", id, err)
			ch <- job
		}()
	}
	return a
}

// next waits for the end of a job.
func (a *awaited) next(t testing.TB, id stint.ID) *stint.JobInfo {
	t.Helper()
	a.mu.Lock()
	ch := a.ends[id]
	delete(a.ends, id)
	a.mu.Unlock()
	select {
	case job := <-ch:
		if job == nil || job.ID != id {
			t.Fatalf("for job %d came %+v", id, job)
		}
		return job
	case <-time.After(deadline):
		t.Fatalf("nobody learned of the end of job %d", id)
	}
	return nil
}

// none makes sure that the jobs that are left have not ended.
func (a *awaited) none(t testing.TB) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, ch := range a.ends {
		select {
		case job := <-ch:
			t.Errorf("job %d was said to have ended: %+v", id, job)
		default:
		}
	}
}
