package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

const tagSQL = `insert into stint_job_tags (tag, job) values (?, ?)`

// Enqueue implements [stint.Enqueuer]. A batch is one transaction, and nobody
// else writes meanwhile: a million jobs at once would hold up the beats of
// engines for seconds, ten batches of a hundred thousand do not.
func (s *Store) Enqueue(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if tx.Handle != nil {
		return s.enqueueIn(ctx, tx, jobs)
	}
	receipts := make([]stint.Receipt, len(jobs))
	err := s.write(ctx, func(c *conn) (bool, error) {
		return true, storeJobs(ctx, (*direct)(c), jobs, receipts, nil)
	})
	if err != nil {
		return nil, fmt.Errorf("enqueue %d jobs: %w", len(jobs), err)
	}
	return receipts, nil
}

// appender is what storing jobs needs of a connection: the store's own, or
// one in a caller's transaction.
type appender interface {
	appendAll(all []newEntry) (last int64, err error) // at positions that follow one another
	run(text string, args ...any) error
	holder(key string) (keyHolder, error)
	uniqueHolder(key string) (uniqueHolder, error)
	cancelHolder(id stint.ID, why string) error     // no engine has it, or it is asked to stop
	number(text string, args ...any) (int64, error) // the first column of a row; 0 without one
	word(text string, args ...any) (string, error)  // the same of a text
}

// direct is the store's own connection.
type direct conn

func (d *direct) appendAll(all []newEntry) (int64, error) { return (*conn)(d).appendAll(all) }

func (d *direct) run(text string, args ...any) error {
	_, err := (*conn)(d).exec(text, args...)
	return err
}

func (d *direct) holder(key string) (h keyHolder, err error) {
	err = (*conn)(d).query(holderSQL, []any{key}, func(q *stmt) error {
		h = keyHolder{job: stint.ID(q.ColumnInt64(0)), fingerprint: q.ColumnText(1)}
		return nil
	})
	return h, err
}

func (d *direct) number(text string, args ...any) (int64, error) {
	return oneRow((*conn)(d), firstNumber[int64], text, args...)
}

func (d *direct) word(text string, args ...any) (string, error) {
	return oneRow((*conn)(d), firstText[string], text, args...)
}

// storeJobs appends jobs and says what came of them. A job that is not due
// gets its contents into the lane that no engine claims, and a waiting row. Of
// the others, place says what is special, unless it is nil.
func storeJobs(ctx context.Context, a appender, jobs []stint.NewJob, receipts []stint.Receipt, place func(e *newEntry)) error {
	keys, err := holders(a, jobs)
	if err != nil {
		return err
	}
	if err := onceInBatch(jobs, keys); err != nil {
		return err
	}
	// The clock is read under the write lock, so that times rise with
	// positions, and a delay does not include the wait for the lock.
	var (
		policies = map[retry.Policy]int64{retry.Default(): 0}
		created  = micro(time.Now())
		lanes    laneCache
	)
	if err := checkStarts(jobs, keys, created); err != nil {
		return err
	}
	next := stored{appender: a, jobs: jobs, receipts: receipts, keys: keys, entries: make([]newEntry, 0, min(len(jobs), maxBulk))}
	inFlow := jobs[0].Member != nil
	if inFlow {
		clear(receipts)
	}
	if inFlow && keys[jobs[0].IdempotencyKey].job == 0 {
		next.newest = map[int64]int64{}
		if err := next.checkMembers(); err != nil {
			return err
		}
	}
	for i := range jobs {
		if i%1000 == 999 && ctx.Err() != nil {
			return ctx.Err()
		}
		j := &jobs[i]
		if inFlow && next.exists(i) {
			continue
		}
		receipts[i] = stint.Receipt{}
		if j.IdempotencyKey != "" {
			if h := keys[j.IdempotencyKey]; h.job != 0 {
				receipts[i] = stint.Receipt{ID: h.job, Duplicate: true}
				continue
			}
		}
		at := dueAt(j, created)
		if j.Unique != "" {
			stands, err := next.takeUnique(j, created, &at)
			if err != nil {
				return err
			}
			if receipts[i] = stands; stands.Duplicate {
				if err := next.keepKey(j, int64(stands.ID), created); err != nil {
					return err
				}
				continue
			}
		}
		policy, ok := policies[j.Retry]
		if !ok {
			var text string
			var err error
			if policy, text, err = encodePolicy(j.Retry); err != nil {
				return err
			}
			if err := a.run(storePolicySQL, policy, text); err != nil {
				return err
			}
			policies[j.Retry] = policy
		}
		limits, err := j.LimitKeys()
		if err != nil {
			return err
		}
		e := next.add(i)
		*e = newEntry{
			lane: lanes.normal(j.Queue, j.Priority, limits), created: created, policy: policy, timeout: j.Timeout.Microseconds(),
			attempt: 1, priority: j.Priority, maxLosses: j.MaxLosses, queue: j.Queue, kind: j.Kind,
			args: j.Args, metadata: j.Metadata, urn: j.URN, source: j.Source,
			correlation: j.Correlation, limits: limits,
		}
		if len(j.Tags) > 0 {
			e.tags = arrayOf(j.Tags)
		}
		if at > created {
			e.due, e.lane = at, store.NoLane
		}
		if inFlow {
			e.flow = next.flowOf(j.Member)
			if e.correlation == "" && e.flow != 0 {
				if e.correlation, err = next.sharedCorrelation(); err != nil {
					return err
				}
			}
		}
		if blocks(j.Member) {
			e.lane = store.NoLane
		}
		if e.startBy = startBy(j, max(created, e.due)); e.startBy != 0 && at > e.startBy {
			return valid.Invalid("start by", "the job is due only after that")
		}
		if place != nil {
			place(e)
		}
		// Another job of the batch may have the same key, or belong to this one.
		if len(next.entries) == maxBulk || j.IdempotencyKey != "" || j.Unique != "" || inFlow && j.Member.Root {
			if err := next.flush(); err != nil {
				return err
			}
		}
	}
	if err := next.flush(); err != nil {
		return err
	}
	return next.watchNewest()
}

// stored is jobs on their way into the log, as many as one statement takes.
type stored struct {
	appender
	jobs     []stint.NewJob
	receipts []stint.Receipt
	keys     map[string]keyHolder

	// The unique key that was asked for last, and until when it is held or jobs are put off. The entry of
	// its job is stored before the next one is asked for.
	unique string
	until  int64

	newest map[int64]int64 // of each flow, the last of its jobs; of one without any, 0
	shared string          // the correlation id of those in a flow that have none of their own; empty before it is known

	entries []newEntry
	of      [maxBulk]int // the jobs that they are of
}

// add makes room for the entry of one of the jobs.
func (s *stored) add(job int) *newEntry {
	n := len(s.entries)
	s.of[n], s.entries = job, s.entries[:n+1]
	return &s.entries[n]
}

// flush appends the entries, and what else there is to keep of their jobs.
func (s *stored) flush() error {
	if len(s.entries) == 0 {
		return nil
	}
	last, err := s.appendAll(s.entries)
	if err != nil {
		return err
	}
	id := last - int64(len(s.entries))
	for i := range s.entries {
		id++
		s.receipts[s.of[i]].ID = stint.ID(id)
		if err := s.keep(&s.jobs[s.of[i]], &s.entries[i], id); err != nil {
			return err
		}
	}
	s.entries = s.entries[:0]
	return nil
}

// keep stores what has tables of its own: the job's key, its place in a flow, its time and its tags.
func (s *stored) keep(j *stint.NewJob, e *newEntry, id int64) error {
	if err := s.keepKey(j, id, e.created); err != nil {
		return err
	}
	if j.Unique != "" {
		if err := s.keepUnique(j, id, e.created); err != nil {
			return err
		}
	}
	w := newWait{job: id, due: e.due, body: id, why: stint.Scheduled, attempt: 1, priority: e.priority, queue: e.queue, kind: e.kind, limits: e.limits}
	if j.Member != nil {
		if err := s.keepMember(j.Member, &w); err != nil {
			return err
		}
	}
	if e.lane == store.NoLane {
		if err := s.run(waitSQL, w.args()...); err != nil {
			return err
		}
	}
	for _, tag := range j.Tags {
		if err := s.run(tagSQL, tag, id); err != nil {
			return err
		}
	}
	return nil
}

// keepKey stores the idempotency key of a job, if it has one, with the job that stands for it.
func (s *stored) keepKey(j *stint.NewJob, id, created int64) error {
	if j.IdempotencyKey == "" {
		return nil
	}
	h := s.keys[j.IdempotencyKey]
	h.job = stint.ID(id)
	s.keys[j.IdempotencyKey] = h
	return s.run(takeKeySQL, j.IdempotencyKey, id, h.fingerprint, created+minKeyAge.Microseconds())
}

// checkStarts refuses jobs whose delay ends only after they are to begin, before
// anything is written.
func checkStarts(jobs []stint.NewJob, keys map[string]keyHolder, now int64) error {
	for i := range jobs {
		j := &jobs[i]
		if j.Delay > 0 && !j.StartBy.IsZero() && dueAt(j, now) > startBy(j, 0) && keys[j.IdempotencyKey].job == 0 {
			return valid.Invalid("start by", "the job is due only after that")
		}
	}
	return nil
}

// dueAt is when a job is to become ready, rounded up: never before its time.
func dueAt(j *stint.NewJob, now int64) int64 {
	if j.Delay > 0 {
		return now + ceilMicros(j.Delay)
	}
	if j.RunAt.IsZero() {
		return 0
	}
	return ceilMicro(j.RunAt)
}

// startBy is when a job that is due at some time is to begin at the latest,
// rounded as dueAt is; zero for no bound.
func startBy(j *stint.NewJob, due int64) int64 {
	switch {
	case j.StartWithin > 0:
		return due + ceilMicros(j.StartWithin)
	case j.StartBy.IsZero():
		return 0
	default:
		return ceilMicro(j.StartBy)
	}
}

// laneCache spares the hash of a lane that was just asked for.
type laneCache struct {
	queue    string
	priority int
	limits   string
	lane     store.LaneID
}

func (l *laneCache) normal(queue string, priority int, limits string) store.LaneID {
	if l.queue != queue || l.priority != priority || l.limits != limits || queue == "" {
		l.queue, l.priority, l.limits = queue, priority, limits
		l.lane = normalLane(queue, priority, limits)
	}
	return l.lane
}

// normalLane is the lane of what becomes ready for the first time, and again when it has waited.
func normalLane(queue string, priority int, limits string) store.LaneID {
	return store.LimitedLane(queue, priority, store.PartNormal, "", limits).ID
}
