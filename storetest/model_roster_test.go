package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

func (d *database) engine(token store.EngineID) *store.EngineInfo {
	for _, e := range d.engines {
		if e.Token == token {
			return e
		}
	}
	return nil
}

func (m *model) Join(_ context.Context, e store.EngineInfo, kinds []stint.KindInfo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.history[e.Token]; known {
		return errors.New("the token is not fresh")
	}
	if m.oldest > 1 && !m.is("lets any program join") {
		return store.ErrSchema
	}
	e.Joined, e.Beat = time.Now(), time.Now()
	if e.Former != 0 && !m.is("forgets a drain with the burial") {
		e.Draining = m.history[e.Former].Draining
	}
	if m.is("drains all who were buried") && e.Former != 0 {
		e.Draining = true
	}
	m.engines = append(m.engines, &e)
	m.history[e.Token], m.slots[e.Token] = e, e.Slots
	if m.mine == nil {
		m.mine = map[store.EngineID]bool{}
	}
	m.held[e.Token], m.mine[e.Token] = true, true
	for _, k := range kinds {
		old := m.kinds[k.Name]
		k.Declared = old.Declared
		if !reflect.DeepEqual(old, k) || m.is("declares anew") {
			k.Declared = time.Now()
		}
		m.kinds[k.Name] = k
	}
	return nil
}

func (m *model) Heartbeat(_ context.Context, token store.EngineID, b store.Heartbeat) (store.HeartbeatReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.engine(token)
	if e == nil && m.is("resurrects at a beat") {
		was := m.history[token]
		was.Token = token
		e = &was
		m.engines = append(m.engines, e)
	}
	if e == nil {
		return store.HeartbeatReply{}, store.ErrBuried
	}
	if m.is("holds again with a beat") {
		m.held[token] = true
	}
	for i := range b.Logs {
		if !m.is("hears nothing with beats") {
			m.keepLog(token, &b.Logs[i])
		}
	}
	now := time.Now()
	e.Beat = now
	m.lows[token] = max(m.lows[token], b.Low)
	e.Low = m.lows[token]
	if b.Number >= m.beats[token] || m.is("believes the beat that came last") {
		e.Running, m.beats[token] = slices.Clone(b.Running), b.Number
		e.Slots = cmp.Or(b.Slots, m.slots[token])
		began := map[store.Position]time.Time{}
		for _, p := range b.Running {
			if at, said := b.Started[p]; said {
				began[p] = now.Add(-max(0, now.Sub(at)))
			} else if at, known := e.Started[p]; known {
				began[p] = at
			}
		}
		e.Started = began
	}
	tooOld := m.oldest > 1 && !m.is("keeps engines that are too old") || m.installed > 1 && m.is("drains at every upgrade")
	orders := store.HeartbeatReply{Drain: e.Draining || tooOld || m.is("drains everybody")}
	if m.is("says once to drain") {
		e.Draining = false
	}
	return orders, nil
}

func (m *model) Drain(_ context.Context, token store.EngineID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.engine(token)
	if e == nil && m.is("drains the buried") {
		return nil
	}
	if e == nil {
		return store.ErrBuried
	}
	e.Draining = true
	m.history[token] = *e
	return nil
}

// unfinished lists what a claim took and nobody concluded.
func (d *database) unfinished(c store.LedgerClaim) []store.Position {
	if d.is("forgets part of what is held") && len(c.Positions) > 2 {
		c.Positions = c.Positions[:2]
	}
	return slices.DeleteFunc(slices.Clone(c.Positions), func(p store.Position) bool { return d.done[p] != nil || d.deleted[p] && !d.is("holds the deleted") })
}

func (m *model) Held(_ context.Context, token store.EngineID, serial int64, known ...int64) ([]store.Claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var held []store.Claim
	for _, c := range m.claims {
		open := m.unfinished(c)
		if m.is("holds what is finished") {
			open = c.Positions
		}
		if c.Engine == token && c.Serial >= serial && len(open) > 0 && (!slices.Contains(known, c.Serial) || m.is("lists what is known")) {
			held = append(held, store.Claim{ClaimRef: c.ClaimRef, Serial: c.Serial, Positions: open})
		}
	}
	slices.SortFunc(held, func(a, b store.Claim) int { return cmp.Compare(a.Serial, b.Serial) })
	return held, nil
}

func (m *model) Announced(_ context.Context, token store.EngineID) ([]store.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var entries []store.Entry
	for _, r := range m.rows {
		if e := m.engine(token); r.entry != nil && e != nil && slices.Contains(e.Running, r.entry.Pos) && (m.done[r.entry.Pos] == nil || m.is("announces what is finished")) {
			entries = append(entries, m.read(r))
		}
	}
	return entries, nil
}

func (m *model) Bury(ctx context.Context, b store.Burial, judge func(*store.Entry, bool) store.Completion) (int, error) {
	if err := ctx.Err(); err != nil && !m.is("ignores contexts") {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.engine(b.Engine)
	if e == nil && m.is("lets every burier win") {
		return 0, nil
	}
	if e == nil {
		return 0, store.ErrBuried
	}
	lives := time.Since(e.Beat) < b.Unless && !m.is("buries the living") || m.held[b.Engine] && !m.is("buries the held")
	if b.Unless > 0 && lives {
		return 0, store.ErrAlive
	}
	if !m.is("holds for the buried") {
		delete(m.held, b.Engine)
	}
	m.engines = slices.DeleteFunc(m.engines, func(e *store.EngineInfo) bool { return e.Token == b.Engine })
	m.buried[b.Engine] = time.Now()
	n, end := 0, store.EngineEnd{}
	for _, c := range m.claims {
		if c.Engine != b.Engine {
			continue
		}
		for _, pos := range m.unfinished(c) {
			i := slices.IndexFunc(m.rows, func(r *row) bool { return r.entry != nil && r.entry.Pos == pos })
			if i < 0 {
				n++
				continue
			}
			begun := slices.Contains(e.Running, pos) || m.is("announces everything")
			e := m.read(m.rows[i])
			x := judge(&e, begun)
			x.Nonce = c.Nonce
			m.record(b.Engine, x)
			n++
			if end.Conclude(&x); m.is("counts no loss") {
				end.Lost, end.LostAt = 0, nil
			} else if m.is("keeps one loss only") {
				end.LostAt = end.LostAt[:min(1, len(end.LostAt))]
			}
		}
		if m.is("buries one claim only") {
			break
		}
	}
	m.end(b, *e, end)
	m.ring()
	return n, nil
}

func (m *model) Engines(context.Context) ([]store.EngineInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.EngineInfo
	for _, e := range m.engines {
		e := *e
		e.Held = m.held[e.Token]
		e.Gone = !e.Held && m.is("takes those let go of for gone")
		all = append(all, e)
	}
	return all, nil
}

func (m *model) Vouches(token store.EngineID, _ time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.held[token] || !m.mine[token] && !m.is("holds for others") {
		return time.Time{}
	}
	return time.Now().Add(time.Hour)
}

func (m *model) Release(token store.EngineID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.is("never lets go") {
		delete(m.held, token)
	}
}

func (m *model) Promote(ctx context.Context, from time.Time, limit int) (store.Promotion, error) {
	if err := ctx.Err(); err != nil && !m.is("ignores contexts") {
		return store.Promotion{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.is("promotes early") {
		now = now.Add(time.Minute)
	}
	deadline := m.cancelLateFlows(now)
	begun := m.promoteBlocked(now)
	m.tellCallers()
	waits := m.visible(func(r *row) bool {
		return r.wait != nil && !r.forJobs && (r.next.Func == "" || m.is("promotes the undecided"))
	})
	slices.SortStableFunc(waits, func(a, b *row) int { return a.due.Compare(b.due) })
	if m.is("promotes in the order of ids") {
		slices.SortFunc(waits, func(a, b *row) int { return cmp.Compare(a.id, b.id) })
	}
	var p store.Promotion
	p.Next = -1
	woken := m.woken(waits)
	for _, r := range woken {
		if p.Moved == limit && !m.is("wakes any number") {
			p.Next = 0
			p.Moved += begun
			return p, nil
		}
		m.promote(r)
		p.Moved++
		if m.is("takes the time of the woken for a bound") {
			p.Until = r.due
		}
	}
	for _, r := range waits {
		if slices.Contains(woken, r) || r.next.Awaits != "" && m.is("blocks without an end") {
			continue
		}
		if r.due.Before(from) || m.is("skips what is due at the bound") && r.due.Equal(from) {
			continue
		}
		if r.due.After(now) || p.Moved == limit {
			p.Next = max(0, r.due.Sub(now))
			if m.is("counts overdue jobs as none") && r.due.Before(now) {
				p.Next = -1
			}
			break
		}
		m.promote(r)
		p.Moved++
		p.Until = r.due
	}
	p.More = p.Moved == limit && !m.is("does not say that there may be more")
	if p.Next < 0 || deadline >= 0 && deadline < p.Next {
		p.Next = deadline
	}
	p.Moved += begun
	m.ring()
	return p, nil
}

// promote moves a job that waits to the log.
func (d *database) promote(r *row) {
	r.next.Part = d.readyPart(r.id)
	if !d.is("leaves promoted jobs waiting") {
		d.rows = slices.DeleteFunc(d.rows, func(o *row) bool { return o == r })
	}
	pos := d.draw()
	if d.is("promotes with the id as position") && r.wait.Attempt == 1 {
		pos = int64(r.id)
	}
	d.append(nil, d.jobRow(r.id), pos, time.Now(), r.next)
}
