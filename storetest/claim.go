package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var claimTests = []test{
	{"A lane is claimed in the order of becoming ready, up to Max at a time", func(t *T) {
		ids := t.enqueue(jobs(10, "k")...)
		w := t.join("k")
		for _, c := range []struct{ limit, from, to int }{{1, 0, 1}, {4, 1, 5}, {3, 5, 8}, {100, 8, 10}, {100, 10, 10}} {
			equalAll(t, jobIDs(w.Claim(lane(stint.DefaultQueue), c.limit)), ids[c.from:c.to],
				"a claim of %d took %v, want %v", c.limit)
		}
	}},
	{"What is claimed of one lane moves no other's frontier", func(t *T) {
		before := t.enqueue(jobs(2, "k", stint.Queue("other"))...)
		t.enqueue(jobs(4, "k")...)
		behind := t.enqueue(job("k", stint.Queue("other")))[0]
		w := t.join("k")
		for range 3 {
			w.Complete(w.Claim(lane(stint.DefaultQueue), 1)...)
		}
		got, want := jobIDs(w.Claim(lane("other"), 10)), append(before, behind)
		expect(t, slices.Equal(got, want), "claimed %v, want %v", got, want)
		if got := w.Claim(lane(stint.DefaultQueue), 10); len(got) != 1 {
			t.Errorf("claimed %v, want the one that was left", jobIDs(got))
		}
	}},
	{"An empty claim is not recorded", func(t *T) {
		w := t.join("k")
		for _, l := range []store.LaneID{lane("empty"), lane("never"), lane("empty")} {
			got := w.Claim(l, 10)
			expect(t, len(got) == 0, "an empty lane gave %v", positions(got))
		}
		equal(t, len(t.ledger().Claims), 0, "%d empty claims were recorded, want %d")
	}},
	{"A claim keeps its serial and nonce, and counts the lane's claims", func(t *T) {
		t.enqueue(jobs(6, "k")...)
		w := t.join("k")
		for n := range int64(3) {
			req := store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 2, Wait: true}
			c := must(w.TryClaim(t.ctx, req))(t)
			expect(t, c.Lane == req.Lane && c.N == n+1 && c.Serial == n+1 && c.Nonce != 0,
				"claim %d came back as %+v", n+1, c.ClaimRef)
			held := t.held(w, 0)
			last := held[len(held)-1]
			expect(t, last.ClaimRef == c.ClaimRef && last.Serial == c.Serial,
				"held is %+v serial %d, claimed was %+v serial %d", last.ClaimRef, last.Serial, c.ClaimRef, c.Serial)
		}
	}},
	{"Who is not in the roster claims nothing", func(t *T) {
		t.enqueue(jobs(3, "k")...)
		never, dead := NewWorker(t, t.Store, "k"), t.join("k")
		dead.Leave()
		for name, w := range map[string]*Worker{"that never joined": never, "that was buried": dead} {
			for _, wait := range []bool{true, false} {
				c, err := w.TryClaim(t.ctx, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 3, Wait: wait})
				expect(t, errors.Is(err, store.ErrBuried) && len(c.Positions) == 0,
					"an engine %s got %v, error %v, want ErrBuried", name, c.Positions, err)
			}
		}
		equal(t, len(t.join("k").ClaimAll()), 3, "%d jobs are left to claim, want %d")
	}},
	{"A claim with Settle takes what is there, and nothing twice", func(t *T) {
		w := t.join("k")
		settle := store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 10, Wait: true, Settle: true}
		for range 3 {
			ids := t.enqueue(jobs(2, "k")...)
			c := must(w.TryClaim(t.ctx, settle))(t)
			equalAll(t, jobIDs(c.Entries), ids, "a claim with Settle took %v, want %v")
			if c, err := w.TryClaim(t.ctx, settle); err != nil || len(c.Positions) != 0 {
				t.Errorf("another took %v, error %v", c.Positions, err)
			}
		}
	}},
	{"Fetch answers in the order asked and leaves out what does not exist", func(t *T) {
		t.enqueue(jobs(4, "k")...)
		entries := t.join("k").ClaimAll()
		p := positions(entries)
		got := must(t.Store.Fetch(t.ctx, []store.Position{p[2], 1 << 60, p[0], p[3], -5}))(t)
		want := []store.Position{p[2], p[0], p[3]}
		expect(t, slices.Equal(positions(got), want), "fetched %v, want %v", positions(got), want)
		got, err := t.Store.Fetch(t.ctx, nil)
		expect(t, err == nil && len(got) == 0, "fetching nothing gave %v, error %v", got, err)
	}},
	{"Lanes of a queue are told apart by priority", func(t *T) {
		var want []stint.ID
		for _, p := range []int{100, -100, 0, 1} {
			want = append(want, t.enqueue(job("k", stint.Priority(p)))...)
		}
		w := t.join("k")
		for i, p := range []int{100, -100, 0, 1} {
			got := w.Claim(store.LaneOf(stint.DefaultQueue, p, store.PartNormal, "").ID, 10)
			expect(t, len(got) == 1 && got[0].ID == want[i] && got[0].Priority == p,
				"priority %d gave %v, want job %d", p, jobIDs(got), want[i])
		}
	}},
	{"One claimer at a time never finds a lane busy", func(t *T) {
		t.enqueue(jobs(50, "k")...)
		workers := []*Worker{t.join("k"), Join(t, t.again(), "k")}
		for i := range 50 {
			req := store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1}
			c, err := workers[i%2].TryClaim(t.ctx, req)
			need(t, err == nil && len(c.Entries) == 1, "claim %d took %v, error %v", i, c.Positions, err)
		}
	}},
	{"Many claimers of one lane take every entry once", func(t *T) { manyClaimers(t, true) }},
	{"Many claimers that do not wait are told so, and take every entry once", func(t *T) { manyClaimers(t, false) }},
	{"An engine that knows nothing finds what another left", func(t *T) {
		ids := t.enqueue(jobs(9, "k")...)
		var got []stint.ID
		for range 3 {
			got = append(got, jobIDs(t.join("k").Claim(lane(stint.DefaultQueue), 3))...)
		}
		equalAll(t, got, ids, "three engines claimed %v, want %v")
	}},
}

func manyClaimers(t *T, wait bool) {
	const n, claimers = 600, 8
	ids := t.enqueue(jobs(n, "k")...)
	second := t.again()
	var (
		wg    sync.WaitGroup
		taken [claimers][]stint.ID
	)
	for i := range claimers {
		w := Join(t, []Store{t.Store, second}[i%2], "k")
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			for left, since := true, time.Now(); left; {
				c, err := w.TryClaim(t.ctx, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1 + rng.IntN(10), Wait: wait})
				switch {
				case err == nil:
					left, since = len(c.Entries) > 0, time.Now()
				case errors.Is(err, store.ErrLaneBusy) && !wait && time.Since(since) < patience()/5:
					time.Sleep(50 * time.Microsecond)
				default:
					t.Errorf("claimer %d: %v", i, err)
					return
				}
				got := jobIDs(c.Entries)
				expect(t, slices.IsSorted(got), "claimer %d got %v, out of order", i, got)
				taken[i] = append(taken[i], jobIDs(c.Entries)...)
			}
		})
	}
	wg.Wait()
	got := slices.Sorted(slices.Values(slices.Concat(taken[:]...)))
	expect(t, slices.Equal(got, ids), "%d jobs were taken, want each of %d once", len(got), n)
}

// held lists what an engine holds.
func (t *T) held(w *Worker, from int64) []store.Claim {
	t.Helper()
	return must(t.Store.Held(t.ctx, w.Info.Token, from))(t)
}

// lookTests are about what engines see before they claim.
var lookTests = []test{
	{"A look shows every lane with work and what its first entry is", looks},
	{"A look passes over foreign lanes and nothing else", func(t *T) {
		t.enqueue(job("a", stint.Queue("mine")), job("b", stint.Queue("foreign")), job("c", stint.Queue("new")))
		known := store.LaneHints{Mine: []store.LaneID{lane("mine"), lane("empty")}, Foreign: []store.LaneID{lane("foreign")}}
		for range 2 {
			got := t.look(known)
			expect(t, len(got) == 2 && got[lane("mine")].Kind == "a" && got[lane("new")].Kind == "c",
				"the look saw %v, want the lanes mine and new", got)
		}
	}},
	{"A look that finds nothing says nothing", func(t *T) {
		got := t.look(store.LaneHints{})
		expect(t, len(got) == 0, "in an empty store it saw %v", got)
		t.enqueue(append(jobs(5, "k"), job("k", stint.Delay(time.Hour)))...)
		t.join("k").ClaimAll()
		for _, known := range []store.LaneHints{{}, {Mine: []store.LaneID{lane(stint.DefaultQueue)}}} {
			got := t.look(known)
			expect(t, len(got) == 0, "after everything was claimed it saw %v", got)
		}
	}},
	{"A transaction that ends and brought a lane nothing does not make it look as if it had work", func(t *T) {
		t.skipIf(t.SingleWriter, "commits come in the order of the log")
		tx := t.begin()
		t.enqueueIn(tx, job("k", stint.Queue("other")))
		t.enqueue(job("k", stint.Queue("mine")))
		t.join("k").ClaimAll()
		t.must(tx.Commit())
		got := t.look(store.LaneHints{})
		expect(t, len(got) == 1 && got[lane("other")].Kind == "k", "the look saw %v, want the lane of other", got)
	}},
	{"A look writes nothing", func(t *T) {
		t.enqueue(jobs(5, "k")...)
		before := t.ledger()
		t.look(store.LaneHints{})
		after := t.ledger()
		expect(t, len(after.Claims) == len(before.Claims), "a look appended %d claims", len(after.Claims)-len(before.Claims))
	}},
	{"What was rolled back is not in sight, and a claim that settles it takes nothing", func(t *T) {
		w := t.join("k")
		for round := range 3 {
			tx := t.begin()
			t.enqueueIn(tx, jobs(3000, "k")...)
			t.must(tx.Rollback())
			seen := t.look(store.LaneHints{})
			expect(t, len(seen) == 0, "round %d: after a rollback a look sees work in %v", round, seen)
			for range 2 {
				req := store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1, Wait: true, Settle: true}
				c, err := w.TryClaim(t.ctx, req)
				expect(t, err == nil && len(c.Positions) == 0,
					"round %d: a claim after a rollback took %v, error %v", round, c.Positions, err)
			}
			id := t.enqueue(job("k"))[0]
			equal(t, w.One().ID, id, "round %d: claimed job %d, want %d", round)
		}
	}},
}

// lookSinceTests are about looks at what was appended since the last one.
var lookSinceTests = []test{
	{"A look from nothing on asks for a look at all lanes", func(t *T) {
		t.since(store.Mark{}, true)
		t.enqueue(job("k"))
		mark := t.since(store.Mark{}, true)
		t.since(mark, false)
	}},
	{"A look since another shows the lanes that got something, once", func(t *T) {
		t.enqueue(job("k", stint.Queue("old")))
		mark := t.since(store.Mark{}, true)
		ids := t.enqueue(job("a", stint.Queue("new"), stint.Priority(3)), job("b", stint.Queue("new"), stint.Priority(3)), job("c"))
		t.enqueue(job("k", stint.Delay(time.Hour)))
		a := must(t.Store.LookSince(t.ctx, mark))(t)
		want := map[store.LaneID]store.LaneHead{}
		for i, head := range []store.LaneHead{{Queue: "new", Priority: 3, Kind: "a"}, {}, {Queue: stint.DefaultQueue, Kind: "c"}} {
			head.Lane, head.First = store.LaneOf(head.Queue, head.Priority, store.PartNormal, "").ID, store.Position(ids[i])
			want[head.Lane] = head
		}
		for _, head := range a.Heads {
			equal(t, head, want[head.Lane], "a look shows %+v, want %+v")
		}
		mark = t.since(mark, false, store.LaneOf("new", 3, store.PartNormal, "").ID, lane(stint.DefaultQueue))
		mark = t.since(mark, false)
		t.enqueue(job("k", stint.Queue("old")))
		mark = t.since(mark, false, lane("old"))
		t.since(mark, false)
	}},
	{"A look since another leaves out lanes whose entries were claimed", func(t *T) {
		mark := t.since(store.Mark{}, true)
		t.enqueue(job("k", stint.Queue("b")), job("k", stint.Queue("a")))
		w := t.join("k")
		w.Claim(lane("a"), 5)
		t.since(mark, false, lane("b"))
		w.Claim(lane("b"), 5)
		t.since(mark, false)
	}},
	{"A look since another shows what comes back, and what becomes due", func(t *T) {
		t.enqueue(job("k"))
		w := t.join("k")
		e := w.One()
		mark := t.since(store.Mark{}, true)
		w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}, e)
		mark = t.since(mark, false, store.LaneOf(stint.DefaultQueue, 0, store.PartFront, "").ID)
		t.enqueue(job("k", stint.Queue("due"), stint.Delay(time.Millisecond)))
		t.promoteAfter(15*time.Millisecond, 1)
		t.since(mark, false, lane("due"))
	}},
	{"A look since another says which queues are paused", func(t *T) {
		pauser, ok := t.Store.(store.Pauser)
		t.skipIf(!ok, "queues cannot be paused")
		mark := t.since(store.Mark{}, true)
		t.must(errOf(pauser.Pause(t.ctx, "a", "", "")))
		t.enqueue(job("k", stint.Queue("a")), job("k", stint.Queue("b")))
		a := must(t.Store.LookSince(t.ctx, mark))(t)
		for _, head := range a.Heads {
			expect(t, head.Paused == (head.Queue == "a"), "a look shows %+v", head)
		}
		equal(t, len(a.Heads), 2, "a look shows %d lanes, want %d")
	}},
	{"A look since another reads no more than it says", func(t *T) {
		mark := t.since(store.Mark{}, true)
		t.enqueue(jobs(400, "k")...)
		mark = t.since(mark, false, lane(stint.DefaultQueue))
		t.enqueue(jobs(3000, "k")...)
		mark = t.since(mark, true)
		t.since(mark, false)
		t.enqueue(job("k"))
		t.since(mark, false, lane(stint.DefaultQueue))
	}},
	{"A look since another shows what was committed late", func(t *T) {
		t.skipIf(t.SingleWriter, "commits come in the order of the log")
		mark := t.since(store.Mark{}, true)
		tx := t.begin()
		t.enqueueIn(tx, job("k", stint.Queue("late")))
		t.enqueue(job("k", stint.Queue("early")))
		mark = t.since(mark, false, lane("early"))
		t.join("k").ClaimAll()
		t.must(tx.Commit())
		mark = t.since(mark, false, lane("late"))
		t.since(mark, false)
	}},
	{"A look since another shows a lane for what was committed behind its frontier", func(t *T) {
		t.skipIf(t.SingleWriter, "commits come in the order of the log")
		mark := t.since(store.Mark{}, true)
		tx := t.begin()
		t.enqueueIn(tx, job("k"))
		t.enqueue(job("k"))
		w := t.join("k")
		equal(t, len(w.ClaimAll()), 1, "claimed %d jobs, want %d")
		mark = t.since(mark, false)
		t.must(tx.Commit())
		t.since(mark, false, lane(stint.DefaultQueue))
	}},
}

// since looks since a mark, compares what it sees, and returns the next mark.
func (t *T) since(mark store.Mark, all bool, want ...store.LaneID) store.Mark {
	t.Helper()
	a := must(t.Store.LookSince(t.ctx, mark))(t)
	var got []store.LaneID
	for _, head := range a.Heads {
		got = append(got, head.Lane)
	}
	slices.Sort(got)
	slices.Sort(want)
	equalAll(t, got, want, "a look since another saw the lanes %v, want %v")
	expect(t, a.All == all && a.Until.Set, "a look since another says %v of all lanes, want %v, and its mark is %v", a.All, all, a.Until)
	return a.Until
}

// look returns the lanes with work by their IDs. Those that only want to be
// settled are left out: how much is much, each store decides for itself.
func (t *T) look(known store.LaneHints) map[store.LaneID]store.LaneHead {
	t.Helper()
	sights := must(t.Store.Look(t.ctx, known))(t)
	seen := map[store.LaneID]store.LaneHead{}
	for _, s := range sights {
		_, twice := seen[s.Lane]
		expect(t, !twice, "a look shows lane %d twice", s.Lane)
		seen[s.Lane] = s
	}
	maps.DeleteFunc(seen, func(_ store.LaneID, s store.LaneHead) bool { return s.Settle })
	return seen
}

func looks(t *T) {
	want := map[store.LaneID]store.LaneHead{}
	for q := range 10 {
		for _, p := range []int{-100, 0, 7} {
			queue, kind := fmt.Sprintf("queue %d", q), fmt.Sprintf("kind %d %d", q, p)
			ids := t.enqueue(job(kind, stint.Queue(queue), stint.Priority(p)), job("second", stint.Queue(queue), stint.Priority(p)))
			l := store.LaneOf(queue, p, store.PartNormal, "")
			want[l.ID] = store.LaneHead{Lane: l.ID, Queue: queue, Priority: p, Kind: kind, First: store.Position(ids[0])}
		}
	}
	got := t.look(store.LaneHints{})
	for id, s := range want {
		equal(t, got[id], s, "the look saw %+v, want %+v")
	}
	equal(t, len(got), len(want), "the look saw %d lanes, want %d")
	one := store.LaneOf("queue 3", 0, store.PartNormal, "").ID
	t.join("x").Claim(one, 1)
	equal(t, t.look(store.LaneHints{Mine: []store.LaneID{one}})[one].Kind,
		"second", "after the first entry was claimed, the look shows kind %q, want %q")
}

// lateTests are about rows that become visible after the frontier has passed
// them: the price of producers that never wait for each other.
var lateTests = []test{
	{"Whatever the order of two transactions and of claims between, nothing is lost or doubled", func(t *T) {
		for _, order := range interleavings(nil, 3, 3) {
			if order[0] != 0 {
				continue // the same with the names swapped
			}
			for ends := range 4 {
				playLate(t, order, ends, 3)
			}
		}
	}},
	{"And of three transactions, some of the orders", func(t *T) {
		all := interleavings(nil, 2, 2, 2)
		rng := NewSeed(t).Rand("orders")
		for range 20 {
			playLate(t, all[rng.IntN(len(all))], rng.IntN(8), 2)
		}
	}},
	{"A late transaction that is larger than a claim comes over several claims, beside new work", func(t *T) {
		t.skipIf(t.SingleWriter, "commits come in the order of the log")
		tx := t.begin()
		late := t.enqueueIn(tx, jobs(20, "k")...)
		fresh := t.enqueue(jobs(5, "k")...)
		w := t.join("k")
		got := jobIDs(w.Claim(lane(stint.DefaultQueue), 3))
		t.must(tx.Commit())
		fresh = append(fresh, t.enqueue(jobs(5, "k")...)...)
		for {
			entries := w.Claim(lane(stint.DefaultQueue), 3)
			if len(entries) == 0 {
				break
			}
			got = append(got, jobIDs(entries)...)
		}
		want := slices.Concat(late, fresh)
		expect(t, slices.Equal(slices.Sorted(slices.Values(got)), want), "claimed %v, want each of %v once", got, want)
	}},
	{"Many open transactions stay pending through many claims", func(t *T) {
		t.skipIf(t.SingleWriter, "commits come in the order of the log")
		const open = 12
		var (
			txs  []Tx
			late [][]stint.ID
			want []stint.ID
			got  []stint.ID
		)
		w := t.join("k")
		for range open {
			tx := t.begin()
			txs, late = append(txs, tx), append(late, t.enqueueIn(tx, jobs(2, "k")...))
			want = append(want, t.enqueue(job("k"))...)
			got = append(got, jobIDs(w.ClaimAll())...)
		}
		for i, tx := range txs {
			if i%3 == 0 {
				t.must(tx.Rollback())
			} else {
				t.must(tx.Commit())
				want = append(want, late[i]...)
			}
			got = append(got, jobIDs(w.Claim(lane(stint.DefaultQueue), 1))...)
			want = append(want, t.enqueue(job("k"))...)
		}
		got = append(got, jobIDs(w.ClaimAll())...)
		slices.Sort(got)
		slices.Sort(want)
		equalAll(t, got, want, "claimed %v, want %v")
	}},
	{"A transaction with several lanes and a rolled back savepoint is late in all of them", func(t *T) {
		t.skipIf(t.SingleWriter, "commits come in the order of the log")
		tx := t.begin()
		sp := t.savepoints(tx)
		want := t.enqueueIn(tx, job("k", stint.Queue("a")), job("k", stint.Queue("b")))
		t.must(sp.Savepoint("s"))
		t.enqueueIn(tx, job("k", stint.Queue("a")), job("k", stint.Queue("c")))
		t.must(sp.RollbackTo("s"))
		want = append(want, t.enqueueIn(tx, job("k", stint.Queue("a")))...)
		t.must(sp.Savepoint("s2"))
		want = append(want, t.enqueueIn(tx, job("k", stint.Queue("b")))...)
		for _, q := range []string{"a", "b", "c"} {
			want = append(want, t.enqueue(job("k", stint.Queue(q)))...)
		}
		w := t.join("k")
		got := jobIDs(w.ClaimAll())
		t.must(tx.Commit())
		got = append(got, jobIDs(w.ClaimAll())...)
		slices.Sort(got)
		slices.Sort(want)
		equalAll(t, got, want, "claimed %v, want %v")
	}},
	{"What is late in two lanes, and what is fresh beside it, is claimed in its own", func(t *T) {
		t.skipIf(t.SingleWriter, "commits come in the order of the log")
		in := func(queue string) stint.NewJob { return job("k", stint.Queue(queue)) }
		tx := t.begin()
		want := map[string][]stint.ID{"a": t.enqueueIn(tx, in("a")), "b": t.enqueueIn(tx, in("b"))}
		w := t.join("k")
		got := map[string][]stint.ID{}
		for round := range 4 {
			if round == 3 {
				t.must(tx.Commit())
			}
			for _, queue := range []string{"b", "a"} {
				want[queue] = append(want[queue], t.enqueue(in(queue))...)
			}
			t.look(store.LaneHints{}) // which shows no lane twice, though it has both
			for _, queue := range []string{"a", "b"} {
				got[queue] = append(got[queue], jobIDs(w.Claim(lane(queue), 10))...)
			}
		}
		for queue, ids := range want {
			slices.Sort(ids)
			slices.Sort(got[queue])
			equalAll(t, got[queue], ids, "of the queue %s were claimed %v, want each of %v once", queue)
		}
	}},
	{"What is appended behind a claim that was full, by a transaction that it saw open, is claimed once", func(t *T) {
		t.skipIf(t.SingleWriter, "commits come in the order of the log")
		before := t.begin() // what is in progress up to the frontier is pending; this one is, the other one is not
		want := t.enqueueIn(before, jobs(1, "k")...)
		want = append(want, t.enqueue(jobs(4, "k")...)...)
		tx := t.begin()
		want = append(want, t.enqueueIn(tx, jobs(3, "k")...)...)
		w := t.join("k")
		got := jobIDs(w.Claim(lane(stint.DefaultQueue), 3)) // its frontier is among the four
		t.must(tx.Commit())
		got = append(got, jobIDs(w.ClaimAll())...)
		t.must(before.Commit())
		got = append(got, jobIDs(w.ClaimAll())...)
		slices.Sort(got)
		equalAll(t, got, want, "claimed %v, want each of %v once")
	}},
}

// playLate runs transactions in a lane of their own, each with steps-1
// enqueues and an end (bit i of ends says whether the i-th commits), in the
// given order of steps, with a look and a claim of one or two entries after
// each.
func playLate(t *T, order []int, ends, steps int) {
	t.Helper()
	t.skipIf(t.SingleWriter, "commits come in the order of the log")
	queue := fmt.Sprint(order, ends)
	w := t.join("k")
	txs := map[int]Tx{}
	done := map[int]int{}
	mine := map[int][]stint.ID{}
	var got []store.Entry
	var want []stint.ID
	for i, who := range order {
		if txs[who] == nil {
			txs[who] = t.begin()
		}
		switch done[who]++; {
		case done[who] < steps:
			mine[who] = append(mine[who], t.enqueueIn(txs[who], jobs(2, "k", stint.Queue(queue))...)...)
		case ends>>who&1 == 1:
			t.must(txs[who].Commit())
			want = append(want, mine[who]...)
		default:
			t.must(txs[who].Rollback())
		}
		got = append(got, w.Claim(lane(queue), 1+i%2)...)
	}
	got = append(got, w.ClaimAll()...)
	ids := slices.Sorted(slices.Values(jobIDs(got)))
	slices.Sort(want)
	need(t, slices.Equal(ids, want), "order of steps %v, commits %b: claimed %v, want %v", order, ends, ids, want)
	w.Complete(got...)
	w.Leave()
}

// interleavings lists the ways to merge sequences of the given lengths, as the
// numbers of the sequences.
func interleavings(head []int, lengths ...int) [][]int {
	var all [][]int
	for i, n := range lengths {
		if n == 0 {
			continue
		}
		rest := slices.Clone(lengths)
		rest[i]--
		all = append(all, interleavings(append(slices.Clone(head), i), rest...)...)
	}
	if all == nil {
		return [][]int{head}
	}
	return all
}
