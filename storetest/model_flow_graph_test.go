package storetest_test

import (
	"cmp"
	"context"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// FlowGraph implements [store.FlowGrapher].
func (m *model) FlowGraph(_ context.Context, flow stint.ID, jobs, needs int) (g store.FlowGraph, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	root := m.jobRow(flow)
	if root == nil || !root.isFlow && !m.is("reads any job as a graph") {
		return g, stint.ErrNotFound
	}
	found, level := []*row{root}, []stint.ID{flow}
	for len(level) > 0 && !g.Cut {
		var next []stint.ID
		for _, id := range level {
			for _, r := range m.visible(func(r *row) bool { return r.job != nil && r.flow == id }) {
				if len(found) > jobs && !m.is("reads more of a graph than was asked for") {
					g.Cut = true
					break
				}
				found = append(found, r)
				if r.isFlow && !m.is("leaves out what is in flows within a flow") {
					next = append(next, r.id)
				}
			}
		}
		level = next
	}
	known := map[stint.ID]bool{}
	for _, r := range found {
		known[r.id] = true
	}
	var others []*row
	for _, r := range found {
		for _, n := range r.needs {
			if len(g.Needs) == needs {
				g.Cut = true
				break
			}
			wants := n.wants
			if m.is("takes all needs of a graph for those of success") {
				wants = stint.WantsSuccess
			}
			g.Needs = append(g.Needs, store.FlowNeed{Child: r.id, Parent: n.job, Wants: wants})
			if p := m.jobRow(n.job); p != nil && !known[n.job] && len(found)+len(others) <= jobs && !m.is("leaves out what is needed of other flows") {
				known[n.job] = true
				others = append(others, p)
			}
		}
	}
	for _, r := range append(found, others...) {
		g.Jobs = append(g.Jobs, m.flowJob(r))
	}
	slices.SortFunc(g.Jobs, func(a, b store.FlowJob) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(g.Needs, func(a, b store.FlowNeed) int {
		return cmp.Or(cmp.Compare(a.Child, b.Child), cmp.Compare(a.Parent, b.Parent))
	})
	return g, nil
}

// flowJob is a job as a graph has it.
func (m *model) flowJob(r *row) store.FlowJob {
	j := store.FlowJob{ID: r.id, Flow: r.flow, Node: r.name, Kind: r.job.Kind, IsFlow: r.isFlow, Recovered: r.from, Created: r.made}
	if r.due.After(r.made) {
		j.Due = r.due
	}
	rows := m.visible(func(x *row) bool { return x.job == nil && x.id == r.id })
	j.State = m.show(r, rows).State
	if m.is("tells a graph of no attempts") {
		return j
	}
	var all []*record
	for _, x := range m.done {
		if x.Job == r.id {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b *record) int { return cmp.Compare(a.Pos, b.Pos) })
	for _, x := range all {
		j.Runs = append(j.Runs, store.FlowRun{Outcome: x.Outcome, Final: x.Final, Begun: x.Slot > 0, Started: x.started, Finished: x.finished})
	}
	if n := len(j.Runs); n > store.MostFlowRuns+1 {
		j.Runs = slices.Delete(j.Runs, 1, n-store.MostFlowRuns)
	}
	return j
}
