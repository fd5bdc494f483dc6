package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

var _ stint.Operator = (*Store)(nil)

const (
	postponeSQL = `update stint_waiting set due = ?, undecided = null where job = ?`

	recoveredSQL = `select max(pos) from stint_entries where recovered = ?`

	// The contents of a job, as the newest of its entries refers to them.
	contentsSQL = `
	select c.pos, c.queue, c.priority, c.kind, c.tags from stint_entries c
	where c.pos = ifnull((select e.body from stint_entries e where e.job = ?1 order by e.pos desc limit 1), ?1)`

	// The new job has a copy: a reference would keep the old one from being
	// deleted. The two come from each other; the key stays the old one's, and so
	// does the instant to begin by, which is over.
	recoverSQL = `
	insert into stint_entries (lane, created, due, policy, timeout, attempt, priority, losses, suspect, max_losses,
	  queue, kind, args, tags, urn, source, metadata, recovered, correlation)
	select ?1, ?2, ?3, policy, timeout, 1, priority, 0, 0, max_losses, queue, kind, args, tags, urn, source, metadata, ?4,
	  ifnull(correlation, cast(?4 as text))
	from stint_entries where pos = ?5`
)

// Retry implements [stint.Operator]. Beside it nobody promotes, cancels or
// records.
func (s *Store) Retry(ctx context.Context, ids []stint.ID, again stint.Again) (map[stint.ID]stint.Retried, error) {
	if err := again.Check(); err != nil {
		return nil, err
	}
	var answers map[stint.ID]stint.Retried
	err := s.write(ctx, func(c *conn) (wake bool, err error) {
		answers = make(map[stint.ID]stint.Retried, len(ids))
		now := micro(time.Now())
		due := dueAt(&stint.NewJob{RunAt: again.At, Delay: again.In}, now)
		if due <= now {
			due = 0
		}
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			if answers[id], err = c.again(id, now, due, again.Once); err != nil {
				return false, fmt.Errorf("job %d: %w", id, err)
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("retry %d jobs: %w", len(ids), err)
	}
	return answers, nil
}

// again has one job run again, when it is due or, with 0, now.
func (c *conn) again(id stint.ID, now, due int64, once bool) (stint.Retried, error) {
	state := stint.State("")
	err := c.query(stateSQL, []any{int64(id)}, func(q *stmt) error {
		state = stint.State(q.ColumnText(0))
		return nil
	})
	switch {
	case err != nil || state == "":
		return stint.Retried{Answer: stint.RetryOfNothing}, err
	case state == stint.Available:
		return stint.Retried{Answer: stint.RetryAvailable, ID: id}, nil
	case state == stint.Running:
		return stint.Retried{Answer: stint.RetryRunning, ID: id}, nil
	case !state.Final() && due > 0:
		_, err := c.exec(postponeSQL, due, int64(id))
		return stint.Retried{Answer: stint.RetryScheduled, ID: id}, err
	case !state.Final():
		return stint.Retried{Answer: stint.RetryReady, ID: id}, c.runNow(id, now)
	}
	if once {
		before := int64(0)
		err := c.query(recoveredSQL, []any{int64(id)}, func(q *stmt) error {
			before = q.ColumnInt64(0)
			return nil
		})
		if err != nil || before != 0 {
			return stint.Retried{Answer: stint.RetryRecoveredBefore, ID: stint.ID(before)}, err
		}
	}
	anew, err := c.recover(id, now, due)
	return stint.Retried{Answer: stint.RetryRecovered, ID: anew}, err
}

// runNow moves one job that waits to the log.
func (c *conn) runNow(id stint.ID, now int64) error {
	var w newWait
	err := c.query(waitOfSQL, []any{int64(id)}, func(q *stmt) error {
		w = scanWait(q)
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := c.exec(promotedSQL, w.job); err != nil {
		return err
	}
	_, err = c.append(&newEntry{
		lane: stint.LaneOf(w.queue, w.priority, stint.PartNormal, "").ID, created: now, job: w.job, body: w.body,
		attempt: w.attempt, priority: w.priority, losses: w.losses, suspect: w.suspect, queue: w.queue, kind: w.kind,
		faulty: w.faulty,
	})
	return err
}

// recover does an ended job again, as a new one.
func (c *conn) recover(id stint.ID, now, due int64) (stint.ID, error) {
	var (
		contents int64
		w        = newWait{due: due, why: stint.Scheduled, attempt: 1}
		tags     []string
	)
	err := c.query(contentsSQL, []any{int64(id)}, func(q *stmt) (err error) {
		contents, w.queue, w.priority, w.kind = q.ColumnInt64(0), q.ColumnText(1), q.ColumnInt(2), q.ColumnText(3)
		tags, err = list[string](q, 4)
		return err
	})
	if err != nil {
		return 0, err
	}
	lane := stint.LaneOf(w.queue, w.priority, stint.PartNormal, "").ID
	if due > 0 {
		lane = stint.NoLane
	}
	if _, err := c.exec(recoverSQL, int64(lane), now, nilInt(due), int64(id), contents); err != nil {
		return 0, err
	}
	anew := c.db.LastInsertRowID()
	for _, tag := range tags {
		if _, err := c.exec(tagSQL, tag, anew); err != nil {
			return 0, err
		}
	}
	if due > 0 {
		w.job, w.body = anew, anew
		_, err = c.exec(waitSQL, w.args()...)
	}
	return stint.ID(anew), err
}

const (
	isJobSQL = `select 1 from stint_entries where pos = ? and job is null`

	// Engines that may repeat what they recorded of a job, with the last claim
	// that each has made. One that has been told that everything is recorded of
	// all of its claims repeats nothing; a request that was cut off may go on for a
	// moment.
	rememberSQL = `
	insert into stint_deletions (engine, serial, at)
	select b.token, ifnull((select max(c.serial) from stint_claims c where c.engine = b.token), 0), ?2
	from (select engine, finished from stint_executions where pos = ?1
	      union select engine, finished from stint_executions where job = ?1) o
	join stint_beats b on b.token = o.engine
	where o.finished > ?2 - 600000000
	   or b.low <= ifnull((select max(c.serial) from stint_claims c where c.engine = b.token), 0)
	on conflict (engine) do update set serial = excluded.serial, at = excluded.at`

	countDeletedSQL = `
	update stint_meta set erased = erased + 1, deleted = deleted
	  + (select count(*) from stint_entries where pos = ?1 and lane >= 0)
	  + (select count(*) from stint_entries where job = ?1 and lane >= 0)`

	eraseTagsSQL = `
	delete from stint_job_tags where job = ?1
	and tag in (select r.value from stint_entries e, json_each(e.tags) r where e.pos = ?1)`

	forgetSQL  = `delete from stint_deletions where engine = ?`
	settledSQL = `delete from stint_deletions where engine = ? and serial < ? and at < ?`
	repeatsSQL = `select 1 from stint_deletions where engine = ?`
	entryAtSQL = `select 1 from stint_entries where pos = ?`
)

// eraseSQL are what removes a job, in this order. Claims stay: the newest of a
// lane is its frontier, and an outcome names the claim that it comes from.
var eraseSQL = []string{
	countDeletedSQL, eraseTagsSQL,
	`delete from stint_executions where pos = ?1`, `delete from stint_executions where job = ?1`,
	`delete from stint_entries where job = ?1`, `delete from stint_entries where pos = ?1`,
	`delete from stint_cancellations where job = ?1`,
}

// Delete implements [stint.Operator].
func (s *Store) Delete(ctx context.Context, ids []stint.ID) (map[stint.ID]stint.Deletion, error) {
	var answers map[stint.ID]stint.Deletion
	err := s.write(ctx, func(c *conn) (wake bool, err error) {
		answers = make(map[stint.ID]stint.Deletion, len(ids))
		now := micro(time.Now())
		summed, err := c.summed()
		if err != nil {
			return false, err
		}
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			if answers[id], err = c.erase(id, now, summed); err != nil {
				return false, fmt.Errorf("job %d: %w", id, err)
			}
		}
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("delete %d jobs: %w", len(ids), err)
	}
	return answers, nil
}

func (c *conn) erase(id stint.ID, now int64, summed func(stint.Position, int64) bool) (stint.Deletion, error) {
	exists, err := c.found(isJobSQL, int64(id))
	if err != nil || !exists {
		return stint.DeleteOfNothing, err
	}
	final, err := c.found(finalSQL, int64(id))
	if err != nil || !final {
		return stint.DeleteTooEarly, err
	}
	if _, err := c.exec(rememberSQL, int64(id), now); err != nil {
		return "", err
	}
	if err := c.sumGone(id, summed); err != nil {
		return "", err
	}
	for _, text := range eraseSQL {
		if _, err := c.exec(text, int64(id)); err != nil {
			return "", err
		}
	}
	return stint.DeletedNow, nil
}
