package storetest_test

import (
	"context"
	"slices"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// order writes down that a job comes again, or failed.
func (d *database) order(x store.Completion) {
	if x.Limits == "" || x.Final && x.Outcome.State() != stint.Failed {
		return
	}
	for _, gate := range store.GatesIn(x.Limits) {
		rule, _ := stint.ParseLimitRule(d.rule(store.LimitOf(gate)))
		if !rule.Halt && (!rule.InOrder || x.Final) && !d.is("keeps an order that nobody wants") {
			continue
		}
		if d.is("keeps no order") || x.Final && d.is("never halts") {
			continue
		}
		if d.reruns[gate] == nil {
			d.reruns[gate] = map[stint.ID]bool{}
		}
		d.reruns[gate][x.Job] = x.Final || d.reruns[gate][x.Job]
	}
}

// ended reports whether a job has ended, or is gone.
func (d *database) hasEnded(id stint.ID) bool {
	if d.jobs[id] == nil {
		return true
	}
	for _, r := range d.done {
		if r.Job == id && r.Final {
			return true
		}
	}
	return false
}

func (d *database) orderOf(gate string, rule stint.LimitRule) (o store.GateOrder) {
	if !rule.InOrder {
		return o
	}
	for id, failed := range d.reruns[gate] {
		switch {
		case failed && (o.Failed == 0 || id < o.Failed):
			o.Failed = id
		case !failed && (!d.hasEnded(id) || d.is("waits for what has ended")) && (o.Again == 0 || id < o.Again):
			o.Again = id
		}
	}
	return o
}

// readyPart is where a job goes that waited.
func (d *database) readyPart(id stint.ID) store.Part {
	for _, jobs := range d.reruns {
		if _, again := jobs[id]; again && !d.is("has what was retried wait behind the others") {
			return store.PartFront
		}
	}
	return store.PartNormal
}

// goesFirst has a job take the place of a failed one, and returns where it goes.
func (d *database) goesFirst(failed, job stint.ID) store.Part {
	part := store.PartNormal
	for _, jobs := range d.reruns {
		if jobs[failed] && !d.is("stands still although it is retried") {
			delete(jobs, failed)
			jobs[job], part = false, store.PartFront
		}
	}
	return part
}

func (m *model) Unblock(_ context.Context, gate string) (failed []stint.ID, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, is := range m.reruns[gate] {
		if is {
			failed = append(failed, id)
			if !m.is("stays halted") {
				delete(m.reruns[gate], id)
			}
		}
	}
	slices.Sort(failed)
	m.tell(store.News{Permits: gate})
	return failed, nil
}

// withOrder adds to gates in use what holds up their jobs.
func (d *database) withOrder(gates []store.GateInfo) []store.GateInfo {
	for name := range d.reruns {
		order := d.gate(name).GateOrder
		if order == (store.GateOrder{}) || d.is("tells nobody who holds up others") {
			continue
		}
		i := slices.IndexFunc(gates, func(g store.GateInfo) bool { return g.Gate == name })
		if i < 0 {
			_, key, _ := strings.Cut(name, "=")
			i, gates = len(gates), append(gates, store.GateInfo{Gate: name, Key: key, Holds: []store.GateHolding{}})
		}
		gates[i].GateOrder = order
	}
	return gates
}
