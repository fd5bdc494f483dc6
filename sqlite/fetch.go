package sqlite

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// fetchSQL reads the entries between two positions. What belongs to the job
// comes last: a later entry of a job has its contents from its first.
const fetchSQL = `
select pos, job, body, queue, priority, kind, attempt, losses, suspect, ifnull(due, created),
       created, policy, timeout, args, metadata, tags, urn, source, max_losses, recovered, correlation, start_by,
       schedule, nth, occurrence, limits, flow
from stint_entries
where pos between ? and ? order by pos`

// fetchGap is how far apart two positions may be that one run of the statement
// reads: stepping over a row costs less than starting again.
const fetchGap = 8

// fetch reads entries in the order asked; those that are not there are left
// out. Nearly always nothing is cancelled; then no entry is asked
// about it.
func (s *Store) fetch(c *conn, at []store.Position) ([]store.Entry, error) {
	cancels, err := c.found(anyCancelledSQL)
	if err != nil {
		return nil, err
	}
	entries := make([]store.Entry, 0, len(at))
	var bodies []bodyOf
	for len(at) > 0 {
		n := run(at)
		if entries, bodies, err = s.fetchRun(c, at[:n], entries, bodies); err != nil {
			return nil, fmt.Errorf("entries %d to %d: %w", at[0], at[n-1], err)
		}
		at = at[n:]
	}
	if entries, err = s.fetchBodies(c, bodies, entries); err != nil {
		return nil, err
	}
	store.Correlate(entries)
	for i := range entries {
		if !cancels {
			break
		}
		if entries[i].Cancelled, err = c.found(cancelledInSQL, int64(entries[i].ID), int64(entries[i].Flow)); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// bodyOf says where the contents of an entry are that has none itself.
type bodyOf struct {
	entry int // which of the entries
	body  int64
}

// run counts the positions that are close enough together to be read at once.
func run(at []store.Position) int {
	n := 1
	for n < len(at) && at[n] > at[n-1] && at[n]-at[n-1] <= fetchGap {
		n++
	}
	return n
}

// fetchRun reads the entries of one run, and what they lack.
func (s *Store) fetchRun(c *conn, at []store.Position, entries []store.Entry, bodies []bodyOf) ([]store.Entry, []bodyOf, error) {
	err := c.query(fetchSQL, []any{int64(at[0]), int64(at[len(at)-1])}, func(q *stmt) error {
		pos := store.Position(q.ColumnInt64(0))
		for len(at) > 0 && at[0] < pos {
			at = at[1:] // it is not there
		}
		if len(at) == 0 || at[0] != pos {
			return nil // it belongs to another lane
		}
		entries = append(entries, store.Entry{})
		e := &entries[len(entries)-1]
		if len(entries) > 1 {
			e.Args = entries[len(entries)-2].Args // which it shares if they are its own
		}
		scanEntry(q, e)
		if body := q.ColumnInt64(2); body != 0 {
			bodies = append(bodies, bodyOf{len(entries) - 1, body})
			return nil
		}
		return s.scanBody(c, q, e)
	})
	return entries, bodies, err
}

// fetchBodies reads the contents that entries have from their jobs' first ones.
// An entry without contents counts as one that is not there.
func (s *Store) fetchBodies(c *conn, bodies []bodyOf, entries []store.Entry) ([]store.Entry, error) {
	missing := map[store.Position]bool{}
	for _, b := range bodies {
		e, found := &entries[b.entry], false
		err := c.query(fetchSQL, []any{b.body, b.body}, func(q *stmt) error {
			found = true
			return s.scanBody(c, q, e)
		})
		if err != nil {
			return nil, fmt.Errorf("contents of entry %d: %w", e.Pos, err)
		}
		if !found {
			missing[e.Pos] = true
		}
	}
	if len(missing) == 0 {
		return entries, nil
	}
	return slices.DeleteFunc(entries, func(e store.Entry) bool { return missing[e.Pos] }), nil
}

// scanEntry reads what is the entry's own.
func scanEntry(q *stmt, e *store.Entry) {
	e.Pos = store.Position(q.ColumnInt64(0))
	e.ID = stint.ID(cmp.Or(q.ColumnInt64(1), int64(e.Pos)))
	e.Queue = q.name(3)
	e.Priority = q.ColumnInt(4)
	e.Kind = q.name(5)
	e.Attempt = q.ColumnInt(6)
	e.Losses = q.ColumnInt(7)
	e.Suspect = q.ColumnInt(8)
	e.Ready = q.time(9)
	if !q.isNull(25) {
		e.Limits = q.name(25)
	}
}

// scanBody reads the contents.
func (s *Store) scanBody(c *conn, q *stmt, e *store.Entry) (err error) {
	e.Due = q.time(9)
	e.Created = q.time(10)
	if e.Retry, err = s.policies.read(c, q.ColumnInt64(11)); err != nil {
		return err
	}
	e.Timeout = time.Duration(q.ColumnInt64(12)) * time.Microsecond
	e.Args = q.jsonLike(13, e.Args)
	e.Metadata = q.json(14)
	e.URN = q.words(16)
	e.Source = q.words(17)
	e.MaxLosses = q.maxLosses(18)
	e.Origin.Recovered = stint.ID(q.ColumnInt64(19))
	e.Correlation = q.words(20)
	e.StartBy = q.time(21)
	e.Flow = stint.ID(q.ColumnInt64(26))
	if !q.isNull(22) {
		e.Origin.Schedule, e.Origin.Nth, e.Origin.Occurrence = q.name(22), q.ColumnInt64(23), q.time(24)
	}
	e.Tags, err = list[string](q, 15)
	return err
}
