package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/store"
)

var _ store.EngineHistory = (*Store)(nil)

const formerSQL = `
select h.token, h.instance, h.host, h.pid, h.version, h.queues, h.kinds, h.slots, h.ttl, h.joined, coalesce(h.beat, h.ended), h.drain,
       h.ended, h.why, coalesce(h.buried_by, 0), coalesce(b.instance, ''), h.freed, h.lost, h.lost_at
from stint.engine_history h left join stint.engine_history b on b.token = h.buried_by
where h.ended is not null and ($1::bigint[] is null or h.token = any ($1)) and ($2::timestamptz is null or h.ended >= $2) and ($3 = '' or h.instance = $3)
order by h.ended desc, h.token limit $4`

// FormerEngines implements [store.EngineHistory].
func (s *Store) FormerEngines(ctx context.Context, f store.FormerFilter) ([]store.FormerEngine, error) {
	return collect(ctx, s.pool, "list engines that are gone", s.sql.in(formerSQL), []any{noneNull(f.Engines), nilTime(f.Since), f.Instance, cmp.Or(f.Limit, 100)}, func(row pgx.CollectableRow) (store.FormerEngine, error) {
		var (
			e   store.FormerEngine
			ttl int64
		)
		err := row.Scan(&e.Token, &e.Instance, &e.Host, &e.PID, &e.Version, &e.Queues, &e.Kinds, &e.Slots, &ttl, &e.Joined, &e.Beat, &e.Draining,
			&e.At, &e.Why, &e.By, &e.ByInstance, &e.Freed, &e.Lost, &e.LostAt)
		e.TimeToLive = time.Duration(ttl) * time.Millisecond
		return e, err
	})
}

// lostSQL asks for each attempt and the state of its job by their keys: offset 0 keeps all of them from being joined.
const lostSQL = `
select j.id, x.attempt, j.kind, j.queue, j.state
from (select l.pos, l.i from stint.engine_history h cross join lateral unnest(h.lost_at) with ordinality as l(pos, i) where h.token = $1 offset 0) l
cross join lateral (select coalesce(x.job, x.pos) as job, x.attempt from stint.executions x where x.pos = l.pos offset 0) x
cross join lateral (select j.id, j.kind, j.queue, j.state from stint.jobs j where j.id = x.job offset 0) j
order by l.i`

// LostAttempts implements [store.EngineHistory].
func (s *Store) LostAttempts(ctx context.Context, engine store.EngineID) ([]store.LostAttempt, error) {
	return collect(ctx, s.pool, fmt.Sprintf("list what was lost with engine %d", engine), s.sql.in(lostSQL), []any{engine}, pgx.RowToStructByPos[store.LostAttempt])
}
