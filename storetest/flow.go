package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// flowTests are about jobs that need others.
var flowTests = []test{
	{"A job begins when all that it needs has completed", func(t *T) {
		g := t.flow("a b<a c<a d<bc")
		g.plays()
		g.ended("a completed, b completed, c completed, d completed: completed")
		expect(t, g.order[0] == "a" && g.order[3] == "d", "they ran in the order %q", g.order)
	}},
	{"What a failure means goes by the edge, and not by the order of the ends", func(t *T) {
		for _, c := range [][2]string{
			{"a b<a c<b", "a failed, b cancelled, c cancelled: failed"},
			{"a b!a c<b", "a failed, b completed, c completed: failed"},
			{"z b!z c<b d~b", "z completed, b skipped, c skipped, d skipped: completed"},
			{"a b~a c<b", "a failed, b completed, c completed: failed"},
			{"a z d<az", "a failed, z completed, d cancelled: failed"},
			{"a z d<z!a", "a failed, z completed, d completed: failed"},
			{"z a d!z<a", "z completed, a failed, d cancelled: failed"},
			{"a b<a c!b d~c", "a failed, b cancelled, c completed, d completed: failed"},
		} {
			for _, backward := range []bool{false, true} {
				g := t.flow(c[0])
				g.backward = backward
				g.fails("a")
				g.plays()
				g.ended(c[1])
			}
		}
	}},
	{"A flow is a job that no engine runs", func(t *T) {
		g := t.flow("a b<a")
		flow, a, b := t.info(g.id), t.info(g.ids["a"]), t.info(g.ids["b"])
		expect(t, flow.IsFlow && flow.Kind == "graph" && flow.State == stint.Blocked && flow.NeedsFirst == b.ID, "the flow is %+v", flow)
		expect(t, a.Flow == g.id && a.Node == "a" && a.State == stint.Available && !a.IsFlow, "a is %+v", a)
		expect(t, b.Flow == g.id && b.State == stint.Blocked && b.NeedsFirst == a.ID, "b is %+v", b)
		expect(t, must(as[store.FlowReader](t).Node(t.ctx, g.id, "b"))(t) == b.ID, "the flow has another b")
		_, err := as[store.FlowReader](t).Node(t.ctx, g.id, "c")
		expect(t, errors.Is(err, stint.ErrNotFound), "looking for c: %v", err)
		needed := must(as[store.FlowReader](t).Needed(t.ctx, b.ID, 0, 10))(t)
		need(t, len(needed) == 1 && needed[0].ID == a.ID && needed[0].Name == "a" && needed[0].Wants == stint.WantsSuccess && needed[0].Outcome == 0, "b needs %+v", needed)
		g.plays()
		needed = must(as[store.FlowReader](t).Needed(t.ctx, b.ID, 0, 10))(t)
		expect(t, needed[0].Outcome == stint.OutcomeCompleted, "b needed %+v", needed)
		expect(t, t.info(g.id).State == stint.Completed && len(t.info(g.id).Attempts) == 1, "the flow has ended as %+v", t.info(g.id))
	}},
	{"An empty flow ends at once", func(t *T) {
		g := t.flow("")
		g.plays()
		t.state(g.id, stint.Completed)
	}},
	{"Nothing of a flow is there unless its transaction commits", func(t *T) {
		tx := t.begin()
		f := stint.NewFlow("graph")
		kind := stint.NewKind[struct{}]("k")
		kind.Add(f, "b", struct{}{}, stint.Needs(kind.Add(f, "a", struct{}{})))
		id := must(f.Enqueue(t.ctx, stint.NewClient(t.Store).With(tx.Tx())))(t)
		t.must(tx.Rollback())
		_, err := t.Store.Job(t.ctx, id)
		expect(t, errors.Is(err, stint.ErrNotFound), "the flow is there: %v", err)
	}},
	{"Of flows with one key the first is stored", func(t *T) {
		for i, opt := range []stint.Option{stint.IdempotencyKey("k"), stint.UniqueUntilEnded()} {
			first := t.flow("a b<a", opt)
			second := t.flow("a", opt)
			expect(t, second.id == first.id && second.duplicate, "the second is %d, duplicate %v, the first %d", second.id, second.duplicate, first.id)
			expect(t, second.ids["a"] == 0, "the job %d of the second is there", second.ids["a"])
			first.plays()
			first.ended("a completed, b completed: completed")
			equal(t, len(first.order), 2, "%d jobs ran, want %d")
			third := t.flow("", opt)
			expect(t, third.duplicate == (i == 0), "after the first has ended another one is a duplicate: %v", third.duplicate)
		}
	}},
	{"A running job adds to its flow", func(t *T) {
		g := t.flow("a z<a")
		e := g.w.One()
		for range 2 { // an attempt that comes again
			f := stint.FlowFrom((&stint.Run{Job: &e.Job}).Context(t.ctx))
			b := g.kind.Add(f, "b", struct{}{})
			g.kind.Add(f, "c", struct{}{}, stint.Needs(b, stint.Existing(g.ids["a"])))
			must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
			for _, n := range []string{"b", "c"} {
				g.ids[n] = must(as[store.FlowReader](t).Node(t.ctx, g.id, n))(t)
			}
			expect(t, b.ID() == g.ids["b"], "b was added as %d, and the flow has %d", b.ID(), g.ids["b"])
		}
		g.w.Complete(e)
		g.plays()
		g.ended("a completed, b completed, c completed, z completed: completed")
		f := stint.FlowFrom((&stint.Run{Job: &e.Job}).Context(t.ctx))
		g.kind.Add(f, "late", struct{}{})
		_, err := f.Enqueue(t.ctx, stint.NewClient(t.Store))
		expect(t, errors.Is(err, stint.ErrEnded), "adding to a flow that has ended: %v", err)
	}},
	{"A flow waits for what is added to it by the last of its jobs", func(t *T) {
		g := t.flow("a")
		e := g.w.One()
		f := stint.FlowFrom((&stint.Run{Job: &e.Job}).Context(t.ctx))
		g.kind.Add(f, "b", struct{}{})
		must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		g.w.Complete(e)
		g.promotes()
		t.state(g.id, stint.Blocked)
		g.ids["b"] = must(as[store.FlowReader](t).Node(t.ctx, g.id, "b"))(t)
		g.plays()
		g.ended("a completed, b completed: completed")
	}},
	{"Cancelling a flow ends it when its jobs have ended", func(t *T) {
		g := t.flow("a b<a c<b d")
		e := g.claims("a")
		t.cancels(map[stint.ID]stint.CancelStatus{g.id: stint.CancelRequested}, "enough")
		g.promotes()
		t.states([]stint.ID{g.ids["b"], g.ids["c"], g.ids["d"]}, stint.Cancelled)
		t.state(g.ids["a"], stint.Running)
		expect(t, !slices.ContainsFunc(t.ledger().Executions, func(x store.LedgerExecution) bool { return x.Job == g.id }), "the flow has ended before its jobs")
		counts := must(t.Store.Counts(t.ctx))(t)
		expect(t, counts[stint.Blocked] == 1 && counts[stint.Cancelled] == 3, "while the flow waits for its last job there are %v", counts)
		for _, states := range [][]stint.State{{stint.Blocked}, {stint.Blocked, stint.Cancelled}} {
			found := must(t.Store.Jobs(t.ctx, store.Filter{States: states, Kind: t.info(g.id).Kind}))(t)
			expect(t, len(found) == 1 && found[0].ID == g.id, "in the states %v there are %d flows", states, len(found))
		}
		g.w.Finish(store.Result{Outcome: stint.OutcomeCancelled}, e)
		g.promotes()
		g.ended("a cancelled, b cancelled, c cancelled, d cancelled: cancelled")
		expect(t, strings.Contains(t.info(g.ids["d"]).Reason, "enough") && t.info(g.id).Reason == "enough", "the reasons are %q and %q",
			t.info(g.ids["d"]).Reason, t.info(g.id).Reason)
	}},
	{"Once a flow is cancelled none of its jobs begins", func(t *T) {
		for _, n := range []int{4, 30} { // of few and of many it is asked in other ways
			w, kind, f := t.join("k"), stint.NewKind[int]("k"), stint.NewFlow("f")
			ready := kind.Each(f, make([]int, n))
			after := kind.Add(f, "", 0, stint.Needs(ready[0]))
			id := must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
			other := t.enqueue(jobs(n, "k")...)
			ended := w.Claim(lane(stint.DefaultQueue), 1)[0]
			w.Complete(ended)
			running := w.Claim(lane(stint.DefaultQueue), n/2)
			w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartNormal}, running[0]) // it comes again at a later entry
			running = running[1:]
			t.cancels(map[stint.ID]stint.CancelStatus{id: stint.CancelRequested}, "enough")
			var asked []stint.ID
			for _, e := range running {
				asked = append(asked, e.ID)
			}
			told := must(as[store.Canceller](t).Cancelling(t.ctx, append(asked, ended.ID, other[0])))(t)
			expect(t, slices.Equal(slices.Sorted(slices.Values(told)), slices.Sorted(slices.Values(asked))), "of the jobs that run %v are to stop, want %v", told, asked)
			w.Finish(cancelled, running...)
			got := w.ClaimAll()
			for _, e := range got {
				equal(t, e.Cancelled, !slices.Contains(other, e.ID), "job %d was handed out as cancelled: %v, want %v", e.ID)
			}
			cut := slices.DeleteFunc(got, func(e store.Entry) bool { return !e.Cancelled })
			w.Finish(cancelled, cut...)
			for _, e := range slices.Concat(running, cut) {
				info := t.info(e.ID)
				equal(t, info.Reason, fmt.Sprintf("its flow %d was cancelled: enough", id), "job %d says %q, want %q", e.ID)
				expect(t, info.Finished.Before(time.Now()), "it ended at %v", info.Finished)
			}
			(&graph{t: t}).promotes()
			t.states([]stint.ID{after.ID(), id}, stint.Cancelled)
			w.Complete(w.ClaimAll()...)
		}
	}},
	{"Of many that one needs, one that did not simply complete counts", func(t *T) {
		for _, c := range []struct {
			fail, look       int // which one fails, and after which it is looked how far they are; -1 for none
			all, failed, end stint.State
		}{
			{-1, -1, stint.Available, stint.Cancelled, stint.Available},
			{-1, 130, stint.Available, stint.Cancelled, stint.Available},
			{120, -1, stint.Cancelled, stint.Cancelled, stint.Available},
			{120, 130, stint.Cancelled, stint.Cancelled, stint.Available},
		} {
			w, kind, f := t.join("k"), stint.NewKind[int]("k"), stint.NewFlow("many")
			many := kind.Each(f, make([]int, 150))
			all := kind.Add(f, "all", 0, stint.Needs(many...))
			failed := kind.Add(f, "failed", 0, stint.NeedsFailure(many...))
			end := kind.Add(f, "end", 0, stint.NeedsEnd(many...))
			must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
			for i, e := range w.ClaimAll() {
				if i == c.fail {
					w.Finish(failedForGood, e)
				} else {
					w.Complete(e)
				}
				if i == c.look {
					(&graph{t: t}).promotes()
					t.states([]stint.ID{all.ID(), failed.ID(), end.ID()}, stint.Blocked)
				}
			}
			(&graph{t: t}).promotes()
			t.state(all.ID(), c.all)
			t.state(failed.ID(), c.failed)
			t.state(end.ID(), c.end)
			w.Complete(w.ClaimAll()...)
			(&graph{t: t}).promotes()
		}
	}},
	{"A flow that takes longer than its timeout is cancelled", func(t *T) {
		slow := t.flow("a b<a", stint.Timeout(time.Hour))
		p := must(t.Store.Promote(t.ctx, time.Time{}, 1000))(t)
		expect(t, p.Next > 50*time.Minute && p.Next <= time.Hour, "the next promotion is to be in %v", p.Next)
		g := t.flow("a b<a c", stint.Timeout(20*time.Millisecond))
		e := g.claims("a")
		time.Sleep(30 * time.Millisecond)
		g.promotes()
		t.states([]stint.ID{g.ids["b"], g.ids["c"]}, stint.Cancelled)
		t.state(g.ids["a"], stint.Running)
		asked := must(as[store.Canceller](t).Cancelling(t.ctx, []stint.ID{e.ID}))(t)
		equal(t, len(asked), 1, "of the job that runs %d are to stop, want %d")
		g.w.Finish(store.Result{Outcome: stint.OutcomeCancelled}, e)
		g.promotes()
		g.ended("a cancelled, b cancelled, c cancelled: cancelled")
		equal(t, t.info(g.id).Reason, "it took longer than its timeout", "the reason is %q, want %q")
		equal(t, t.info(g.id).Timeout.AsDuration(), 20*time.Millisecond, "its timeout is %v, want %v")
		again := t.retry(stint.RerunOptions{}, g.id)[g.id]
		t.state(again.ID, stint.Blocked)
		time.Sleep(30 * time.Millisecond)
		g.promotes()
		t.state(again.ID, stint.Cancelled)
		t.state(slow.id, stint.Blocked)
	}},
	{"A flow that ended within its timeout is left, and one within a flow has its own", func(t *T) {
		var g *graph
		timeout := 10 * time.Millisecond
		for began := time.Now(); g == nil || time.Since(began) > timeout; timeout *= 2 { // until it ends in time
			began = time.Now()
			g = t.flow("a", stint.Timeout(2*timeout))
			g.plays()
		}
		f := stint.NewFlow("around")
		in := f.Flow("in", "within", stint.Timeout(timeout))
		g.kind.Add(in, "slow", struct{}{}, stint.Delay(time.Hour))
		after := g.kind.Add(f, "after", struct{}{}, stint.NeedsFailure(in.Node()))
		must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		time.Sleep(timeout + 10*time.Millisecond)
		g.promotes()
		g.ended("a completed: completed")
		t.state(after.ID(), stint.Available)
		t.state(in.Node().ID(), stint.Cancelled)
		p := must(t.Store.Promote(t.ctx, time.Time{}, 1000))(t)
		expect(t, p.Next < 0, "the next promotion is to be in %v, for nothing", p.Next)
	}},
	{"What is in an open flow is not deleted, and after that is", func(t *T) {
		g := t.flow("a b<a")
		g.w.Complete(g.claims("a"))
		t.deletes(map[stint.ID]store.DeleteStatus{g.ids["a"]: store.DeleteNotFinal})
		g.plays()
		t.deletes(map[stint.ID]store.DeleteStatus{g.ids["a"]: store.DeletedNow, g.ids["b"]: store.DeletedNow, g.id: store.DeletedNow})
		t.gone(g.ids["a"], g.ids["b"], g.id)
	}},
	{"A job of a flow that is retried takes the place of the one that failed", func(t *T) {
		g := t.flow("a z b<az")
		g.fails("a")
		g.w.Finish(failedForGood, g.claims("a"))
		g.promotes()
		again := t.recovers(g.ids["a"], stint.RerunOptions{})
		g.ids["a"] = again
		g.outcomes = map[string]stint.Outcome{}
		g.plays()
		g.ended("a completed, b completed, z completed: completed")
		expect(t, must(as[store.FlowReader](t).Node(t.ctx, g.id, "a"))(t) == again, "the old job has the name a")
	}},
	{"Who waits for others is not made to begin", func(t *T) {
		g := t.flow("a b<a")
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{g.ids["b"]: {Answer: stint.RerunBlocked, ID: g.ids["b"]}})
		t.state(g.ids["b"], stint.Blocked)
	}},
	{"Many that wait for one begin, and one that waits for many", func(t *T) {
		g := &graph{t: t, w: t.join("k"), kind: stint.NewKind[struct{}]("k"), outcomes: map[string]stint.Outcome{}}
		f := stint.NewFlow("wide")
		a := g.kind.Add(f, "a", struct{}{})
		parts := g.kind.Each(f, make([]struct{}, 2500), stint.Needs(a))
		z := g.kind.Add(f, "z", struct{}{}, stint.Needs(parts...))
		g.id = must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		g.w.Complete(g.w.One())
		g.promotes()
		all := g.w.ClaimAll()
		need(t, len(all) == 2500, "%d began, want 2500", len(all))
		g.w.Complete(all[1:]...)
		g.promotes()
		t.state(z.ID(), stint.Blocked)
		g.w.Complete(all[0])
		g.promotes()
		g.w.Complete(g.w.One())
		g.promotes()
		t.states([]stint.ID{z.ID(), g.id}, stint.Completed)
	}},
	{"A flow within a flow is needed as a whole", func(t *T) {
		g := &graph{t: t, w: t.join("k"), kind: stint.NewKind[struct{}]("k"), outcomes: map[string]stint.Outcome{}}
		f := stint.NewFlow("outer")
		in := f.Flow("in", "inner")
		g.kind.Each(in, make([]struct{}, 3))
		z := g.kind.Add(f, "z", struct{}{}, stint.Needs(in.Node()))
		g.id = must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		parts := g.w.ClaimAll()
		need(t, len(parts) == 3, "%d began, want 3", len(parts))
		g.w.Complete(parts[1:]...)
		g.promotes()
		t.state(z.ID(), stint.Blocked)
		g.w.Complete(parts[0])
		g.promotes()
		g.w.Complete(g.w.One())
		g.promotes()
		t.states([]stint.ID{z.ID(), in.Node().ID(), g.id}, stint.Completed)
	}},
	{"Random graphs end as their edges say", func(t *T) {
		const seed = 7
		random := rand.New(rand.NewPCG(seed, seed))
		for range 25 {
			g := t.flow(randomGraph(random))
			for name := range g.ids {
				if random.IntN(4) == 0 {
					g.fails(name)
				}
			}
			g.backward = random.IntN(2) == 0
			g.step = 1 + random.IntN(4)
			g.plays()
			g.verify()
		}
	}},
}

var failedForGood = store.Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("broken"))}

// graph is a flow, and how its jobs are to end.
type graph struct {
	t         *T
	w         *Worker
	kind      stint.Kind[struct{}]
	id        stint.ID
	duplicate bool
	ids       map[string]stint.ID
	edges     map[string]map[string]stint.Want // by child and parent
	outcomes  map[string]stint.Outcome
	backward  bool // the last that was claimed ends first
	step      int  // how many end between two promotions; 0 for all
	order     []string
}

var wants = map[byte]stint.Want{'<': stint.WantsSuccess, '!': stint.WantsFailure, '~': stint.WantsEnd}

// flow enqueues a graph: "a b<a c!ab" are the jobs a, b, which needs that a completes, and c, which needs that both fail.
func (t *T) flow(text string, opts ...stint.Option) *graph {
	t.Helper()
	g := &graph{t: t, w: t.join("k"), kind: stint.NewKind[struct{}]("k"), ids: map[string]stint.ID{}, edges: map[string]map[string]stint.Want{}, outcomes: map[string]stint.Outcome{}}
	f := stint.NewFlow("graph", opts...)
	nodes := map[string]*stint.Node{}
	for word := range strings.FieldsSeq(text) {
		var needs []stint.Option
		name, want := word[:1], stint.Want(0)
		g.edges[name] = map[string]stint.Want{}
		for i := 1; i < len(word); i++ {
			if wants[word[i]] != 0 {
				want = wants[word[i]]
				continue
			}
			parent := word[i : i+1]
			g.edges[name][parent] = want
			needs = append(needs, map[stint.Want]func(...*stint.Node) stint.Option{
				stint.WantsSuccess: stint.Needs, stint.WantsFailure: stint.NeedsFailure, stint.WantsEnd: stint.NeedsEnd}[want](nodes[parent]))
		}
		nodes[name] = g.kind.Add(f, name, struct{}{}, needs...)
	}
	r := must(f.EnqueueReceipt(t.ctx, stint.NewClient(t.Store)))(t)
	g.id, g.duplicate = r.ID, r.Duplicate
	for name, n := range nodes {
		g.ids[name] = n.ID()
	}
	return g
}

// randomGraph is one of up to twelve jobs.
func randomGraph(r *rand.Rand) string {
	var words []string
	for i := range 1 + r.IntN(12) {
		var word strings.Builder
		word.WriteString(string(rune('a' + i)))
		for p := range i {
			if r.IntN(3) == 0 {
				word.WriteString(string("<<<!~"[r.IntN(5)]) + string(rune('a'+p)))
			}
		}
		words = append(words, word.String())
	}
	return strings.Join(words, " ")
}

func (g *graph) fails(name string) { g.outcomes[name] = stint.OutcomeFailed }

// name is that of a job.
func (g *graph) name(id stint.ID) string {
	for name, one := range g.ids {
		if one == id {
			return name
		}
	}
	return fmt.Sprint("job ", id)
}

// claims claims what there is, and returns the job of this name; the others go back.
func (g *graph) claims(name string) store.Entry {
	g.t.Helper()
	var found store.Entry
	for _, e := range g.w.ClaimAll() {
		if e.ID == g.ids[name] {
			found = e
		} else {
			g.w.Finish(store.Result{Outcome: stint.OutcomeReturned}, e)
		}
	}
	need(g.t, found.ID != 0, "%s was not to be claimed", name)
	return found
}

// promotes promotes until there is nothing more to do.
func (g *graph) promotes() {
	g.t.Helper()
	for range 1000 {
		p := must(g.t.Store.Promote(g.t.ctx, time.Time{}, 1000))(g.t)
		if p.Moved == 0 && p.Next != 0 {
			return
		}
	}
	g.t.Fatal("promotion comes to no end")
}

// plays runs the jobs until nothing is left to run. Each begins only after what it needs.
func (g *graph) plays() {
	g.t.Helper()
	var hand []store.Entry
	for {
		g.promotes()
		hand = append(hand, g.w.ClaimAll()...)
		if len(hand) == 0 {
			return
		}
		if g.backward {
			slices.Reverse(hand)
		}
		n := len(hand)
		if g.step > 0 {
			n = min(n, g.step)
		}
		for _, e := range hand[:n] {
			name := g.name(e.ID)
			g.order = append(g.order, name)
			for parent := range g.edges[name] {
				if id := g.ids[parent]; id != 0 { // of a flow that is retried only some are done again
					expect(g.t, g.t.info(id).State.Final(), "%s began before %s had ended", name, parent)
				}
			}
			if g.outcomes[name] == stint.OutcomeFailed {
				g.w.Finish(failedForGood, e)
			} else {
				g.w.Complete(e)
			}
		}
		hand = slices.Clone(hand[n:])
	}
}

// outcome is how a job of the graph ended.
func (g *graph) outcome(id stint.ID) string {
	j := g.t.info(id)
	if !j.State.Final() || len(j.Attempts) == 0 {
		return string(j.State) + " still"
	}
	return j.Attempts[len(j.Attempts)-1].Outcome.String()
}

// ended checks how each job and the flow ended: "a completed, b skipped: completed".
func (g *graph) ended(want string) {
	g.t.Helper()
	var all []string
	for part := range strings.SplitSeq(strings.SplitN(want, ":", 2)[0], ", ") {
		name := part[:1]
		all = append(all, name+" "+g.outcome(g.ids[name]))
	}
	got := strings.Join(all, ", ") + ": " + g.outcome(g.id)
	expect(g.t, got == want, "the graph ended as %q, want %q; it ran %q", got, want, g.order)
}

// verify checks how each job ended by what it needed.
func (g *graph) verify() {
	g.t.Helper()
	want := map[string]stint.Outcome{}
	flow := stint.OutcomeCompleted
	for _, name := range slices.Sorted(maps.Keys(g.edges)) { // parents come first
		verdict := stint.OutcomeCompleted
		for parent, wanted := range g.edges[name] {
			switch how := want[parent]; {
			case how == stint.OutcomeSkipped, wanted == stint.WantsFailure && how == stint.OutcomeCompleted:
				if verdict == stint.OutcomeCompleted {
					verdict = stint.OutcomeSkipped
				}
			case wanted == stint.WantsSuccess && how != stint.OutcomeCompleted:
				verdict = stint.OutcomeCancelled
			}
		}
		if verdict == stint.OutcomeCompleted && g.outcomes[name] != 0 {
			verdict = g.outcomes[name]
		}
		if want[name] = verdict; verdict == stint.OutcomeFailed || verdict == stint.OutcomeCancelled {
			flow = stint.OutcomeFailed
		}
		got := g.outcome(g.ids[name])
		expect(g.t, got == verdict.String(), "%s ended as %s, want %s", name, got, verdict)
		expect(g.t, slices.Contains(g.order, name) == (verdict == stint.OutcomeCompleted || verdict == stint.OutcomeFailed), "%s ended as %s, and ran: %q", name, verdict, g.order)
	}
	expect(g.t, g.outcome(g.id) == flow.String(), "the flow ended as %s, want %s", g.outcome(g.id), flow)
}
