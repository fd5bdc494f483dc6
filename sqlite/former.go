package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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

const (
	lostSQL = `
	select ifnull(x.job, x.pos), x.attempt
	from stint_engine_history h cross join json_each(h.lost_at) l cross join stint_executions x on x.pos = l.value
	where h.token = ? order by l.key`

	// Each job is asked for by itself: joined, the view would be made of all jobs.
	jobStateSQL = `select kind, queue, state from stint_jobs where id = ?`
)

// LostAttempts implements [store.EngineHistory].
func (s *Store) LostAttempts(ctx context.Context, engine store.EngineID) ([]store.LostAttempt, error) {
	return reading(ctx, s, fmt.Sprintf("list what was lost with engine %d", engine), func(c *conn) ([]store.LostAttempt, error) {
		all, err := readRows(c, func(a *store.LostAttempt, q *stmt) error { return q.scan(&a.Job, &a.Attempt) }, lostSQL, int64(engine))
		for i := 0; i < len(all) && err == nil; i++ {
			a := &all[i]
			err = c.query(jobStateSQL, []any{int64(a.Job)}, func(q *stmt) error { return q.scan(&a.Kind, &a.Queue, &a.State) })
		}
		return slices.DeleteFunc(all, func(a store.LostAttempt) bool { return a.State == "" }), err
	})
}
