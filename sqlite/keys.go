package sqlite

import (
	"encoding/hex"
	"time"

	"github.com/stint-go/stint"
)

// How long idempotency keys are remembered: from the enqueue, and behind the end
// of the job for as long as jobs are kept.
const (
	minKeyAge = 24 * time.Hour
	keptFor   = 5 * 24 * time.Hour
)

const (
	holderSQL  = `select job, fingerprint from stint_idempotency where key = ?`
	takeKeySQL = `insert into stint_idempotency (key, job, fingerprint, expires) values (?, ?, ?, ?)`

	oldKeySQL = `select 1 from stint_idempotency where expires <= ? limit 1`

	// When the job of each old key ended: null when it has not, and gone is 1
	// when there is none any more.
	oldKeysSQL = `
	select k.key, not exists (select 1 from stint_entries e where e.pos = k.job),
	       ifnull((select x.finished from stint_executions x where x.pos = k.job and x.job is null and x.final = 1),
	              (select max(x.finished) from stint_executions x where x.job = k.job and x.final = 1))
	from stint_idempotency k where k.expires <= ? order by k.expires limit ?`
	forgetKeySQL   = `delete from stint_idempotency where key = ?`
	postponeKeySQL = `update stint_idempotency set expires = ? where key = ?`
)

// keyHolder is what is known of an idempotency key; its job is 0 while nobody
// has it.
type keyHolder struct {
	job         stint.ID
	fingerprint string
}

// holders looks up the keys of a batch before anything of it is written, so
// that a caller's transaction is as it was when one stands for something else.
// Nobody else writes meanwhile. It is nil when there are none.
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

// forgetKeys forgets keys of jobs that are gone or ended long ago. Those of
// others are looked at again when that can be so.
func (c *conn) forgetKeys(now int64, limit int) error {
	later := map[string]int64{}
	err := c.query(oldKeysSQL, []any{now, limit}, func(q *stmt) error {
		key := q.ColumnText(0)
		switch {
		case q.ColumnInt64(1) != 0:
			later[key] = 0
		case q.isNull(2):
			later[key] = now + keptFor.Microseconds()
		default:
			later[key] = q.ColumnInt64(2) + keptFor.Microseconds()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for key, at := range later {
		if at <= now {
			_, err = c.exec(forgetKeySQL, key)
		} else {
			_, err = c.exec(postponeKeySQL, at, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
