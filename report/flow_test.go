package report_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

var dawn = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

// job is a job of a flow that ran for a minute from the minute of its id, if it ended.
func flowJob(id, flow stint.ID, kind string, state stint.State) store.FlowJob {
	j := store.FlowJob{ID: id, Flow: flow, Kind: kind, State: state, Created: dawn}
	outcome := map[stint.State]stint.Outcome{stint.Completed: stint.OutcomeCompleted, stint.Failed: stint.OutcomeFailed, stint.Cancelled: stint.OutcomeCancelled}[state]
	if outcome != 0 {
		at := dawn.Add(time.Duration(id) * time.Minute)
		j.Runs = []store.FlowRun{{Outcome: outcome, Final: true, Begun: state != stint.Cancelled, Started: at, Finished: at.Add(time.Minute)}}
	}
	return j
}

func flowRoot(jobs ...store.FlowJob) *store.FlowGraph {
	return &store.FlowGraph{Jobs: append([]store.FlowJob{{ID: 1, Kind: "import", IsFlow: true, State: stint.Blocked, Created: dawn}}, jobs...)}
}

func needs(g *store.FlowGraph, all ...[3]int) *store.FlowGraph {
	for _, n := range all {
		g.Needs = append(g.Needs, store.FlowNeed{Child: stint.ID(n[0]), Parent: stint.ID(n[1]), Wants: stint.Want(n[2])})
	}
	return g
}

// graphOf makes a graph of what was read, which stores sort.
func graphOf(read *store.FlowGraph, flow stint.ID, o report.FlowOptions) report.FlowGraph {
	slices.SortFunc(read.Jobs, func(a, b store.FlowJob) int { return cmp.Compare(a.ID, b.ID) })
	return report.FlowGraphOf(read, flow, o)
}

// drawn is a graph in a line: each node with its layer, and each edge.
func drawn(g report.FlowGraph) string {
	var all []string
	for _, n := range g.Nodes {
		text := fmt.Sprintf("%d:%d %s %s", n.Layer, n.ID, n.Kind, n.State)
		if n.Jobs != 1 {
			text += fmt.Sprint(" x", n.Jobs)
		}
		if len(n.Replaces) > 0 {
			text += fmt.Sprint(" for ", n.Replaces)
		}
		if n.Outside {
			text += " outside"
		}
		if n.Critical {
			text += " *"
		}
		all = append(all, text)
	}
	for _, e := range g.Edges {
		all = append(all, fmt.Sprintf("%d>%d %s %d/%d/%d", e.From, e.To, e.Wants, e.Satisfied, e.Open, e.Broken))
	}
	return strings.Join(all, "; ")
}

func TestAFlowIsShownAsAGraph(t *testing.T) {
	skipped := flowJob(2, 1, "alarm", stint.Cancelled)
	skipped.Runs[0].Outcome = stint.OutcomeSkipped
	inner := flowJob(4, 1, "inner", stint.Blocked)
	inner.IsFlow = true
	again := flowJob(9, 1, "page", stint.Completed)
	again.Recovered = 2
	for _, c := range []struct {
		name string
		read *store.FlowGraph
		all  bool
		want string
	}{
		{"each want, and what became of it", needs(flowRoot(flowJob(2, 1, "a", stint.Completed), flowJob(3, 1, "b", stint.Failed), flowJob(4, 1, "c", stint.Running), flowJob(5, 1, "d", stint.Blocked)),
			[3]int{5, 2, 1}, [3]int{5, 3, 2}, [3]int{5, 4, 3}, [3]int{4, 2, 2}), false,
			"0:2 a completed; 0:3 b failed *; 1:4 c running; 2:5 d blocked; 2>4 failure 0/0/1; 2>5 success 1/0/0; 3>5 failure 1/0/0; 4>5 end 0/1/0"},
		{"a flow within is one node", needs(flowRoot(flowJob(2, 1, "a", stint.Completed), inner, flowJob(5, 4, "x", stint.Completed), flowJob(6, 4, "y", stint.Blocked), flowJob(7, 1, "z", stint.Blocked)),
			[3]int{5, 2, 1}, [3]int{6, 5, 1}, [3]int{7, 4, 1}), false,
			"0:2 a completed *; 1:4 inner blocked x2; 2:7 z blocked; 2>4 success 1/0/0; 4>7 success 0/1/0"},
		{"all of it has its jobs", needs(flowRoot(flowJob(2, 1, "a", stint.Completed), inner, flowJob(5, 4, "x", stint.Completed), flowJob(6, 4, "y", stint.Blocked), flowJob(7, 1, "z", stint.Blocked)),
			[3]int{5, 2, 1}, [3]int{6, 5, 1}, [3]int{7, 4, 1}), true,
			"0:2 a completed *; 1:5 x completed *; 2:6 y blocked; 3:4 inner blocked x2; 4:7 z blocked; 2>5 success 1/0/0; 5>6 success 1/0/0; 4>7 success 0/1/0"},
		{"what does a job again takes its place", needs(flowRoot(flowJob(2, 1, "page", stint.Failed), flowJob(3, 1, "sum", stint.Completed), again), [3]int{3, 9, 1}), false,
			"0:9 page completed for [2] *; 1:3 sum completed; 9>3 success 1/0/0"},
		{"of another flow, and deleted", needs(flowRoot(flowJob(20, 1, "a", stint.Cancelled), flowJob(7, 3, "other", stint.Completed)), [3]int{20, 7, 1}, [3]int{20, 8, 1}), false,
			"0:7 other completed outside; 0:8 deleted cancelled outside; 1:20 a cancelled *; 7>20 success 1/0/0; 8>20 success 0/0/1"},
		{"what was skipped is not what was wanted, whatever was", needs(flowRoot(skipped, flowJob(3, 1, "a", stint.Blocked)), [3]int{3, 2, 3}), false, "0:2 alarm cancelled *; 1:3 a blocked; 2>3 end 0/0/1"},
		{"flows that need jobs of each other", needs(flowRoot(store.FlowJob{ID: 2, Flow: 1, Kind: "f", IsFlow: true, State: stint.Blocked}, store.FlowJob{ID: 3, Flow: 1, Kind: "g", IsFlow: true, State: stint.Blocked},
			flowJob(4, 2, "a", stint.Blocked), flowJob(5, 3, "b", stint.Blocked)), [3]int{4, 5, 1}, [3]int{5, 2, 1}), false,
			"0:2 f blocked; 1:3 g blocked; 3>2 success 0/1/0; 2>3 success 0/1/0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := drawn(graphOf(c.read, 1, report.FlowOptions{All: c.all})); got != c.want {
				t.Errorf("it is\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func TestAFlowCountsItsJobsAndSaysWhatIsOpen(t *testing.T) {
	inner := flowJob(4, 1, "inner", stint.Blocked)
	inner.IsFlow = true
	g := graphOf(flowRoot(flowJob(2, 1, "a", stint.Running), flowJob(3, 1, "a", stint.Blocked), inner, flowJob(5, 4, "x", stint.Completed), flowJob(6, 4, "x", stint.Retrying)), 1, report.FlowOptions{})
	if g.Jobs != 4 || !maps.Equal(g.States, map[stint.State]int{stint.Running: 1, stint.Blocked: 1, stint.Completed: 1, stint.Retrying: 1}) || g.OldestOpen != 2 || g.NewestOpen != 6 || g.Kind != "import" || g.State != stint.Blocked {
		t.Errorf("it is %+v", g)
	}
}

func TestTimesOfANodeAreThoseOfItsAttempts(t *testing.T) {
	again := flowJob(9, 1, "page", stint.Completed)
	again.Recovered, again.Created = 2, dawn.Add(4*time.Minute)
	again.Runs = append([]store.FlowRun{{Outcome: stint.OutcomeSnoozed, Begun: true, Started: dawn.Add(5 * time.Minute), Finished: dawn.Add(6 * time.Minute)}}, again.Runs...)
	g := graphOf(needs(flowRoot(flowJob(2, 1, "page", stint.Failed), flowJob(12, 1, "sum", stint.Cancelled), again), [3]int{12, 9, 1}), 1, report.FlowOptions{})
	page, sum := g.Nodes[0], g.Nodes[1]
	at := func(n int) time.Time { return dawn.Add(time.Duration(n) * time.Minute) }
	if g.Jobs != 2 || g.States[stint.Failed] != 0 {
		t.Errorf("what was done again is counted as well: %d, %v", g.Jobs, g.States)
	}
	if len(page.Runs) != 3 || !page.Created.Equal(dawn) || !page.Started.Equal(at(2)) || !page.Finished.Equal(at(10)) {
		t.Errorf("what was done again is %+v", page)
	}
	if !sum.Ready.Equal(at(10)) || !sum.Started.IsZero() || !sum.Finished.Equal(at(13)) || !sum.Runs[0].Started.IsZero() {
		t.Errorf("what came after it is %+v", sum)
	}
}

// wide is a flow in which one job is followed by n, and those by another one.
func wide(n int) *store.FlowGraph {
	g := flowRoot(flowJob(2, 1, "fetch", stint.Completed))
	sum := stint.ID(n + 3)
	for i := range n {
		state := []stint.State{stint.Completed, stint.Failed, stint.Running}[min(i, 2)]
		if i > 2 {
			state = stint.Completed
		}
		g.Jobs = append(g.Jobs, flowJob(stint.ID(i+3), 1, "resize", state))
		needs(g, [3]int{i + 3, 2, 1}, [3]int{int(sum), i + 3, 1})
	}
	g.Jobs = append(g.Jobs, flowJob(sum, 1, "sum", stint.Blocked))
	return g
}

func TestALargeFlowIsFolded(t *testing.T) {
	g := graphOf(wide(9998), 1, report.FlowOptions{})
	if got, want := drawn(g), "0:2 fetch completed *; 1:3 resize failed x9998 *; 2:10001 sum blocked; 2>3 success 9998/0/0; 3>10001 success 9996/1/1"; got != want || !g.Folded {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
	if s := g.Nodes[1].States; s[stint.Completed] != 9996 || s[stint.Failed] != 1 || s[stint.Running] != 1 || !g.Nodes[1].Finished.IsZero() {
		t.Errorf("the jobs that were folded are %+v", g.Nodes[1])
	}
	if g := graphOf(wide(198), 1, report.FlowOptions{}); g.Folded || len(g.Nodes) != 200 {
		t.Errorf("200 nodes are %d, folded %v", len(g.Nodes), g.Folded)
	}
	if g := graphOf(wide(199), 1, report.FlowOptions{}); !g.Folded || len(g.Nodes) != 3 {
		t.Errorf("201 nodes are %d, folded %v", len(g.Nodes), g.Folded)
	}
	if g := graphOf(wide(500), 1, report.FlowOptions{All: true}); g.Folded || len(g.Nodes) != 502 || len(g.Edges) != 1000 {
		t.Errorf("all of it is %d nodes and %d edges", len(g.Nodes), len(g.Edges))
	}
	dense := flowRoot()
	for i := range 40 {
		dense.Jobs = append(dense.Jobs, flowJob(stint.ID(i+2), 1, "a", stint.Completed), flowJob(stint.ID(i+102), 1, "b", stint.Blocked))
		for k := range 40 {
			needs(dense, [3]int{k + 102, i + 2, 1})
		}
	}
	if g := graphOf(dense, 1, report.FlowOptions{}); len(g.Nodes) != 2 || len(g.Edges) != 1 || g.Edges[0].Satisfied != 1600 {
		t.Errorf("1600 edges are %.500s", drawn(g))
	}
}

func TestJobsThatDifferInWhatIsAroundThemAreFoldedApart(t *testing.T) {
	g := flowRoot(flowJob(2, 1, "fetch", stint.Completed))
	for i := range 400 {
		needed := 2
		g.Jobs = append(g.Jobs, flowJob(stint.ID(i+10), 1, "page", stint.Blocked))
		if i%2 == 1 {
			needs(g, [3]int{i + 10, needed, 1})
		} else {
			needs(g, [3]int{i + 10, needed, 3})
		}
	}
	if got, want := drawn(graphOf(g, 1, report.FlowOptions{})), "0:2 fetch completed *; 1:10 page blocked x200; 1:11 page blocked x200; 2>10 end 200/0/0; 2>11 success 200/0/0"; got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
}

func TestJobsAreNotToldApartIntoMoreNodesThanThereMayBe(t *testing.T) {
	g := flowRoot()
	for i := range 9 {
		g.Jobs = append(g.Jobs, flowJob(stint.ID(i+2), 1, string(rune('a'+i)), stint.Completed))
	}
	for i := 1; i < 400; i++ { // each needs others of the nine
		g.Jobs = append(g.Jobs, flowJob(stint.ID(i+20), 1, "page", stint.Blocked))
		for k := range 9 {
			if i>>k&1 == 1 {
				needs(g, [3]int{i + 20, k + 2, 1})
			}
		}
	}
	if got := graphOf(g, 1, report.FlowOptions{}); len(got.Nodes) != 10 || len(got.Edges) != 9 || got.Nodes[9].Jobs != 399 || got.LeftOut != 0 {
		t.Errorf("it is %.500s", drawn(got))
	}
}

func TestALongFlowIsCutWhereSomethingHappens(t *testing.T) {
	g := flowRoot(flowJob(2, 1, "step", stint.Completed))
	for i := range 999 {
		state := stint.Completed
		if i == 500 {
			state = stint.Running
		} else if i > 500 {
			state = stint.Blocked
		}
		g.Jobs = append(g.Jobs, flowJob(stint.ID(i+3), 1, "step", state))
		needs(g, [3]int{i + 3, i + 2, 1})
	}
	got := graphOf(g, 1, report.FlowOptions{})
	if len(got.Nodes) != 200 || got.LeftOut != 800 || got.Nodes[0].Layer != 496 || got.Nodes[5].State != stint.Running || len(got.Edges) != 199 {
		t.Errorf("it has %d nodes, %d edges and leaves out %d; the first is %+v", len(got.Nodes), len(got.Edges), got.LeftOut, got.Nodes[0])
	}
}

// TestWhateverAFlowIsItsGraphHolds builds flows at random, with flows within them and what others need of them.
func TestWhateverAFlowIsItsGraphHolds(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	states := []stint.State{stint.Completed, stint.Failed, stint.Cancelled, stint.Blocked, stint.Running}
	for range 400 {
		read, flows := flowRoot(), []stint.ID{1}
		n := 1 + random.IntN(600)
		for i := range n {
			j := flowJob(stint.ID(i+2), flows[random.IntN(len(flows))], string(rune('a'+random.IntN(3))), states[random.IntN(len(states))])
			if random.IntN(40) == 0 {
				j.IsFlow, j.State = true, stint.Blocked
				flows = append(flows, j.ID)
			}
			read.Jobs = append(read.Jobs, j)
			for range random.IntN(3) {
				if p := random.IntN(i + 1); p > 0 { // not the root
					needs(read, [3]int{i + 2, p + 1, 1 + random.IntN(3)})
				}
			}
		}
		nested := len(flows) > 1
		for _, all := range []bool{false, true} {
			g := graphOf(read, 1, report.FlowOptions{All: all})
			layers, jobs := map[stint.ID]int{}, 0
			for _, node := range g.Nodes {
				if _, twice := layers[node.ID]; twice {
					t.Fatalf("seed %d: the node %d is there twice", seed, node.ID)
				}
				layers[node.ID] = node.Layer
				if sum := node.Jobs; !node.IsFlow || !all {
					jobs += sum
				}
			}
			for _, e := range g.Edges {
				from, ok := layers[e.From]
				to, too := layers[e.To]
				if !ok || !too || e.From == e.To || e.Satisfied+e.Open+e.Broken == 0 {
					t.Fatalf("seed %d: an edge is %+v", seed, e)
				}
				if !nested && from >= to { // flows may need jobs of each other
					t.Fatalf("seed %d: the edge %+v leads from layer %d to %d", seed, e, from, to)
				}
			}
			if !all && (len(g.Nodes) > report.MostFlowNodes || len(g.Edges) > report.MostFlowEdges) {
				t.Fatalf("seed %d: %d nodes, %d edges", seed, len(g.Nodes), len(g.Edges))
			}
			if want := g.Jobs; g.LeftOut == 0 && !slices.ContainsFunc(g.Nodes, func(n report.FlowNode) bool { return n.IsFlow }) && jobs != want {
				t.Fatalf("seed %d: the nodes stand for %d jobs of %d", seed, jobs, want)
			}
		}
	}
}

func BenchmarkFlowGraph(b *testing.B) {
	read := wide(100_000)
	b.ReportAllocs()
	for b.Loop() {
		graphOf(read, 1, report.FlowOptions{})
	}
}

func ExampleFlowGraphOf() {
	read := store.FlowGraph{ // as a store's FlowGraph answers
		Jobs: []store.FlowJob{
			{ID: 1, Kind: "import", IsFlow: true, State: stint.Blocked},
			{ID: 2, Flow: 1, Node: "fetch", Kind: "fetch", State: stint.Completed},
			{ID: 3, Flow: 1, Node: "sum", Kind: "sum", State: stint.Running},
		},
		Needs: []store.FlowNeed{{Child: 3, Parent: 2, Wants: stint.WantsSuccess}},
	}
	g := report.FlowGraphOf(&read, 1, report.FlowOptions{})
	for _, n := range g.Nodes {
		fmt.Println(n.Layer, n.Label(), n.State)
	}
	// Output:
	// 0 fetch completed
	// 1 sum running
}
