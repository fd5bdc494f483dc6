package sqlite

import (
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
)

const (
	// uniqueHolderSQL reads who has a unique key, what that job does, whether an engine has had
	// it, and when it is due.
	uniqueHolderSQL = `
	select k.job, ifnull(k.until, 0), ifnull((select j.state from stint_jobs j where j.id = k.job), ''),
	       exists (select 1 from stint_executions x where x.pos = k.job or x.job = k.job),
	       ifnull((select w.due from stint_waiting w where w.job = k.job), 0)
	from stint_idempotency k where k.key = ?`

	takeUniqueSQL = `
	insert into stint_idempotency (key, job, fingerprint, until, expires) values (?, ?, '', ?, ?)
	on conflict (key) do update set job = excluded.job, until = excluded.until, expires = excluded.expires`

	uniquenessSQL = `update stint_entries set uniqueness = ? where pos = ?`
)

// uniqueHolder is the job that took a unique key last; its job is 0 if none did. It may hold it no
// more.
type uniqueHolder struct {
	job   stint.ID
	until int64 // the end of the period, or until when jobs are put off; 0 for neither
	state stint.State
	begun bool
	due   int64 // while it waits
}

// holds reports whether a job that is so unique finds the key held. Until-started, one that is kept must
// begin after the commit: of those that are due, only the store's own transaction knows that.
func (h uniqueHolder) holds(u stint.Uniqueness, now int64, own bool) bool {
	switch u.Scope {
	case stint.UntilEnded:
		return h.state != "" && !h.state.Final()
	case stint.UntilStarted:
		return !h.begun && (h.state == stint.Scheduled && (h.due > now || u.OnConflict != stint.Keep) || h.state == stint.Available && own)
	default:
		return h.until > now
	}
}

func (d *direct) uniqueHolder(key string) (uniqueHolder, error) {
	return oneRow((*conn)(d), func(q *stmt) uniqueHolder {
		return uniqueHolder{stint.ID(q.ColumnInt64(0)), q.ColumnInt64(1), stint.State(q.ColumnText(2)), q.ColumnInt64(3) != 0, q.ColumnInt64(4)}
	}, uniqueHolderSQL, key)
}

func (d *direct) cancelHolder(id stint.ID, why string) error {
	if err := d.run(markSQL, int64(id), micro(time.Now()), why); err != nil {
		return err
	}
	return (*conn)(d).endMarked(id)
}

// takeUnique looks who holds the unique key of a job, cancels that one if it is to make room, and
// says what the receipt is but for the ID of a job that is to be stored, and when that one is due. No
// other transaction writes meanwhile, so no engine begins the holder.
func (s *stored) takeUnique(j *stint.NewJob, now int64, due *int64) (r stint.Receipt, err error) {
	key, u, err := j.UniqueKey()
	if err != nil {
		return r, err
	}
	s.unique, s.until = key, u.Until(now)
	h, err := s.uniqueHolder(key)
	held := err == nil && h.holds(u, now, s.own())
	if u.OnConflict == stint.Debounce {
		if held && h.until != 0 {
			s.until = min(s.until, h.until) // as for the first of them
		}
		*due = min(*due, s.until)
	}
	if !held {
		return r, err
	}
	waits := h.state == stint.Scheduled || h.state == stint.Available && s.own()
	switch {
	case u.OnConflict == stint.CancelOld:
		r.Cancelled = h.job
		return r, s.cancelHolder(h.job, "another job took its unique key")
	case u.OnConflict != stint.Keep && waits && !h.begun:
		if r.Replaced = h.job; u.OnConflict == stint.ReplaceKeepTime {
			*due = max(h.due, now)
		}
		return r, s.cancelHolder(h.job, "replaced by a newer job with its unique key")
	}
	return stint.Receipt{ID: h.job, Duplicate: true, State: h.state}, nil
}

// own reports whether the transaction is the store's own: a caller's may be long, and on PostgreSQL
// what is ready begins meanwhile. Here nothing does, but both stores answer alike.
func (s *stored) own() bool {
	_, own := s.appender.(*direct)
	return own
}

// keepUnique stores that a job has the unique key that was asked for last.
func (s *stored) keepUnique(j *stint.NewJob, id, now int64) error {
	if err := s.run(takeUniqueSQL, s.unique, id, nilInt(s.until), max(s.until, now+minKeyAge.Microseconds())); err != nil {
		return err
	}
	return s.run(uniquenessSQL, j.Unique, id)
}

// heldByAnother returns the job that holds the unique key of one that has ended and is to run again;
// 0 for none.
func (c *conn) heldByAnother(j *stint.NewJob, ended stint.ID, now int64) (stint.ID, error) {
	if j.Unique == "" {
		return 0, nil
	}
	key, u, err := j.UniqueKey()
	if err != nil {
		return 0, err
	}
	h, err := (*direct)(c).uniqueHolder(key)
	u.OnConflict = stint.Keep // whatever else it says
	if err != nil || h.job == ended || !h.holds(u, now, false) {
		return 0, err
	}
	return h.job, nil
}

// onceInBatch refuses jobs of a batch that are to replace each other.
func onceInBatch(jobs []stint.NewJob, keys map[string]keyHolder) error {
	var seen map[string]bool
	for i := range jobs {
		j := &jobs[i]
		if j.Unique == "" || keys[j.IdempotencyKey].job != 0 {
			continue
		}
		key, u, err := j.UniqueKey()
		if err != nil {
			return err
		}
		if seen[key] && u.OnConflict != stint.Keep {
			return valid.Invalid("unique", "job %d of the batch has the unique key of one before it, and cannot %s it", i, u.OnConflict)
		}
		if seen == nil {
			seen = make(map[string]bool)
		}
		seen[key] = true
	}
	return nil
}
