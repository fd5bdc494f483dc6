package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

const (
	claimExistsSQL = `select 1 from stint_claims where lane = ? and n = ? and nonce = ? and engine = ?`

	recordNewSQL = `
	insert into stint_executions (pos, job, attempt, nonce, engine, slot, started, finished, outcome, final, reason, result, error)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	recordSQL = recordNewSQL + ` on conflict do nothing`

	originSQL = `select ifnull(job, pos), ifnull(body, pos), limits from stint_entries where pos = ?`
)

// Finish implements [store.Finisher].
func (s *Store) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	recorded := 0
	err := s.write(ctx, func(c *conn) (wake bool, err error) {
		recorded = 0
		if err := c.fence(engine); err != nil {
			return false, err
		}
		for _, ref := range claims {
			exists, err := c.found(claimExistsSQL, int64(ref.Lane), ref.N, int64(ref.Nonce), int64(engine))
			if err != nil {
				return false, err
			} else if !exists {
				return false, fmt.Errorf("%w: number %d of lane %d", store.ErrClaimGone, ref.N, ref.Lane)
			}
		}
		now := time.Now()
		for i := range done {
			if err := c.logs(engine, done[i].Log, now); err != nil {
				return false, err
			}
		}
		r, err := c.recorder(engine, now)
		for left := done; len(left) > 0 && err == nil; {
			n := bulk(len(left), func(i int) int { return sizeOf(&left[i]) })
			var added int
			var more bool
			added, more, err = r.recordAll(left[:n])
			recorded, wake, left = recorded+added, wake || more, left[n:]
		}
		if err == nil && slices.ContainsFunc(done, func(x store.Completion) bool { return x.Flow }) {
			wake = true
			_, err = c.lookAtNotes(lookedSoon)
		}
		return wake, err
	})
	if err != nil {
		return 0, fmt.Errorf("record %d executions: %w", len(done), err)
	}
	s.waits.Finished(done)
	return recorded, nil
}

// recorder records how attempts ended, in one transaction. The fence is checked
// before one is made.
type recorder struct {
	*conn
	engine  store.EngineID
	now     time.Time
	cancels bool // something is cancelled
	deleted bool // something was deleted that the engine may record again
}

// recorder makes one. Nearly always nothing is cancelled; then no outcome is
// compared with the markers.
func (c *conn) recorder(engine store.EngineID, now time.Time) (*recorder, error) {
	cancels, err := c.found(anyCancelledSQL)
	if err != nil {
		return nil, err
	}
	deleted, err := c.found(repeatsSQL, int64(engine))
	return &recorder{conn: c, engine: engine, now: now, cancels: cancels, deleted: deleted}, err
}

// recordAll records as many executions as one statement takes, and reports whether
// any has a successor. Nearly always none of them was recorded before and nothing
// was cancelled or deleted; then it need not look at each.
func (r *recorder) recordAll(done []store.Completion) (recorded int, more bool, err error) {
	if len(done) > 1 && !r.deleted && !r.cancels {
		added, err := r.insertAll(done)
		if err != nil {
			return 0, false, err
		}
		if added {
			for i := range done {
				if err := r.order(&done[i]); err != nil {
					return 0, false, fmt.Errorf("position %d: %w", done[i].Pos, err)
				}
				if err := r.endOfMember(&done[i]); err != nil {
					return 0, false, err
				}
				if x := &done[i]; x.Next != nil {
					more = true
					_, finished := span(x, r.now)
					if err := r.succeed(x, finished, micro(r.now)); err != nil {
						return 0, false, fmt.Errorf("position %d: %w", x.Pos, err)
					}
				}
			}
			return len(done), more, nil
		}
	}
	for i := range done {
		added, err := r.record(&done[i])
		if err != nil {
			return 0, false, err
		}
		if added {
			recorded++
			more = more || done[i].Next != nil
		}
	}
	return recorded, more, nil
}

// sizeOf counts the bytes of its texts that may be long.
func sizeOf(x *store.Completion) int {
	n := len(x.Result) + len(x.Reason)
	if x.Error != nil {
		n += len(x.Error.Message) + len(x.Error.Stack)
	}
	return n
}

// insertAll appends executions, all of them or, if one was recorded before or
// cannot be stored, none.
func (r *recorder) insertAll(done []store.Completion) (added bool, err error) {
	s, err := r.prepareRows(recordNewSQL, len(done))
	if err != nil {
		return false, err
	}
	for i := range done {
		if _, err := r.bind(s, i, &done[i]); err != nil {
			return false, fmt.Errorf("position %d: %w", done[i].Pos, err)
		}
	}
	if err := s.run(); errors.Is(err, sqlite3.CONSTRAINT) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("positions %d to %d: %w", done[0].Pos, done[len(done)-1].Pos, err)
	}
	return true, nil
}

// record appends one execution and its successor, unless it is there already.
// Of a cancelled job it is the last one, and the marker goes.
func (r *recorder) record(x *store.Completion) (added bool, err error) {
	if r.deleted {
		if exists, err := r.found(entryAtSQL, int64(x.Pos)); err != nil || !exists {
			return false, err
		}
	}
	if r.cancels {
		if x, err = r.heed(x); err != nil {
			return false, err
		}
	}
	added, finished, err := r.insert(x)
	if err == nil && added {
		if err = r.order(x); err == nil {
			err = r.endOfMember(x)
		}
	}
	switch {
	case err != nil:
		return false, fmt.Errorf("position %d: %w", x.Pos, err)
	case added && x.Next != nil:
		err = r.succeed(x, finished, micro(r.now))
	case added && r.cancels:
		_, err = r.exec(clearSQL, int64(x.Job))
	}
	return added && err == nil, err
}

// endOfMember has those looked at that wait for a job of a flow, if it has ended.
func (r *recorder) endOfMember(x *store.Completion) error {
	if !x.Flow || !x.Final {
		return nil
	}
	_, err := r.exec(noteEndSQL, int64(x.Job))
	return err
}

// heed returns what is recorded of an attempt if its job was cancelled: no
// attempt follows. What was cancelled before it began ended when it was
// cancelled, so that the job reads the same before and after.
func (r *recorder) heed(x *store.Completion) (*store.Completion, error) {
	if x.Final && (x.Outcome != stint.OutcomeCancelled || x.Reason != "") {
		return x, nil
	}
	ended, marked := *x, false
	mark := func(q *stmt) error {
		if x.Outcome == stint.OutcomeCancelled && x.Slot == 0 {
			ended.Started, ended.Ended = time.Time{}, q.time(1)
		}
		ended.Outcome, ended.Final, ended.Next, ended.Reason, marked = stint.OutcomeCancelled, true, nil, q.ColumnText(0), true
		return nil
	}
	err := r.query(whySQL, []any{int64(x.Job)}, mark)
	if err == nil && !marked && x.Outcome == stint.OutcomeCancelled {
		err = r.query(whyParentSQL, []any{int64(x.Job)}, mark)
	}
	return &ended, err
}

// insert appends one execution, unless it is there already.
func (r *recorder) insert(x *store.Completion) (added bool, finished int64, err error) {
	s, err := r.prepare(recordSQL)
	if err != nil {
		return false, 0, err
	}
	if finished, err = r.bind(s, 0, x); err != nil {
		return false, 0, err
	}
	err = s.run()
	return err == nil && r.db.Changes() > 0, finished, err
}

// bind binds the values of [recordSQL] for a row, and returns when the attempt ended.
func (r *recorder) bind(s *stmt, row int, x *store.Completion) (int64, error) {
	started, finished := span(x, r.now)
	job, failure := num(x.Job), value{}
	if int64(x.Job) == int64(x.Pos) {
		job = value{}
	}
	if x.Error != nil {
		text, err := json.Marshal(x.Error)
		if err != nil {
			return 0, err
		}
		failure = raw(text)
	}
	s.set(row, num(x.Pos), job, num(x.Attempt), num(x.Nonce), num(r.engine), num(x.Slot), num(started),
		num(finished), num(int(x.Outcome)), num(flag(x.Final)), textOr(x.Reason), raw(x.Result), failure)
	return finished, nil
}

// span turns this process's instants into what is stored: now, less their age
// on the monotonic clock. An attempt that never began has no length.
func span(x *store.Completion, now time.Time) (started, finished int64) {
	finished = micro(now.Add(-max(0, now.Sub(x.Ended))))
	if x.Started.IsZero() {
		return finished, finished
	}
	return min(finished, micro(now.Add(-max(0, now.Sub(x.Started))))), finished
}

// succeed writes what follows an attempt that was not the last.
func (c *conn) succeed(x *store.Completion, finished, now int64) error {
	var job, body int64
	var limits string
	err := c.query(originSQL, []any{int64(x.Pos)}, func(q *stmt) error {
		job, body, limits = q.ColumnInt64(0), q.ColumnInt64(1), q.words(2)
		return nil
	})
	if err != nil {
		return err
	} else if job == 0 {
		return fmt.Errorf("there is no entry at position %d", x.Pos)
	}
	next := x.Next
	if next.Wait {
		if _, _, err := next.Awaited(); err != nil {
			return err
		}
		w := newWait{
			job: job, due: finished + ceilMicros(next.Delay), body: body, why: next.Why,
			attempt: next.Attempt, priority: next.Priority, losses: next.Losses, suspect: next.Suspect,
			queue: next.Queue, kind: next.Kind, undecided: next.Func, faulty: next.Faulty, limits: limits, awaits: next.Awaits,
		}
		_, err = c.exec(waitSQL, w.args()...)
		if err == nil && next.Awaits != "" {
			_, err = c.exec(wakeSQL, job, now)
		}
		return err
	}
	_, err = c.append(&newEntry{
		lane: store.LimitedLane(next.Queue, next.Priority, next.Part, next.Kind, limits).ID, created: now, job: job, body: body,
		attempt: next.Attempt, priority: next.Priority, losses: next.Losses, suspect: next.Suspect,
		queue: next.Queue, kind: next.Kind, faulty: next.Faulty, limits: limits,
	})
	return err
}
