package rows

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// FlowTables are the questions that a flow is read by: all of them of one moment.
type FlowTables struct {
	// ByFlow reads the jobs of flows, the oldest of each first and up to a limit; ByID reads jobs.
	ByFlow func(flows []stint.ID, limit int) ([]FlowRow, error)
	ByID   func(ids []stint.ID) ([]FlowRow, error)

	// Names reads the names in flows, by job. ByFlow leaves them out, and ByID does not.
	Names func(flows []stint.ID, limit int) (map[stint.ID]string, error)

	// Needs reads what the jobs of flows need, up to a limit.
	Needs func(flows []stint.ID, limit int) ([]store.FlowNeed, error)

	// Later reads the attempts of jobs but for that of the entry that has the job's id, oldest first, and of each the last
	// [store.MostFlowRuns].
	Later func(ids []stint.ID) ([]LaterRun, error)

	// States reads the states of jobs, as the view of all jobs has them.
	States func(ids []stint.ID) (map[stint.ID]stint.State, error)
}

// FlowRow is a job with the attempt of the entry that has its id. The state is that of a job that waits; of others it is
// empty.
type FlowRow struct {
	store.FlowJob
	First store.FlowRun // its outcome is 0 for none
	Again bool          // it may have had other entries
}

// LaterRun is an attempt of a job.
type LaterRun struct {
	Job stint.ID
	store.FlowRun
}

// ReadFlowGraph reads a flow, level by level.
func ReadFlowGraph(t FlowTables, flow stint.ID, jobs, needs int) (g store.FlowGraph, err error) {
	known := map[stint.ID]bool{flow: true}
	found, err := t.ByID([]stint.ID{flow})
	if err == nil && (len(found) == 0 || !found[0].IsFlow) {
		err = fmt.Errorf("there is no flow %d: %w", flow, stint.ErrNotFound)
	}
	level := []stint.ID{flow}
	var flows []stint.ID
	for err == nil && len(level) > 0 && !g.Cut {
		flows = append(flows, level...)
		var some []FlowRow
		some, err = t.ByFlow(level, jobs+2-len(found)) // one more than there is room for
		level = nil
		for _, r := range some {
			if len(found) > jobs {
				g.Cut = true
				break
			}
			found, known[r.ID] = append(found, r), true
			if r.IsFlow {
				level = append(level, r.ID)
			}
		}
	}
	if err != nil {
		return g, err
	}
	if g.Needs, err = t.Needs(flows, needs+1); err != nil {
		return g, err
	}
	if len(g.Needs) > needs {
		g.Needs, g.Cut = g.Needs[:needs], true
	}
	g.Needs = slices.DeleteFunc(g.Needs, func(n store.FlowNeed) bool { return !known[n.Child] })
	slices.SortFunc(g.Needs, func(a, b store.FlowNeed) int {
		return cmp.Or(cmp.Compare(a.Child, b.Child), cmp.Compare(a.Parent, b.Parent))
	})
	names, err := t.Names(flows, jobs)
	if err != nil {
		return g, err
	}
	for i := range found {
		if j := &found[i]; j.Node == "" {
			j.Node = names[j.ID]
		}
	}
	var others []stint.ID
	for _, n := range g.Needs {
		if !known[n.Parent] && len(found)+len(others) <= jobs {
			others, known[n.Parent] = append(others, n.Parent), true
		}
	}
	if len(others) > 0 {
		some, err := t.ByID(others)
		if err != nil {
			return g, err
		}
		found = append(found, some...)
	}
	g.Jobs, err = t.complete(found)
	return g, err
}

// complete reads what the rows of some jobs leave out.
func (t FlowTables) complete(found []FlowRow) ([]store.FlowJob, error) {
	slices.SortFunc(found, func(a, b FlowRow) int { return cmp.Compare(a.ID, b.ID) })
	jobs := make([]store.FlowJob, len(found))
	at := make(map[stint.ID]*store.FlowJob)
	var again, open []stint.ID
	for i, r := range found {
		jobs[i] = r.FlowJob
		if r.First.Outcome != 0 {
			jobs[i].Runs = []store.FlowRun{r.First}
		}
		if r.Again {
			again = append(again, r.ID)
			at[r.ID] = &jobs[i]
		}
	}
	if len(again) > 0 {
		later, err := t.Later(again)
		if err != nil {
			return nil, err
		}
		for _, r := range later {
			j := at[r.Job]
			j.Runs = append(j.Runs, r.FlowRun)
		}
	}
	for i := range jobs {
		j := &jobs[i]
		if n := len(j.Runs); n > 0 && j.Runs[n-1].Final {
			j.State = j.Runs[n-1].Outcome.State()
		} else if j.State == "" {
			open, at[j.ID] = append(open, j.ID), j
		}
	}
	if len(open) > 0 {
		states, err := t.States(open)
		if err != nil {
			return nil, err
		}
		for _, id := range open {
			at[id].State = states[id]
		}
	}
	return jobs, nil
}
