package storetest

import (
	"fmt"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

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
