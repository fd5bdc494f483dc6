package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

const tagSQL = `insert into stint_job_tags (tag, job) values (?, ?)`

// Enqueue implements [stint.Enqueuer]. A batch is one transaction, and nobody
// else writes meanwhile: a million jobs at once would hold up the beats of
// engines for seconds, ten batches of a hundred thousand do not.
func (s *Store) Enqueue(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.ID, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if tx.Handle != nil {
		return s.enqueueIn(ctx, tx, jobs)
	}
	ids := make([]stint.ID, len(jobs))
	err := s.write(ctx, func(c *conn) (bool, error) {
		return true, storeJobs(ctx, (*direct)(c), jobs, ids, (&laneCache{}).normal)
	})
	if err != nil {
		return nil, fmt.Errorf("enqueue %d jobs: %w", len(jobs), err)
	}
	return ids, nil
}

// appender is what storing jobs needs of a connection: the store's own, or
// one in a caller's transaction.
type appender interface {
	append(e *newEntry) (pos int64, err error)
	run(text string, args ...any) error
}

// direct is the store's own connection.
type direct conn

func (d *direct) append(e *newEntry) (int64, error) { return (*conn)(d).append(e) }

func (d *direct) run(text string, args ...any) error {
	_, err := (*conn)(d).exec(text, args...)
	return err
}

// storeJobs appends jobs and puts their IDs into ids. A job that is not due
// gets its contents into the lane that nobody claims, and a waiting row; for
// the others, lane says where they go.
func storeJobs(ctx context.Context, a appender, jobs []stint.NewJob, ids []stint.ID, lane func(queue string, priority int) stint.LaneID) error {
	// The clock is read under the write lock, so that times rise with
	// positions, and a delay does not include the wait for the lock.
	var (
		stored  = map[retry.Policy]int64{retry.Default(): 0}
		created = micro(time.Now())
	)
	for i := range jobs {
		if i%1000 == 999 && ctx.Err() != nil {
			return ctx.Err()
		}
		j := &jobs[i]
		policy, ok := stored[j.Retry]
		if !ok {
			var text string
			var err error
			if policy, text, err = encodePolicy(j.Retry); err != nil {
				return err
			}
			if err := a.run(storePolicySQL, policy, text); err != nil {
				return err
			}
			stored[j.Retry] = policy
		}
		e := newEntry{
			lane: lane(j.Queue, j.Priority), created: created, policy: policy, timeout: j.Timeout.Microseconds(),
			attempt: 1, priority: j.Priority, maxLosses: j.MaxLosses, queue: j.Queue, kind: j.Kind,
			args: j.Args, metadata: j.Metadata, urn: j.URN, source: j.Source,
		}
		if len(j.Tags) > 0 {
			e.tags = arrayOf(j.Tags)
		}
		if at := dueAt(j, created); at > created {
			e.due, e.lane = at, stint.NoLane
		}
		id, err := a.append(&e)
		if err != nil {
			return err
		}
		ids[i] = stint.ID(id)
		if e.due != 0 {
			w := newWait{job: id, due: e.due, body: id, why: stint.Scheduled, attempt: 1, priority: e.priority, queue: e.queue, kind: e.kind}
			if err := a.run(waitSQL, w.args()...); err != nil {
				return err
			}
		}
		for _, tag := range j.Tags {
			if err := a.run(tagSQL, tag, id); err != nil {
				return err
			}
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

// laneCache spares the hash of a lane that was just asked for.
type laneCache struct {
	queue    string
	priority int
	lane     stint.LaneID
}

func (l *laneCache) normal(queue string, priority int) stint.LaneID {
	if l.queue != queue || l.priority != priority || queue == "" {
		l.queue, l.priority = queue, priority
		l.lane = stint.LaneOf(queue, priority, stint.PartNormal, "").ID
	}
	return l.lane
}
