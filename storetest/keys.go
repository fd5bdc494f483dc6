package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var keysTests = []test{
	{"A repetition is answered with the first job and stores nothing", func(t *T) {
		first := t.keyed(job("k", stint.IdempotencyKey("a")), job("k", stint.IdempotencyKey("b")), job("k"))
		again := t.keyed(job("k", stint.IdempotencyKey("b")), job("k"), job("k", stint.IdempotencyKey("a")))
		want := []stint.Receipt{{ID: first[1].ID, Duplicate: true}, {ID: again[1].ID}, {ID: first[0].ID, Duplicate: true}}
		noDiff(t, cmp.Diff(want, again), "receipts (-want +got)")
		t.jobs(first[0].ID, first[1].ID, first[2].ID, again[1].ID)
	}},
	{"Who only asks for the ID gets that of the first job", func(t *T) {
		client := stint.NewClient(t.Store)
		a := must(client.Enqueue(t.ctx, job("k", stint.IdempotencyKey("a"))))(t)
		b, err := client.Enqueue(t.ctx, job("k", stint.IdempotencyKey("a")))
		expect(t, err == nil && b == a, "the repetition is answered with job %d, error %v; want %d", b, err, a)
	}},
	{"Other arguments or another kind under a key are refused, and nothing of the batch is stored", func(t *T) {
		first := t.keyed(job("k", stint.IdempotencyKey("a")))[0].ID
		other := job("k", stint.IdempotencyKey("a"))
		other.Args = json.RawMessage(`{"n":2}`)
		for _, wrong := range []stint.NewJob{other, job("another", stint.IdempotencyKey("a"))} {
			t.conflict(stint.Tx{}, first, job("k", stint.IdempotencyKey("new")), wrong, job("k"))
		}
		t.jobs(first)
		r := t.keyed(job("another", stint.IdempotencyKey("new")))[0]
		expect(t, !r.Duplicate, "a key of a batch that was refused is taken, by job %d", r.ID)
	}},
	{"Arguments are the same however they are written", func(t *T) {
		texts := []string{`{"a":1,"b":["x",null,{"c":"é\n"}]}`, ` { "b" : ["\u0078", null , {"c":"\u00e9\u000A"} ], "a" : 1 }`}
		batch := jobs(2, "k", stint.IdempotencyKey("a"))
		for i, text := range texts {
			batch[i].Args = json.RawMessage(text)
		}
		first := t.keyed(batch[0])[0].ID
		r := t.keyed(batch[1])[0]
		expect(t, r == (stint.Receipt{ID: first, Duplicate: true}),
			"it is answered with %+v, want a duplicate of job %d", r, first)
		nothing := stint.NewJob{Kind: "k", IdempotencyKey: "nothing"}
		first = t.keyed(nothing)[0].ID
		for _, text := range []string{"{}", "null", " {} "} {
			nothing.Args = json.RawMessage(text)
			r := t.keyed(nothing)[0]
			expect(t, r.ID == first, "the arguments %s make another job than none", text)
		}
	}},
	{"Of what is sealed only the MAC is compared", func(t *T) {
		const sealed = `{"$sealed": {"c": %q, "k": %q, "m": %q}}`
		part := func(c, k, m string) string {
			return fmt.Sprintf(`[{"iban": `+sealed+`, "n": 1}, %[4]s]`, c, k, m, fmt.Sprintf(sealed, c, k, m))
		}
		keyed := func(args string) stint.NewJob {
			return stint.NewJob{Kind: "k", Args: json.RawMessage(args), IdempotencyKey: "a"}
		}
		first := t.keyed(keyed(part("AAAA", "1", "same")))[0].ID
		r := t.keyed(keyed(part("B-_B", `new "\ key`, "same")))[0]
		expect(t, r == (stint.Receipt{ID: first, Duplicate: true}), "with another ciphertext it is answered with %+v", r)
		for _, other := range []string{part("AAAA", "1", "other"), strings.ReplaceAll(part("AAAA", "1", "same"), `, "m": "same"`, "")} {
			t.conflict(stint.Tx{}, first, keyed(other))
		}
		strange := stint.NewJob{Kind: "k", Args: json.RawMessage(`{"$sealed":{"c":"A","k":"1","m":"x","more":1}}`), IdempotencyKey: "c"}
		third := t.keyed(strange)[0].ID
		strange.Args = json.RawMessage(`{"$sealed":{"c":"A","k":"1","m":"x","more":2}}`)
		t.conflict(stint.Tx{}, third, strange) // which is not sealed either
		text := func(c string) string {
			said, _ := json.Marshal(fmt.Sprintf(sealed, c, "1", "m"))
			return `{"says": ` + string(said) + `}`
		}
		b := stint.NewJob{Kind: "k", Args: json.RawMessage(text("A")), IdempotencyKey: "b"}
		second := t.keyed(b)[0].ID
		b.Args = json.RawMessage(text("B"))
		t.conflict(stint.Tx{}, second, b) // a text that quotes it is no such thing
	}},
	{"What else a repetition says does not count", func(t *T) {
		first := t.keyed(job("k", stint.IdempotencyKey("a"), stint.Tag("x")))[0].ID
		r := t.keyed(job("k", stint.IdempotencyKey("a"), stint.Queue("other"), stint.Delay(time.Hour), stint.Tag("y"), stint.Priority(3)))[0]
		expect(t, r == (stint.Receipt{ID: first, Duplicate: true}),
			"it is answered with %+v, want a duplicate of job %d", r, first)
		j := t.info(first)
		expect(t, j.Queue == stint.DefaultQueue && j.State == stint.Available && slices.Equal(j.Tags, []string{"x"}),
			"the first job became %+v", j)
		found := t.list(store.Filter{Tag: "y"})
		expect(t, len(found) == 0, "jobs %v have the tag of the repetition", found)
	}},
	{"A key is remembered when its job has ended", func(t *T) {
		batch := []stint.NewJob{job("k", stint.IdempotencyKey("a")), job("k", stint.IdempotencyKey("b")), job("k", stint.IdempotencyKey("c"), stint.Delay(time.Hour))}
		first := t.keyed(batch...)
		w := t.join("k")
		for i, end := range []store.Result{completed, failedFinally} {
			w.Finish(end, w.Claim(lane(stint.DefaultQueue), 1)...)
			if s := t.info(first[i].ID).State; !s.Final() {
				t.Fatalf("job %d is %s", first[i].ID, s)
			}
		}
		t.retain(years) // which also forgets what is old
		for i, r := range t.keyed(batch...) {
			if r != (stint.Receipt{ID: first[i].ID, Duplicate: true}) {
				t.Errorf("key %s is answered with %+v, want a duplicate of job %d", batch[i].IdempotencyKey, r, first[i].ID)
			}
		}
	}},
	{"A batch may say a key more than once", func(t *T) {
		a := job("k", stint.IdempotencyKey("a"))
		got := t.keyed(job("k"), a, job("k", stint.IdempotencyKey("b")), a, job("k"), a)
		for _, i := range []int{3, 5} {
			expect(t, got[i] == (stint.Receipt{ID: got[1].ID, Duplicate: true}),
				"job %d of the batch is answered with %+v, want a duplicate of job %d", i, got[i], got[1].ID)
		}
		t.jobs(got[0].ID, got[1].ID, got[2].ID, got[4].ID)
		t.conflict(stint.Tx{}, 0, job("k", stint.IdempotencyKey("c")), job("k"), job("other", stint.IdempotencyKey("c")))
		t.conflict(stint.Tx{}, got[1].ID, a, job("other", stint.IdempotencyKey("a")))
		t.jobs(got[0].ID, got[1].ID, got[2].ID, got[4].ID)
	}},
	{"New jobs of a batch with keys keep their order", func(t *T) {
		t.keyed(job("k", stint.IdempotencyKey("4")))
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		batch := make([]stint.NewJob, 12)
		for i := range batch {
			batch[i] = job("k")
			if i%2 == 1 {
				batch[i].IdempotencyKey = fmt.Sprint(11 - i) // the keys fall
			}
		}
		var want []stint.ID
		for _, r := range t.keyed(batch...) {
			if !r.Duplicate {
				want = append(want, r.ID)
			}
		}
		got := jobIDs(w.ClaimAll())
		expect(t, len(want) == 11 && slices.IsSorted(want) && slices.Equal(got, want), "claimed jobs %v, want %v", got, want)
	}},
	{"Everything said of a job with a key comes back exactly", func(t *T) {
		want := rich()
		want.IdempotencyKey = `a "key", {with} ünïcode ✓`
		want.Delay = 10 * time.Millisecond
		id := t.keyed(job("other"), want, job("other", stint.Delay(time.Hour)))[1].ID
		equal(t, t.info(id).State, stint.Scheduled, "it is %s, want %s")
		t.promoteAfter(20*time.Millisecond, 1)
		entries := t.join(want.Kind).Claim(store.LaneOf(want.Queue, want.Priority, store.PartNormal, "").ID, 10)
		need(t, len(entries) == 1, "%d entries were claimed, want 1", len(entries))
		e := entries[0]
		diff := cmp.Diff(richJob(want, e), e.Job, sameJob...)
		expect(t, diff == "" && e.ID == id, "claimed job %d, want %d (-want +got):\n%s", e.ID, id, diff)
		equalAll(t, t.list(store.Filter{Tag: want.Tags[1]}), []stint.ID{id}, "jobs %v have its tag, want %v")
		equal(t, t.keyed(want)[0], stint.Receipt{ID: id, Duplicate: true}, "the repetition is answered with %+v, want %+v")
	}},
	{"A key that was rolled back is free", func(t *T) {
		a := job("k", stint.IdempotencyKey("a"))
		tx := t.begin()
		gone := t.keyedIn(tx, a)[0]
		t.must(tx.Rollback())
		r := t.keyed(a)[0]
		expect(t, !gone.Duplicate && !r.Duplicate, "answered with %+v, and after the rollback with %+v", gone, r)
		t.jobs(r.ID)
	}},
	{"A key that was rolled back to a savepoint is free", func(t *T) {
		a, b := job("k", stint.IdempotencyKey("a")), job("k", stint.IdempotencyKey("b"))
		tx := t.begin()
		sp := t.savepoints(tx)
		first := t.keyedIn(tx, a)[0]
		t.must(sp.Savepoint("s"))
		t.keyedIn(tx, b)
		t.must(sp.RollbackTo("s"))
		third := t.keyedIn(tx, b, a)
		t.must(tx.Commit())
		expect(t, !third[0].Duplicate && third[1] == (stint.Receipt{ID: first.ID, Duplicate: true}),
			"after the rollback to the savepoint %+v, before it %+v", third, first)
		t.jobs(first.ID, third[0].ID)
	}},
	{"A transaction sees the keys that it has taken", func(t *T) {
		a := job("k", stint.IdempotencyKey("a"))
		tx := t.begin()
		first := t.keyedIn(tx, a)[0]
		again := t.keyedIn(tx, a)[0]
		expect(t, !first.Duplicate && again == (stint.Receipt{ID: first.ID, Duplicate: true}),
			"answered with %+v, then %+v", first, again)
		t.must(tx.Commit())
		again = t.keyed(a)[0]
		expect(t, again == (stint.Receipt{ID: first.ID, Duplicate: true}),
			"after the commit answered with %+v, want a duplicate of job %d", again, first.ID)
		t.jobs(first.ID)
	}},
	{"A refused key leaves the caller's transaction as it was", func(t *T) {
		first := t.keyed(job("k", stint.IdempotencyKey("a")))[0].ID
		tx := t.begin()
		before := t.keyedIn(tx, job("k"))[0].ID
		t.conflict(tx.Tx(), first, job("k", stint.IdempotencyKey("new"), stint.Tag("t")), job("other", stint.IdempotencyKey("a")))
		after := t.keyedIn(tx, job("another", stint.IdempotencyKey("new")))[0]
		t.must(tx.Commit())
		expect(t, !after.Duplicate, "a key of the batch that was refused is taken")
		t.jobs(first, before, after.ID)
	}},
	{"Who uses a key that is being taken waits until that is decided", func(t *T) {
		t.skipIf(t.SingleWriter, "nobody else writes meanwhile")
		for _, commit := range []bool{true, false} {
			a := job("k", stint.IdempotencyKey(fmt.Sprint("decided:", commit)))
			tx := t.begin()
			first := t.keyedIn(tx, a)[0]
			short, cancel := context.WithTimeout(t.ctx, 100*time.Millisecond)
			if r, err := stint.NewClient(t.Store).EnqueueReceipt(short, a); err == nil {
				t.Errorf("beside an open transaction it is answered with %+v", r)
			}
			cancel()
			answer := make(chan stint.Receipt)
			go func() {
				r, err := stint.NewClient(t.Store).EnqueueReceipt(t.ctx, a)
				expect(t, err == nil, "it waited and failed: %v", err)
				answer <- r
			}()
			time.Sleep(30 * time.Millisecond)
			if commit {
				t.must(tx.Commit())
			} else {
				t.must(tx.Rollback())
			}
			r := <-answer
			switch {
			case commit && r != (stint.Receipt{ID: first.ID, Duplicate: true}):
				t.Errorf("after the commit it is answered with %+v, want a duplicate of job %d", r, first.ID)
			case !commit && r.ID == first.ID:
				t.Errorf("after the rollback it is answered with job %d, which does not exist", first.ID)
			}
			t.info(r.ID)
		}
	}},
	{"Jobs without keys do not wait for keys", func(t *T) {
		t.skipIf(t.SingleWriter, "nobody else writes meanwhile")
		tx := t.begin()
		t.keyedIn(tx, job("k", stint.IdempotencyKey("a")))
		t.keyed(job("k"), job("k", stint.Delay(time.Hour)), job("k", stint.IdempotencyKey("b")))
		t.must(tx.Commit())
	}},
	{"Of many producers at once one stores the job", oneOfMany},
	{"A recovered job leaves the key to the one that it does again", func(t *T) {
		a := job("k", stint.IdempotencyKey("a"))
		first := t.keyed(a)[0].ID
		w := t.join("k")
		w.Finish(failedFinally, w.One())
		anew := t.recovers(first, stint.RerunOptions{})
		for range 2 {
			r := t.keyed(a)[0]
			expect(t, r == (stint.Receipt{ID: first, Duplicate: true}),
				"beside job %d, which is %s, it is answered with %+v; want a duplicate of job %d", anew, t.info(anew).State, r,
				first)
			w.Complete(w.ClaimAll()...)
		}
		t.jobs(first, anew)
	}},
	{"The key of a deleted job is remembered", func(t *T) {
		a := job("k", stint.IdempotencyKey("a"))
		first := t.keyed(a)[0].ID
		w := t.join("k")
		w.Complete(w.One())
		t.deletes(map[stint.ID]store.DeleteStatus{first: store.DeletedNow})
		t.retain(years) // which also forgets what is old
		r := t.keyed(a)[0]
		expect(t, r == (stint.Receipt{ID: first, Duplicate: true}),
			"it is answered with %+v, want a duplicate of job %d", r, first)
		t.conflict(stint.Tx{}, first, job("other", stint.IdempotencyKey("a")))
		t.jobs()
	}},
}

func oneOfMany(t *T) {
	const producers, keys = 12, 30
	var (
		wg    sync.WaitGroup
		got   [producers][]stint.Receipt
		start = make(chan struct{})
		seed  = NewSeed(t)
	)
	for p := range producers {
		s := t.Store
		if p%3 == 0 {
			s = t.again()
		}
		// Each says the same keys, in an order of its own, some of them alone.
		order := seed.Rand(fmt.Sprint("producer ", p)).Perm(keys)
		batch := make([]stint.NewJob, keys)
		for i, k := range order {
			batch[i] = job("k", stint.IdempotencyKey(fmt.Sprint("key ", k)), stint.URN(fmt.Sprint(k)))
		}
		got[p] = make([]stint.Receipt, keys)
		wg.Go(func() {
			<-start
			size := 1 + (p%3)*(keys/2-1) // 1, 15, 29
			for from := 0; from < keys; from += size {
				part := batch[from:min(from+size, keys)]
				receipts, err := stint.NewClient(s).EnqueueReceipts(t.ctx, part)
				if err != nil {
					t.Errorf("producer %d: %v", p, err)
					return
				}
				for i, r := range receipts {
					got[p][order[from+i]] = r
				}
			}
		})
	}
	close(start)
	wg.Wait()
	if t.Failed() {
		return
	}
	var all []stint.ID
	for k := range keys {
		first := 0
		for p := range producers {
			if r := got[p][k]; r.ID != got[0][k].ID {
				t.Errorf("key %d is job %d and job %d", k, r.ID, got[0][k].ID)
			} else if !r.Duplicate {
				first++
			}
		}
		equal(t, first, 1, "of key %d, %d receipts are of a new job, want %d", k)
		all = append(all, got[0][k].ID)
		equal(t, t.info(got[0][k].ID).URN, fmt.Sprint(k), "key %d is answered with the job of key %s, want %s", k)
	}
	t.jobs(all...)
}

// keyed stores jobs and returns their receipts.
func (t *T) keyed(jobs ...stint.NewJob) []stint.Receipt {
	t.Helper()
	return must(stint.NewClient(t.Store).EnqueueReceipts(t.ctx, jobs))(t)
}

func (t *T) keyedIn(tx Tx, jobs ...stint.NewJob) []stint.Receipt {
	t.Helper()
	return must(stint.NewClient(t.Store).With(tx.Tx()).EnqueueReceipts(t.ctx, jobs))(t)
}

// conflict checks that jobs are refused because of the key of the one given.
func (t *T) conflict(tx stint.Tx, holder stint.ID, jobs ...stint.NewJob) {
	t.Helper()
	receipts, err := stint.NewClient(t.Store).With(tx).EnqueueReceipts(t.ctx, jobs)
	var conflict *stint.KeyConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, stint.ErrKeyConflict) {
		t.Errorf("it is answered with %+v, error %v; want a conflict of keys", receipts, err)
	} else if conflict.ID != holder || !slices.ContainsFunc(jobs, func(j stint.NewJob) bool { return j.IdempotencyKey == conflict.Key }) {
		t.Errorf("the conflict is about key %q and job %d, want job %d", conflict.Key, conflict.ID, holder)
	}
}

// jobs checks which jobs there are.
func (t *T) jobs(want ...stint.ID) {
	t.Helper()
	got := t.list(store.Filter{Limit: 1000})
	slices.Sort(got)
	slices.Sort(want)
	equalAll(t, got, want, "there are the jobs %v, want %v")
}
