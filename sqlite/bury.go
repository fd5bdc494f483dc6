package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint/store"
)

const (
	lastBeatSQL = `
	select b.beat, b.low, b.running, e.locked from stint_engines e join stint_beats b on b.token = e.token where e.token = ?`
	leaveSQL    = `delete from stint_engines where token = ?`
	lastSignSQL = `delete from stint_beats where token = ?`
	endSQL      = `
	update stint_engine_history set ended = ?, why = ?, beat = (select b.beat from stint_beats b where b.token = ?3), buried_by = nullif(?4, 0)
	where token = ?3`
	freedSQL = `update stint_engine_history set freed = ?, lost = ?, lost_at = ? where token = ?`
)

// Bury implements [store.Roster]. All of it is one transaction: no other
// connection writes meanwhile, so no claim and no outcome of the engine can be in flight.
// For the same reason the judge must not write to the store.
//
// An engine whose process holds its place is left alone without a transaction:
// its burier would wait for the writer that keeps it from beating.
func (s *Store) Bury(ctx context.Context, b store.Burial, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	if s.writer == nil {
		return 0, errReadOnly
	}
	if b.Unless > 0 {
		if err := s.mayBury(ctx, b.Engine); err != nil {
			return 0, fmt.Errorf("bury an engine: %w", err)
		}
	}
	buried := 0
	err := s.writer.here(ctx, func(c *conn) (wake bool, err error) {
		buried, err = s.bury(c, b, judge)
		return buried > 0, err
	})
	if err == nil || errors.Is(err, store.ErrBuried) {
		s.places.change(b.Engine, unlocked)
	}
	if err != nil {
		return 0, fmt.Errorf("bury an engine: %w", translate(err))
	}
	return buried, nil
}

// mayBury asks the engine's place.
func (s *Store) mayBury(ctx context.Context, engine store.EngineID) error {
	if s.readers == nil || s.places.of(engine) != exclusive {
		return nil
	}
	stands := false
	err := s.read(ctx, func(c *conn) (err error) {
		stands, err = c.found(fenceSQL, int64(engine))
		return err
	})
	switch {
	case err != nil:
		return err
	case !stands: // and its process has not noticed yet
		return store.ErrBuried
	}
	return store.ErrAlive
}

func (s *Store) bury(c *conn, b store.Burial, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	now := time.Now()
	low, running, err := s.lastBeat(c, b, now)
	if err != nil {
		return 0, err
	}
	if _, err := c.exec(endSQL, micro(now), cmp.Or(b.Why, "buried"), int64(b.Engine), int64(b.By)); err != nil {
		return 0, err
	}
	for _, text := range []string{leaveSQL, lastSignSQL, forgetSQL, freeOfSQL} {
		if _, err := c.exec(text, int64(b.Engine)); err != nil {
			return 0, err
		}
	}
	claims, err := c.held(b.Engine, low)
	if err != nil {
		return 0, err
	}
	r, err := c.recorder(b.Engine, now)
	if err != nil {
		return 0, err
	}
	var end store.EngineEnd
	for _, claim := range claims {
		entries, err := s.fetch(c, claim.Positions)
		if err != nil {
			return 0, err
		}
		for i := range entries {
			e := &entries[i]
			x := judge(e, slices.Contains(running, e.Pos))
			x.Nonce = claim.Nonce
			if x.Ended.IsZero() {
				x.Ended = now
			}
			added, err := r.record(&x)
			if err != nil {
				return 0, fmt.Errorf("conclude entry %d: %w", e.Pos, err)
			}
			if added {
				end.Conclude(&x)
			}
		}
	}
	if end.Freed > 0 {
		_, err = c.exec(freedSQL, end.Freed, end.Lost, arrayOf(end.LostAt), int64(b.Engine))
	}
	return end.Freed, err
}

// within reports whether a beat is fresh. One in the future was written before the
// clock was set back, and it cannot be known when.
func within(age, limit time.Duration) bool { return age >= 0 && age <= limit }

// lastBeat reads what an engine said last, unless it may not be buried.
func (s *Store) lastBeat(c *conn, b store.Burial, now time.Time) (low int64, running []store.Position, err error) {
	stands, locked, beat := false, false, int64(0)
	err = c.query(lastBeatSQL, []any{int64(b.Engine)}, func(q *stmt) error {
		stands, beat, low, locked = true, q.ColumnInt64(0), q.ColumnInt64(1), q.ColumnInt64(3) != 0
		return json.Unmarshal(q.ColumnRawText(2), &running)
	})
	switch {
	case err != nil:
		return 0, nil, err
	case !stands:
		return 0, nil, store.ErrBuried
	case b.Unless > 0 && within(now.Sub(fromMicro(beat)), b.Unless) && !(locked && s.places.of(b.Engine) == unlocked):
		return 0, nil, store.ErrAlive
	}
	return low, running, nil
}
