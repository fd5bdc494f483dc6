package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// flowGraphTests are about flows as people look at them.
var flowGraphTests = []test{
	{"A flow is read as a graph, with the attempts of its jobs", func(t *T) {
		g := t.flow("a b<a c~ab d!c e")
		t.graph(g, "a available, b blocked, c blocked, d blocked, e available", "a<b a~c b~c c!d")
		g.w.Finish(store.Result{Outcome: stint.OutcomeSnoozed}, g.claims("a"))
		g.promotes()
		g.w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("broken")}, g.claims("a"))
		t.graph(g, "a retrying, b blocked, c blocked, d blocked, e available", "a<b a~c b~c c!d")
		again := t.retry(stint.RerunOptions{}, g.ids["a"])
		need(t, again[g.ids["a"]].ID == g.ids["a"], "running a again answers %+v", again)
		g.w.Complete(g.claims("a"))
		g.promotes()
		e := g.claims("e")
		t.graph(g, "a completed, b available, c blocked, d blocked, e running", "a<b a~c b~c c!d")
		t.cancels(map[stint.ID]stint.CancelStatus{g.ids["b"]: stint.CancelledNow}, "enough")
		t.graph(g, "a completed, b cancelled, c blocked, d blocked, e running", "a<b a~c b~c c!d")
		g.w.Complete(e)
		g.plays()
		t.graph(g, "a completed, b cancelled, c completed, d cancelled, e completed", "a<b a~c b~c c!d")
	}},
	{"A graph has what is in the flows within the flow, and what is needed of others", func(t *T) {
		other := t.flow("o")
		g := &graph{t: t, w: other.w, kind: other.kind, ids: map[string]stint.ID{"o": other.ids["o"]}, outcomes: map[string]stint.Outcome{}}
		f := stint.NewFlow("graph")
		in := f.Flow("i", "inner")
		deep := in.Flow("j", "deep")
		nodes := map[string]*stint.Node{"i": in.Node(), "j": deep.Node()}
		nodes["a"] = g.kind.Add(f, "a", struct{}{})
		nodes["x"] = g.kind.Add(deep, "x", struct{}{}, stint.Needs(nodes["a"]))
		nodes["y"] = g.kind.Add(in, "y", struct{}{}, stint.NeedsEnd(deep.Node()), stint.Needs(stint.Existing(other.ids["o"])))
		nodes["z"] = g.kind.Add(f, "z", struct{}{}, stint.Needs(in.Node()))
		g.id = must(f.Enqueue(t.ctx, stint.NewClient(t.Store)))(t)
		for name, n := range nodes {
			g.ids[name] = n.ID()
		}
		edges := "a<x j~y o<y i<z"
		t.graph(g, "a available, i blocked, j blocked, o available, x blocked, y blocked, z blocked", edges)
		t.graph(&graph{t: t, id: g.ids["j"], ids: map[string]stint.ID{"a": g.ids["a"], "x": g.ids["x"]}}, "a available, x blocked", "a<x")
		t.graph(other, "o available", "")
		g.plays()
		t.graph(g, "a completed, i completed, j completed, o completed, x completed, y completed, z completed", edges)
	}},
	{"A graph tells what was retried, in the flow and as a new one", func(t *T) {
		g := t.flow("a b<a z")
		g.w.Finish(failedForGood, g.claims("a"))
		g.promotes()
		g.ids["o"] = g.ids["a"]
		g.ids["a"] = t.recovers(g.ids["o"], stint.RerunOptions{})
		got := t.graph(g, "a blocked, b cancelled, o failed, z available", "a<b")
		for _, j := range got.Jobs {
			expect(t, (j.ID == g.ids["a"]) == (j.Recovered == g.ids["o"]), "job %d does job %d again", j.ID, j.Recovered)
		}
		g.fails("z")
		g.plays()
		t.state(g.id, stint.Failed)
		again := g.again(g.id, stint.RerunOptions{})
		again.ids["o"] = g.ids["a"]
		got = t.graph(again, "b blocked, o completed, z blocked", "o<b")
		expect(t, got.Jobs[0].ID == g.ids["a"] && got.Jobs[0].Node == "a" && got.Jobs[0].Flow == g.id, "what completed before is %+v", got.Jobs[0])
	}},
	{"So much of a graph is read as was asked for", func(t *T) {
		g := t.flow("a b<a c<ab d")
		for jobs, want := range map[int]int{1: 2, 3: 4, 4: 5, 5: 5} {
			got := must(as[store.FlowGrapher](t).FlowGraph(t.ctx, g.id, jobs, 100))(t)
			expect(t, len(got.Jobs) == want && got.Cut == (jobs < 4) && got.Jobs[0].ID == g.id && got.Jobs[1].ID == g.ids["a"], "of up to %d jobs are read %+v", jobs, got)
		}
		for needs := range 5 {
			got := must(as[store.FlowGrapher](t).FlowGraph(t.ctx, g.id, 100, needs))(t)
			expect(t, len(got.Needs) == min(needs, 3) && got.Cut == (needs < 3), "of up to %d needs are read %+v", needs, got)
		}
		for _, id := range []stint.ID{g.ids["a"], 1 << 40} {
			_, err := as[store.FlowGrapher](t).FlowGraph(t.ctx, id, 100, 100)
			expect(t, errors.Is(err, stint.ErrNotFound), "of what is no flow is read %v", err)
		}
	}},
	{"Of many attempts a graph has the first and the last", func(t *T) {
		g := t.flow("a")
		for range store.MostFlowRuns + 5 {
			g.w.Finish(store.Result{Outcome: stint.OutcomeSnoozed}, g.claims("a"))
			g.promotes()
		}
		all := t.info(g.ids["a"]).Attempts
		got := must(as[store.FlowGrapher](t).FlowGraph(t.ctx, g.id, 100, 100))(t).Jobs[1].Runs
		need(t, len(got) == store.MostFlowRuns+1, "%d attempts are read, want %d", len(got), store.MostFlowRuns+1)
		expect(t, got[0].Finished.Equal(all[0].Finished) && got[1].Finished.Equal(all[5].Finished) && got[len(got)-1].Finished.Equal(all[len(all)-1].Finished), "the attempts are %+v", got)
	}},
}

// graph reads a flow as a graph, and checks the states of its jobs and its needs, each as "parent<child", with the sign of
// [T.flow]. Whatever is said of a job elsewhere must be said of it there.
func (t *T) graph(g *graph, jobs, needs string) store.FlowGraph {
	t.Helper()
	got := must(as[store.FlowGrapher](t).FlowGraph(t.ctx, g.id, 100, 100))(t)
	names := map[stint.ID]string{}
	for name, id := range g.ids {
		names[id] = name
	}
	var states, edges []string
	for i := range got.Jobs {
		j := &got.Jobs[i]
		t.sameAsShown(j)
		if j.ID != g.id {
			states = append(states, fmt.Sprintf("%s %s", names[j.ID], j.State))
		}
	}
	for _, n := range got.Needs {
		edges = append(edges, names[n.Parent]+string(" <!~"[n.Wants])+names[n.Child])
	}
	want := strings.Fields(needs)
	slices.Sort(states)
	slices.Sort(edges)
	slices.Sort(want)
	expect(t, strings.Join(states, ", ") == jobs, "the jobs of the graph are %q, want %q", strings.Join(states, ", "), jobs)
	expect(t, slices.Equal(edges, want), "the needs of the graph are %q, want %q", edges, want)
	expect(t, !got.Cut, "the graph is cut")
	return got
}

// sameAsShown checks what a graph says of a job.
func (t *T) sameAsShown(j *store.FlowJob) {
	t.Helper()
	shown := t.info(j.ID)
	expect(t, j.Flow == shown.Flow && j.Node == shown.Node && j.Kind == shown.Kind && j.IsFlow == shown.IsFlow && j.State == shown.State &&
		j.Recovered == shown.Origin.Recovered && j.Created.Equal(shown.Created), "the graph says %+v, and shown is %+v", j, shown)
	for i, r := range j.Runs {
		x := &shown.Attempts[i]
		expect(t, r.Outcome == x.Outcome && r.Final == x.Final && r.Begun == (x.Slot > 0) && r.Started.Equal(x.Started) && r.Finished.Equal(x.Finished),
			"the graph says of attempt %d of job %d %+v, and shown is %+v", i+1, j.ID, r, x)
	}
	n := len(shown.Attempts)
	if n > 0 && len(j.Runs) < n && shown.State == stint.Cancelled {
		n-- // what is shown of one whose end no engine has recorded
	}
	expect(t, len(j.Runs) == n, "the graph has %d attempts of job %d, want %d", len(j.Runs), j.ID, n)
}
