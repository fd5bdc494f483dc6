package sqlite

import (
	"context"
	"fmt"

	"github.com/stint-go/stint/store"
)

// lookSQL steps through the lanes in the index, and for each shows the first
// entry past its frontier. No engine claims lane -1.
const lookSQL = `
with recursive lanes (lane) as (
  select min(lane) from stint_entries where lane >= 0
  union all
  select (select min(e.lane) from stint_entries e where e.lane > l.lane) from lanes l where l.lane is not null
)
select ` + headColumns + `
from lanes l cross join stint_entries e
where l.lane is not null
  and l.lane not in (select value from json_each(?))
  and e.pos = (
    select f.pos from stint_entries f indexed by stint_entries_lane
    where f.lane = l.lane
      and f.pos > ifnull((select c.frontier from stint_claims c where c.lane = l.lane order by c.n desc limit 1), 0)
    order by f.pos limit 1)`

// headColumns are what headOf reads. The limits of queues are read once.
const headColumns = `e.lane, e.queue, e.priority, e.kind, e.pos, e.queue in (select q.queue from stint_queues q), e.limits,
  exists (select 1 from stint_limits where name >= 'queue' and name < 'queue>' union all select 1 from stint_limit_pauses where gate >= 'queue' and gate < 'queue>')
  and exists (select 1 from stint_limits where name in ('queue', 'queue=' || e.queue) union all select 1 from stint_limit_pauses where gate in ('queue', 'queue=' || e.queue))`

// Look implements [store.Claimer]. It never asks to settle: nothing has to be
// stepped over here.
func (s *Store) Look(ctx context.Context, known store.LaneHints) ([]store.LaneHead, error) {
	return collect(ctx, s, "look for work", lookSQL, []any{arrayOf(known.Foreign)}, headOf)
}

// appendedSQL reads the lanes of what was appended behind a position, and how many
// entries that were, up to a limit.
const appendedSQL = `
with appended as (select pos, lane from stint_entries where pos > ?1 order by pos limit ?2)
select max(pos), count(*), json_group_array(distinct lane) filter (where lane >= 0) from appended`

// headsSQL shows of some lanes the first entry past its frontier.
const headsSQL = `
select ` + headColumns + `
from json_each(?) l cross join stint_entries e
where e.pos = (
  select f.pos from stint_entries f indexed by stint_entries_lane
  where f.lane = l.value
    and f.pos > ifnull((select c.frontier from stint_claims c where c.lane = l.value order by c.n desc limit 1), 0)
  order by f.pos limit 1)`

// mostAppended bounds what one look reads.
const mostAppended = 1000

// LookSince implements [store.Claimer]. Commits come in the order of the log, so a
// position says which entries are new.
func (s *Store) LookSince(ctx context.Context, since store.Mark) (a store.Appended, err error) {
	a.Until = store.Mark{Pos: since.Pos, Set: true}
	err = s.read(ctx, func(c *conn) error {
		a.Heads, a.All = nil, !since.Set
		lanes := "[]"
		if since.Set {
			err := c.query(appendedSQL, []any{int64(since.Pos), mostAppended}, func(q *stmt) error {
				n := q.ColumnInt(1)
				if a.All = n == mostAppended; n > 0 {
					a.Until.Pos, lanes = store.Position(q.ColumnInt64(0)), q.ColumnText(2)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		if a.All {
			return c.query(`select ifnull(max(pos), 0) from stint_entries`, nil, func(q *stmt) error {
				a.Until.Pos = store.Position(q.ColumnInt64(0))
				return nil
			})
		}
		return c.query(headsSQL, []any{lanes}, func(q *stmt) error {
			a.Heads = append(a.Heads, headOf(q))
			return nil
		})
	})
	if err != nil {
		return store.Appended{}, fmt.Errorf("look for new work: %w", err)
	}
	return a, nil
}

func headOf(q *stmt) store.LaneHead {
	return store.LaneHead{
		Lane: store.LaneID(q.ColumnInt64(0)), Queue: q.ColumnText(1), Priority: q.ColumnInt(2), Kind: q.ColumnText(3),
		First: store.Position(q.ColumnInt64(4)), Paused: q.ColumnInt64(5) != 0,
		Limits: q.words(6), Limited: q.ColumnInt64(7) != 0,
	}
}

// fenceSQL begins every write of an engine. Burial deletes the row, and
// one transaction writes at a time, so it holds until the commit.
const fenceSQL = `select 1 from stint_engines where token = ?`

func (c *conn) fence(engine store.EngineID) error {
	stands, err := c.found(fenceSQL, int64(engine))
	if err == nil && !stands {
		err = store.ErrBuried
	}
	return err
}

const (
	newestClaimSQL = `select n, frontier from stint_claims where lane = ? order by n desc limit 1`

	// The index is named because the order of positions would tempt the
	// planner to walk the whole log from the frontier on.
	freshSQL = `
	select pos from stint_entries indexed by stint_entries_lane
	where lane = ? and pos > ? order by pos limit ?`

	claimSQL = `
	insert into stint_claims (lane, n, nonce, engine, serial, start, frontier, taken)
	values (?, ?, ?, ?, ?, ?, ?, ?)`
)

// mostLanes bounds how long one call keeps others from writing.
const mostLanes = 500

// Claim implements [store.Claimer]. A lane is never busy: claims take turns
// with everything else that is written, and the turn is short.
func (s *Store) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	claims, err := s.ClaimLanes(ctx, req, []store.LaneHead{{Lane: req.Lane}})
	if len(claims) == 0 {
		return store.Claim{}, err
	}
	return claims[0], err
}

// ClaimLanes implements [store.Claimer].
func (s *Store) ClaimLanes(ctx context.Context, req store.ClaimRequest, lanes []store.LaneHead) ([]store.Claim, error) {
	lanes = lanes[:min(len(lanes), mostLanes)]
	var claims []store.Claim
	var at []store.Position
	err := s.write(ctx, func(c *conn) (bool, error) {
		claims, at = make([]store.Claim, 0, len(lanes)), nil
		if err := c.fence(req.Engine); err != nil {
			return false, err
		}
		for i, lane := range lanes {
			if i > 0 && len(at) >= req.Max {
				break
			}
			claim := store.Claim{ClaimRef: store.ClaimRef{Lane: lane.Lane, Nonce: req.Nonce}, Serial: req.Serial + int64(i)}
			room := req.Max - len(at)
			if lane.Most > 0 {
				room = min(room, lane.Most)
			}
			if err := c.claim(&claim, req.Engine, room); err != nil {
				return false, err
			}
			claims, at = append(claims, claim), append(at, claim.Positions...)
		}
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim %d jobs: %w", req.Max, err)
	}
	// Read apart from the claim, so that large arguments do not keep
	// others from writing.
	entries, err := s.Fetch(ctx, at)
	store.DealEntries(claims, entries)
	return claims, err
}

// claim takes up to limit entries of a claim's lane.
func (c *conn) claim(claim *store.Claim, engine store.EngineID, limit int) error {
	var n, start int64
	err := c.query(newestClaimSQL, []any{int64(claim.Lane)}, func(q *stmt) error {
		n, start = q.ColumnInt64(0), q.ColumnInt64(1)
		return nil
	})
	if err != nil {
		return err
	}
	err = c.query(freshSQL, []any{int64(claim.Lane), start, max(0, limit)}, func(q *stmt) error {
		claim.Positions = append(claim.Positions, store.Position(q.ColumnInt64(0)))
		return nil
	})
	if err != nil || len(claim.Positions) == 0 {
		return err
	}
	claim.N = n + 1
	frontier := claim.Positions[len(claim.Positions)-1]
	_, err = c.exec(claimSQL, int64(claim.Lane), claim.N, int64(claim.Nonce), int64(engine), claim.Serial,
		start, int64(frontier), len(claim.Positions))
	return err
}

// Fetch implements [store.Claimer].
func (s *Store) Fetch(ctx context.Context, at []store.Position) (entries []store.Entry, err error) {
	if len(at) == 0 {
		return nil, nil
	}
	err = s.read(ctx, func(c *conn) (err error) {
		entries, err = s.fetch(c, at)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("fetch %d entries: %w", len(at), err)
	}
	return entries, nil
}
