package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.Limiter = (*Store)(nil)

const (
	// The rule of a key counts, or else that of its limit.
	ruleSQL = `select ifnull(fixed, declared) from stint_limits where name = ?`

	pauseLimitSQL = `
	insert into stint_limit_pauses (gate, until, trial, by, why) values (?, ?, ?, ?, ?)
	on conflict (gate) do update set until = excluded.until, trial = max(trial, excluded.trial), by = excluded.by, why = excluded.why
	where excluded.until > until`

	resumeLimitSQL = `delete from stint_limit_pauses where gate = ?`

	// A pause of a limit is of its keys too.
	pauseOfGateSQL = `select until, trial, by, why from stint_limit_pauses where gate in (?1, ?2) and (until > ?3 or gate = ?1 and trial) order by until desc limit 1`

	gateSQL     = `select ` + gateColumns + ` from stint_permits where gate = ?`
	gateColumns = `gate, n, next_start, next_cost, used`

	grantedSQL = `
	insert into stint_permits (gate, n, next_start, next_cost, used) values (?, ?, ?, ?, ?)
	on conflict (gate) do update set n = excluded.n, next_start = excluded.next_start, next_cost = excluded.next_cost, used = excluded.used`

	declareLimitSQL = `
	insert into stint_limits (name, declared, declared_at) values (?, ?, ?)
	on conflict (name) do update set declared = excluded.declared, declared_at = excluded.declared_at
	where declared is not excluded.declared
	returning fixed is null`

	setLimitSQL = `
	insert into stint_limits (name, fixed, set_at, set_by, set_why) values (?, ?, ?, ?, ?)
	on conflict (name) do update set fixed = excluded.fixed, set_at = excluded.set_at, set_by = excluded.set_by, set_why = excluded.set_why`

	dropLimitSQL  = `delete from stint_limits where name = ? and declared is null`
	resetLimitSQL = `update stint_limits set fixed = null, set_at = null, set_by = null, set_why = null where name = ? and fixed is not null`

	// Those that have a rule, and those that are paused.
	limitsSQL = `
	with p as (select * from stint_limit_pauses where until > ? or trial),
	     n as (select name from stint_limits union select gate from p)
	select n.name, coalesce(l.fixed, l.declared, (select coalesce(o.fixed, o.declared) from stint_limits o where o.name = substr(n.name, 1, instr(n.name, '=') - 1)), 'any'),
	       l.declared, l.fixed, l.set_at, l.set_by, l.set_why, p.until, p.trial, p.by, p.why
	from n left join stint_limits l using (name) left join p on p.gate = n.name`
	gatesSQL = `select ` + gateColumns + ` from stint_permits`

	// The gates of one limit: itself, and those of its keys, after which "=" stands, the character before ">".
	gatesOfSQL = gatesSQL + ` where gate = ?1 or gate >= ?1 || '=' and gate < ?1 || '>'`

	// What nobody uses, and no rate remembers. An ask that was not repeated for long is none.
	idleSQL = `
	select gate from stint_permits where ifnull(next_start, 0) <= ?1 and not exists (
	  select 1 from json_each(used) u join stint_engines e on e.token = u.value ->> '$.engine'
	  where u.value ->> '$.held' > 0 or u.value ->> '$.since' > ?2)
	limit ?3`
	// A trial that nobody ended for a day is over.
	pastPausesSQL   = `select gate from stint_limit_pauses where until <= ?1 and (not trial or until <= ?1 - 86400000000)`
	forgetPausesSQL = `delete from stint_limit_pauses where gate in (` + pastPausesSQL + `)`

	tidySQL = `delete from stint_permits where gate in (` + idleSQL + `)`

	instancesSQL = `select e.token, h.instance from stint_engines e join stint_engine_history h on h.token = e.token`
)

const (
	// mostTidied bounds how long one call of TidyPermits keeps others from writing.
	mostTidied = 1000

	// askedLately is longer than an ask counts for.
	askedLately = time.Minute
)

// Permits implements [store.Limiter]. No other transaction writes meanwhile, so no gate is ever busy.
func (s *Store) Permits(ctx context.Context, engine store.EngineID, req store.PermitRequest) ([]store.Hold, error) {
	var news []store.News
	holds, err := writing(ctx, s, fmt.Sprintf("change permits of engine %d", engine), func(c *conn) ([]store.Hold, bool, error) {
		granted, err := c.permits(engine, req)
		news = nil
		for _, w := range granted.Wake {
			news = append(news, store.News{Permits: w.Gate, Engine: w.Engine})
		}
		return granted.Holds, false, err
	})
	if err == nil {
		s.inboxes.put(news)
	}
	return holds, err
}

func (c *conn) permits(engine store.EngineID, req store.PermitRequest) (store.GrantResult, error) {
	roster, err := c.instances()
	if err != nil {
		return store.GrantResult{}, err
	} else if _, stands := roster[engine]; !stands {
		return store.GrantResult{}, store.ErrBuried
	}
	var states []store.GateState
	for _, gate := range req.Gates() {
		state, err := c.gate(gate, roster)
		if err != nil {
			return store.GrantResult{}, fmt.Errorf("gate %s: %w", gate, err)
		}
		states = append(states, state)
	}
	granted := store.Grant(engine, fromMicro(micro(time.Now())), states, req)
	for _, state := range granted.Changed {
		if _, err := c.exec(grantedSQL, state.Gate, state.N, nextStart(state.Next), state.Cost, textOf(state.Used)); err != nil {
			return store.GrantResult{}, fmt.Errorf("gate %s: %w", state.Gate, err)
		}
	}
	return granted, nil
}

// instances are the engines of the roster, with their names.
func (c *conn) instances() (map[store.EngineID]string, error) {
	roster := map[store.EngineID]string{}
	err := c.query(instancesSQL, nil, func(q *stmt) error {
		roster[store.EngineID(q.ColumnInt64(0))] = q.name(1)
		return nil
	})
	return roster, err
}

// gate reads the state of a gate with its rule, as far as engines of the roster use it.
func (c *conn) gate(gate string, roster map[store.EngineID]string) (store.GateState, error) {
	state := store.GateState{Gate: gate}
	err := c.query(gateSQL, []any{gate}, func(q *stmt) error { return scanGate(&state, q, roster) })
	if err != nil {
		return state, err
	}
	if err == nil {
		state.Rule, err = c.rule(gate)
	}
	if err == nil && state.Rule.InOrder {
		state.GateOrder, err = c.orderOf(gate)
	}
	if err == nil {
		var p *store.Paused
		if p, err = c.paused(gate); p != nil {
			state.Until, state.Trial = p.Until, p.Trial
		}
	}
	return state, err
}

// rule reads the rule of a gate that counts.
func (c *conn) rule(gate string) (rule stint.LimitRule, err error) {
	text, err := c.ruleText(gate)
	if err == nil && text != "" {
		if rule, err = stint.ParseLimitRule(text); err != nil {
			rule, err = stint.LimitRule{AtOnce: -1}, nil // written by hand: it must not hold up other limits
		}
	}
	return rule, err
}

// ruleText returns the text of a gate's rule; empty for none.
func (c *conn) ruleText(gate string) (string, error) {
	rule, err := oneRow(c, firstText[string], ruleSQL, gate)
	if limit := store.LimitOf(gate); err == nil && rule == "" && limit != gate {
		rule, err = oneRow(c, firstText[string], ruleSQL, limit)
	}
	return rule, err
}

// paused returns the pause of a gate; nil for none.
func (c *conn) paused(gate string) (found *store.Paused, err error) {
	err = c.query(pauseOfGateSQL, []any{gate, store.LimitOf(gate), micro(time.Now())}, func(q *stmt) error {
		found = new(store.Paused)
		return q.scan(&found.Until, &found.Trial, &found.By, &found.Why)
	})
	return found, err
}

// gateUse is a [store.GateUse] as it is stored.
type gateUse struct {
	Engine store.EngineID `json:"engine"`
	Held   int            `json:"held"`
	Asked  int            `json:"asked"`
	Since  int64          `json:"since"` // 0 while it does not ask
}

// scanGate reads gateColumns.
func scanGate(g *store.GateState, q *stmt, roster map[store.EngineID]string) error {
	g.Gate, g.N, g.Next = q.ColumnText(0), q.ColumnInt64(1), q.time(2)
	g.Cost = int(q.ColumnInt64(3))
	uses, err := list[gateUse](q, 4)
	for _, u := range uses {
		if _, stands := roster[u.Engine]; stands {
			g.Used = append(g.Used, store.GateUse{Engine: u.Engine, Held: u.Held, Asked: u.Asked, Since: fromMicro(u.Since)})
		}
	}
	return err
}

// textOf is what scanGate reads.
func textOf(uses []store.GateUse) string {
	all := make([]gateUse, len(uses))
	for i, u := range uses {
		all[i] = gateUse{Engine: u.Engine, Held: u.Held, Asked: u.Asked}
		if u.Asked > 0 {
			all[i].Since = micro(u.Since)
		}
	}
	return arrayOf(all)
}

// nextStart is rounded up, so that no start comes too early.
func nextStart(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return ceilMicro(t)
}

// DeclareLimits implements [store.Limiter]. Nearly always the rules are there, and nothing is written.
func (s *Store) DeclareLimits(ctx context.Context, rules map[string]stint.LimitRule) error {
	names := slices.Sorted(maps.Keys(rules))
	for _, name := range names {
		if err := rules[name].CheckFor(name); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return s.changeLimits(ctx, fmt.Sprintf("declare %d limits", len(names)), names, func(c *conn, name string) (bool, error) {
		counts, err := oneRow(c, firstNumber[int64], declareLimitSQL, name, rules[name].String(), micro(time.Now()))
		return counts != 0, err
	})
}

// PauseLimit implements [store.Limiter].
func (s *Store) PauseLimit(ctx context.Context, gate string, p store.Pause) error {
	if err := store.CheckPause(gate, p); err != nil {
		return err
	}
	return s.changeLimits(ctx, "pause the limit "+gate, []string{gate}, func(c *conn, gate string) (bool, error) {
		until := time.Now().Add(p.For)
		n, err := c.exec(pauseLimitSQL, gate, ceilMicro(until), flag(p.Trial), orNil(valid.CleanText(p.By, 255)), orNil(valid.CleanText(p.Why, 1<<10)))
		return n > 0, err
	})
}

// ResumeLimit implements [store.Limiter].
func (s *Store) ResumeLimit(ctx context.Context, gate string) (was bool, err error) {
	if err := stint.CheckGate(gate); err != nil {
		return false, err
	}
	err = s.changeLimits(ctx, "resume the limit "+gate, []string{gate}, func(c *conn, gate string) (bool, error) {
		n, err := c.exec(resumeLimitSQL, gate)
		was = n > 0
		return was, err
	})
	return was && err == nil, err
}

// SetLimit implements [store.Limiter].
func (s *Store) SetLimit(ctx context.Context, name string, rule stint.LimitRule, by, why string) error {
	if err := rule.CheckFor(name); err != nil {
		return err
	}
	return s.changeLimits(ctx, "set the limit "+name, []string{name}, func(c *conn, name string) (bool, error) {
		_, err := c.exec(setLimitSQL, name, rule.String(), micro(time.Now()), orNil(valid.CleanText(by, 255)), orNil(valid.CleanText(why, 1<<10)))
		return true, err
	})
}

// ResetLimit implements [store.Limiter].
func (s *Store) ResetLimit(ctx context.Context, name string) (was bool, err error) {
	if err := stint.CheckGate(name); err != nil {
		return false, err
	}
	err = s.changeLimits(ctx, "reset the limit "+name, []string{name}, func(c *conn, name string) (bool, error) {
		n, err := c.exec(dropLimitSQL, name)
		if err == nil && n == 0 {
			n, err = c.exec(resetLimitSQL, name)
		}
		was = n > 0
		return was, err
	})
	return was && err == nil, err
}

// changeLimits has change do something to each of the limits, and wakes those who go by the ones of
// which it says so.
func (s *Store) changeLimits(ctx context.Context, what string, names []string, change func(c *conn, name string) (wake bool, err error)) error {
	news, err := writing(ctx, s, what, func(c *conn) (news []store.News, _ bool, err error) {
		for _, name := range names {
			wake, err := change(c, name)
			if err != nil {
				return nil, false, fmt.Errorf("%s: %w", name, err)
			}
			if wake {
				news = append(news, store.News{Permits: name})
			}
		}
		return news, false, nil
	})
	if err == nil {
		s.inboxes.put(news)
	}
	return err
}

// Limits implements [store.Limiter].
func (s *Store) Limits(ctx context.Context) ([]store.LimitInfo, error) {
	return reading(ctx, s, "list limits", func(c *conn) ([]store.LimitInfo, error) {
		limits, err := readRows(c, scanLimit, limitsSQL, micro(time.Now()))
		if err != nil {
			return nil, err
		}
		at := map[string]int{}
		for i, l := range limits {
			at[l.Name] = i
		}
		engines := map[string]map[store.EngineID]bool{}
		count := func(name string, g store.GateInfo) {
			l := &limits[at[name]]
			l.Gates, l.Held, l.Asked = l.Gates+1, l.Held+g.Held, l.Asked+g.Asked
			if engines[name] == nil {
				engines[name] = map[store.EngineID]bool{}
			}
			for _, h := range g.Holds {
				engines[name][h.Engine] = true
			}
			l.Engines = len(engines[name])
		}
		err = c.gatesInUse(gatesSQL, nil, func(g store.GateInfo, _ store.GateState) {
			name := store.LimitOf(g.Gate)
			if g.Holds == nil {
				return
			}
			if _, known := at[name]; !known {
				at[name], limits = len(limits), append(limits, store.LimitInfo{Name: name, Rule: stint.LimitRule{}.String()})
			}
			count(name, g)
			if _, known := at[g.Gate]; known && g.Gate != name {
				count(g.Gate, g)
			}
		})
		slices.SortFunc(limits, func(a, b store.LimitInfo) int { return strings.Compare(a.Name, b.Name) })
		return limits, err
	})
}

// scanLimit reads a row of limitsSQL.
func scanLimit(l *store.LimitInfo, q *stmt) error {
	var p store.Paused
	err := q.scan(&l.Name, &l.Rule, &l.Declared, &l.Set, &l.SetAt, &l.By, &l.Why, &p.Until, &p.Trial, &p.By, &p.Why)
	if !p.Until.IsZero() {
		l.Paused = &p
	}
	return err
}

// Gates implements [store.Limiter].
func (s *Store) Gates(ctx context.Context, limit string, most int) ([]store.GateInfo, error) {
	return reading(ctx, s, "list gates of "+limit, func(c *conn) (gates []store.GateInfo, err error) {
		states := map[string]store.GateState{}
		err = c.gatesInUse(gatesOfSQL, []any{limit}, func(g store.GateInfo, state store.GateState) {
			gates, states[g.Gate] = append(gates, g), state
		})
		if err == nil {
			gates, err = c.withOrder(gates, limit)
		}
		now := time.Now()
		for i := range gates {
			g := &gates[i]
			rule, ruleErr := c.ruleText(g.Gate)
			paused, pausedErr := c.paused(g.Gate)
			g.Rule, g.Paused, err = cmp.Or(rule, stint.LimitRule{}.String()), paused, cmp.Or(err, ruleErr, pausedErr)
			state := states[g.Gate]
			state.Rule, _ = stint.ParseLimitRule(g.Rule) // one that cannot be read lets nothing start
			g.Next = state.NextStart(now)
		}
		gates = slices.DeleteFunc(gates, store.GateInfo.Unused)
		slices.SortFunc(gates, func(a, b store.GateInfo) int {
			return cmp.Or(cmp.Compare(haltedFirst(a), haltedFirst(b)), cmp.Compare(b.Asked, a.Asked), cmp.Compare(b.Held, a.Held), strings.Compare(a.Gate, b.Gate))
		})
		return gates[:min(len(gates), max(0, most))], err
	})
}

// gatesInUse shows those gates that a query of gateColumns finds and that engines use, or whose next start
// may have to wait.
func (c *conn) gatesInUse(text string, args []any, show func(store.GateInfo, store.GateState)) error {
	roster, err := c.instances()
	if err != nil {
		return err
	}
	now := time.Now()
	return c.query(text, args, func(q *stmt) error {
		var state store.GateState
		if err := scanGate(&state, q, roster); err != nil {
			return err
		}
		_, key, _ := strings.Cut(state.Gate, "=")
		g := store.GateInfo{Gate: state.Gate, Key: key}
		for _, u := range state.Used {
			if u = u.At(now); u.Held > 0 || u.Asked > 0 {
				h := store.GateHolding{Engine: u.Engine, Instance: roster[u.Engine], Held: u.Held, Asked: u.Asked}
				if u.Asked > 0 {
					h.Since = u.Since
				}
				g.Held, g.Asked, g.Holds = g.Held+int64(u.Held), g.Asked+int64(u.Asked), append(g.Holds, h)
			}
		}
		if g.Holds != nil || state.Next.After(now) {
			show(g, state)
		}
		return nil
	})
}

// TidyPermits implements [store.Limiter]. When there is nothing to forget it keeps no other from writing.
func (s *Store) TidyPermits(ctx context.Context) (int, error) {
	idle := func(most int) []any {
		now := time.Now()
		return []any{micro(now), micro(now.Add(-askedLately)), most}
	}
	some, err := reading(ctx, s, "look for permits to forget", func(c *conn) (bool, error) {
		some, err := c.found(idleSQL, idle(1)...)
		if err == nil && !some {
			some, err = c.found(pastPausesSQL, micro(time.Now()))
		}
		if err == nil && !some {
			some, err = c.found(noRerunSQL, 1)
		}
		return some, err
	})
	if err != nil || !some {
		return 0, err
	}
	n, err := writing(ctx, s, "forget permits", func(c *conn) (int64, bool, error) {
		n, err := c.exec(tidySQL, idle(mostTidied)...)
		if err != nil {
			return 0, false, err
		}
		past, err := c.exec(forgetPausesSQL, micro(time.Now()))
		if err != nil {
			return 0, false, err
		}
		ended, err := c.exec(tidyOrderSQL, mostTidied)
		return n + past + ended, false, err
	})
	return int(n), err
}
