package report

import (
	"encoding/binary"
	"slices"

	"github.com/stint-go/stint"
)

// alone has each unit be a node.
func (b *flowBuilder) alone() (of []int, n int) {
	of = make([]int, len(b.units))
	for i := range of {
		of[i] = i
	}
	return of, len(of)
}

// fold puts units that look the same into one node: of each, by number, in which it is. Those of one kind and layer look the same at
// first; then those that also need the same and are needed by the same, as these were told apart before; and so on, until
// nothing more is told apart, or there were more nodes than most. What is needed is in a lower layer, so no node
// needs itself. If there are more already at first, that is how many there are.
func (b *flowBuilder) fold(most int) (of []int, n int) {
	names := map[string]int{}
	next := make([]int, len(b.units))
	for i := range b.units {
		u := &b.units[i]
		key := binary.AppendUvarint(nil, uint64(u.layer))
		key = append(key, byte(flag(u.outside)<<1|flag(u.job != nil && u.job.IsFlow)))
		if u.job != nil {
			key = append(key, u.job.Kind...)
		}
		next[i] = number(names, string(key))
	}
	of, n = next, len(names)
	for n < most {
		next = b.apart(of)
		found := slices.Max(next) + 1
		if found == n || found > most {
			return of, n
		}
		of, n = next, found
	}
	return of, n
}

// number is that of a text among those that differ.
func number(names map[string]int, text string) int {
	n, ok := names[text]
	if !ok {
		n = len(names)
		names[text] = n
	}
	return n
}

// apart tells units apart that looked the same, by which ones they need and are needed by.
func (b *flowBuilder) apart(of []int) []int {
	names, next := map[string]int{}, make([]int, len(of))
	var key []byte
	var around []int
	for i := range of {
		key = binary.AppendUvarint(key[:0], uint64(of[i]))
		for _, side := range []struct {
			links []int
			other func(l *flowLink) int
		}{
			{b.before.at(i), func(l *flowLink) int { return l.from }},
			{b.after.at(i), func(l *flowLink) int { return l.to }},
		} {
			around = around[:0]
			for _, l := range side.links {
				around = append(around, of[side.other(&b.links[l])]<<2|int(b.links[l].wants))
			}
			slices.Sort(around)
			around = slices.Compact(around)
			key = binary.AppendUvarint(key, uint64(len(around)))
			for _, a := range around {
				key = binary.AppendUvarint(key, uint64(a))
			}
		}
		next[i] = number(names, string(key))
	}
	return next
}

func flag(is bool) int {
	if is {
		return 1
	}
	return 0
}

// before is how many layers are shown before the first in which there is something to look at.
const layersBefore = 5

// shorten leaves out nodes beyond the bound, and edges. It begins a little before the first layer in which
// something has failed or has not ended, if so many come before that.
func (g *FlowGraph) shorten() {
	if len(g.Nodes) > MostFlowNodes {
		first := slices.IndexFunc(g.Nodes, func(n FlowNode) bool { return n.State != stint.Completed && n.State != stint.Cancelled })
		from := 0
		if first > 0 {
			layer := g.Nodes[first].Layer - layersBefore
			from = slices.IndexFunc(g.Nodes, func(n FlowNode) bool { return n.Layer >= layer })
		}
		from = min(from, len(g.Nodes)-MostFlowNodes)
		g.LeftOut = len(g.Nodes) - MostFlowNodes
		g.Nodes = slices.Clone(g.Nodes[from : from+MostFlowNodes])
		shown := map[stint.ID]bool{}
		for _, n := range g.Nodes {
			shown[n.ID] = true
		}
		g.Edges = slices.DeleteFunc(g.Edges, func(e FlowEdge) bool { return !shown[e.From] || !shown[e.To] })
	}
	if n := len(g.Edges); n > MostFlowEdges {
		g.EdgesLeftOut, g.Edges = n-MostFlowEdges, slices.Clone(g.Edges[:MostFlowEdges])
	}
}
