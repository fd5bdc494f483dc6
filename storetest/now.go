package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// nowTests are about jobs that are enqueued in somebody's hands.
var nowTests = []test{
	{"A job that is enqueued claimed is running from its first moment, and no other claim takes it", func(t *T) {
		as[store.ClaimedEnqueuer](t)
		w, other := t.join("k"), t.join("k")
		ring := t.enqueue(job("k"))
		c := w.now(t, job("k"))
		t.state(c.Entries[0].ID, stint.Running)
		sights, err := t.Store.Look(t.ctx, store.LaneHints{})
		expect(t, err == nil && len(sights) == 1, "a look shows %v, %v; want the other job's lane only", sights, err)
		rest := other.ClaimAll()
		expect(t, len(rest) == 1 && rest[0].ID == ring[0], "another engine claims %v, want job %d only", rest, ring[0])
		got, err := other.TryClaim(t.ctx, store.ClaimRequest{Lane: store.NowLane, Max: 10, Wait: true})
		expect(t, err == nil && len(got.Positions) == 0, "from its very lane another engine takes %v, %v", got.Positions, err)
		w.Complete(c.Entries...)
		t.state(c.Entries[0].ID, stint.Completed)
	}},
	{"It has everything that was said of it", func(t *T) {
		as[store.ClaimedEnqueuer](t)
		w, losses := t.join("k"), 7
		said := stint.NewJob{
			Kind: "k", Args: json.RawMessage(`{"n": 12345678901234567890}`), Queue: "mail", Priority: -3,
			Retry: retry.Fixed(3, time.Minute), Timeout: 5 * time.Second, MaxLosses: &losses,
			Tags: []string{"b", `a "quoted"`}, URN: "urn:x", Source: "test", Metadata: json.RawMessage(`{"m": 1}`), Correlation: "order 7",
			StartBy: time.Date(2345, 6, 7, 8, 9, 10, 0, time.UTC),
		}
		claimed := w.now(t, said).Entries[0]
		t.enqueue(said)
		usual := w.One()
		for _, e := range []*store.Entry{&claimed, &usual} {
			expect(t, !e.Ready.IsZero() && !e.Created.IsZero() && !e.Due.IsZero() && int64(e.ID) == int64(e.Pos),
				"the entry is %+v", e)
			e.ID, e.Pos, e.Ready, e.Created, e.Due = 0, 0, time.Time{}, time.Time{}, time.Time{}
			slices.Sort(e.Tags)
		}
		a, b := fmt.Sprintf("%+v", claimed), fmt.Sprintf("%+v", usual)
		expect(t, a == b, "it is\n%s\nand as any other job\n%s", a, b)
		plain := w.now(t, job("k")).Entries[0]
		expect(t, plain.Correlation == plain.ID.String(),
			"without anything said it belongs to %q, want itself", plain.Correlation)
		expect(t, plain.Queue == stint.DefaultQueue && string(plain.Args) == "{}" && plain.Timeout == 0 &&
			plain.Retry == retry.Default() && plain.Tags == nil,
			"without anything said it is %+v", plain)
		found, err := t.Store.Jobs(t.ctx, store.Filter{Tag: "b", Limit: 10})
		expect(t, err == nil && len(found) == 2, "by its tag %d jobs are found, %v; want both", len(found), err)
		found, err = t.Store.Jobs(t.ctx, store.Filter{Correlation: "order 7"})
		expect(t, err == nil && len(found) == 2, "by its correlation id %d jobs are found, %v; want both", len(found), err)
	}},
	{"A failure puts it into its own queue, like any other job", func(t *T) {
		as[store.ClaimedEnqueuer](t)
		w := t.join("k")
		e := w.now(t, job("k", stint.Queue("mail"), stint.Priority(-1), stint.Retry(retry.Fixed(1, time.Hour)))).Entries[0]
		w.Finish(failed, e)
		j := t.info(e.ID)
		expect(t, j.State == stint.Retrying && j.Attempt == 2 && j.Queue == "mail" && j.Priority == -1 && len(j.Attempts) == 1,
			"it is %+v", j)
	}},
	{"The burial of its engine hands it on", func(t *T) {
		as[store.ClaimedEnqueuer](t)
		for _, begun := range []bool{false, true} {
			w := t.join("k")
			e := w.now(t, job("k", stint.Queue("mail"))).Entries[0]
			if begun {
				w.Heartbeat(e.Pos)
			}
			claims, err := t.Store.Held(t.ctx, w.Info.Token, 0)
			expect(t, err == nil && len(claims) == 1 && slices.Equal(claims[0].Positions, []store.Position{e.Pos}),
				"the engine holds %v, %v", claims, err)
			equal(t, w.Leave(), 1, "its burial concluded %d entries, want %d")
			again := t.join("k")
			got := again.One()
			charged := got.Attempt == 2 && got.Losses == 1
			expect(t, got.ID == e.ID && charged == begun, "begun %v: what comes back is %+v", begun, got)
			expect(t, again.taken[got.Pos].Lane == store.LaneOf("mail", 0, store.PartFront, "").ID,
				"it came back in the lane %d, want the front of its queue", again.taken[got.Pos].Lane)
			again.Complete(got)
		}
	}},
	{"An engine that is not in the roster enqueues nothing", func(t *T) {
		s := as[store.ClaimedEnqueuer](t)
		w := t.join("k")
		w.Leave()
		for _, w := range []*Worker{w, NewWorker(t, t.Store)} {
			fails(t, errOf(s.EnqueueClaimed(t.ctx, filled(job("k", stint.Tag("a"))), store.ClaimRequest{Engine: w.Info.Token, Serial: 1, Nonce: 1})), store.ErrBuried, "the error is %v, want ErrBuried")
		}
		counts, err := t.Store.Counts(t.ctx)
		expect(t, err == nil && counts[stint.Running] == 0 && counts[stint.Available] == 0, "counts are %v, %v", counts, err)
	}},
	{"Of one key only the first is claimed, whoever stored it", func(t *T) {
		as[store.ClaimedEnqueuer](t)
		w := t.join("k")
		usual, now := job("k", stint.IdempotencyKey("usual")), job("k", stint.IdempotencyKey("now"))
		e := w.now(t, now).Entries[0]
		first := []stint.ID{t.keyed(usual)[0].ID, e.ID}
		w.Complete(e)
		for i, again := range []stint.NewJob{usual, now} {
			c, err := w.tryNow(t, again)
			var dup *store.DuplicateError
			expect(t, errors.As(err, &dup) && dup.ID == first[i] && dup.Key == again.IdempotencyKey &&
				errors.Is(err, store.ErrDuplicate) && len(c.Positions) == 0,
				"it is answered with %+v, error %v; want a duplicate of job %d", c, err, first[i])
			r := t.keyed(again)[0]
			expect(t, r == (stint.Receipt{ID: first[i], Duplicate: true}),
				"as usual it is answered with %+v, want a duplicate of job %d", r, first[i])
			again.Kind = "other"
			c, err = w.tryNow(t, again)
			var conflict *stint.KeyConflictError
			expect(t, errors.As(err, &conflict) && conflict.ID == first[i] && conflict.Key == again.IdempotencyKey &&
				len(c.Positions) == 0,
				"of another kind it is answered with %+v, error %v; want a conflict with job %d", c, err, first[i])
		}
		claims, err := t.Store.Held(t.ctx, w.Info.Token, 0)
		expect(t, err == nil && len(claims) == 0, "the engine holds %v, %v", claims, err)
		t.jobs(first...)
	}},
	{"An engine that is not in the roster takes no key", func(t *T) {
		as[store.ClaimedEnqueuer](t)
		w, a := t.join("k"), job("k", stint.IdempotencyKey("a"))
		w.Leave()
		c, err := w.tryNow(t, a)
		expect(t, errors.Is(err, store.ErrBuried), "it is answered with %+v, error %v; want ErrBuried", c, err)
		r := t.keyed(a)[0]
		expect(t, !r.Duplicate, "the key is taken, by job %d", r.ID)
	}},
	{"Who claims under a key that is being taken waits, and no other claim does", func(t *T) {
		as[store.ClaimedEnqueuer](t)
		t.skipIf(t.SingleWriter, "nobody else writes meanwhile")
		for _, commit := range []bool{true, false} {
			a := job("k", stint.IdempotencyKey(fmt.Sprint("decided:", commit)))
			w, other := t.join("k"), t.join("k")
			tx := t.begin()
			first := t.keyedIn(tx, a)[0].ID
			type answer struct {
				c   store.Claim
				err error
			}
			came := make(chan answer, 1)
			go func() {
				c, err := w.tryNow(t, a)
				came <- answer{c, err}
			}()
			time.Sleep(30 * time.Millisecond)
			other.Complete(other.now(t, job("k")).Entries...)
			beside := t.enqueue(job("k"))
			if got := other.ClaimAll(); len(got) != 1 || got[0].ID != beside[0] {
				t.Errorf("beside, %v were claimed, want job %d", got, beside[0])
			} else {
				other.Complete(got...)
			}
			select {
			case got := <-came:
				t.Errorf("beside an open transaction it is answered with %+v", got)
				came <- got
			default:
			}
			if commit {
				t.must(tx.Commit())
			} else {
				t.must(tx.Rollback())
			}
			got := <-came
			var dup *store.DuplicateError
			switch {
			case commit && (!errors.As(got.err, &dup) || dup.ID != first):
				t.Errorf("after the commit it is answered with %+v, want a duplicate of job %d", got, first)
			case !commit && (got.err != nil || len(got.c.Entries) != 1):
				t.Errorf("after the rollback it is answered with %+v, want a claim", got)
			}
			w.Complete(got.c.Entries...)
			w.Complete(w.ClaimAll()...)
		}
	}},
	{"Many at once from many engines each get their own job", func(t *T) {
		as[store.ClaimedEnqueuer](t)
		const engines, each = 8, 10
		workers := make([]*Worker, engines)
		for i := range workers {
			workers[i] = t.join("k")
		}
		entries := make([][]store.Entry, engines)
		errs := atOnce(engines, func(i int) error {
			for n := range each {
				urn := fmt.Sprintf("urn:%d:%d", i, n)
				c, err := workers[i].tryNow(t, job("k", stint.URN(urn)))
				if err != nil {
					return err
				}
				if len(c.Entries) != 1 || c.Entries[0].URN != urn {
					return fmt.Errorf("engine %d got %+v, want %s", i, c.Entries, urn)
				}
				entries[i] = append(entries[i], c.Entries...)
			}
			return nil
		})
		t.must(errors.Join(errs...))
		Verify(t, t.Store) // each entry is in exactly one claim, and behind the frontier
		for i, w := range workers {
			w.Complete(entries[i]...)
		}
	}},
	{"Jobs that others enqueue meanwhile are stepped over by none of it", func(t *T) {
		as[store.ClaimedEnqueuer](t)
		w := t.join("k")
		tx := t.begin()
		var late stint.ID
		if !t.SingleWriter {
			ids := must(stint.NewClient(t.Store).With(tx.Tx()).EnqueueMany(t.ctx, jobs(1, "k")))(t)
			late = ids[0]
		}
		w.Complete(w.now(t, job("k")).Entries...)
		t.must(tx.Commit())
		if t.SingleWriter {
			late = t.enqueue(job("k"))[0]
		}
		w.Complete(w.now(t, job("k")).Entries...)
		equal(t, w.One().ID, late, "job %d was claimed, want %d")
	}},
}

// now enqueues a job in the worker's hands.
func (w *Worker) now(t *T, job stint.NewJob) store.Claim {
	t.Helper()
	c := must(w.tryNow(t, job))(t)
	need(t, len(c.Positions) == 1 && len(c.Entries) == 1, "the claim is %+v, want one entry", c)
	return c
}

func (w *Worker) tryNow(t *T, job stint.NewJob) (store.Claim, error) {
	w.serial++
	req := store.ClaimRequest{Engine: w.Info.Token, Serial: w.serial, Nonce: store.Nonce(rand.Int64())}
	c, err := as[store.ClaimedEnqueuer](t).EnqueueClaimed(t.ctx, filled(job), req)
	for _, pos := range c.Positions {
		w.taken[pos] = c.ClaimRef
	}
	return c, err
}

// filled is a job as a client hands it on.
func filled(job stint.NewJob) stint.NewJob {
	if job.Queue == "" {
		job.Queue = stint.DefaultQueue
	}
	if job.Args == nil {
		job.Args = json.RawMessage(`{}`)
	}
	return job
}
