package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint/store"
)

// lookSQL asks for paused queues only where there is work.
const lookSQL = `
select l.lane, l.queue, l.priority, l.kind, l.settle, exists (select from stint.queues q where q.queue = l.queue)
from stint.look($1, $2) l`

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
			sight       store.LaneHead
			queue, kind *string
			priority    *int16
		)
		err := row.Scan(&sight.Lane, &queue, &priority, &kind, &sight.Settle, &sight.Paused)
		if queue != nil {
			sight.Queue, sight.Priority, sight.Kind = *queue, int(*priority), *kind
		}
		return sight, err
	})
}

const (
	claimSQL = `select n, positions from stint.claim($1, $2, $3, $4, $5, $6, $7, $8)`

	// takenSQL flushes the claim to the disk and reads what it took.
	takenSQL = `select ` + entryColumns + ` from stint.fetch(stint.barrier($1, $2))`

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

	p, err := s.pipeline(ctx, conn.Conn(), s.sql.claim, s.sql.taken)
	if err != nil {
		return claim, err
	}
	explicit := s.explicit.Load()
	p.transaction(explicit, s.sql.claim, int8s(req.Engine), int8s(req.Serial), int8s(req.Low), int8s(req.Nonce), int8s(req.Lane),
		int4s(int32(min(max(0, req.Max), math.MaxInt32))), bools(req.Wait), bools(req.Settle))
	p.SendPipelineSync()
	p.transaction(explicit, s.sql.taken, int8s(req.Engine), int8s(req.Serial))
	return s.readClaim(ctx, conn, p, claim)
}

// readClaim reads the answers to a claim and to the statement that fetches what it
// took.
func (s *Store) readClaim(ctx context.Context, conn *pgxpool.Conn, p pipeline, claim store.Claim) (store.Claim, error) {
	if err := p.Sync(); err != nil {
		p.Close()
		return claim, err
	}
	busy := false
	err := p.part(func(v [][]byte) {
		if len(v) == 2 { // the other answers have one column, or none
			busy = v[0] == nil
			claim.N, claim.Positions = int64of(v[0]), positionsOf(v[1])
		}
	})
	if err != nil {
		p.Close()
		if conn.Conn().PgConn().TxStatus() == 'E' {
			_, _ = conn.Exec(ctx, "rollback") // else the pool would give the connection up
		}
		return store.Claim{}, translate(err)
	}
	if busy {
		return claim, errors.Join(store.ErrLaneBusy, p.Close())
	}
	// The claim stands, but a server that dies may forget it until this part
	// has been read to its end.
	read := reading(claim.Positions)
	if err := p.part(read.row); err != nil {
		p.Close()
		return store.Claim{}, translate(err)
	}
	if err = p.Close(); err == nil {
		claim.Entries, err = s.entries(ctx, conn, &read)
	}
	return claim, translate(err)
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
