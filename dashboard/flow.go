package dashboard

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/chart"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// flowGraph is a flow as its page draws it.
type flowGraph struct{ report.FlowGraph }

// flowOf asks the API for the graph of a flow.
func (b *Dashboard) flowOf(r *http.Request, flow stint.ID) (*flowGraph, error) {
	g, err := ops.FlowGraph.Call(r.Context(), b.api, ops.GraphInput{ID: int64(flow)})
	if err != nil {
		return nil, err
	}
	return &flowGraph{g}, nil
}

// stateCount is how many jobs are in a state.
type stateCount struct {
	State stint.State
	Jobs  int
}

// Counted are the jobs by state, without states in which there are none.
func (g *flowGraph) Counted() (all []stateCount) { return countedStates(g.States) }

func countedStates(states map[stint.State]int) (all []stateCount) {
	for _, s := range store.States {
		if n := states[s]; n > 0 {
			all = append(all, stateCount{s, n})
		}
	}
	return all
}

// statesInWords says how many jobs are in each state.
func statesInWords(states map[stint.State]int) string {
	var all []string
	for _, c := range countedStates(states) {
		all = append(all, words.Count(c.Jobs)+" "+string(c.State))
	}
	return strings.Join(all, ", ")
}

// label names a node on a page.
func label(n *report.FlowNode) string { return words.Visible(n.Label()) }

// Picture draws the flow. Jobs are below an address.
func (g *flowGraph) Picture(jobs string) template.HTML {
	c := chart.Graph{Title: "Jobs of flow " + g.Flow.String() + ", and what they need of each other"}
	at := map[stint.ID]int{}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		at[n.ID] = i
		node := chart.Node{Name: label(n), State: string(n.State), Layer: n.Layer, Bold: n.Critical, Link: jobs + n.ID.String()}
		var notes []string
		switch {
		case n.Deleted:
			node.Shape, node.Link, node.Says = chart.Dashed, "", "deleted"
		case n.Outside:
			node.Shape = chart.Dashed
			notes = append(notes, "of flow "+n.Flow.String())
		case n.IsFlow:
			node.Shape, node.Says = chart.Double, fmt.Sprintf("%s, %s", n.State, words.Counted(n.Jobs, "job"))
			notes = append(notes, "a flow: "+cmp.Or(statesInWords(n.States), "no jobs"))
		case n.Jobs > 1:
			node.Shape, node.Says = chart.Stack, statesInWords(n.States)
			node.Link = strings.TrimSuffix(jobs, "/") + "?" + url.Values{"flow": {g.Flow.String()}, "kind": {n.Kind}}.Encode()
		case n.Outcome == stint.OutcomeSkipped:
			node.Says = n.Outcome.String()
		}
		if n.Name != "" && n.Name != n.Kind {
			notes = append(notes, words.Visible(n.Kind))
		}
		if len(n.Replaces) > 0 {
			notes = append(notes, "retried: it takes the place of job "+n.Replaces[len(n.Replaces)-1].String())
		}
		if n.Critical {
			notes = append(notes, "on the critical path")
		}
		node.Note = strings.Join(notes, "; ")
		c.Nodes = append(c.Nodes, node)
	}
	for _, e := range g.Edges {
		from, ok := at[e.From]
		to, too := at[e.To]
		if ok && too {
			c.Edges = append(c.Edges, drawnEdge(from, to, e, label(&g.Nodes[from])))
		}
	}
	return template.HTML(c.Figure()) // what it says is escaped by it
}

// drawnEdge is an edge as it is drawn.
func drawnEdge(from, to int, e report.FlowEdge, name string) chart.Edge {
	d := chart.Edge{From: from, To: to, Class: chart.Muted}
	wanted := "completes"
	switch e.Wants {
	case "failure":
		d.Line, wanted = chart.Dashes, "fails"
	case "end":
		d.Line, wanted = chart.Dots, "ends"
	}
	was := "open"
	switch {
	case e.Broken > 0:
		d.Class, was = chart.Bad, "broken"
	case e.Open == 0:
		d.Class, was = chart.OK, "satisfied"
	}
	d.Note = fmt.Sprintf("that %s %s: %s", name, wanted, was)
	if e.Broken+e.Open+e.Satisfied > 1 {
		var parts []string
		for _, p := range []struct {
			n    int
			word string
		}{{e.Satisfied, "satisfied"}, {e.Open, "open"}, {e.Broken, "broken"}} {
			if p.n > 0 {
				parts = append(parts, words.Count(p.n)+" "+p.word)
			}
		}
		d.Note = fmt.Sprintf("that %s %s: %s", name, wanted, strings.Join(parts, ", "))
	}
	return d
}

// shownLanes is how many jobs a waterfall shows.
const shownLanes = 50

// LanesLeftOut is how many jobs the waterfall leaves out.
func (g *flowGraph) LanesLeftOut() int {
	n := 0
	for i := range g.Nodes {
		if !g.Nodes[i].Outside {
			n++
		}
	}
	return max(0, n-shownLanes)
}

// falling are the nodes of the waterfall, those that began first above. Of too many it leaves out
// those that completed and are not on the critical path, the first ones first, and then the last ones.
func (g *flowGraph) falling(now time.Time) []report.FlowNode {
	nodes := slices.DeleteFunc(slices.Clone(g.Nodes), func(n report.FlowNode) bool { return n.Outside })
	slices.SortStableFunc(nodes, func(a, b report.FlowNode) int { return began(&a, now).Compare(began(&b, now)) })
	left := g.LanesLeftOut()
	nodes = slices.DeleteFunc(nodes, func(n report.FlowNode) bool {
		out := left > 0 && n.State == stint.Completed && !n.Critical
		if out {
			left--
		}
		return out
	})
	return nodes[:min(len(nodes), shownLanes)]
}

// Waterfall draws when the jobs waited and ran.
func (g *flowGraph) Waterfall(jobs string, now time.Time) template.HTML {
	t := chart.Timeline{Title: "Attempts of the jobs of flow " + g.Flow.String(), Now: now}
	nodes := g.falling(now)
	for i := range nodes {
		n := &nodes[i]
		lane := chart.Lane{Title: label(n), Link: jobs + n.ID.String()}
		if n.Critical {
			lane.Title = "★ " + lane.Title
		}
		switch {
		case n.IsFlow:
			lane.Segments = []chart.Segment{{Name: "a flow", Class: chart.Own, From: n.Created, To: n.Finished, Note: cmp.Or(statesInWords(n.States), "no jobs")}}
		case n.Jobs > 1:
			lane.Link = ""
			lane.Segments = severalSegments(n)
		default:
			lane.Segments = segments(n, now)
		}
		t.Lanes = append(t.Lanes, lane)
	}
	return template.HTML(t.Figure())
}

// began is by what a node is sorted.
func began(n *report.FlowNode, now time.Time) time.Time {
	switch {
	case !n.Started.IsZero():
		return n.Started
	case n.State == stint.Running && !n.Ready.IsZero():
		return n.Ready
	case !n.Finished.IsZero():
		return n.Finished
	}
	return now.Add(time.Duration(n.Layer) * time.Hour)
}

// severalSegments are what jobs went through that are one node: from the first that was there to the last that ended.
func severalSegments(n *report.FlowNode) (all []chart.Segment) {
	first := cmp.Or(n.Started, n.Finished)
	if first.IsZero() || first.After(n.Created) {
		all = append(all, chart.Segment{Name: "waited", Class: chart.Muted, From: n.Created, To: first})
	}
	if !n.Started.IsZero() {
		all = append(all, chart.Segment{Name: "several jobs ran", Class: chart.Own, From: n.Started, To: n.Finished, Note: statesInWords(n.States)})
	}
	return all
}

// segments are what one job went through: it was not ready, then it waited for an engine, then it ran.
func segments(n *report.FlowNode, now time.Time) (all []chart.Segment) {
	from, first := n.Created, now
	if len(n.Runs) > 0 {
		first = cmp.Or(n.Runs[0].Started, n.Runs[0].Finished)
	}
	notReady := chart.Segment{Name: "not ready", Class: "s8", From: from}
	switch {
	case len(n.Runs) == 0 && !n.State.Final() && (n.Ready.IsZero() || n.Ready.After(now)):
		return append(all, notReady)
	case n.Ready.After(from) && !n.Ready.After(first):
		notReady.To, from = n.Ready, n.Ready
		all = append(all, notReady)
	}
	for i, r := range n.Runs {
		start := cmp.Or(r.Started, r.Finished)
		if start.After(from) {
			all = append(all, waited(i, from, start))
		}
		all = append(all, chart.Segment{Name: r.Outcome.String(), Class: classOf(r.Outcome), From: start, To: later(start, r.Finished), Took: unknownStart(r.Outcome)})
		from = later(from, r.Finished)
	}
	switch {
	case n.State == stint.Running:
		all = append(all, chart.Segment{Name: "ready, then running", Class: chart.Own, From: from})
	case !n.State.Final():
		all = append(all, waited(len(n.Runs), from, time.Time{}))
	}
	return all
}
