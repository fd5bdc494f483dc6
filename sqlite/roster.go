package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

const (
	enterHistorySQL = `
	insert into stint_engine_history
	  (token, instance, host, boot_id, pid, pid_started, version, queues, kinds, slots, ttl, joined, drain)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, exists (select 1 from stint_engine_history where token = ? and drain = 1))`
	enterSQL     = `insert into stint_engines (token, locked) values (?, ?)`
	firstBeatSQL = `
	insert into stint_beats (token, beat, low, running, drain) select token, joined, 0, '[]', drain from stint_engine_history where token = ?`
	declareSQL = `
	insert into stint_kinds (name, queue, priority, timeout, max_losses, tags, retry, start_within, uniqueness, limits, sealed, redacted, declared) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	on conflict (name) do update set queue = excluded.queue, priority = excluded.priority,
	  timeout = excluded.timeout, max_losses = excluded.max_losses, tags = excluded.tags, retry = excluded.retry,
	  start_within = excluded.start_within, uniqueness = excluded.uniqueness, limits = excluded.limits, sealed = excluded.sealed, redacted = excluded.redacted, declared = excluded.declared
	where (queue, priority, timeout, max_losses, tags, retry, start_within, uniqueness, limits, sealed, redacted)
	   is not (excluded.queue, excluded.priority, excluded.timeout, excluded.max_losses, excluded.tags, excluded.retry, excluded.start_within, excluded.uniqueness, excluded.limits, excluded.sealed, excluded.redacted)`
)

// Join implements [store.Roster]. The engine's place is locked before others
// can see the engine, so that none believes it gone.
func (s *Store) Join(ctx context.Context, e store.EngineInfo, kinds []stint.KindInfo) error {
	locked := 0
	if !e.ByBeats() && s.places.take(e.Token) {
		locked = 1
	}
	err := s.write(ctx, func(c *conn) (bool, error) {
		info, err := s.installed(c)
		if err = errors.Join(err, s.fits(info)); err != nil {
			return false, err
		}
		now, token := micro(time.Now()), int64(e.Token)
		_, err = c.exec(enterHistorySQL, token, e.Instance, e.Host, e.BootID, e.PID, e.PIDStarted, e.Version,
			arrayOf(e.Queues), arrayOf(e.Kinds), e.Slots, e.TimeToLive.Microseconds(), now, int64(e.Former))
		if err != nil {
			return false, err
		}
		if _, err := c.exec(enterSQL, token, locked); err != nil {
			return false, err
		}
		if _, err := c.exec(firstBeatSQL, token); err != nil {
			return false, err
		}
		for _, d := range kinds {
			policy, err := json.Marshal(d.Retry)
			if err != nil {
				return false, err
			}
			_, err = c.exec(declareSQL, d.Name, d.Queue, d.Priority, d.Timeout.Microseconds(), d.MaxLosses, arrayOf(d.Tags), string(policy), d.StartWithin.Microseconds(), orNil(d.Unique), arrayOrNil(d.Limits), arrayOrNil(d.Sealed), arrayOrNil(d.Redacted), now)
			if err != nil {
				return false, err
			}
		}
		return false, nil
	})
	if err != nil {
		if locked == 1 {
			s.places.change(e.Token, unlocked)
		}
		return fmt.Errorf("join as %s: %w", e.Instance, err)
	}
	return nil
}

const (
	beatSQL = `
	update stint_beats
	set beat = ?1, low = max(low, ?2), number = max(number, ?5), slots = ?8,
	    running = case when ?5 >= number then ?3 else running end,
	    started = case when ?5 >= number then (
	      select json_group_object(p.value, ifnull(?7 ->> ('$."' || p.value || '"'), started ->> ('$."' || p.value || '"')))
	      from json_each(?3) p) else started end
	where token = ?4 returning drain or ?6 < (select oldest from stint_meta)`
	drainSQL     = `update stint_beats set drain = 1 where token = ?`
	keepDrainSQL = `update stint_engine_history set drain = 1 where token = ?` // for when it is buried before it learns of it
)

// Heartbeat implements [store.Roster]. An engine of a program that the schema has
// left behind is asked to leave.
func (s *Store) Heartbeat(ctx context.Context, engine store.EngineID, b store.Heartbeat) (orders store.HeartbeatReply, err error) {
	defer wrap(&err, "beat")
	if err := s.inPlace(); err != nil {
		return orders, err
	}
	err = s.write(ctx, func(c *conn) (bool, error) {
		stands := false
		now := time.Now()
		ages := map[store.Position]int64{}
		for pos, began := range b.Started {
			ages[pos] = micro(now.Add(-max(0, now.Sub(began))))
		}
		started, err := json.Marshal(ages)
		if err != nil {
			return false, err
		}
		err = c.query(beatSQL, []any{micro(now), b.Low, arrayOf(b.Running), int64(engine), b.Number, len(s.steps), string(started), b.Slots}, func(q *stmt) error {
			stands, orders.Drain = true, q.ColumnInt64(0) != 0
			return nil
		})
		if err == nil {
			_, err = c.exec(settledSQL, int64(engine), b.Low, micro(now.Add(-time.Minute)))
		}
		if err == nil && !stands {
			err = store.ErrBuried
		}
		for i := range b.Logs {
			if err == nil {
				err = c.logs(engine, &b.Logs[i], now)
			}
		}
		return false, err
	})
	if errors.Is(err, store.ErrBuried) {
		s.places.change(engine, unlocked)
	}
	return orders, err
}

// Drain implements [store.Roster].
func (s *Store) Drain(ctx context.Context, engine store.EngineID) error {
	_, err := writing(ctx, s, "drain an engine", func(c *conn) (changed int64, wake bool, err error) {
		if changed, err = c.exec(drainSQL, int64(engine)); err == nil && changed == 0 {
			err = store.ErrBuried
		}
		if err == nil {
			_, err = c.exec(keepDrainSQL, int64(engine))
		}
		return changed, false, err
	})
	return err
}

// heldSQL finds what an engine has claimed and not concluded. A claim is an
// interval of its lane.
const heldSQL = `
select c.lane, c.n, c.nonce, c.serial, e.pos
from stint_claims c indexed by stint_claims_engine
cross join stint_entries e indexed by stint_entries_lane
where c.engine = ? and c.serial >= ? and c.serial not in (select value from json_each(?))
  and e.lane = c.lane and e.pos > c.start and e.pos <= c.frontier
  and not exists (select 1 from stint_executions x where x.pos = e.pos)
order by c.serial, c.lane, c.n, e.pos`

// held lists the claims of an engine from a serial number on that have
// entries without an outcome, with those entries only, except known ones.
func (c *conn) held(engine store.EngineID, serial int64, known ...int64) ([]store.Claim, error) {
	var claims []store.Claim
	err := c.query(heldSQL, []any{int64(engine), serial, arrayOf(known)}, func(q *stmt) error {
		claim := store.Claim{
			ClaimRef: store.ClaimRef{Lane: store.LaneID(q.ColumnInt64(0)), N: q.ColumnInt64(1), Nonce: store.Nonce(q.ColumnInt64(2))},
			Serial:   q.ColumnInt64(3),
		}
		if n := len(claims); n == 0 || claims[n-1].ClaimRef != claim.ClaimRef {
			claims = append(claims, claim)
		}
		last := &claims[len(claims)-1]
		last.Positions = append(last.Positions, store.Position(q.ColumnInt64(4)))
		return nil
	})
	return claims, err
}

// Held implements [store.Roster].
func (s *Store) Held(ctx context.Context, engine store.EngineID, serial int64, known ...int64) ([]store.Claim, error) {
	return reading(ctx, s, "list what the engine holds", func(c *conn) ([]store.Claim, error) { return c.held(engine, serial, known...) })
}

const announcedSQL = `
select p.value from stint_beats b, json_each(b.running) p
where b.token = ? and not exists (select 1 from stint_executions x where x.pos = p.value)
order by p.value`

// Announced implements [store.Roster].
func (s *Store) Announced(ctx context.Context, engine store.EngineID) ([]store.Entry, error) {
	return reading(ctx, s, fmt.Sprintf("read what engine %d announced", engine), func(c *conn) ([]store.Entry, error) {
		at, err := allRows(c, firstNumber[store.Position], announcedSQL, int64(engine))
		if err != nil {
			return nil, err
		}
		return s.fetch(c, at)
	})
}

const enginesSQL = `
select h.token, h.instance, h.host, h.boot_id, h.pid, h.pid_started, h.version, h.queues, h.kinds, coalesce(nullif(b.slots, 0), h.slots), h.ttl,
       h.joined, b.beat, b.running, b.drain, e.locked, b.low, b.started
from stint_engines e
join stint_engine_history h on h.token = e.token
join stint_beats b on b.token = e.token
order by h.joined, h.token`

// Engines implements [store.Roster].
func (s *Store) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	if err := s.inPlace(); err != nil {
		return nil, fmt.Errorf("list engines: %w", err)
	}
	return reading(ctx, s, "list engines", s.roster)
}

// roster reads it in a transaction.
func (s *Store) roster(c *conn) (engines []store.EngineInfo, err error) {
	err = c.query(enginesSQL, nil, func(q *stmt) (err error) {
		e := store.EngineInfo{
			Token: store.EngineID(q.ColumnInt64(0)), Instance: q.ColumnText(1), Host: q.ColumnText(2), BootID: q.ColumnText(3),
			PID: q.ColumnInt(4), PIDStarted: q.ColumnInt64(5), Version: q.ColumnText(6), Slots: q.ColumnInt(9),
			TimeToLive: time.Duration(q.ColumnInt64(10)) * time.Microsecond, Joined: q.time(11), Beat: q.time(12), Draining: q.ColumnInt64(14) != 0, Low: q.ColumnInt64(16),
		}
		if e.Queues, err = list[string](q, 7); err != nil {
			return err
		}
		if e.Kinds, err = list[string](q, 8); err != nil {
			return err
		}
		if q.ColumnInt64(15) != 0 {
			place := s.places.of(e.Token)
			e.Held, e.Gone = place == exclusive, place == unlocked
		}
		if e.Running, err = list[store.Position](q, 13); err != nil {
			return err
		}
		var started map[store.Position]*int64
		err = json.Unmarshal([]byte(q.ColumnText(17)), &started)
		e.Started = map[store.Position]time.Time{}
		for pos, at := range started {
			if at != nil {
				e.Started[pos] = fromMicro(*at)
			}
		}
		engines = append(engines, e)
		return err
	})
	return engines, err
}
