package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/store"
)

// buryBatch bounds what a burial holds in memory.
const buryBatch = 5000

// Bury implements [store.Roster]. Each step is a statement of its own, under
// read committed, so that each sees what the one before waited for: under one
// snapshot a claim in flight would be missed, and its jobs lost for ever.
//
// The transaction that deletes the engine concludes what its last beat allowed
// to be open: that is nearly always all, and soon done however long the engine
// lived. But the bound is what the engine believed, and after a failover that
// lost outcomes it believed too much. So its older claims are read as well,
// after that: the newest of them by this call, and the rest by [Store.Sweep].
func (s *Store) Bury(ctx context.Context, b store.Burial, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	var (
		buried int
		d      deceased
	)
	err := s.transactWork(ctx, func(tx pgx.Tx) error {
		var err error
		if d, err = s.condemn(ctx, tx, b); err != nil {
			return err
		}
		// Only now, with the row gone and the lock ours, nothing of this
		// engine's can still be on its way.
		if err = s.conclude(ctx, tx, &d, d.low, math.MaxInt64, judge); err != nil {
			return err
		}
		buried = d.end.Freed
		return s.keepEnd(ctx, tx, &d)
	})
	if err == nil || errors.Is(err, store.ErrBuried) {
		s.Release(b.Engine)
	}
	if err != nil {
		return 0, fmt.Errorf("bury engine %d: %w", b.Engine, err)
	}
	// Should this fail, the burial stands, and a later call sweeps.
	n, _, _ := s.sweep(ctx, d, judge)
	return buried + n, nil
}

// deceased is an engine that was taken out of the roster.
type deceased struct {
	engine  store.EngineID
	low     int64 // the bound of open claims that it believed in
	running []store.Position
	end     store.EngineEnd // what a transaction has concluded for it
}

// keepEnd adds what a transaction concluded to what is known of the engine.
func (s *Store) keepEnd(ctx context.Context, tx pgx.Tx, d *deceased) error {
	if d.end.Freed == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, s.sql.in(`
		update stint.engine_history h set freed = h.freed + $2, lost = h.lost + $3, lost_at = (h.lost_at || $4::bigint[])[:$5]
		where h.token = $1`), d.engine, d.end.Freed, d.end.Lost, notNil(d.end.LostAt), store.LostKept)
	return err
}

// conclude ends the unfinished entries of an engine's claims numbered from
// and below to, and counts them in its end.
func (s *Store) conclude(ctx context.Context, tx pgx.Tx, d *deceased, from, to int64, judge func(e *store.Entry, begun bool) store.Completion) error {
	d.end = store.EngineEnd{}
	claims, err := s.held(ctx, tx, d.engine, from, to)
	if err != nil {
		return err
	}
	nonces := map[store.Position]store.Nonce{}
	var left []store.Position
	for _, c := range claims {
		for _, pos := range c.Positions {
			nonces[pos] = c.Nonce
			left = append(left, pos)
		}
	}
	// By position, as every writer of executions does, so that two never
	// wait for each other crosswise.
	slices.Sort(left)
	for part := range slices.Chunk(left, buryBatch) {
		entries, err := s.fetchIn(ctx, tx, part)
		if err != nil {
			return err
		}
		done := make([]store.Completion, len(entries))
		for i := range entries {
			e := &entries[i]
			done[i] = judge(e, slices.Contains(d.running, e.Pos))
			done[i].Nonce = nonces[e.Pos]
			d.end.Conclude(&done[i])
		}
		if err := s.recordIn(ctx, tx, d.engine, done); err != nil {
			return err
		}
	}
	return nil
}

const (
	// sweepClaims is how many claims one step of a sweep reads.
	sweepClaims = 100

	// sweepTime is after how long a sweep leaves the rest to the next one.
	sweepTime = 10 * time.Second
)

// sweep concludes what is left of a buried engine in its newest claims below its
// bound, and lowers that: so no claim is read again. It reports whether there
// are older ones. An engine that is gone gets no new claims, so there is no hurry;
// what another call works on is left to it.
func (s *Store) sweep(ctx context.Context, d deceased, judge func(e *store.Entry, begun bool) store.Completion) (n int, more bool, err error) {
	err = s.transactWork(ctx, func(tx pgx.Tx) error {
		var from int64
		err := tx.QueryRow(ctx, s.sql.in(`
			select h.low, coalesce((select c.serial from stint.claims c where c.engine = h.token and c.serial < h.low
			                        order by c.engine desc, c.serial desc offset $2 limit 1), 0)
			from stint.engine_history h where h.token = $1 and not h.swept for update skip locked`), d.engine, sweepClaims-1).Scan(&d.low, &from)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		if err = s.conclude(ctx, tx, &d, from, d.low, judge); err != nil {
			return err
		}
		if err = s.keepEnd(ctx, tx, &d); err != nil {
			return err
		}
		n, more = d.end.Freed, from > 0
		_, err = tx.Exec(ctx, s.sql.in(`update stint.engine_history set low = $2, swept = $2::bigint = 0 where token = $1`), d.engine, from)
		return err
	})
	return n, more, err
}

var _ store.OrphanRecoverer = (*Store)(nil)

// Sweep implements [store.OrphanRecoverer]. It takes some seconds at most, and goes on
// where the one before ended: an engine may have made millions of claims.
func (s *Store) Sweep(ctx context.Context, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	began := time.Now()
	left, err := collect(ctx, s.work(), "sweep", s.sql.in(`
		select h.token from stint.engine_history h
		where not h.swept and h.ended < clock_timestamp() - interval '10 s' order by h.ended limit 10`), nil, pgx.RowTo[store.EngineID])
	if err != nil {
		return 0, err
	}
	total := 0
	for _, engine := range left {
		for more := true; more && time.Since(began) < sweepTime; {
			n := 0
			n, more, err = s.sweep(ctx, deceased{engine: engine}, judge)
			total += n
			if err != nil {
				return total, fmt.Errorf("sweep what engine %d left: %w", engine, err)
			}
		}
	}
	return total, nil
}

// condemn takes the engine's lock, makes sure that it is to go, and deletes it
// from the roster.
func (s *Store) condemn(ctx context.Context, tx pgx.Tx, b store.Burial) (deceased, error) {
	d := deceased{engine: b.Engine}
	var beat time.Time
	if b.Unless > 0 {
		if err := s.mayBury(ctx, tx, b); err != nil {
			return d, err
		}
	}
	if err := lockEngine(ctx, tx, b.Engine); err != nil {
		return d, err
	}
	// A beat in the future was written before the clock was set back, and it cannot
	// be known when.
	fresh := false
	err := tx.QueryRow(ctx, s.sql.in(`
		select b.beat between clock_timestamp() - $2 * interval '1 microsecond' and clock_timestamp(), b.low, b.running, b.beat
		from stint.beats b where b.token = $1`), b.Engine, b.Unless.Microseconds()).Scan(&fresh, &d.low, &d.running, &beat)
	if errors.Is(err, pgx.ErrNoRows) {
		return d, store.ErrBuried
	} else if err != nil {
		return d, err
	}
	if fresh && b.Unless > 0 {
		return d, store.ErrAlive
	}
	gone, err := tx.Exec(ctx, s.sql.in(`delete from stint.engines where token = $1`), b.Engine)
	if err != nil {
		return d, err
	}
	if gone.RowsAffected() == 0 {
		return d, store.ErrBuried
	}
	batch := &pgx.Batch{}
	batch.Queue(s.sql.in(`delete from stint.beats where token = $1`), b.Engine)
	// One that something is being done under is left as it is: without its
	// engine it has no holder.
	batch.Queue(s.sql.in(`
		update stint.leases l set engine = null, acquired = null, renewed = null, expires = null
		where l.name in (select o.name from stint.leases o where o.engine = $1 for update skip locked)`), b.Engine)
	batch.Queue(s.sql.in(`
		update stint.engine_history set ended = clock_timestamp(), why = $2, low = $3, swept = $3::bigint = 0, beat = $4, buried_by = nullif($5::bigint, 0)
		where token = $1`), b.Engine, b.Why, d.low, beat, b.By)
	return d, tx.SendBatch(ctx, batch).Close()
}

// mayBury asks whether an engine that does not beat may be alive all the same: its
// session stands (see [presence]), or its last beat was of a time before the server was
// started or promoted, and it may not have found the server again. Then it must have been
// silent for longer, as the burier saw it with working queries. The lock, if it
// is free, is kept until the burial has ended.
func (s *Store) mayBury(ctx context.Context, tx pgx.Tx, b store.Burial) error {
	var (
		outage  int64
		perhaps bool
	)
	err := tx.QueryRow(ctx, s.sql.in(`
		select e.max_outage, not pg_try_advisory_xact_lock_shared(`+placeOf+`) or b.up_since <> pg_postmaster_start_time()
		from stint.engines e join stint.beats b using (token) where e.token = $1`), b.Engine).Scan(&outage, &perhaps)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return store.ErrBuried
	case err != nil:
		return err
	case perhaps && b.Silent < longestSilence(time.Duration(outage)*time.Millisecond):
		return store.ErrAlive
	}
	return nil
}

// burialWait bounds how long a burial waits for another one of the same
// engine, which may come to nothing.
const burialWait = 2 * time.Second

// lockEngine takes the engine's exclusive lock. It never queues for it, which
// would hold up the engine's own writes: those block a burial at once. Only
// the end of another burial is awaited, since it is not known yet how it ends.
func lockEngine(ctx context.Context, tx pgx.Tx, engine store.EngineID) error {
	until := time.Now().Add(burialWait)
	for tries := 0; ; {
		var mine, burial bool
		if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, engine).Scan(&mine); err != nil || mine {
			return err
		}
		err := tx.QueryRow(ctx, `
			select exists (
			  select from pg_locks l join pg_database d on d.oid = l.database
			  where d.datname = current_database() and l.locktype = 'advisory' and l.objsubid = 1
			    and l.classid::bigint << 32 | l.objid::bigint = $1 and l.mode = 'ExclusiveLock' and l.granted)`,
			engine).Scan(&burial)
		if err != nil {
			return err
		}
		if !burial {
			tries++ // it may have ended between the two questions
		}
		if tries == 3 || time.Now().After(until) {
			return store.ErrBurialBlocked
		}
		if burial {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

func (s *Store) fetchIn(ctx context.Context, tx pgx.Tx, at []store.Position) ([]store.Entry, error) {
	read := reading(at)
	if err := s.callIn(ctx, tx, s.sql.fetch, read.row, int8array(at)); err != nil {
		return nil, err
	}
	return s.entries(ctx, tx, &read)
}

const recordSQL = `select stint.record($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
  $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, x_limits => $26, s_awaits => $27, x_flow => $28)`

func (s *Store) recordIn(ctx context.Context, tx pgx.Tx, engine store.EngineID, done []store.Completion) error {
	rows, err := executionParams(done)
	if err != nil {
		return err
	}
	return s.callIn(ctx, tx, s.sql.record, func([][]byte) {}, append([]param{int8s(engine)}, rows...)...)
}

// callIn sends one statement with binary parameters inside a transaction.
func (s *Store) callIn(ctx context.Context, tx pgx.Tx, text string, row func([][]byte), params ...param) error {
	p, err := s.pipeline(ctx, tx.Conn())
	if err != nil {
		return err
	}
	return p.call(false, text, row, params...)
}

var _ store.SessionTerminator = (*Store)(nil)

// Evict implements [store.SessionTerminator]: a session that shares the engine's advisory
// lock is a claim, an outcome or a beat of it that does not end. A burial holds it
// alone, and is left to its end. The role needs no special right for sessions of
// its own; for others', pg_signal_backend.
func (s *Store) Evict(ctx context.Context, engine store.EngineID) (int, error) {
	var n int
	err := s.work().QueryRow(ctx, `
		select count(*) filter (where pg_terminate_backend(l.pid)) from pg_locks l
		where l.locktype = 'advisory' and l.objsubid = 1 and l.granted and l.mode = 'ShareLock' and l.pid <> pg_backend_pid()
		  and l.database = (select d.oid from pg_database d where d.datname = current_database())
		  and l.classid::bigint = $1::bigint >> 32 and l.objid::bigint = $1::bigint & 4294967295`, engine).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("end the sessions of engine %d: %w", engine, translate(err))
	}
	return n, nil
}
