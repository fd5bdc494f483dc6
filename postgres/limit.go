package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.Limiter = (*Store)(nil)

// gatesSQL answers with one row at least, so that it tells whether the engine is in the roster.
const gatesSQL = `
select clock_timestamp(), exists (select from stint.engines where token = $1),
       g.gate, g.n, g.made, g.next_start, g.next_cost, g.rule, g.paused_until, g.trial, g.engines, g.held, g.asked, g.since, g.again, g.failed
from (select 1) one left join stint.gates($2) g on true`

const putPermitsSQL = `select stint.put_permits($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

// Permits implements [store.Limiter]. What others hold is read without a lock. A state that was
// computed from it is written only if it is the one that follows, so that of several calls one
// decides, and the others ask again.
func (s *Store) Permits(ctx context.Context, engine store.EngineID, req store.PermitRequest) (_ []store.Hold, err error) {
	defer wrap(&err, "ask for permits")
	gates := req.Gates()
	now, states, made, found, err := s.gates(ctx, s.work(), engine, gates)
	if err == nil && !found {
		err = store.ErrBuried
	}
	if err != nil {
		return nil, err
	}
	result := store.Grant(engine, now, states, req)
	if len(result.Changed) == 0 {
		return result.Holds, nil
	}
	written, err := s.putPermits(ctx, engine, result, made)
	if err != nil {
		return nil, err
	}
	for _, changed := range result.Changed {
		if !slices.Contains(written, changed.Gate) {
			i := slices.Index(gates, changed.Gate)
			leave(&result.Holds[i], states[i], engine)
		}
	}
	return result.Holds, nil
}

// leave makes a hold what the engine held before.
func leave(h *store.Hold, was store.GateState, engine store.EngineID) {
	h.N, h.Permits, h.Starts, h.Busy = was.N, 0, nil, true
	for _, u := range was.Used {
		if u.Engine == engine {
			h.Permits = u.Held
		}
	}
}

// gates reads the newest states of gates, with when each was made; a gate that nobody used has none. found
// tells whether the engine is in the roster.
func (s *Store) gates(ctx context.Context, db *pgxpool.Pool, engine store.EngineID, names []string) (now time.Time, states []store.GateState, made map[string]time.Time, found bool, err error) {
	made = map[string]time.Time{}
	_, err = collect(ctx, db, "read who holds permits", s.sql.gates, []any{engine, notNil(names)}, func(row pgx.CollectableRow) (none struct{}, err error) {
		var (
			clock       time.Time
			gate, rule  *string
			n           *int64
			cost        *int
			at, next    *time.Time
			until       *time.Time
			trial       *bool
			engines     []store.EngineID
			held, asked []int
			since       []*time.Time
			state       store.GateState
			again       *stint.ID
			failed      *stint.ID
		)
		if err = row.Scan(&clock, &found, &gate, &n, &at, &next, &cost, &rule, &until, &trial, &engines, &held, &asked, &since, &again, &failed); err != nil || gate == nil {
			return none, err
		}
		if now.IsZero() {
			now = clock
		}
		state.Gate, state.N, state.Next, state.Cost, state.Until, state.Trial = *gate, deref(n), deref(next), deref(cost), deref(until), deref(trial)
		state.GateOrder = store.GateOrder{Again: deref(again), Failed: deref(failed)}
		if at != nil {
			made[*gate] = *at
		}
		if rule != nil {
			if state.Rule, err = stint.ParseLimitRule(*rule); err != nil {
				state.Rule, err = stint.LimitRule{AtOnce: -1}, nil // written by hand: it must not hold up other limits
			}
		}
		for i := range engines {
			state.Used = append(state.Used, store.GateUse{Engine: engines[i], Held: held[i], Asked: asked[i], Since: deref(since[i])})
		}
		states = append(states, state)
		return none, err
	})
	return now, states, made, found, err
}

// putPermits writes what was granted, and answers of which gates it did.
func (s *Store) putPermits(ctx context.Context, engine store.EngineID, result store.GrantResult, made map[string]time.Time) (written []string, err error) {
	var (
		gates, wakeGates     []string
		ns                   []int64
		before, next, since  []*time.Time
		cost                 []int32
		used, held, asked    []int32
		engines, wakeEngines []store.EngineID
	)
	for _, state := range result.Changed {
		gates, ns, next = append(gates, state.Gate), append(ns, state.N), append(next, nilTime(state.Next))
		cost = append(cost, int32(state.Cost))
		before, used = append(before, nilTime(made[state.Gate])), append(used, int32(len(state.Used)))
		for _, u := range state.Used {
			engines, held, asked = append(engines, u.Engine), append(held, int32(u.Held)), append(asked, int32(u.Asked))
			since = append(since, nilTime(u.Since))
		}
	}
	for _, w := range result.Wake {
		wakeGates, wakeEngines = append(wakeGates, w.Gate), append(wakeEngines, w.Engine)
	}
	scan := func(row pgx.Row) error { return row.Scan(&written) }
	_, err = retryExplicit(s, func() (struct{}, error) {
		return struct{}{}, s.once(ctx, scan, s.sql.putPermits, engine, gates, ns, before, next, cost, used,
			notNil(engines), notNil(held), notNil(asked), notNil(since), notNil(wakeGates), notNil(wakeEngines))
	})
	return written, err
}

// declareLimitsSQL takes the names in one order, as every program does: two that declare the same
// limits could wait for each other. What is declared already is not touched.
const declareLimitsSQL = `
with put as (
  insert into stint.limits as l (name, declared, declared_at)
  select d.name, d.rule, clock_timestamp() from unnest($1::text[], $2::text[]) as d(name, rule)
  where not exists (select from stint.limits o where o.name = d.name and o.declared = d.rule)
  order by d.name collate "C"
  on conflict (name) do update set declared = excluded.declared, declared_at = excluded.declared_at
  returning l.name, l.fixed
)
select pg_notify('stint', 'permits 0 ' || name) from put where fixed is null`

// DeclareLimits implements [store.Limiter].
func (s *Store) DeclareLimits(ctx context.Context, rules map[string]stint.LimitRule) (err error) {
	defer wrap(&err, "declare %d limits", len(rules))
	names := slices.Sorted(maps.Keys(rules))
	texts := make([]string, len(names))
	for i, name := range names {
		if texts[i], err = limitText(name, rules[name]); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return s.changeLimits(ctx, declareLimitsSQL, names, texts)
}

// limitText is a rule as it is stored.
func limitText(name string, rule stint.LimitRule) (string, error) {
	return rule.String(), rule.CheckFor(name)
}

// SetLimit implements [store.Limiter].
func (s *Store) SetLimit(ctx context.Context, name string, rule stint.LimitRule, by, why string) (err error) {
	text, err := limitText(name, rule)
	if err != nil {
		return err
	}
	defer wrap(&err, "set the limit %q", name)
	return s.changeLimits(ctx, `select stint.set_limit($1, $2, $3, $4)`, name, text, valid.CleanText(by, 255), valid.CleanText(why, 1<<10))
}

// ResetLimit implements [store.Limiter].
func (s *Store) ResetLimit(ctx context.Context, name string) (was bool, err error) {
	if err := stint.CheckGate(name); err != nil {
		return false, err
	}
	defer wrap(&err, "reset the limit %q", name)
	return s.changesLimit(ctx, `select stint.reset_limit($1)`, name)
}

// PauseLimit implements [store.Limiter].
func (s *Store) PauseLimit(ctx context.Context, gate string, p store.Pause) (err error) {
	if err := store.CheckPause(gate, p); err != nil {
		return err
	}
	defer wrap(&err, "pause the limit %q", gate)
	return s.changeLimits(ctx, `select stint.pause_limit($1, $2 * interval '1 microsecond', $3, $4, $5)`,
		gate, max(1, p.For.Microseconds()), valid.CleanText(p.By, 255), valid.CleanText(p.Why, 1<<10), p.Trial)
}

// ResumeLimit implements [store.Limiter].
func (s *Store) ResumeLimit(ctx context.Context, gate string) (was bool, err error) {
	if err := stint.CheckGate(gate); err != nil {
		return false, err
	}
	defer wrap(&err, "resume the limit %q", gate)
	return s.changesLimit(ctx, `select stint.resume_limit($1)`, gate)
}

// changesLimit runs a change of one limit that answers whether it did something.
func (s *Store) changesLimit(ctx context.Context, text, name string) (did bool, err error) {
	err = runCommitted(ctx, s.pool, []statement{{s.sql.in(text), []any{name}}}, func(scan func(...any) error) error { return scan(&did) })
	return did && err == nil, err
}

func (s *Store) changeLimits(ctx context.Context, text string, args ...any) error {
	return runCommitted(ctx, s.pool, []statement{{s.sql.in(text), args}}, func(func(...any) error) error { return nil })
}

// limitsSQL lists what has a rule, is paused or is in use: limits with all of their keys, and the keys
// that have a rule or a pause of their own.
const limitsSQL = `
with used as (select * from stint.permits_held() where engine is not null),
     paused as (select * from stint.limit_pauses p where p.until > clock_timestamp() or p.trial),
     named as (
       select l.name from stint.limits l where l.declared is not null or l.fixed is not null
       union select p.gate from paused p
       union select split_part(u.gate, '=', 1) from used u)
select n.name, coalesce(stint.rule_of(n.name), 'any'), l.declared, l.fixed, l.set_at, l.set_by, l.set_why,
       p.until, p.trial, p.by, p.why, u.gates, u.held, u.asked, u.engines
from named n left join stint.limits l on l.name = n.name left join paused p on p.gate = n.name
cross join lateral (
  select count(distinct h.gate) as gates, coalesce(sum(h.held), 0) as held, coalesce(sum(h.asked), 0) as asked, count(distinct h.engine) as engines
  from used h where h.gate = n.name or split_part(h.gate, '=', 1) = n.name) u
order by n.name collate "C"`

// Limits implements [store.Limiter].
func (s *Store) Limits(ctx context.Context) ([]store.LimitInfo, error) {
	return collect(ctx, s.pool, "list limits", s.sql.in(limitsSQL), nil, func(row pgx.CollectableRow) (l store.LimitInfo, err error) {
		var p store.Paused
		err = scan(row, &l.Name, &l.Rule, &l.Declared, &l.Set, &l.SetAt, &l.By, &l.Why,
			&p.Until, &p.Trial, &p.By, &p.Why, &l.Gates, &l.Held, &l.Asked, &l.Engines)
		if !p.Until.IsZero() {
			l.Paused = &p
		}
		return l, err
	})
}

// gatesOfSQL reads the gate that has the limit's name, and those of its keys: ">" comes after "=". What
// holds up their jobs counts under a rule that keeps an order.
const gatesOfSQL = `
select gate, coalesce(r.rule, 'any'), coalesce(h.held, 0), coalesce(h.asked, 0), coalesce(h.holds, '[]'), h.next_start, h.next_cost, clock_timestamp(),
       o.again, o.failed, p.until, p.trial, p.by, p.why
from (
  select gate, sum(held) as held, sum(asked) as asked, max(next_start) as next_start, max(next_cost) as next_cost, json_agg(json_build_object(
         'engine', engine::text, 'instance', instance, 'held', held, 'asked', asked, 'since', since) order by i) filter (where engine is not null) as holds
  from (select * from stint.permits_held($1, $1 || chr(1)) union all select * from stint.permits_held($1 || '=', $1 || '>')) u
  group by gate) h
full join (
  select * from (select * from stint.order_of($1, $1) union all select * from stint.order_of($1 || '=', $1 || '>')) a
  where stint.rule_of(a.gate) like '%,in-order%') o using (gate)
cross join lateral (select stint.rule_of(gate) as rule) r
left join lateral stint.pause_of(gate) p on true
order by o.failed is null, 4 desc, 3 desc, gate collate "C" limit $2`

// Gates implements [store.Limiter].
func (s *Store) Gates(ctx context.Context, limit string, most int) ([]store.GateInfo, error) {
	gates, err := collect(ctx, s.pool, fmt.Sprintf("list the gates of the limit %q", limit), s.sql.in(gatesOfSQL), []any{limit, max(0, most)}, func(row pgx.CollectableRow) (g store.GateInfo, err error) {
		var (
			holds []byte
			state store.GateState
			now   time.Time
			p     store.Paused
		)
		err = scan(row, &g.Gate, &g.Rule, &g.Held, &g.Asked, &holds, &state.Next, &state.Cost, &now, &g.Again, &g.Failed, &p.Until, &p.Trial, &p.By, &p.Why)
		if err != nil {
			return g, err
		}
		state.Rule, _ = stint.ParseLimitRule(g.Rule) // one that cannot be read lets nothing start
		g.Next = state.NextStart(now)
		if !p.Until.IsZero() {
			g.Paused = &p
		}
		_, g.Key, _ = strings.Cut(g.Gate, "=")
		err = json.Unmarshal(holds, &g.Holds)
		for i := range g.Holds {
			g.Holds[i].Since = g.Holds[i].Since.UTC()
		}
		return g, err
	})
	return slices.DeleteFunc(gates, store.GateInfo.Unused), err
}

// unblockSQL wakes engines also if there was nothing to do.
const unblockSQL = `
with gone as (delete from stint.reruns where gate = $1::text and failed returning job)
select job, pg_notify('stint', 'permits 0 ' || $1::text) from (select job from gone union all select null) g order by job`

// Unblock implements [store.Limiter].
func (s *Store) Unblock(ctx context.Context, gate string) (failed []stint.ID, err error) {
	defer wrap(&err, "unblock %q", gate)
	err = runCommitted(ctx, s.pool, []statement{{s.sql.in(unblockSQL), []any{gate}}}, func(scan func(...any) error) error {
		var job *stint.ID
		err := scan(&job, nil)
		if job != nil {
			failed = append(failed, *job)
		}
		return err
	})
	return failed, err
}

// tidyPermits is how many rows one call of [Store.TidyPermits] forgets of each sort.
const tidyPermits = 2000

// TidyPermits implements [store.Limiter].
func (s *Store) TidyPermits(ctx context.Context) (n int, err error) {
	defer wrap(&err, "forget unused permits")
	_, err = retryExplicit(s, func() (struct{}, error) {
		return struct{}{}, s.once(ctx, func(row pgx.Row) error { return row.Scan(&n) }, s.sql.in(`select stint.tidy_permits($1)`), tidyPermits)
	})
	return n, err
}
