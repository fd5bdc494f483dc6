package storetest

import (
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// atOnceKept keeps nothing, years everything that a test makes.
var (
	atOnceKept = store.Retention{KeepFor: store.KeepFor{All: time.Microsecond}}
	years      = store.Retention{KeepFor: store.KeepFor{All: 1000 * 24 * time.Hour}}
)

var retainTests = []test{
	{"However a job ended it goes when it is old, with all that is known of it", everyEnd},
	{"What has not ended is not touched, wherever it is", func(t *T) {
		t.undecided("f")
		all := t.oneOfEach()
		marked := t.enqueue(job("k", stint.Queue("marked")))[0]
		t.join("k").Claim(lane("marked"), 1)
		t.cancel("", marked)
		before := t.ledger()
		t.retain(years)
		after := t.ledger()
		expect(t, len(after.Entries) == len(before.Entries) && len(after.Executions) == len(before.Executions) &&
			len(after.Claims) == len(before.Claims),
			"something young is gone: %d of %d entries are left", len(after.Entries), len(before.Entries))
		equal(t, t.retain(atOnceKept)[store.RetainJobs], 3, "%d jobs were deleted, want %d")
		left := t.ledger()
		var gone []stint.ID
		for state, id := range all {
			if state.Final() {
				gone = append(gone, id)
			}
		}
		t.gone(gone...)
		for _, part := range []struct {
			name      string
			was, want int
		}{
			{"entries", countOf(before.Entries, func(e store.LedgerEntry) bool { return !slices.Contains(gone, e.Job) }), len(left.Entries)},
			{"executions", countOf(before.Executions, func(x store.LedgerExecution) bool { return !slices.Contains(gone, x.Job) }), len(left.Executions)},
			{"waits", len(before.Waiting), len(left.Waiting)},
			{"jobs", len(before.Jobs) - len(gone), len(left.Jobs)},
		} {
			expect(t, part.was == part.want, "of what has not ended %d %s are left, want %d", part.want, part.name, part.was)
		}
		for state, id := range all {
			if !state.Final() {
				t.state(id, state)
			}
		}
		t.state(marked, stint.Running)
		t.stopping([]stint.ID{marked}, marked)
	}},
	{"Age counts from the end of the job, not from its enqueue", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		e := w.One()
		time.Sleep(400 * time.Millisecond)
		w.Complete(e)
		ended := t.clock()
		t.retain(store.Retention{KeepFor: store.KeepFor{All: 350 * time.Millisecond}})
		if t.clock().Sub(ended) < 350*time.Millisecond { // else the machine was slow
			t.state(id, stint.Completed)
		}
		time.Sleep(350 * time.Millisecond)
		t.retain(store.Retention{KeepFor: store.KeepFor{All: 350 * time.Millisecond}})
		t.gone(id)
	}},
	{"Each state and each queue has its own time", func(t *T) {
		w := t.join("k")
		ids := map[string]stint.ID{}
		for _, queue := range []string{"a", "b", "c"} {
			for _, end := range []store.Result{completed, failedFinally, cancelled} {
				id := t.enqueue(job("k", stint.Queue(queue)))[0]
				w.Finish(end, w.One())
				ids[queue+":"+string(end.Outcome.State())] = id
			}
		}
		left := func(want ...string) {
			t.Helper()
			var all []stint.ID
			for _, name := range want {
				all = append(all, ids[name])
			}
			slices.SortFunc(all, func(a, b stint.ID) int { return int(b - a) })
			got := t.list(store.Filter{})
			expect(t, slices.Equal(got, all), "there are %v, want %v: %v", got, all, want)
		}
		now := time.Microsecond
		t.retain(store.Retention{
			KeepFor: store.KeepFor{All: store.Forever, Cancelled: now},
			Queues: map[string]store.KeepFor{
				"b": {Completed: now}, "c": {All: store.Forever}, "A": {All: now}, "none": {All: now},
			},
		})
		left("a:completed", "a:failed", "b:failed", "c:completed", "c:failed", "c:cancelled")
		t.retain(store.Retention{KeepFor: store.KeepFor{Failed: now}, Queues: map[string]store.KeepFor{"b": {Failed: time.Hour}}})
		left("a:completed", "b:failed", "c:completed", "c:cancelled")
		t.retain(store.Retention{KeepFor: store.KeepFor{All: store.Forever}})
		left("a:completed", "b:failed", "c:completed", "c:cancelled")
		t.retain(store.Retention{})
		left("a:completed", "b:failed", "c:completed", "c:cancelled")
		t.retain(atOnceKept)
		left()
	}},
	{"A step looks at as much as it may, and the next one goes on behind it", func(t *T) {
		w := t.join("k")
		ids := t.enqueue(jobs(10, "k")...)
		for range ids {
			w.Complete(w.Claim(lane(stint.DefaultQueue), 1)...)
		}
		w.Leave()
		var counts []int
		for r := (store.RetainStep{Part: store.RetainJobs, Limit: 4, Keep: atOnceKept}); ; {
			done := t.step(r)
			if counts = append(counts, done.Deleted); !done.More {
				break
			}
			r.From = done.Next
		}
		expect(t, slices.Equal(counts, []int{4, 4, 2}), "the steps deleted %v jobs, want 4, 4 and 2", counts)
		claims := 0
		for r := (store.RetainStep{Part: store.RetainClaims, Limit: 4, Keep: atOnceKept}); ; {
			done := t.step(r)
			expect(t, done.Deleted <= 4, "a step deleted %d claims", done.Deleted)
			if claims += done.Deleted; !done.More {
				break
			}
			r.From = done.Next
		}
		if claims += t.retain(atOnceKept)[store.RetainClaims]; claims != 9 && claims != 8 { // the newest may need another one
			t.Errorf("%d claims were deleted of 10, want all but the newest", claims)
		}
	}},
	{"A pass goes on where the last one came to, and one from the beginning finds what ended late", func(t *T) {
		w := t.join("k")
		first := t.enqueue(job("k"))[0]
		late := w.One()
		second := t.enqueue(job("k"))[0]
		w.Complete(w.One())
		done := t.step(store.RetainStep{Part: store.RetainJobs, Limit: 10, Keep: atOnceKept})
		t.gone(second)
		w.Complete(late)
		third := t.enqueue(job("k"))[0]
		w.Complete(w.One())
		t.step(store.RetainStep{Part: store.RetainJobs, From: done.Next, Limit: 10, Keep: atOnceKept})
		t.gone(third)
		t.retain(atOnceKept)
		t.gone(first)
	}},
	{"A step may be about one age only, and says where the first job is that is yet too young", func(t *T) {
		w := t.join("k")
		keep := store.Retention{KeepFor: store.KeepFor{All: time.Microsecond}, Queues: map[string]store.KeepFor{"long": {All: 200 * time.Millisecond}, "ever": {All: store.Forever}}}
		var ids []stint.ID
		for _, queue := range []string{"ever", "long", "short", "long", "short"} {
			ids = append(ids, t.enqueue(job("k", stint.Queue(queue)))...)
		}
		entries := w.ClaimAll()
		time.Sleep(250 * time.Millisecond) // it was appended long ago, and ends now
		slices.SortFunc(entries, func(a, b store.Entry) int { return int(a.Pos - b.Pos) })
		w.Complete(entries...)
		ended := t.clock()
		time.Sleep(2 * time.Millisecond)
		long := store.RetainStep{Part: store.RetainJobs, Limit: 10, Keep: keep, Age: 200 * time.Millisecond}
		done := t.step(long)
		if t.clock().Sub(ended) > 150*time.Millisecond {
			t.Skip("the machine is too slow for this one")
		}
		first := entries[1].Pos
		expect(t, done.Deleted == 0 && !done.More && done.Next.Pos == entries[4].Pos && done.Young.Pos < first &&
			done.Young.Pos >= entries[0].Pos,
			"the first step says %+v, want nothing deleted and the mark in front of position %d", done, first)
		other := t.step(store.RetainStep{Part: store.RetainJobs, Limit: 10, Keep: keep, Age: time.Microsecond})
		expect(t, other.Deleted == 2 && other.Young == (store.RetainMark{}),
			"a step for another age says %+v, want two deleted and nobody too young", other)
		time.Sleep(200 * time.Millisecond)
		long.From = done.Young
		if done = t.step(long); done.Deleted != 2 {
			t.Errorf("the next step says %+v, want two deleted", done)
		}
		t.gone(ids[1:]...)
		t.state(ids[0], stint.Completed)
	}},
	{"A lane goes on where it was when all of it is gone", func(t *T) {
		last := stint.ID(0)
		for range 3 {
			w := t.join("k")
			ids := t.enqueue(jobs(6, "k")...)
			expect(t, ids[0] > last, "job %d came after job %d", ids[0], last)
			last = ids[5]
			var got []stint.ID
			for range 3 {
				entries := w.Claim(lane(stint.DefaultQueue), 2)
				got = append(got, jobIDs(entries)...)
				w.Complete(entries...)
			}
			need(t, slices.Equal(got, ids), "claimed %v, want %v", got, ids)
			w.Leave()
			// What a claim lists goes a pass later than the last one that points to it.
			t.retain(atOnceKept)
			t.retain(atOnceKept)
			l := t.ledger()
			if len(l.Entries)+len(l.Executions) != 0 || len(l.Claims) == 0 || len(l.Claims) > 2 { // the newest may need another one
				t.Errorf("%d entries, %d executions and %d claims are left, want the newest claim", len(l.Entries), len(l.Executions), len(l.Claims))
			}
			// One that looks while much is in progress may claim nothing, and that claim stays as long as it does.
			other := t.join("k")
			again := other.ClaimAll()
			expect(t, len(again) == 0, "claimed %v again", jobIDs(again))
			other.Leave()
		}
	}},
	{"A claim stays while any of its jobs does", func(t *T) {
		ids := t.enqueue(jobs(6, "k")...)
		w := t.join("k")
		first := w.Claim(lane(stint.DefaultQueue), 3)
		w.Complete(w.Claim(lane(stint.DefaultQueue), 2)...)
		w.Complete(w.Claim(lane(stint.DefaultQueue), 1)...)
		w.Complete(first[:2]...)
		w.Finish(failure, first[2])
		w.Leave()
		t.retain(atOnceKept)
		t.gone(ids[0], ids[1], ids[3], ids[4], ids[5])
		t.state(ids[2], stint.Retrying)
		claims := t.ledger().Claims
		expect(t, len(claims) >= 2 && claims[0].N == 1 && claims[len(claims)-1].N == 3,
			"the claims %+v are left, want the first and the newest", claims)
	}},
	{"Each lane keeps its newest claim and those of which something is left, whatever other lanes keep", func(t *T) {
		t.join("k") // an engine that has not said what it holds
		w := t.join("k")
		t.enqueue(job("k", stint.Queue("never claimed")))
		kept := map[store.LaneID]int64{}
		newest := map[store.LaneID]int64{}
		for queue, claims := range map[string]int{"a": 5, "b": 7} {
			for n := range claims {
				t.enqueue(job("k", stint.Queue(queue)))
				e := w.Claim(lane(queue), 1)[0]
				if n == claims/2 {
					w.Finish(failure, e)
					kept[lane(queue)] = w.taken[e.Pos].N
				} else {
					w.Complete(e)
				}
				newest[lane(queue)] = w.taken[e.Pos].N
			}
		}
		t.must(errOf(w.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Number: w.serial, Low: w.serial + 1})))
		t.step(store.RetainStep{Part: store.RetainJobs, Limit: 100, Keep: atOnceKept})
		for range 2 { // what a claim lists goes a pass later than the last one that points to it
			t.step(store.RetainStep{Part: store.RetainClaims, Limit: 100, Keep: atOnceKept})
		}
		left := map[store.LaneID][]int64{}
		for _, c := range t.ledger().Claims {
			left[c.Lane] = append(left[c.Lane], c.N)
		}
		for l, all := range left {
			most := 4 // each of the two may need another one
			if t.SingleWriter {
				most = 2
			}
			expect(t, slices.Contains(all, kept[l]) && slices.Contains(all, newest[l]) && len(all) <= most,
				"of a lane the claims %v are left, want %d and %d", all, kept[l], newest[l])
		}
		equal(t, len(left), 2, "of %d lanes claims are left, want %d")
	}},
	{"What was in progress when a frontier passed is taken, whatever was deleted meanwhile", func(t *T) {
		t.skipIf(t.SingleWriter, "commits come in the order of the log")
		tx := t.begin()
		late := t.enqueueIn(tx, jobs(3, "k")...)
		w := t.join("k")
		var n int
		for range 4 {
			t.enqueue(job("k"))
			w.Complete(w.Claim(lane(stint.DefaultQueue), 1)...)
			n++
		}
		w.Leave()
		t.retain(atOnceKept)
		left := t.list(store.Filter{})
		expect(t, len(left) == 0, "%v are left", left)
		t.must(tx.Commit())
		again := t.join("k")
		entries := again.ClaimAll()
		equalAll(t, jobIDs(entries), late, "claimed %v, want %v")
		again.Complete(entries...)
		again.Leave()
		t.retain(atOnceKept)
		claims := t.ledger().Claims
		expect(t, len(claims) != 0 && len(claims) <= 2, "%d claims are left of %d, want the newest", len(claims), n+1)
	}},
	{"An outcome that is repeated does not bring back what was deleted, and its claim is there", func(t *T) {
		ids := t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		e := w.Claim(lane(stint.DefaultQueue), 1)[0]
		x := w.Conclude(e, completed)
		w.record(1, x)
		other := w.Claim(lane(stint.DefaultQueue), 1)[0]
		w.Complete(other)
		t.retain(atOnceKept)
		t.gone(ids...)
		if n, err := w.TryFinish(t.ctx, x); err != nil || n != 0 {
			t.Errorf("the repetition recorded %d, error %v", n, err)
		}
		t.gone(ids...)
		// Once it knows that all is recorded, it names the claim no more.
		t.until(func() bool {
			t.enqueue(job("k"))
			w.Complete(w.ClaimAll()...)
			t.must(errOf(w.Store.Heartbeat(t.ctx, w.Info.Token, store.Heartbeat{Number: w.serial, Low: w.serial + 1})))
			t.retain(atOnceKept)
			claims := t.ledger().Claims
			return len(claims) == 0 || claims[0].N > 2
		})
	}},
	{"Under a lease it is done by its holder only", func(t *T) {
		id := t.enqueue(job("k"))[0]
		a, b := t.join("k"), t.join("k")
		a.Complete(a.ClaimAll()...)
		b.ClaimAll()
		under := func(w *Worker) store.RetainStep {
			return store.RetainStep{Part: store.RetainJobs, Limit: 10, Keep: atOnceKept, Under: store.LeaseGuard{Lease: "x", Engine: w.Info.Token}}
		}
		refused := func(w *Worker) {
			t.Helper()
			for _, part := range store.RetainParts {
				r := under(w)
				r.Part = part
				fails(t, errOf(as[store.Retainer](t).Retain(t.ctx, r)), store.ErrNotHeld, "%s gives %v, want ErrNotHeld", part)
			}
			t.state(id, stint.Completed)
		}
		refused(a)
		t.acquires(a, "x", term)
		refused(b)
		t.resigns(a, "x", true)
		refused(a)
		t.acquires(a, "x", term)
		t.must(errOf2(as[store.Leaser](t).Revoke(t.ctx, "x", "", "")))
		refused(a)
		t.acquire(b, "x", short)
		t.until(func() bool { return t.leaseOf("x").Engine == 0 })
		refused(b)
		t.acquires(b, "x", term)
		b.Leave()
		refused(b)
		c := t.join("k")
		t.acquires(c, "x", term)
		t.must(errOf(as[store.Retainer](t).Retain(t.ctx, under(c))))
		t.gone(id)
	}},
	{"The key of what was deleted is remembered for a day, whatever jobs are kept for", func(t *T) {
		a := job("k", stint.IdempotencyKey("a"))
		first := t.keyed(a)[0].ID
		w := t.join("k")
		w.Complete(w.One())
		t.retain(atOnceKept)
		t.gone(first)
		r := t.keyed(a)[0]
		expect(t, r == (stint.Receipt{ID: first, Duplicate: true}),
			"it is answered with %+v, want a duplicate of job %d", r, first)
	}},
	{"Engines are remembered while something of theirs is left, and then forgotten", func(t *T) {
		claims, decides, idle, lives := t.join("k"), t.join("k"), t.join("k"), t.join("k")
		kept := t.enqueue(job("k", stint.Queue("kept")))[0]
		claims.Complete(claims.ClaimAll()...)
		t.undecided("f")
		t.decided(decides, 1, t.decisions(retry.Decision{})...)
		claims.Leave()
		decides.Leave()
		idle.Leave()
		known := func(want ...*Worker) {
			t.Helper()
			l := t.ledger()
			for _, w := range []*Worker{claims, decides, idle} {
				_, is := l.Buried[w.Info.Token]
				expect(t, is == slices.Contains(want, w), "%s is remembered: %v", w.Info.Instance, is)
			}
		}
		t.retain(years)
		known(claims, decides, idle)
		t.retain(store.Retention{KeepFor: store.KeepFor{All: time.Hour, Completed: time.Microsecond}, Queues: map[string]store.KeepFor{"kept": {All: time.Hour}}})
		known(claims, decides)
		equal(t, t.info(kept).Attempts[0].Instance, claims.Info.Instance, "what is left was done by %q, want %q")
		// Of a lane's newest claim the engine is remembered too.
		w := t.join("k")
		t.until(func() bool {
			t.enqueue(job("k"), job("k", stint.Queue("kept")))
			w.Complete(w.ClaimAll()...)
			t.retain(atOnceKept)
			return len(t.ledger().Buried) == 0
		})
		_, err := w.Store.Heartbeat(t.ctx, lives.Info.Token, store.Heartbeat{})
		expect(t, err == nil, "an engine that lives: %v", err)
	}},
	{"What is no part is refused, and a call whose context has ended deletes nothing", func(t *T) {
		r := as[store.Retainer](t)
		fails(t, errOf(r.Retain(t.ctx, store.RetainStep{Part: "x", Limit: 1})), stint.ErrInvalid, "it gives %v")
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Complete(w.One())
		ended := t.over()
		expect(t, errOf(r.Retain(ended, store.RetainStep{Part: store.RetainJobs, Limit: 10, Keep: atOnceKept})) != nil, "it succeeded")
		t.state(id, stint.Completed)
	}},
	{"Whatever goes on beside it, each job is deleted once it has ended, and none before", retainStorm},
}

// step does one step.
func (t *T) step(r store.RetainStep) store.Retained {
	t.Helper()
	return must(as[store.Retainer](t).Retain(t.ctx, r))(t)
}

// retain goes through everything once, in small steps, and tells how much of
// each part was deleted.
func (t *T) retain(keep store.Retention) map[store.RetainPart]int {
	t.Helper()
	time.Sleep(2 * time.Millisecond) // what ended just now is older than a moment
	all := map[store.RetainPart]int{}
	for _, part := range store.RetainParts {
		r := store.RetainStep{Part: part, Limit: 3, Keep: keep}
		for more := true; more; {
			done := t.step(r)
			all[part] += done.Deleted
			need(t, !done.More || done.Next != r.From || part == store.RetainKeys || part == store.RetainChanges,
				"the part %s does not come further than %+v", part, r.From)
			r.From, more = done.Next, done.More
		}
	}
	return all
}

// countOf counts what is something.
func countOf[V any](all []V, is func(V) bool) (n int) {
	for _, v := range all {
		if is(v) {
			n++
		}
	}
	return n
}

// everyEnd brings jobs to an end in every way there is.
func everyEnd(t *T) {
	no := failedFinally
	w := t.join("k")
	ended := map[string]stint.ID{}
	again := func(name string, end store.Result, last store.Result) {
		id := t.enqueue(rich())[0]
		x := w.Conclude(w.One(), end)
		x.Next.Delay = 0
		w.record(1, x)
		if x.Next.Wait {
			t.promoteAll(1)
		}
		w.Finish(last, w.One())
		ended[name] = id
	}
	for name, end := range map[string]store.Result{
		"completed": completed, "failed": no, "cancelled by its handler": cancelled, "expired": expired,
	} {
		ended[name] = t.enqueue(rich())[0]
		w.Finish(end, w.One())
		again("retried, then "+name, failure, end)
		again("snoozed, then "+name, snoozed, end)
		again("returned, then "+name, returned, end)
	}

	due := t.enqueue(job("k", stint.Delay(time.Millisecond)))[0]
	t.promoteAfter(15*time.Millisecond, 1)
	w.Complete(w.One())
	ended["promoted"] = due

	ended["lost for good"] = t.enqueue(job("k", stint.MaxLosses(0)))[0]
	dies := t.join("k")
	dies.Heartbeat(dies.One().Pos)
	dies.Leave()
	t.state(ended["lost for good"], stint.Failed)
	ended["lost once"] = t.enqueue(job("k"))[0]
	dies = t.join("k")
	dies.Heartbeat(dies.One().Pos)
	dies.Leave()
	w.Complete(w.One())

	ended["cancelled before it was ready"] = t.enqueue(job("k", stint.Delay(time.Hour)))[0]
	ended["cancelled between attempts"] = t.enqueue(job("k"))[0]
	w.Finish(failure, w.One())
	ended["cancelled while it was ready"] = t.enqueue(job("k"))[0]
	t.cancel("", ended["cancelled before it was ready"], ended["cancelled between attempts"], ended["cancelled while it was ready"])
	t.none(w)

	ended["decided"] = t.undecided("f")[0]
	t.decided(w, 1, t.decisions(retry.Decision{})...)
	ended["decided, and then cancelled"] = t.undecided("f")[0]
	t.cancel("", ended["decided, and then cancelled"])

	ended["recovered"] = t.enqueue(rich())[0]
	w.Finish(no, w.One())
	ended["what recovered it"] = t.recovers(ended["recovered"], stint.RerunOptions{})
	w.Complete(w.One())

	for name, id := range ended {
		s := t.info(id).State
		need(t, s.Final(), "%s: it is %s", name, s)
	}
	t.retain(years)
	for name, id := range ended {
		_, err := t.Store.Job(t.ctx, id)
		expect(t, err == nil, "%s: young, and %v", name, err)
	}
	w.Leave()
	t.retain(atOnceKept)
	for name, id := range ended {
		fails(t, errOf(t.Store.Job(t.ctx, id)), stint.ErrNotFound, "%s: it is there, error %v", name)
	}
	t.gone(slices.Collect(maps.Values(ended))...)
	left := t.list(store.Filter{Tag: rich().Tags[0]})
	expect(t, len(left) == 0, "by tag there are %v", left)
	t.recount()
	l := t.ledger()
	expect(t, len(l.Entries)+len(l.Executions)+len(l.Waiting)+len(l.Jobs) == 0,
		"%d entries, %d executions, %d waits and %d jobs are left", len(l.Entries), len(l.Executions), len(l.Waiting),
		len(l.Jobs))
}
