package storetest_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// limitKeys are the limits of a job, as entries have them.
func (d *database) limitKeys(j *stint.NewJob) string {
	keys, err := j.LimitKeys()
	if err != nil {
		panic(err) // it was checked
	}
	return keys
}

// lane is where an entry of a job goes.
func (d *database) lane(e *store.Entry, part store.Part) store.LaneID {
	limits := e.Limits
	if d.is("has no lanes for limits") {
		limits = ""
	}
	return store.LimitedLane(e.Queue, e.Priority, part, e.Kind, limits).ID
}

// gate is the newest state of one, with the engines of the roster.
func (d *database) gate(name string) store.GateState {
	s := d.gates[name]
	s.Gate = name
	s.Rule, _ = stint.ParseLimitRule(d.rule(name))
	if p := d.pauseOf(name); p != nil {
		s.Until, s.Trial = p.Until, p.Trial
	} else {
		s.Until, s.Trial = time.Time{}, false
	}
	switch {
	case d.is("gives permits without a bound"):
		s.Rule.AtOnce = 0
	case d.is("lets all start at once"):
		s.Rule.Starts, s.Rule.Burst, s.Rule.Per = 0, 0, 0
	case d.is("forgets what a dear start cost"):
		s.Cost = 0
	}
	s.GateOrder = d.orderOf(name, s.Rule)
	s.Used = slices.DeleteFunc(slices.Clone(s.Used), func(u store.GateUse) bool {
		return d.engine(u.Engine) == nil && !d.is("lets the buried hold permits")
	})
	return s
}

// pauseOf is the pause of a gate, or of its limit; nil for none.
func (d *database) pauseOf(gate string) (found *store.Paused) {
	for _, name := range []string{gate, store.LimitOf(gate)} {
		p, there := d.withheld[name]
		p.Trial = p.Trial && name == gate
		if there && (p.Until.After(time.Now()) || p.Trial) && (found == nil || p.Until.After(found.Until)) {
			found = &p
		}
	}
	return found
}

func (m *model) PauseLimit(ctx context.Context, gate string, p store.Pause) error {
	if err := cmp.Or(store.CheckPause(gate, p), ctx.Err()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was, until := m.withheld[gate], time.Now().Add(p.For)
	if until.After(was.Until) {
		if m.withheld == nil {
			m.withheld = map[string]store.Paused{}
		}
		m.withheld[gate] = store.Paused{Until: until, Trial: p.Trial || was.Trial, By: p.By, Why: p.Why}
		m.tell(store.News{Permits: gate})
	}
	return nil
}

func (m *model) ResumeLimit(_ context.Context, gate string) (bool, error) {
	if err := stint.CheckGate(gate); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, was := m.withheld[gate]
	if delete(m.withheld, gate); was {
		m.tell(store.News{Permits: gate})
	}
	return was, nil
}

// rule is the text of the one that counts.
func (d *database) rule(limit string) string {
	l := d.limits[d.exactly(limit)]
	if l.Set == "" && l.Declared == "" && store.LimitOf(limit) != limit {
		return d.rule(store.LimitOf(limit))
	}
	if d.is("counts what was declared last") {
		return cmp.Or(l.Declared, l.Set, "any")
	}
	return cmp.Or(l.Set, l.Declared, "any")
}

func (m *model) Permits(ctx context.Context, engine store.EngineID, req store.PermitRequest) ([]store.Hold, error) {
	if err := ctx.Err(); err != nil && !m.is("ignores contexts") {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.engine(engine) == nil && !m.is("gives permits to the buried") {
		return nil, store.ErrBuried
	}
	if m.is("believes what is doubted") {
		req.Keep = slices.Clone(req.Keep)
		for i := range req.Keep {
			req.Keep[i].Doubted = false
		}
	}
	var states []store.GateState
	for _, name := range req.Gates() {
		s := m.gate(name)
		if m.is("knows one key of a limit") {
			s = m.gate(store.LimitOf(name))
			s.Gate = name
		}
		if m.is("forgets who waits") {
			for i := range s.Used {
				s.Used[i].Asked = 0
			}
		}
		states = append(states, s)
	}
	result := store.Grant(engine, time.Now(), states, req)
	for _, s := range result.Changed {
		if m.is("knows one key of a limit") {
			s.Gate = store.LimitOf(s.Gate)
		}
		m.gates[s.Gate] = s
	}
	for _, w := range result.Wake {
		m.tell(store.News{Permits: w.Gate, Engine: w.Engine})
	}
	return result.Holds, nil
}

// tell tells those who listen about permits.
func (d *database) tell(n store.News) {
	for _, bell := range d.bells {
		if !d.is("tells nobody of permits") {
			bell(n)
		}
	}
}

func (m *model) checkLimit(name string, rule stint.LimitRule) error {
	if m.is("takes any limit") {
		return nil
	}
	return rule.CheckFor(name)
}

func (m *model) DeclareLimits(ctx context.Context, rules map[string]stint.LimitRule) error {
	for name, rule := range rules {
		if err := cmp.Or(m.checkLimit(name, rule), ctx.Err()); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, rule := range rules {
		l := m.limits[m.exactly(name)]
		l.Declared = rule.String()
		m.limits[m.exactly(name)] = l
		m.tell(store.News{Permits: name})
	}
	return nil
}

func (m *model) SetLimit(ctx context.Context, name string, rule stint.LimitRule, by, why string) error {
	if err := cmp.Or(m.checkLimit(name, rule), ctx.Err()); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.limits[m.exactly(name)]
	l.Set, l.SetAt, l.By, l.Why = rule.String(), time.Now(), valid.CleanText(by, 255), valid.CleanText(why, 1<<10)
	m.limits[m.exactly(name)] = l
	m.tell(store.News{Permits: name})
	return nil
}

func (m *model) ResetLimit(_ context.Context, name string) (bool, error) {
	if err := m.checkLimit(name, stint.LimitRule{}); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.limits[m.exactly(name)]
	if l.Set == "" {
		return m.is("always resets"), nil
	}
	if m.is("resets nothing") {
		return true, nil
	}
	m.limits[m.exactly(name)] = store.LimitInfo{Declared: l.Declared}
	if l.Declared == "" {
		delete(m.limits, m.exactly(name))
	}
	m.tell(store.News{Permits: name})
	return true, nil
}

// inUse are the gates of which permits are held or asked for, or whose next start has to wait.
func (d *database) inUse() (all []store.GateInfo) {
	for _, name := range slices.Sorted(maps.Keys(d.gates)) {
		_, key, _ := strings.Cut(name, "=")
		g := store.GateInfo{Gate: name, Key: key}
		state := d.gate(name)
		if !d.is("tells nobody when the next start comes") {
			g.Next = state.NextStart(time.Now())
		}
		for _, u := range state.Used {
			if time.Since(u.Since) > 3*time.Second {
				u.Asked = 0
			}
			if u.Held+u.Asked == 0 {
				continue
			}
			g.Held, g.Asked = g.Held+int64(u.Held), g.Asked+int64(u.Asked)
			h := store.GateHolding{Engine: u.Engine, Instance: d.history[u.Engine].Instance, Held: u.Held, Asked: u.Asked}
			if u.Asked > 0 {
				h.Since = u.Since
			}
			g.Holds = append(g.Holds, h)
		}
		if g.Holds != nil || !g.Next.IsZero() {
			all = append(all, g)
		}
	}
	return all
}

func (m *model) Limits(context.Context) ([]store.LimitInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := maps.Clone(m.limits)
	for name, p := range m.withheld {
		if p.Trial || p.Until.After(time.Now()) {
			l := all[name]
			l.Paused = &p
			all[name] = l
		}
	}
	engines := map[string]map[store.EngineID]bool{}
	for _, g := range m.inUse() {
		name := store.LimitOf(g.Gate)
		if g.Holds == nil {
			continue
		}
		l := all[name]
		if engines[name] == nil {
			engines[name] = map[store.EngineID]bool{}
		}
		for _, h := range g.Holds {
			engines[name][h.Engine] = true
		}
		l.Gates, l.Held, l.Asked, l.Engines = l.Gates+1, l.Held+g.Held, l.Asked+g.Asked, len(engines[name])
		all[name] = l
		if l, own := all[g.Gate]; own && g.Gate != name {
			l.Gates, l.Held, l.Asked, l.Engines = 1, g.Held, g.Asked, len(g.Holds)
			all[g.Gate] = l
		}
	}
	var list []store.LimitInfo
	for _, name := range slices.Sorted(maps.Keys(all)) {
		l := all[name]
		l.Name, l.Rule = name, m.rule(name)
		list = append(list, l)
	}
	return list, nil
}

func (m *model) Gates(_ context.Context, limit string, most int) ([]store.GateInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.DeleteFunc(m.withOrder(m.inUse()), func(g store.GateInfo) bool {
		return store.LimitOf(g.Gate) != limit && g.Gate != limit && !(m.is("tells of limits that begin alike") && strings.HasPrefix(g.Gate, limit))
	})
	if !m.is("lists gates by name") {
		slices.SortStableFunc(all, func(a, b store.GateInfo) int {
			return cmp.Or(cmp.Compare(min(b.Failed, 1), min(a.Failed, 1)), cmp.Compare(b.Asked, a.Asked), cmp.Compare(b.Held, a.Held))
		})
	}
	for i := range all {
		all[i].Rule, all[i].Paused = m.rule(all[i].Gate), m.pauseOf(all[i].Gate)
	}
	return all[:min(most, len(all))], nil
}

func (m *model) TidyPermits(context.Context) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.gates)
	maps.DeleteFunc(m.withheld, func(_ string, p store.Paused) bool { return !p.Trial && !p.Until.After(time.Now()) })
	for _, jobs := range m.reruns {
		maps.DeleteFunc(jobs, func(id stint.ID, failed bool) bool {
			forget := !failed && m.hasEnded(id) || m.is("forgets who holds up others")
			if forget {
				before++
			}
			return forget
		})
	}
	maps.DeleteFunc(m.gates, func(name string, s store.GateState) bool {
		used := slices.ContainsFunc(m.gate(name).Used, func(u store.GateUse) bool { return u.Held+u.Asked > 0 })
		return (!used || m.is("forgets gates in use")) && (s.Next.Before(time.Now()) || m.is("forgets rates")) && !m.is("forgets no gate")
	})
	return before - len(m.gates), nil
}
