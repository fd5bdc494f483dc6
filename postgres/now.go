package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/stint-go/stint"
)

var _ stint.Immediate = (*Store)(nil)

const (
	// nowFenceSQL and nowLockSQL come in this order, as in any claim, and
	// before anything is written: so transaction numbers rise in the lane in
	// the order of its claims, and each frontier lies behind the one before.
	nowFenceSQL = `select stint.fence($1)`
	nowLockSQL  = `select pg_advisory_xact_lock($1 # ('stint.entries'::regclass::oid::bigint << 24))`

	// nowSQL appends a job and the claim that takes it. Its snapshot is younger
	// than the lane's lock.
	nowSQL = `
with entry as (
  insert into stint.entries (lane, queue, priority, kind, args, policy, retry, timeout, urn, source, metadata, max_losses, tags)
  select $1, $2, $3, $4, $5::text::jsonb, p.id, case when p.id is null then $7::text::jsonb end,
         $8, $9, $10, $11::text::jsonb, $12, $13
  from (select $6::bigint as id) j left join stint.policies p on p.id = j.id
  returning xid, pos
), label as (
  insert into stint.job_tags (tag, job) select unnest($13::text[]), pos from entry
)
insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions)
select $1, (stint.frontier($1)).n + 1, $16, $14, $15, e.xid, e.pos, array[e.pos] from entry e
returning n, positions`

	// nowLazySQL leaves the wait for the disk to the transaction behind this
	// one, outside the lane's lock.
	nowLazySQL = `select set_config('synchronous_commit', 'off', true)`
)

// EnqueueClaimed implements [stint.Immediate]. Like a claim it is one round trip
// of two transactions, of which the second makes the first durable and reads
// what it took.
func (s *Store) EnqueueClaimed(ctx context.Context, job stint.NewJob, req stint.ClaimRequest) (stint.Claim, error) {
	known, err := s.storePolicies(ctx, stint.Tx{}, []stint.NewJob{job})
	if err != nil {
		return stint.Claim{}, fmt.Errorf("store a retry policy: %w", err)
	}
	claim, err := retryExplicit(s, func() (stint.Claim, error) { return s.enqueueClaimed(ctx, job, known, req) })
	if err != nil {
		return claim, fmt.Errorf("enqueue a job to run now: %w", err)
	}
	return claim, nil
}

func (s *Store) enqueueClaimed(ctx context.Context, job stint.NewJob, known dictionary, req stint.ClaimRequest) (stint.Claim, error) {
	claim := stint.Claim{ClaimRef: stint.ClaimRef{Lane: stint.NowLane, Nonce: req.Nonce}, Serial: req.Serial}
	select {
	case s.claiming <- struct{}{}:
		defer func() { <-s.claiming }()
	case <-ctx.Done():
		return claim, ctx.Err()
	}
	conn, err := s.work().Acquire(ctx)
	if err != nil {
		return claim, err
	}
	defer conn.Release()
	q := &s.sql
	p, err := s.pipeline(ctx, conn.Conn(), q.nowFence, q.nowLock, q.now, nowLazySQL, q.taken)
	if err != nil {
		return claim, err
	}
	explicit := s.explicit.Load()
	if explicit {
		p.send(beginSQL)
	}
	p.send(q.nowFence, int8s(int64(req.Engine)))
	p.send(q.nowLock, int8s(int64(stint.NowLane)))
	p.send(q.now, append(nowParams(job, known), int8s(int64(req.Engine)), int8s(req.Serial), int8s(int64(req.Nonce)))...)
	p.send(nowLazySQL)
	if explicit {
		p.send(commitSQL)
	}
	p.SendPipelineSync()
	p.transaction(explicit, q.taken, int8s(int64(req.Engine)), int8s(req.Serial))
	if err := p.Sync(); err != nil {
		p.Close()
		return claim, err
	}

	err = p.part(func(rr *pgconn.ResultReader) error {
		for rr.NextRow() {
			if v := rr.Values(); len(v) == 2 { // the others answer with one column, or none
				claim.N, claim.Positions = int64of(v[0]), positionsOf(v[1])
			}
		}
		return nil
	})
	if err != nil {
		p.Close()
		return stint.Claim{}, translate(err)
	}
	var read entryReader
	err = p.part(func(rr *pgconn.ResultReader) error {
		read.rows(rr)
		return nil
	})
	if err != nil {
		p.Close()
		return stint.Claim{}, translate(err)
	}
	if err = p.Close(); err == nil {
		claim.Entries, err = s.entries(ctx, conn, &read)
	}
	return claim, translate(err)
}

// nowParams are what nowSQL takes of the job. What nobody said is null.
func nowParams(j stint.NewJob, known dictionary) []param {
	policy, body := param{oid: pgtype.Int8OID}, param{oid: pgtype.TextOID}
	if known.ids != nil {
		policy, body = int8s(known.ids[0]), texts(known.bodies[0])
	}
	timeout, losses := param{oid: pgtype.Int8OID}, param{oid: pgtype.Int2OID}
	if j.Timeout > 0 {
		timeout = int8s(j.Timeout.Milliseconds())
	}
	if j.MaxLosses != nil {
		losses = int2s(int16(*j.MaxLosses))
	}
	tags := textarray(nil)
	if len(j.Tags) > 0 {
		column := make([]*string, len(j.Tags))
		for i := range j.Tags {
			column[i] = &j.Tags[i]
		}
		tags = textarray(column)
	}
	return []param{int8s(int64(stint.NowLane)), texts(j.Queue), int2s(int16(j.Priority)), texts(j.Kind), texts(string(j.Args)), policy, body,
		timeout, texts(j.URN), texts(j.Source), texts(string(j.Metadata)), losses, tags}
}
