package storetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// flowAgainTests are about flows that are retried, and jobs of flows.
var flowAgainTests = []test{
	{"A flow that is retried does again what did not complete", func(t *T) {
		for _, c := range [][3]string{ // the graph, what is done again, and how it ends
			{"z a b<za c<b", "a b c", "a completed, b completed, c completed: completed"},
			{"a z!a y~a b<a", "a b", "a completed, b completed: completed"},
			{"z a x!z w<x b<az", "a b", "a completed, b completed: completed"},
			{"z a x!az", "a x", "a completed, x skipped: completed"},
		} {
			g := t.flow(c[0])
			g.fails("a")
			g.plays()
			t.state(g.id, stint.Failed)
			again := g.again(g.id, stint.RerunOptions{})
			expect(t, again.did() == c[1], "of %q is done again %q, want %q", c[0], again.did(), c[1])
			flow := t.info(again.id)
			expect(t, flow.IsFlow && flow.Kind == "graph" && flow.Origin.Recovered == g.id && flow.State == stint.Blocked, "the new flow is %+v", flow)
			again.plays()
			again.ended(c[2])
			expect(t, again.outcome(g.id) == "failed", "the old flow is %s", again.outcome(g.id))
		}
	}},
	{"A flow may be retried from one of its jobs, or as a whole", func(t *T) {
		for _, c := range [][3]string{ // the graph, the job, and what is done again
			{"a b<a c<b d", "b", "b c"},
			{"a b<a c<b d", "a", "a b c"},
			{"a b<a c<b d", "", "a b c d"},
			{"a b!a c<b d", "a", "a b c"},
		} {
			g := t.flow(c[0])
			g.plays()
			t.state(g.id, stint.Completed)
			from := g.id
			if c[1] != "" {
				from = g.ids[c[1]]
			}
			again := g.again(from, stint.RerunOptions{})
			expect(t, again.did() == c[2], "of %q from %q is done again %q, want %q", c[0], c[1], again.did(), c[2])
			again.plays()
			t.state(again.id, stint.Completed)
		}
		g := t.flow("a b c<b")
		g.fails("a")
		g.plays()
		all := g.again(g.id, stint.RerunOptions{Whole: true})
		expect(t, all.did() == "a b c", "of all is done again %q", all.did())
	}},
	{"A flow that is done again is not done twice at once", func(t *T) {
		g := t.flow("a b c<b")
		g.fails("a")
		g.fails("b")
		g.plays()
		again := g.again(g.ids["a"], stint.RerunOptions{})
		expect(t, again.did() == "a b c", "there is done again %q", again.did())
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{
			g.id:       {Answer: stint.RerunRecoveredBefore, ID: again.id},
			g.ids["a"]: {Answer: stint.RerunRecoveredBefore, ID: again.ids["a"]},
			g.ids["c"]: {Answer: stint.RerunRecoveredBefore, ID: again.ids["c"]},
		})
		again.fails("b")
		again.plays()
		again.ended("a completed, b failed, c cancelled: failed")
		third := again.again(again.id, stint.RerunOptions{})
		expect(t, third.did() == "b c", "at the third time is done again %q", third.did())
		third.plays()
		t.state(third.id, stint.Completed)
	}},
	{"What completed before is read by the jobs of a flow that is retried", func(t *T) {
		g := t.flow("z a b<za")
		for _, e := range g.w.ClaimAll() {
			if e.ID == g.ids["z"] {
				g.w.Finish(store.Result{Outcome: stint.OutcomeCompleted, Result: json.RawMessage(`26`)}, e)
			} else {
				g.w.Finish(failedForGood, e)
			}
		}
		g.plays()
		again := g.again(g.id, stint.RerunOptions{})
		r := as[store.FlowReader](t)
		expect(t, must(r.Node(t.ctx, again.id, "z"))(t) == g.ids["z"] && must(r.Node(t.ctx, g.id, "a"))(t) == g.ids["a"], "the flows have other jobs of these names")
		needed := must(r.Needed(t.ctx, again.ids["b"], 0, 10))(t)
		need(t, len(needed) == 2 && needed[0].ID == g.ids["z"] && sameJSON(needed[0].Result, []byte(`26`)) && needed[1].ID == again.ids["a"], "b needs %+v", needed)
		expect(t, needed[0].Name == "z" && needed[1].Name == "a" && t.info(g.ids["z"]).Node == "z", "b needs %+v", needed)
	}},
	{"A flow within a flow is retried with it, or in it", func(t *T) {
		for _, within := range []bool{true, false} {
			g := &graph{t: t, w: t.join("k"), kind: stint.NewKind[struct{}]("k"), ids: map[string]stint.ID{}, outcomes: map[string]stint.Outcome{}}
			f := stint.NewFlow("graph")
			in := f.Flow("in", "inner")
			nodes := map[string]*stint.Node{"in": in.Node()}
			nodes["a"], nodes["b"] = g.kind.Add(in, "a", struct{}{}), g.kind.Add(in, "b", struct{}{})
			nodes["z"] = g.kind.Add(f, "z", struct{}{}, stint.Needs(in.Node()))
			nodes["y"] = g.kind.Add(f, "y", struct{}{})
			g.id = must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
			for name, n := range nodes {
				g.ids[name] = n.ID()
			}
			if within {
				g.w.Finish(failedForGood, g.claims("a"))
				g.w.Complete(g.claims("b"))
				g.promotes()
				t.states([]stint.ID{g.ids["in"], g.ids["z"], g.id}, stint.Failed, stint.Cancelled, stint.Blocked)
				t.recovers(g.ids["a"], stint.RerunOptions{})
				anew := must(as[store.FlowReader](t).Node(t.ctx, g.id, "in"))(t)
				expect(t, anew != g.ids["in"] && t.info(anew).Flow == g.id && t.info(anew).Origin.Recovered == g.ids["in"], "the flow within is %+v", t.info(anew))
				z := t.recovers(g.ids["z"], stint.RerunOptions{})
				t.state(z, stint.Blocked)
				g.plays()
				t.states([]stint.ID{anew, z, g.ids["y"], g.id}, stint.Completed)
				continue
			}
			g.fails("a")
			g.plays()
			t.states([]stint.ID{g.ids["in"], g.ids["b"], g.ids["z"], g.id}, stint.Failed, stint.Completed, stint.Cancelled, stint.Failed)
			again := g.again(g.id, stint.RerunOptions{})
			expect(t, again.did() == "a in z", "there is done again %q", again.did())
			expect(t, t.info(again.ids["a"]).Flow == again.ids["in"] && t.info(again.ids["in"]).Flow == again.id, "a is in flow %d", t.info(again.ids["a"]).Flow)
			again.plays()
			t.states([]stint.ID{again.ids["a"], again.ids["in"], again.ids["z"], again.id}, stint.Completed)
		}
	}},
	{"A job of an open flow that is retried waits for what it needs", func(t *T) {
		g := t.flow("a b<a z")
		g.w.Finish(failedForGood, g.claims("a"))
		g.promotes()
		t.state(g.ids["b"], stint.Cancelled)
		b := t.recovers(g.ids["b"], stint.RerunOptions{})
		g.promotes()
		t.state(b, stint.Cancelled)
		a := t.recovers(g.ids["a"], stint.RerunOptions{})
		b = t.recovers(b, stint.RerunOptions{})
		g.promotes()
		t.states([]stint.ID{a, b}, stint.Available, stint.Blocked)
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{g.ids["a"]: {Answer: stint.RerunRecoveredBefore, ID: a}})
		g.plays()
		t.states([]stint.ID{a, b, g.ids["z"], g.id}, stint.Completed)
	}},
	{"A flow that is retried later begins then", func(t *T) {
		g := t.flow("a b<a", stint.Tag("monthly"))
		g.fails("a")
		g.plays()
		again := g.again(g.id, stint.RerunOptions{Delay: time.Hour})
		again.promotes()
		t.states([]stint.ID{again.ids["a"], again.ids["b"], again.id}, stint.Scheduled, stint.Blocked, stint.Blocked)
		expect(t, slices.Equal(t.info(again.id).Tags, []string{"monthly"}), "it has the tags %q", t.info(again.id).Tags)
	}},
	{"A flow that is retried takes its unique key, or is refused", func(t *T) {
		g := t.flow("a", stint.UniqueUntilEnded())
		g.fails("a")
		g.plays()
		again := g.again(g.id, stint.RerunOptions{})
		other := t.flow("a", stint.UniqueUntilEnded())
		expect(t, other.duplicate && other.id == again.id, "another flow is %d, and that which is retried %d", other.id, again.id)
		again.fails("a")
		again.plays()
		other = t.flow("a", stint.UniqueUntilEnded())
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{again.id: {Answer: stint.RerunNotUnique, ID: other.id}})
	}},
	{"A flow is kept as long as one that retries it", func(t *T) {
		g := t.flow("z a b<az")
		g.fails("a")
		g.plays()
		again := g.again(g.id, stint.RerunOptions{})
		t.retain(atOnceKept)
		t.states([]stint.ID{g.ids["z"], g.ids["a"], g.id}, stint.Completed, stint.Failed, stint.Failed)
		again.plays()
		again.ended("a completed, b completed: completed")
		for range 3 {
			t.retain(atOnceKept)
		}
		t.gone(append(slices.Collect(maps.Values(g.ids)), g.id, again.id, again.ids["a"])...)
	}},
	{"A flow that is added again is the one that is there", func(t *T) {
		g := t.flow("a z<a")
		e := g.w.One()
		var before []stint.ID
		var late []*stint.Node // which have no names, so they are added twice
		for range 2 {
			f := stint.FlowFrom((&stint.Run{Job: &e.Job}).Context(t.ctx))
			in := f.Flow("in", "inner")
			parts := g.kind.Each(in, make([]struct{}, 3))
			deep := in.Flow("deep", "inner")
			x := g.kind.Add(deep, "x", struct{}{})
			y := g.kind.Add(f, "y", struct{}{}, stint.Needs(in.Node()), stint.Needs(parts...))
			v := g.kind.Add(in.Flow("", "inner"), "", struct{}{}) // at the second time it is what is around it
			late = append(late, g.kind.Add(f, "", struct{}{}, stint.Needs(v)))
			must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
			ids := []stint.ID{in.Node().ID(), deep.Node().ID(), x.ID(), y.ID()}
			expect(t, before == nil || slices.Equal(ids, before), "at first these were added: %d, and then %d", before, ids)
			before = ids
		}
		equal(t, len(t.ledger().Jobs), 3+10+1, "there are %d jobs, want %d")
		g.w.Complete(e)
		g.plays()
		t.states(append(before, g.id, late[0].ID(), late[1].ID()), stint.Completed)
	}},
	{"What is added within a new flow may need what is there and has ended", func(t *T) {
		g := t.flow("a z<a")
		e := g.w.One()
		for range 2 {
			f := stint.FlowFrom((&stint.Run{Job: &e.Job}).Context(t.ctx))
			setup := g.kind.Add(f, "setup", struct{}{})
			in := f.Flow("", "inner")
			p := g.kind.Add(in, "", struct{}{}, stint.Needs(setup))
			must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
			for range 2 { // the setup, and what needs it
				g.promotes()
				g.w.Complete(g.w.ClaimAll()...)
			}
			g.promotes()
			t.states([]stint.ID{setup.ID(), p.ID(), in.Node().ID()}, stint.Completed)
		}
		g.w.Complete(e)
		g.plays()
		t.state(g.id, stint.Completed)
	}},
	{"A flow within a flow that was retried there is not retried beside its retry", func(t *T) {
		g := &graph{t: t, w: t.join("k"), kind: stint.NewKind[struct{}]("k"), ids: map[string]stint.ID{}, outcomes: map[string]stint.Outcome{}}
		f := stint.NewFlow("graph")
		in := f.Flow("in", "inner")
		a, y := g.kind.Add(in, "a", struct{}{}), g.kind.Add(f, "y", struct{}{})
		good := f.Flow("good", "inner")
		c, d := g.kind.Add(good, "c", struct{}{}), g.kind.Add(good, "d", struct{}{})
		g.id = must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		g.ids["a"], g.ids["y"], g.ids["c"], g.ids["d"] = a.ID(), y.ID(), c.ID(), d.ID()
		g.w.Finish(failedForGood, g.claims("c")) // retried in a flow that completes
		g.promotes()
		g.ids["c"] = t.recovers(c.ID(), stint.RerunOptions{})
		g.promotes()
		g.w.Complete(g.claims("c"))
		g.w.Complete(g.claims("d"))
		g.promotes()
		t.state(good.Node().ID(), stint.Completed)
		g.w.Finish(failedForGood, g.claims("a"))
		g.promotes()
		a2 := t.recovers(a.ID(), stint.RerunOptions{})
		g.promotes()
		g.ids["a"] = a2
		g.w.Complete(g.claims("a"))
		g.promotes()
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{a.ID(): {Answer: stint.RerunRecoveredBefore, ID: t.info(a2).Flow}})
		g.w.Finish(failedForGood, g.claims("y"))
		g.promotes()
		t.state(g.id, stint.Failed)
		again := t.recovers(g.id, stint.RerunOptions{})
		done := must(as[store.Operator](t).Find(t.ctx, store.Filter{Flow: again}))(t)
		expect(t, len(done) == 1 && t.info(done[0]).Origin.Recovered == y.ID(), "done again is %d", done)
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{a2: {Answer: stint.RerunRecoveredBefore, ID: again}})
		g.plays()
		t.state(again, stint.Completed)
	}},
	{"A job of an ended flow whose place another one took is not retried, nor is one of an inner flow of which that is so", func(t *T) {
		g := &graph{t: t, w: t.join("k"), kind: stint.NewKind[struct{}]("k"), ids: map[string]stint.ID{}, outcomes: map[string]stint.Outcome{}}
		f := stint.NewFlow("graph")
		in := f.Flow("in", "inner")
		a, x, y := g.kind.Add(f, "a", struct{}{}), g.kind.Add(in, "x", struct{}{}), g.kind.Add(in, "y", struct{}{})
		g.id = must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		g.ids["a"], g.ids["x"], g.ids["y"] = a.ID(), x.ID(), y.ID()
		g.w.Complete(g.claims("y"))
		g.w.Finish(failedForGood, g.claims("x"))
		g.promotes()
		t.state(in.Node().ID(), stint.Failed)
		x2 := t.recovers(x.ID(), stint.RerunOptions{})
		in2 := t.info(x2).Flow
		g.w.Finish(failedForGood, g.claims("a"))
		g.promotes()
		a2 := t.recovers(a.ID(), stint.RerunOptions{})
		g.promotes()
		g.ids["a"], g.ids["x"] = a2, x2
		g.w.Complete(g.claims("x"))
		g.w.Finish(failedForGood, g.claims("a"))
		g.promotes()
		t.state(g.id, stint.Failed)
		for _, whole := range []bool{false, true} {
			t.retries(stint.RerunOptions{Whole: whole}, map[stint.ID]stint.RerunResult{
				a.ID():         {Answer: stint.RerunRecoveredBefore, ID: a2},
				x.ID():         {Answer: stint.RerunRecoveredBefore, ID: x2},
				y.ID():         {Answer: stint.RerunRecoveredBefore, ID: in2},
				in.Node().ID(): {Answer: stint.RerunRecoveredBefore, ID: in2},
			})
		}
		again := t.recovers(a2, stint.RerunOptions{})
		expect(t, t.info(again).Origin.Recovered == a2, "what took its place is retried as %d", again)
	}},
	{"A flow that is being cancelled holds its unique key", func(t *T) {
		g := t.flow("a", stint.UniqueUntilEnded())
		e := g.w.One()
		t.cancels(map[stint.ID]stint.CancelStatus{g.id: stint.CancelRequested}, "")
		other := t.flow("b", stint.UniqueUntilEnded())
		expect(t, other.duplicate && other.id == g.id, "another flow is %d, beside %d", other.id, g.id)
		g.w.Finish(store.Result{Outcome: stint.OutcomeCancelled}, e)
		g.promotes()
		other = t.flow("b", stint.UniqueUntilEnded())
		expect(t, !other.duplicate, "the key of a flow that was cancelled is held")
	}},
	{"A flow that is cancelled is blocked until its jobs have ended", func(t *T) {
		g := t.flow("a b<a")
		e := g.w.One()
		t.cancels(map[stint.ID]stint.CancelStatus{g.id: stint.CancelRequested}, "enough")
		g.promotes()
		t.states([]stint.ID{g.ids["b"], g.id}, stint.Cancelled, stint.Blocked)
		g.w.Finish(store.Result{Outcome: stint.OutcomeCancelled}, e)
		g.promotes()
		t.state(g.id, stint.Cancelled)
	}},
	{"The jobs of a flow share its correlation id", func(t *T) {
		for _, own := range []string{"", "invoice 7"} {
			var opts []stint.Option
			if own != "" {
				opts = append(opts, stint.Correlation(own))
			}
			g := t.flow("a b<a", opts...)
			e := g.claims("a")
			f := stint.FlowFrom((&stint.Run{Job: &e.Job}).Context(t.ctx))
			in := f.Flow("in", "inner")
			x := g.kind.Add(in, "x", struct{}{})
			must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
			want := own
			if want == "" {
				want = fmt.Sprint(int64(g.id))
			}
			for _, id := range []stint.ID{g.id, g.ids["b"], in.Node().ID(), x.ID()} {
				equal(t, t.info(id).Correlation, want, "the correlation id is %q, want %q")
			}
			equal(t, e.Job.Correlation, want, "what runs has the correlation id %q, want %q")
			g.w.Complete(e)
			g.plays()
		}
	}},
}

// again retries a flow or one of its jobs, and returns the new flow. What is done again has the name of what did it before.
func (g *graph) again(id stint.ID, opts stint.RerunOptions) *graph {
	g.t.Helper()
	anew := *g
	anew.id, anew.ids, anew.outcomes, anew.order = g.t.recovers(id, opts), map[string]stint.ID{}, map[string]stint.Outcome{}, nil
	for flow := g.t.info(anew.id).Flow; flow != 0; flow = g.t.info(anew.id).Flow {
		anew.id = flow
	}
	for name, old := range g.ids {
		if as := g.t.info(old).RetriedAs; as > anew.id {
			anew.ids[name] = as
		}
	}
	return &anew
}

// did are the names of the jobs of a flow that was retried.
func (g *graph) did() string {
	return strings.Join(slices.Sorted(maps.Keys(g.ids)), " ")
}
