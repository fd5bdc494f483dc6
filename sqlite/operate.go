package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.Operator = (*Store)(nil)

const (
	postponeSQL = `update stint_waiting set due = ?, undecided = null where job = ?`

	recoveredSQL = `select max(pos) from stint_entries where recovered = ?`

	// The contents of a job, as the newest of its entries refers to them.
	contentsSQL = `
	select c.pos, c.queue, c.priority, c.kind, c.tags, c.uniqueness, c.args, c.limits,
	  case when exists (select 1 from stint_waiting w where w.job = c.flow) or exists (select 1 from stint_flows f where f.flow = c.flow) then c.flow end from stint_entries c
	where c.pos = ifnull((select e.body from stint_entries e where e.job = ?1 order by e.pos desc limit 1), ?1)`

	// The new job has a copy: a reference would keep the old one from being
	// deleted. The two come from each other; the idempotency key stays the old one's, and so
	// does the instant to begin by, which is over.
	recoverSQL = `
	insert into stint_entries (lane, created, due, policy, timeout, attempt, priority, losses, suspect, max_losses,
	  queue, kind, args, tags, urn, source, metadata, recovered, correlation, uniqueness, limits, flow)
	select ?1, ?2, ?3, policy, timeout, 1, priority, 0, 0, max_losses, queue, kind, args, tags, urn, source, metadata, ?4,
	  ifnull(correlation, cast(?4 as text)), uniqueness, limits, ?6
	from stint_entries where pos = ?5`
)

// Retry implements [store.Operator]. While it runs nothing is promoted, cancelled or
// recorded.
func (s *Store) Retry(ctx context.Context, ids []stint.ID, again stint.RerunOptions) (map[stint.ID]stint.RerunResult, error) {
	if err := again.Check(); err != nil {
		return nil, err
	}
	return writing(ctx, s, fmt.Sprintf("retry %d jobs", len(ids)), func(c *conn) (map[stint.ID]stint.RerunResult, bool, error) {
		now := micro(time.Now())
		due := dueAt(&stint.NewJob{RunAt: again.RunAt, Delay: again.Delay}, now)
		if due <= now {
			due = 0
		}
		answers, err := eachOnce(ids, func(id stint.ID) (stint.RerunResult, error) { return c.again(id, now, due, again.Once, again.Whole) })
		return answers, true, err
	})
}

// again has one job run again, when it is due or, with 0, now; of a flow all of its jobs, or what did not complete.
func (c *conn) again(id stint.ID, now, due int64, once, all bool) (stint.RerunResult, error) {
	state, err := oneRow(c, firstText[stint.State], stateSQL, int64(id))
	if state == stint.Blocked || state == stint.Cancelled { // which it is with a marker
		if needs, err := c.found(needsOthersSQL, int64(id)); needs || err != nil {
			return stint.RerunResult{Answer: stint.RerunBlocked, ID: id}, err
		}
	}
	switch {
	case err != nil || state == "":
		return stint.RerunResult{Answer: stint.RerunNotFound}, err
	case state == stint.Available:
		return stint.RerunResult{Answer: stint.RerunAvailable, ID: id}, nil
	case state == stint.Running:
		return stint.RerunResult{Answer: stint.RerunRunning, ID: id}, nil
	case !state.Final() && due > 0:
		_, err := c.exec(postponeSQL, due, int64(id))
		return stint.RerunResult{Answer: stint.RerunScheduled, ID: id}, err
	case !state.Final():
		return stint.RerunResult{Answer: stint.RerunReady, ID: id}, c.runNow(id, now)
	}
	if once {
		before, err := oneRow(c, firstNumber[stint.ID], recoveredSQL, int64(id))
		if err != nil || before != 0 {
			return stint.RerunResult{Answer: stint.RerunRecoveredBefore, ID: before}, err
		}
	}
	return c.recover(id, now, due, all)
}

// runNow moves one job that waits to the log.
func (c *conn) runNow(id stint.ID, now int64) error {
	w, err := c.takeWait(waitOfSQL, int64(id))
	if err != nil {
		return err
	}
	lane, err := c.readyLane(&laneCache{}, w.job, w.queue, w.priority, w.limits)
	if err == nil {
		_, err = c.append(w.entry(lane, now))
	}
	return err
}

// recover does an ended job again, as a new one, unless another has its unique key, or an open flow does it again
// already.
func (c *conn) recover(id stint.ID, now, due int64, all bool) (stint.RerunResult, error) {
	r, err := c.toRedo(int64(id), all)
	if err != nil {
		return stint.RerunResult{}, err
	}
	if before, err := oneRow(c, firstNumber[stint.ID], redoneSQL, int64(id), r.target, nilInt(r.into)); err != nil || before != 0 {
		return stint.RerunResult{Answer: stint.RerunRecoveredBefore, ID: before}, err
	}
	if !slices.Contains(r.jobs, int64(id)) { // it is not in its flow any more
		before, err := c.instead(int64(id))
		return stint.RerunResult{Answer: stint.RerunRecoveredBefore, ID: before}, err
	}
	r.now, r.due = now, due
	job, err := oneRow(c, func(q *stmt) stint.NewJob {
		return stint.NewJob{Kind: q.ColumnText(3), Unique: q.ColumnText(5), Args: []byte(q.ColumnText(6))}
	}, contentsSQL, r.target)
	if err != nil {
		return stint.RerunResult{}, err
	}
	if holder, err := c.heldByAnother(&job, stint.ID(r.target), now); err != nil || holder != 0 {
		return stint.RerunResult{Answer: stint.RerunNotUnique, ID: holder}, err
	}
	for _, old := range r.jobs {
		if err := c.copy(r, old); err != nil {
			return stint.RerunResult{}, err
		}
	}
	if r.isFlow || r.into != 0 {
		if err := c.connect(r); err != nil {
			return stint.RerunResult{}, err
		}
	}
	if job.Unique != "" {
		key, u, err := job.UniqueKey()
		if err != nil {
			return stint.RerunResult{}, err
		}
		s := stored{appender: (*direct)(c), unique: key, until: u.Until(now)}
		if err := s.keepUnique(&job, r.anew[r.target], now); err != nil {
			return stint.RerunResult{}, err
		}
	}
	return stint.RerunResult{Answer: stint.RerunRecovered, ID: stint.ID(r.anew[int64(id)])}, nil
}

const (
	isJobSQL = `select 1 from stint_entries where pos = ? and job is null`

	// The following are about jobs that are listed in an array. Engines that may
	// repeat what they recorded of them, with the last claim
	// that each has made. One that has been told that everything is recorded of
	// all of its claims repeats nothing; a request that was cut off may go on for a
	// moment.
	rememberSQL = `
	insert into stint_deletions (engine, serial, at)
	select b.token, ifnull((select max(c.serial) from stint_claims c where c.engine = b.token), 0), ?2
	from (select engine, max(finished) as finished
	      from (select engine, finished from stint_executions where pos in (select value from json_each(?1))
	            union all select engine, finished from stint_executions where job in (select value from json_each(?1)))
	      group by engine) o
	join stint_beats b on b.token = o.engine
	where o.finished > ?2 - 600000000
	   or b.low <= ifnull((select max(c.serial) from stint_claims c where c.engine = b.token), 0)
	on conflict (engine) do update set serial = excluded.serial, at = excluded.at`

	countDeletedSQL = `
	update stint_meta set
	  erased = erased + (select count(*) from stint_entries where pos in (select value from json_each(?1))),
	  deleted = deleted
	  + (select count(*) from stint_entries where pos in (select value from json_each(?1)) and lane >= 0)
	  + (select count(*) from stint_entries where job in (select value from json_each(?1)) and lane >= 0)`

	eraseTagsSQL = `
	delete from stint_job_tags where (tag, job) in (
	  select r.value, e.pos from stint_entries e, json_each(e.tags) r
	  where e.pos in (select value from json_each(?1)) and e.tags is not null)`

	// A job of a flow stays until that has ended, and what a job has called until that has.
	deletableSQL = `
	select outcome from (` + finalSQL + `)
	where not exists (select 1 from stint_entries m where m.pos = ?1 and ` + hasOpenParent + `)`

	// hasOpenParent is whether m is of a job of a flow, or one that was called by a job, that has not ended.
	hasOpenParent = `m.flow in (select p.pos from stint_entries p where p.pos = m.flow)
	  and not exists (select 1 from stint_executions y where y.pos = m.flow and y.job is null and y.final = 1)
	  and not exists (select 1 from stint_executions y where y.job = m.flow and y.final = 1)`

	forgetSQL  = `delete from stint_deletions where engine = ?`
	settledSQL = `delete from stint_deletions where engine = ? and serial < ? and at < ?`
	repeatsSQL = `select 1 from stint_deletions where engine = ?`
	entryAtSQL = `select 1 from stint_entries where pos = ?`
)

// removeSQL are what removes jobs, in this order; the last one counts them. Claims stay:
// the newest of a lane is its frontier, and an outcome names the claim that it comes from.
var removeSQL = []string{
	countDeletedSQL, eraseTagsSQL,
	`delete from stint_executions where pos in (select value from json_each(?1))`,
	`delete from stint_executions where job in (select value from json_each(?1))`,
	`delete from stint_steps where job in (select value from json_each(?1))`,
	`delete from stint_signals where job in (select value from json_each(?1))`,
	`delete from stint_lines where job in (select value from json_each(?1))`,
	`delete from stint_progress where job in (select value from json_each(?1))`,
	`delete from stint_needs where child in (select value from json_each(?1))`,
	`delete from stint_nodes where job in (select value from json_each(?1))`,
	`delete from stint_flows where flow in (select value from json_each(?1))`,
	`delete from stint_cancellations where job in (select value from json_each(?1))`,
	`delete from stint_entries where job in (select value from json_each(?1))`,
	`delete from stint_entries where pos in (select value from json_each(?1))`,
}

// Delete implements [store.Operator].
func (s *Store) Delete(ctx context.Context, ids []stint.ID) (map[stint.ID]store.DeleteStatus, error) {
	return writing(ctx, s, fmt.Sprintf("delete %d jobs", len(ids)), func(c *conn) (map[stint.ID]store.DeleteStatus, bool, error) {
		now := micro(time.Now())
		summed, err := c.summed()
		if err != nil {
			return nil, false, err
		}
		answers, err := eachOnce(ids, func(id stint.ID) (store.DeleteStatus, error) { return c.erase(id, now, summed) })
		return answers, false, err
	})
}

func (c *conn) erase(id stint.ID, now int64, summed func(store.Position, int64) bool) (store.DeleteStatus, error) {
	exists, err := c.found(isJobSQL, int64(id))
	if err != nil || !exists {
		return store.DeleteNotFound, err
	}
	// A marker that another program set ends what no engine has.
	marked, err := c.found(cancelledSQL, int64(id))
	if err == nil && marked {
		err = c.endMarked(id)
	}
	if err != nil {
		return "", err
	}
	may, err := c.found(deletableSQL, int64(id))
	if err != nil || !may {
		return store.DeleteNotFinal, err
	}
	_, err = c.remove([]stint.ID{id}, now, summed)
	return store.DeletedNow, err
}

// remove removes jobs that have ended, in few statements, and returns how many of them were there.
func (c *conn) remove(jobs []stint.ID, now int64, summed func(store.Position, int64) bool) (n int, err error) {
	all := arrayOf(jobs)
	if _, err := c.exec(rememberSQL, all, now); err != nil {
		return 0, err
	}
	if err := c.sumGone(all, summed); err != nil {
		return 0, err
	}
	for _, text := range removeSQL {
		changed, err := c.exec(text, all)
		if err != nil {
			return 0, err
		}
		n = int(changed)
	}
	return n, nil
}
