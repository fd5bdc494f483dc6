package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.ClaimedEnqueuer = (*Store)(nil)

const (
	// nowFenceSQL and nowLockSQL come in this order, as in any claim, and
	// before anything of the lane is written: so transaction numbers rise in it
	// in the order of its claims, and each frontier lies after the one before.
	nowFenceSQL = `select stint.fence($1)`
	nowLockSQL  = `select pg_advisory_xact_lock($1 # ('stint.entries'::regclass::oid::bigint << 24))`

	// nowKeySQL takes an idempotency key, or fails. It comes before them all: a
	// transaction that waits for a key must block neither the burial of its engine nor
	// the lane. So a transaction with a key may have got its number long before it
	// comes to the lane.
	nowKeySQL = `select stint.take_key($1, $2, $3::text::jsonb, $4, $5)`

	// nowWaitSQL bounds the wait for a key, for a client that may be gone when
	// it is over.
	nowWaitSQL = `select set_config('lock_timeout', $1, true)`

	// nowSQL appends a job and the claim that takes it. Its snapshot is younger
	// than the lane's lock. The frontier never moves back: nothing in this lane
	// waits to be claimed, so it may lie behind what is appended later.
	nowSQL = `
with entry as (
  insert into stint.entries (lane, queue, priority, kind, args, policy, retry, timeout, urn, source, metadata, max_losses, tags, correlation, start_by, pos, uniqueness)
  select $1, $2, $3, $4, $5::text::jsonb, p.id, case when p.id is null then $7::text::jsonb end,
         $8, $9, $10, $11::text::jsonb, $12, $13, $14, coalesce($15::timestamptz, clock_timestamp() + $16::bigint * interval '1 microsecond'),
         coalesce($17, nextval('stint.positions')), $22::text
  from (select $6::bigint as id) j left join stint.policies p on p.id = j.id
  returning xid, pos
), label as (
  insert into stint.job_tags (tag, job) select unnest($13::text[]), pos from entry
)
insert into stint.claims (lane, n, nonce, engine, serial, low, xid, pos, positions)
select $1, f.n + 1, $20, $18, $19, $21, greatest(f.xid, e.xid), case when f.xid > e.xid then f.pos else e.pos end, array[e.pos]
from entry e, stint.frontier($1) f
returning n, positions`

	// nowLazySQL leaves the wait for the disk to the transaction after this
	// one, outside the lane's lock.
	nowLazySQL = `select set_config('synchronous_commit', 'off', true)`
)

// EnqueueClaimed implements [store.ClaimedEnqueuer]. Like a claim it is one round trip
// of two transactions, of which the second makes the first durable and reads
// what it took.
func (s *Store) EnqueueClaimed(ctx context.Context, job stint.NewJob, req store.ClaimRequest) (store.Claim, error) {
	if len(job.Limits) > 0 {
		return store.Claim{}, valid.Invalid("limits", "a job that runs in the caller's process cannot wait for limits")
	}
	known, err := s.storePolicies(ctx, stint.Tx{}, []stint.NewJob{job})
	if err != nil {
		return store.Claim{}, fmt.Errorf("store a retry policy: %w", err)
	}
	claim, err := retryExplicit(s, func() (store.Claim, error) { return s.enqueueClaimed(ctx, job, known, req) })
	if err != nil {
		return claim, fmt.Errorf("enqueue a job to run now: %w", err)
	}
	return claim, nil
}

func (s *Store) enqueueClaimed(ctx context.Context, job stint.NewJob, known dictionary, req store.ClaimRequest) (store.Claim, error) {
	claim := store.Claim{ClaimRef: store.ClaimRef{Lane: store.NowLane, Nonce: req.Nonce}, Serial: req.Serial}
	conn, release, err := s.acquireNow(ctx, job)
	if err != nil {
		return claim, err
	}
	defer release()
	if err := checkSpoken(conn.Conn()); err != nil {
		return claim, err
	}
	q, keyed := &s.sql, keyed(job)
	id := param{oid: pgtype.Int8OID}
	all := []string{q.nowFence, q.nowLock, q.now, nowLazySQL, q.taken}
	if keyed {
		var drawn int64
		if err := conn.QueryRow(ctx, s.sql.in(`select nextval('stint.positions')`)).Scan(&drawn); err != nil {
			return claim, translate(err)
		}
		id, all = int8s(drawn), append(all, q.nowKey, nowWaitSQL)
	}
	p, err := s.pipeline(ctx, conn.Conn(), all...)
	if err != nil {
		return claim, err
	}
	explicit := keyed || s.explicit.Load()
	if explicit {
		p.send(beginSQL)
	}
	if keyed {
		p.sendKey(ctx, q, job, id)
	}
	p.send(q.nowFence, int8s(req.Engine))
	p.send(q.nowLock, int8s(store.NowLane))
	p.send(q.now, append(nowParams(job, known), id, int8s(req.Engine), int8s(req.Serial), int8s(req.Nonce), int8s(req.Low), textOrNull(job.Unique))...)
	p.send(nowLazySQL)
	if explicit {
		p.send(commitSQL)
	}
	claim, err = s.readClaim(ctx, conn, p, claim, func() { p.transaction(explicit, q.taken, int8s(req.Engine), int8s(req.Serial)) })
	return claim, ofKey(err, job)
}

// acquireNow is a connection for a claim; for a job with a key, which may have
// to wait for another transaction, one of the program's.
func (s *Store) acquireNow(ctx context.Context, job stint.NewJob) (conn *pgxpool.Conn, release func(), err error) {
	if keyed(job) {
		if conn, err = s.pool.Acquire(ctx); err != nil {
			return nil, nil, err
		}
		return conn, conn.Release, nil
	}
	return s.acquireClaim(ctx)
}

// keyed reports whether a job takes keys before it is stored.
func keyed(job stint.NewJob) bool { return job.IdempotencyKey != "" || job.Unique != "" }

// textOrNull is a parameter that is null for an empty text.
func textOrNull(text string) param {
	if text == "" {
		return param{oid: pgtype.TextOID}
	}
	return texts(text)
}

// sendKey sends what takes the job's key.
func (p pipeline) sendKey(ctx context.Context, q *statements, job stint.NewJob, id param) {
	if deadline, ok := ctx.Deadline(); ok {
		// A little less, so that the server's answer arrives.
		p.send(nowWaitSQL, texts(fmt.Sprint(max(1, time.Until(deadline).Milliseconds()*9/10))))
	}
	p.send(q.nowKey, textOrNull(job.IdempotencyKey), texts(job.Kind), texts(string(job.Args)), id, textOrNull(job.Unique))
}

// ofKey says what is known of the job that has a key.
func ofKey(err error, job stint.NewJob) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	id, _ := strconv.ParseInt(pg.Detail, 10, 64)
	switch pg.Code {
	case "ST005":
		return &stint.KeyConflictError{Key: job.IdempotencyKey, ID: stint.ID(id)}
	case "ST006":
		return &store.DuplicateError{Key: job.IdempotencyKey, ID: stint.ID(id)}
	case "ST008":
		return &store.DuplicateError{ID: stint.ID(id)}
	}
	return err
}

// nowParams are what nowSQL takes of the job. What was not given is null.
func nowParams(j stint.NewJob, known dictionary) []param {
	policy, body := param{oid: pgtype.Int8OID}, param{oid: pgtype.TextOID}
	if known.ids != nil {
		policy, body = int8s(known.ids[0]), texts(known.bodies[0])
	}
	losses, by, within := param{oid: pgtype.Int2OID}, param{oid: pgtype.TimestamptzOID}, param{oid: pgtype.Int8OID}
	if j.MaxLosses != nil {
		losses = int2s(int16(*j.MaxLosses))
	}
	if !j.StartBy.IsZero() {
		by = timestamps(j.StartBy)
	}
	if j.StartWithin > 0 {
		within = int8s(j.StartWithin.Microseconds())
	}
	timeout := param{oid: pgtype.Int8OID}
	if j.Timeout > 0 {
		timeout = int8s(j.Timeout.Milliseconds())
	}
	var tags []*string
	for i := range j.Tags {
		tags = append(tags, &j.Tags[i])
	}
	return []param{int8s(store.NowLane), texts(j.Queue), int2s(int16(j.Priority)), texts(j.Kind), texts(string(j.Args)), policy, body,
		timeout, texts(j.URN), texts(j.Source), texts(string(j.Metadata)), losses, textarray(tags), texts(j.Correlation), by, within}
}
