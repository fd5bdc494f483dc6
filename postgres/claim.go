package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint/store"
)

// lookSQL asks for paused queues only where there is work, and once for those with a limit.
const lookSQL = `
select l.lane, l.queue, l.priority, l.kind, l.limits, l.first, l.settle, ` + ofQueueSQL + `
from stint.look($1, $2) l` + limitedQueuesSQL

const (
	ofQueueSQL = `exists (select from stint.queues q where q.queue = l.queue),
  coalesce('queue' = any (m.names) or 'queue=' || l.queue = any (m.names), false)`

	limitedQueuesSQL = `, (
  select (select array_agg(name) from (
    select name from stint.limits where name >= 'queue' and name < 'queue>' and coalesce(fixed, declared) is not null
    union all select gate from stint.limit_pauses where gate >= 'queue' and gate < 'queue>') n) as names) m`
)

// Look implements [store.Claimer].
func (s *Store) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	type lane struct {
		id      int64
		foreign bool
	}
	all := make([]lane, 0, len(known.Mine)+len(known.Foreign))
	for _, id := range known.Mine {
		all = append(all, lane{int64(id), false})
	}
	for _, id := range known.Foreign {
		all = append(all, lane{int64(id), true})
	}
	slices.SortFunc(all, func(a, b lane) int { return cmp.Compare(a.id, b.id) })
	ids, foreign := make([]int64, len(all)), make([]bool, len(all))
	for i, l := range all {
		ids[i], foreign[i] = l.id, l.foreign
	}
	return collect(ctx, s.work(), "look for work", s.sql.look, []any{ids, foreign}, func(row pgx.CollectableRow) (store.LaneHead, error) {
		var (
			sight               store.LaneHead
			queue, kind, limits *string
			priority            *int16
			first               *int64
		)
		err := row.Scan(&sight.Lane, &queue, &priority, &kind, &limits, &first, &sight.Settle, &sight.Paused, &sight.Limited)
		if queue != nil {
			sight.Queue, sight.Priority, sight.Kind, sight.First = *queue, int(*priority), *kind, store.Position(*first)
			sight.Limits = deref(limits)
		}
		return sight, err
	})
}

const lookSinceSQL = `
select l.pos, l.seen::text, l.every, l.lane, l.queue, l.priority, l.kind, l.limits, l.first, ` + ofQueueSQL + `
from stint.look_since($1::bigint, $2::text::pg_snapshot) l` + limitedQueuesSQL

// LookSince implements [store.Claimer]. What is new it tells by the snapshot of the
// mark, and finds by positions.
func (s *Store) LookSince(ctx context.Context, since store.Mark) (store.Appended, error) {
	var a store.Appended
	args := []any{nil, nil}
	if since.Set {
		args = []any{int64(since.Pos), since.Seen}
	}
	_, err := collect(ctx, s.work(), "look for new work", s.sql.lookSince, args, func(row pgx.CollectableRow) (none struct{}, err error) {
		var (
			pos, lane, first          *int64
			seen, queue, kind, limits *string
			every                     *bool
			priority                  *int16
			paused, limited           bool
		)
		err = row.Scan(&pos, &seen, &every, &lane, &queue, &priority, &kind, &limits, &first, &paused, &limited)
		switch {
		case err != nil:
		case lane == nil: // the first row
			a.Until, a.All = store.Mark{Pos: store.Position(*pos), Seen: *seen, Set: true}, *every
		default:
			a.Heads = append(a.Heads, store.LaneHead{Lane: store.LaneID(*lane), Queue: *queue, Priority: int(*priority), Kind: *kind, Limits: deref(limits), First: store.Position(*first), Paused: paused, Limited: limited})
		}
		return none, err
	})
	return a, err
}

const (
	claimSQL = `select n, positions from stint.claim($1, $2, $3, $4, $5, $6, $7, $8)`

	claimLanesSQL = `select n, taken, positions from stint.claim_lanes($1, $2, $3, $4, $5, $6, $7, $8)`

	// takenSQL flushes the claim to the disk and reads what it took.
	takenSQL = `select ` + entryColumns + ` from stint.fetch(stint.barrier($1, $2))`

	takenOfLanesSQL = `select ` + entryColumns + ` from stint.fetch(stint.barrier($1, $2, $3))`

	beginSQL  = `begin isolation level read committed read write`
	commitSQL = `commit`
)

// Claim implements [store.Claimer]. It is one round trip of two transactions:
// the claim, and after it the one that makes it durable and reads what was
// claimed. The reading must not be part of the claim's: an engine that stops in
// the middle of 40 MB of arguments would hold the lane and the fence.
func (s *Store) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	claim, err := retryExplicit(s, func() (store.Claim, error) { return s.claim(ctx, req) })
	if err != nil {
		return claim, fmt.Errorf("claim up to %d jobs: %w", req.Max, err)
	}
	return claim, nil
}

func (s *Store) claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	claim := store.Claim{ClaimRef: store.ClaimRef{Lane: req.Lane, Nonce: req.Nonce}, Serial: req.Serial}
	conn, release, err := s.acquireClaim(ctx)
	if err != nil {
		return claim, err
	}
	defer release()

	p, err := s.pipeline(ctx, conn.Conn(), s.sql.claim, s.sql.taken)
	if err != nil {
		return claim, err
	}
	explicit := s.explicit.Load()
	p.transaction(explicit, s.sql.claim, int8s(req.Engine), int8s(req.Serial), int8s(req.Low), int8s(req.Nonce), int8s(req.Lane),
		atMost(req.Max), bools(req.Wait), bools(req.Settle))
	return s.readClaim(ctx, conn, p, claim, func() { p.transaction(explicit, s.sql.taken, int8s(req.Engine), int8s(req.Serial)) })
}

func atMost(n int) param { return int4s(int32(min(max(0, n), math.MaxInt32))) }

// acquireClaim is a connection for a claim.
func (s *Store) acquireClaim(ctx context.Context) (conn *pgxpool.Conn, release func(), err error) {
	select {
	case s.claiming <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if conn, err = s.work().Acquire(ctx); err != nil {
		<-s.claiming
		return nil, nil, err
	}
	return conn, func() { conn.Release(); <-s.claiming }, nil
}

// readClaim reads the answers to a claim and to the statement that fetches what it
// took, which fetch sends.
func (s *Store) readClaim(ctx context.Context, conn *pgxpool.Conn, p pipeline, claim store.Claim, fetch func()) (store.Claim, error) {
	busy := false
	known, entries, err := s.readClaimed(ctx, conn, p, fetch, func(v [][]byte) (at []store.Position) {
		if len(v) == 2 { // the other answers have one column, or none
			busy = v[0] == nil
			claim.N, claim.Positions = int64of(v[0]), positionsOf(v[1])
		}
		return claim.Positions
	})
	switch {
	case !known:
		return store.Claim{}, err
	case busy && err == nil:
		return claim, store.ErrLaneBusy
	}
	claim.Entries = entries
	return claim, err
}

// readClaimed reads the answers to a claim, of which row says what was taken, and to
// the statement that makes it durable and fetches that. The claim is known to stand
// when the second was read to its end.
//
// Both transactions are one round trip, except through a pooler: when the first one ends
// it may lend the session to another program, although the second is under way
// there, and its answer would go to whoever has the session then.
func (s *Store) readClaimed(ctx context.Context, conn *pgxpool.Conn, p pipeline, fetch func(), row func(v [][]byte) []store.Position) (known bool, entries []store.Entry, err error) {
	if !s.pooled {
		p.SendPipelineSync()
		fetch()
	}
	if err := p.Sync(); err != nil {
		p.Close()
		return false, nil, err
	}
	var at []store.Position
	if err := p.part(func(v [][]byte) { at = row(v) }); err != nil {
		p.Close()
		if conn.Conn().PgConn().TxStatus() == 'E' {
			_, _ = conn.Exec(ctx, "rollback") // else the pool would give the connection up
		}
		return false, nil, translate(err)
	}
	if s.pooled {
		fetch()
		if err := p.Sync(); err != nil {
			p.Close()
			return false, nil, err
		}
	}
	// The claim stands, but a server that dies may forget it until this part
	// has been read to its end.
	read := reading(at)
	if err := p.part(read.row); err != nil {
		p.Close()
		return false, nil, translate(err)
	}
	if err = p.Close(); err == nil {
		entries, err = s.entries(ctx, conn, &read)
	}
	return true, entries, translate(err)
}

// ClaimLanes implements [store.Claimer]. It is one round trip of two transactions, as a
// claim is. The claims are of one transaction, so that one flush makes all of them
// durable; but at most of [mostLanes], since it holds a lock of each.
func (s *Store) ClaimLanes(ctx context.Context, req store.ClaimRequest, lanes []store.LaneHead) ([]store.Claim, error) {
	lanes = lanes[:min(len(lanes), mostLanes)]
	claims, err := retryExplicit(s, func() ([]store.Claim, error) { return s.claimLanes(ctx, req, lanes) })
	if err != nil {
		return claims, fmt.Errorf("claim up to %d jobs of %d lanes: %w", req.Max, len(lanes), err)
	}
	return claims, nil
}

// mostLanes is how many locks each transaction may hold on average, by the server's
// default: PostgreSQL's table for them is one for all sessions, and of a fixed size.
const mostLanes = 64

func (s *Store) claimLanes(ctx context.Context, req store.ClaimRequest, lanes []store.LaneHead) ([]store.Claim, error) {
	if len(lanes) == 0 {
		return nil, nil
	}
	conn, release, err := s.acquireClaim(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	p, err := s.pipeline(ctx, conn.Conn(), s.sql.claimLanes, s.sql.takenOfLanes)
	if err != nil {
		return nil, err
	}
	ids, settle, most := make([]store.LaneID, len(lanes)), make([]bool, len(lanes)), make([]int32, len(lanes))
	for i, lane := range lanes {
		ids[i], settle[i], most[i] = lane.Lane, lane.Settle, math.MaxInt32
		if lane.Most > 0 {
			most[i] = int32(min(lane.Most, math.MaxInt32))
		}
	}
	explicit := s.explicit.Load()
	p.transaction(explicit, s.sql.claimLanes, int8s(req.Engine), int8s(req.Serial), int8s(req.Low), int8s(req.Nonce), int8array(ids),
		atMost(req.Max), boolarray(settle), int4array(most))
	fetch := func() {
		p.transaction(explicit, s.sql.takenOfLanes, int8s(req.Engine), int8s(req.Serial), int8s(req.Serial+int64(len(lanes))-1))
	}
	var claims []store.Claim
	known, entries, err := s.readClaimed(ctx, conn, p, fetch, func(v [][]byte) (at []store.Position) {
		if len(v) != 3 {
			return nil
		}
		at = positionsOf(v[2])
		claims = claimsOf(req, lanes, v, at)
		return at
	})
	if !known {
		return nil, err
	}
	store.DealEntries(claims, entries)
	return claims, err
}

// claimsOf reads what stint.claim_lanes answers, with the positions that all took.
func claimsOf(req store.ClaimRequest, lanes []store.LaneHead, v [][]byte, at []store.Position) []store.Claim {
	claims := make([]store.Claim, 0, len(lanes))
	array(v[0], func(n []byte) {
		i := len(claims)
		c := store.Claim{ClaimRef: store.ClaimRef{Lane: lanes[i].Lane, N: int64of(n), Nonce: req.Nonce}, Serial: req.Serial + int64(i)}
		c.Busy = n == nil
		claims = append(claims, c)
	})
	i := 0
	array(v[1], func(b []byte) {
		taken := int(int32of(b))
		claims[i].Positions, at = at[:taken:taken], at[taken:]
		i++
	})
	return claims
}

const fetchSQL = `select ` + entryColumns + ` from stint.fetch($1)`

// Fetch implements [store.Claimer].
func (s *Store) Fetch(ctx context.Context, at []store.Position) ([]store.Entry, error) {
	conn, err := s.work().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	p, err := s.pipeline(ctx, conn.Conn(), s.sql.fetch)
	if err != nil {
		return nil, err
	}
	read := reading(at)
	if err := p.call(false, s.sql.fetch, read.row, int8array(at)); err != nil {
		return nil, fmt.Errorf("fetch %d entries: %w", len(at), translate(err))
	}
	return s.entries(ctx, conn, &read)
}
