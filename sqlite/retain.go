package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.Retainer = (*Store)(nil)

const (
	// Executions are gone through by position, which is about the order of time.
	// What has no entry counts too, or it would end every pass; it stays, and so do jobs of flows that are there, flows that others retry, and what was called by who has not ended.
	retainPageSQL = `
	select x.pos, ifnull(x.job, x.pos), x.outcome, x.final and e.pos is not null and ` + notInKeptFlow + `, x.finished, ifnull(e.queue, ''), ifnull(e.created, -1 << 62)
	from stint_executions x left join stint_entries e on e.pos = x.pos
	where x.pos > ? order by x.pos limit ?`

	notInKeptFlow = `case when x.job is null and e.flow is null and x.slot > 0 then 1 else not exists (
	  select 1 from stint_entries m join stint_flows f on f.flow = m.flow where m.pos = ifnull(x.job, x.pos)
	  union all
	  select 1 from stint_entries r indexed by stint_entries_recovered join stint_flows f on f.flow = r.pos where r.recovered = ifnull(x.job, x.pos)
	  union all
	  select 1 from stint_entries m where m.pos = ifnull(x.job, x.pos) and ` + hasOpenParent + `) end`

	// Claims with how many entries each took, whether it is a lane's newest,
	// whether any entry of it is left, and whether an engine may still name it.
	claimsPageSQL = `
	select c.lane, c.n, c.taken,
	       not exists (select 1 from stint_claims o where o.lane = c.lane and o.n > c.n)
	       or exists (select 1 from stint_entries e indexed by stint_entries_lane where e.lane = c.lane and e.pos > c.start and e.pos <= c.frontier)
	       or exists (select 1 from stint_beats b where b.token = c.engine and b.low <= c.serial)
	from stint_claims c where (c.lane, c.n) > (?, ?) order by c.lane, c.n limit ?`
	dropClaimSQL = `delete from stint_claims where lane = ? and n = ?`
	uncountSQL   = `update stint_meta set deleted = deleted - ?`

	enginesPageSQL = `
	select h.token,
	       h.ended is null or h.ended > ?1 or h.token in (select e.token from stint_engines e)
	       or exists (select 1 from stint_claims c indexed by stint_claims_engine where c.engine = h.token)
	       or exists (select 1 from stint_executions x indexed by stint_executions_unclaimed where x.nonce = 0 and x.engine = h.token)
	from stint_engine_history h where h.token > ?2 order by h.token limit ?3`
	dropHistorySQL = `delete from stint_engine_history where token = ?`

	// Numbers are about in the order of time, so that those at the beginning tell.
	oldChangesSQL = `
	select n from (select n, at from stint_changes order by n limit ?1) where at < ?2`
	dropChangeSQL = `delete from stint_changes where n = ?`
)

// Retain implements [store.Retainer]. What is to go is found by reading, so
// that a pass which finds nothing keeps no other from writing.
func (s *Store) Retain(ctx context.Context, r store.RetainStep) (store.Retained, error) {
	r.Limit = max(1, r.Limit)
	step := map[store.RetainPart]func(*retainer, *conn) error{
		store.RetainJobs: (*retainer).jobs, store.RetainClaims: (*retainer).claims,
		store.RetainKeys: (*retainer).keys, store.RetainEngines: (*retainer).engines,
		store.RetainChanges: (*retainer).changes,
	}[r.Part]
	err := valid.Invalid("part", "%q is none", r.Part)
	t := &retainer{RetainStep: r}
	if step != nil {
		err = s.read(ctx, func(c *conn) error { return t.look(c, step) })
	}
	switch {
	case err != nil:
	case len(t.gone) > 0:
		// That a job has ended changes no more; it may be gone by now.
		err = s.write(ctx, func(c *conn) (bool, error) {
			err := c.under(t.Under)
			if err != nil {
				return false, err
			}
			summed, err := c.summed()
			if err == nil {
				t.done.Deleted, err = c.remove(t.gone, micro(t.now), summed)
			}
			return false, err
		})
	case len(t.drop) > 0:
		err = s.write(ctx, func(c *conn) (bool, error) {
			// What was found may have changed by now.
			if err := t.look(c, step); err != nil {
				return false, err
			}
			for _, d := range t.drop {
				if _, err := c.exec(d.text, d.args...); err != nil {
					return false, err
				}
			}
			return false, nil
		})
	}
	if err != nil {
		return store.Retained{}, fmt.Errorf("retain %s: %w", r.Part, err)
	}
	return t.done, nil
}

// retainer does one step: it looks for what is to go, and drops that.
type retainer struct {
	store.RetainStep
	now  time.Time
	done store.Retained
	gone []stint.ID // jobs
	drop []dropping // everything else
}

// dropping is a statement to run.
type dropping struct {
	text string
	args []any
}

func (t *retainer) look(c *conn, step func(*retainer, *conn) error) error {
	if err := c.under(t.Under); err != nil {
		return err
	}
	t.now, t.done, t.gone, t.drop = time.Now(), store.Retained{Next: t.From}, nil, nil
	return step(t, c)
}

// run notes a statement that is to run, and delete one that counts as a deletion.
func (t *retainer) run(text string, args ...any) {
	t.drop = append(t.drop, dropping{text, args})
}

func (t *retainer) delete(text string, args ...any) {
	t.done.Deleted++
	t.run(text, args...)
}

// page goes through a page of what is there.
func (t *retainer) page(c *conn, text string, args []any, row func(q *stmt)) error {
	seen := 0
	err := c.query(text, args, func(q *stmt) error {
		seen++
		row(q)
		return nil
	})
	if t.done.More = seen == t.Limit; !t.done.More {
		t.done.Next = store.RetainMark{}
	}
	return err
}

// before is the instant so long ago.
func (t *retainer) before(d time.Duration) int64 {
	if d == store.Forever {
		return -1 << 62
	}
	return micro(t.now) - d.Microseconds()
}

// stateOf is the state that an outcome ended a job in.
func stateOf(q *stmt, col int) stint.State { return stint.Outcome(q.ColumnInt(col)).State() }

// jobs goes up to the first execution of an entry that was appended too lately
// for anything after it to be old. One that is recorded when its position was
// passed is found by a later pass from the beginning.
func (t *retainer) jobs(c *conn) error {
	seen, done := 0, false
	horizon := t.before(cmp.Or(t.Age, t.Keep.Shortest()))
	err := c.query(retainPageSQL, []any{int64(t.From.Pos), t.Limit}, func(q *stmt) error {
		// What was appended while the clock was ahead says nothing of what follows it.
		ahead := q.ColumnInt64(6) >= micro(t.now.Add(time.Minute))
		if done = done || q.ColumnInt64(6) > horizon && !ahead; done {
			return nil
		}
		seen++
		pos, job := store.Position(q.ColumnInt64(0)), stint.ID(q.ColumnInt64(1))
		t.done.Next.Pos = pos
		age := t.Keep.Of(q.name(5), stateOf(q, 2))
		switch final := q.ColumnInt64(3) != 0; {
		case !final, age == store.Forever, t.Age != 0 && age != t.Age:
		case q.ColumnInt64(4) <= t.before(age):
			t.gone = append(t.gone, job)
		case t.done.Young == (store.RetainMark{}) && !ahead:
			t.done.Young = store.RetainMark{Pos: pos - 1, N: 1} // never the zero mark, which is none
		}
		return nil
	})
	t.done.More = seen == t.Limit
	return err
}

func (t *retainer) claims(c *conn) error {
	return t.page(c, claimsPageSQL, []any{int64(t.From.Lane), t.From.N, t.Limit}, func(q *stmt) {
		lane, n, taken := q.ColumnInt64(0), q.ColumnInt64(1), q.ColumnInt64(2)
		t.done.Next.Lane, t.done.Next.N = store.LaneID(lane), n
		if q.ColumnInt64(3) == 0 {
			t.delete(dropClaimSQL, lane, n)
			t.run(uncountSQL, taken)
		}
	})
}

func (t *retainer) engines(c *conn) error {
	return t.page(c, enginesPageSQL, []any{t.before(t.Keep.Shortest()), int64(t.From.Pos), t.Limit}, func(q *stmt) {
		token := q.ColumnInt64(0)
		t.done.Next.Pos = store.Position(token)
		if q.ColumnInt64(1) == 0 {
			t.delete(dropHistorySQL, token)
		}
	})
}

func (t *retainer) changes(c *conn) error {
	return t.page(c, oldChangesSQL, []any{t.Limit, t.before(store.ChangesKept)}, func(q *stmt) {
		t.delete(dropChangeSQL, q.ColumnInt64(0))
	})
}
