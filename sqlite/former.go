package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint/store"
)

var _ store.EngineHistory = (*Store)(nil)

const formerSQL = `
select h.token, h.instance, h.host, h.boot_id, h.pid, h.pid_started, h.version, h.queues, h.kinds, h.slots, h.ttl, h.joined, ifnull(h.beat, h.ended), h.drain,
       h.ended, h.why, h.buried_by, b.instance, h.freed, h.lost, h.lost_at
from stint_engine_history h left join stint_engine_history b on b.token = h.buried_by
where h.ended is not null and h.ended >= ?2 and (?1 is null or h.token in (select value from json_each(?1))) and (?3 = '' or h.instance = ?3)
order by h.ended desc, h.token limit ?4`

// FormerEngines implements [store.EngineHistory].
func (s *Store) FormerEngines(ctx context.Context, f store.FormerFilter) ([]store.FormerEngine, error) {
	since := int64(0)
	if !f.Since.IsZero() {
		since = micro(f.Since)
	}
	return reading(ctx, s, "list engines that are gone", func(c *conn) ([]store.FormerEngine, error) {
		return readRows(c, func(e *store.FormerEngine, q *stmt) (err error) {
			var ttl int64
			err = q.scan(&e.Token, &e.Instance, &e.Host, &e.BootID, &e.PID, &e.PIDStarted, &e.Version, &e.Queues, &e.Kinds, &e.Slots, &ttl, &e.Joined, &e.Beat, &e.Draining,
				&e.At, &e.Why, &e.By, &e.ByInstance, &e.Freed, &e.Lost, &e.LostAt)
			e.TimeToLive = time.Duration(ttl) * time.Microsecond
			return err
		}, formerSQL, arrayOrNil(f.Engines), since, f.Instance, cmp.Or(f.Limit, 100))
	})
}

const lostSQL = `
select j.id, x.attempt, j.kind, j.queue, j.state
from stint_engine_history h cross join json_each(h.lost_at) l
cross join stint_executions x on x.pos = l.value
cross join stint_jobs j on j.id = ifnull(x.job, x.pos)
where h.token = ? order by l.key`

// LostAttempts implements [store.EngineHistory].
func (s *Store) LostAttempts(ctx context.Context, engine store.EngineID) ([]store.LostAttempt, error) {
	return reading(ctx, s, fmt.Sprintf("list what was lost with engine %d", engine), func(c *conn) ([]store.LostAttempt, error) {
		return fieldsOf[store.LostAttempt](c, lostSQL, int64(engine))
	})
}
