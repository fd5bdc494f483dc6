package sqlite

import (
	"encoding/hex"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// minKeyAge is the shortest time that idempotency keys are remembered, from the
// enqueue.
const minKeyAge = 24 * time.Hour

const (
	holderSQL  = `select job, fingerprint from stint_idempotency where key = ?`
	takeKeySQL = `insert into stint_idempotency (key, job, fingerprint, expires) values (?, ?, ?, ?)`

	// How the job of each old key ended: null when it has not, and gone is 1
	// when there is none any more.
	oldKeysSQL = `
	select k.key, not exists (select 1 from stint_entries e where e.pos = k.job), x.finished, x.outcome,
	       (select l.queue from stint_entries l where l.pos = x.pos), k.fingerprint = ''
	from stint_idempotency k left join stint_executions x on x.pos = ifnull(
	  (select f.pos from stint_executions f where f.pos = k.job and f.job is null and f.final = 1),
	  (select f.pos from stint_executions f where f.job = k.job and f.final = 1))
	where k.expires <= ? order by k.expires limit ?`
	forgetKeySQL   = `delete from stint_idempotency where key = ?`
	postponeKeySQL = `update stint_idempotency set expires = ? where key = ?`
)

// keyHolder is what is known of an idempotency key; its job is 0 while no job
// has it.
type keyHolder struct {
	job         stint.ID
	fingerprint string
}

// holders looks up the keys of a batch before anything of it is written, so
// that a caller's transaction is as it was when one stands for something else.
// No other transaction writes meanwhile. It is nil when there are none.
func holders(a appender, jobs []stint.NewJob) (map[string]keyHolder, error) {
	var all map[string]keyHolder
	for i := range jobs {
		key := jobs[i].IdempotencyKey
		if key == "" {
			continue
		}
		if all == nil {
			all = map[string]keyHolder{}
		}
		asked := jobs[i].Fingerprint()
		fingerprint := hex.EncodeToString(asked[:])
		h, seen := all[key]
		if !seen {
			var err error
			if h, err = a.holder(key); err != nil {
				return nil, err
			}
			if h.job == 0 {
				h.fingerprint = fingerprint
			}
			all[key] = h
		}
		if h.fingerprint != fingerprint {
			return nil, &stint.KeyConflictError{Key: key, ID: h.job}
		}
	}
	return all, nil
}

// keys forgets keys of jobs that are gone, or that ended as long ago as they are
// kept. Those of others are looked at again when that can be so.
func (t *retainer) keys(c *conn) error {
	now := micro(t.now)
	later := now + min(t.Keep.Shortest(), 24*time.Hour).Microseconds() // the rules may change meanwhile
	return t.page(c, oldKeysSQL, []any{now, t.Limit}, func(q *stmt) {
		key, until := q.ColumnText(0), later
		if gone := q.ColumnInt64(1) != 0; gone {
			until = 0
		} else if ended := !q.isNull(2); ended && q.ColumnInt64(5) != 0 { // a unique key, whose period is over
			until = 0
		} else if ended {
			if age := t.Keep.Of(q.ColumnText(4), stateOf(q, 3)); age != store.Forever {
				until = q.ColumnInt64(2) + age.Microseconds()
			}
		}
		if until <= now {
			t.delete(forgetKeySQL, key)
		} else {
			t.run(postponeKeySQL, until, key)
		}
	})
}
