package storetest_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

func (m *model) Undecided(_ context.Context, funcs []string, after stint.ID, limit int) ([]store.PendingRetry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	waits := m.visible(func(r *row) bool {
		return r.wait != nil && r.next.Func != "" && r.id > after && (slices.Contains(funcs, r.next.Func) || m.is("tells of every function"))
	})
	slices.SortFunc(waits, func(a, b *row) int { return cmp.Compare(a.id, b.id) })
	if m.is("tells of the first page only") && after > 0 {
		waits = nil
	}
	var all []store.PendingRetry
	for _, r := range waits[:min(len(waits), limit)] {
		u := store.PendingRetry{Func: r.next.Func}
		u.Attempt, u.Losses, u.Queue, u.Priority = r.next.Attempt, r.next.Losses, r.next.Queue, r.next.Priority
		var last *row
		for _, e := range m.visible(func(e *row) bool { return e.entry != nil && e.id == r.id }) {
			if last == nil || e.num > last.num {
				last = e
			}
		}
		x := m.done[last.entry.Pos]
		if x == nil {
			continue // it is undecided and ready: what a fault makes of it
		}
		u.Took = x.finished.Sub(x.started)
		if x.Error != nil && !m.is("forgets what failed") {
			u.Error = *x.Error
		}
		if m.is("forgets where it waits") {
			u.Queue = last.entry.Queue
		}
		u = u.Of(last.entry.Job)
		u.Limits = last.entry.Limits
		all = append(all, u)
	}
	return all, nil
}

func (m *model) Decide(ctx context.Context, engine store.EngineID, done []store.Completion) ([]stint.ID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.engine(engine) == nil && !m.is("decides for the buried") {
		return nil, store.ErrBuried
	}
	var decided []stint.ID
	for _, x := range done {
		if m.decide(engine, x) || m.is("counts what was decided before") {
			decided = append(decided, x.Job)
		}
	}
	m.ring()
	return decided, nil
}

func (d *database) decide(engine store.EngineID, x store.Completion) bool {
	waits := d.visible(func(r *row) bool {
		return r.wait != nil && r.id == x.Job && (r.next.Func != "" || d.is("decides about what is not undecided")) &&
			(r.next.Attempt == x.Attempt || d.is("decides about any attempt"))
	})
	if len(waits) == 0 {
		return d.is("revives the cancelled") && d.revive(engine, x)
	}
	if !d.is("decides and leaves it undecided") {
		d.rows = slices.DeleteFunc(d.rows, func(r *row) bool { return r == waits[0] })
	}
	d.conclude(engine, x, waits[0].next)
	return true
}

// conclude records a decision in the lane that nobody claims.
func (d *database) conclude(engine store.EngineID, x store.Completion, s store.Next) {
	x.Pos, x.Nonce, x.Ended, x.Started = store.Position(d.draw()), 0, time.Time{}, time.Time{}
	d.append(nil, d.jobRow(x.Job), int64(x.Pos), time.Now(), s)
	last := d.rows[len(d.rows)-1]
	last.lane, last.taken = store.NoLane, false
	d.record(engine, x)
}

// revive decides about a job that is not there to be decided about.
func (d *database) revive(engine store.EngineID, x store.Completion) bool {
	for _, record := range d.done {
		if record.Job == x.Job && record.Outcome == stint.OutcomeCancelled && x.Next != nil {
			d.conclude(engine, x, *x.Next)
			return true
		}
	}
	return false
}
