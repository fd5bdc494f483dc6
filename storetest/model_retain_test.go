package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// Retain implements [store.Retainer] in one step for each page of executions,
// and in one for each of the other parts.
func (m *model) Retain(ctx context.Context, r store.RetainStep) (store.Retained, error) {
	if !slices.Contains(store.RetainParts, r.Part) {
		return store.Retained{}, valid.Invalid("part", "%q is none", r.Part)
	}
	if err := ctx.Err(); err != nil {
		return store.Retained{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.lease(r.Under.Lease); r.Under.Lease != "" && l.Engine != r.Under.Engine && !m.is("retains without the lease") {
		return store.Retained{}, store.ErrNotHeld
	}
	switch r.Part {
	case store.RetainJobs:
		return m.retainJobs(r), nil
	case store.RetainClaims:
		return m.retainClaims(r), nil
	case store.RetainEngines:
		return m.retainEngines(r), nil
	case store.RetainChanges:
		if m.is("retains young changes") {
			m.changes = nil
		}
	}
	return store.Retained{}, nil
}

func (d *database) retainJobs(r store.RetainStep) (done store.Retained) {
	done.Next = r.From
	var all []store.Position
	for pos := range d.done {
		if pos > r.From.Pos {
			all = append(all, pos)
		}
	}
	slices.Sort(all)
	limit := r.Limit
	if d.is("deletes without a limit") {
		limit = len(all) + 1
	}
	done.More = len(all) >= limit
	for _, pos := range all[:min(limit, len(all))] {
		done.Next.Pos = pos
		x := d.done[pos]
		if x == nil {
			continue // it went with an earlier one
		}
		queue := ""
		for _, e := range d.rows {
			if e.entry != nil && e.entry.Pos == pos {
				queue = e.entry.Queue
			}
		}
		if d.is("has one time for all queues") {
			queue = ""
		}
		state := x.Outcome.State()
		if d.is("has one time for all states") {
			state = stint.Completed
		}
		since := x.finished
		if job := d.jobRow(x.Job); d.is("counts age from the enqueue") && job != nil {
			since = job.made
		}
		age := r.Keep.Of(queue, state)
		ended := x.Final && !d.keptByFlow(x.Job) || d.is("deletes what is to be tried again")
		missed := x.Outcome == stint.OutcomeLost && d.is("keeps what was lost") || x.Outcome == stint.OutcomeExpired && d.is("keeps what expired") ||
			x.Nonce == 0 && d.is("keeps what nobody claimed")
		if !ended || missed || age == store.Forever || r.Age != 0 && age != r.Age && !d.is("retains for every age") {
			continue
		}
		if time.Since(since) < age {
			if done.Young == (store.RetainMark{}) && !d.is("passes over the young") {
				done.Young = store.RetainMark{Pos: pos - 1, N: 1}
			}
			continue
		}
		done.Deleted++
		kept := d.signals(x.Job)
		d.erase(x.Job)
		if d.is("keeps signals of the old") {
			d.rows = append(d.rows, kept...)
		}
		if d.is("brings back what was retained") {
			delete(d.deleted, pos)
		}
		if d.is("forgets keys with their jobs") {
			d.rows = slices.DeleteFunc(d.rows, func(k *row) bool { return k.key != "" && k.holder == x.Job })
		}
	}
	return done
}

func (d *database) retainClaims(r store.RetainStep) (done store.Retained) {
	d.claims = slices.DeleteFunc(d.claims, func(c store.LedgerClaim) bool {
		newest := !slices.ContainsFunc(d.claims, func(o store.LedgerClaim) bool { return o.Lane == c.Lane && o.N > c.N })
		left := slices.ContainsFunc(d.rows, func(e *row) bool { return e.entry != nil && slices.Contains(c.Positions, e.entry.Pos) })
		named := d.engine(c.Engine) != nil && d.lows[c.Engine] <= c.Serial && !d.is("deletes claims that may be named")
		if newest && !d.is("deletes the newest claim") || left && !d.is("deletes claims of jobs that are left") || named || done.Deleted == r.Limit {
			return false
		}
		done.Deleted++
		return true
	})
	done.More = done.Deleted == r.Limit
	if done.More {
		done.Next.N = r.From.N + 1
	}
	return done
}

func (d *database) retainEngines(r store.RetainStep) (done store.Retained) {
	for token, at := range d.buried {
		left := slices.ContainsFunc(d.claims, func(c store.LedgerClaim) bool { return c.Engine == token })
		for _, x := range d.done {
			left = left || x.engine == token
		}
		if time.Since(at) < r.Keep.Shortest() {
			continue
		}
		if !left || d.is("forgets engines of jobs that are left") {
			delete(d.buried, token)
			delete(d.ends, token)
			done.Deleted++
		}
	}
	return done
}
