package sqlite

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

// newEntry is a row of the log on its way. Zero in job, body, due, policy,
// timeout and startBy is null, as is empty text.
type newEntry struct {
	lane                    stint.LaneID
	created, job, body, due int64
	policy, timeout         int64
	attempt, priority       int
	losses, suspect         int
	maxLosses               *int // nil is null
	faulty                  bool // false is null
	queue, kind             string
	args, metadata          json.RawMessage
	tags, urn, source       string
	correlation             string
	recovered, startBy      int64
	schedule                string
	nth, occurrence         int64
}

const appendSQL = `
insert into stint_entries (lane, created, job, body, due, policy, timeout, attempt, priority, losses, suspect,
  max_losses, queue, kind, args, tags, urn, source, metadata, faulty, recovered, correlation, start_by,
  schedule, nth, occurrence)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// append appends an entry and returns its position.
func (c *conn) append(e *newEntry) (int64, error) {
	s, err := c.prepare(appendSQL)
	if err != nil {
		return 0, err
	}
	s.int(1, int64(e.lane))
	s.int(2, e.created)
	s.intOr(3, e.job)
	s.intOr(4, e.body)
	s.intOr(5, e.due)
	s.intOr(6, e.policy)
	s.intOr(7, e.timeout)
	s.int(8, int64(e.attempt))
	s.int(9, int64(e.priority))
	s.int(10, int64(e.losses))
	s.int(11, int64(e.suspect))
	s.intOf(12, e.maxLosses)
	s.text(13, e.queue)
	s.text(14, e.kind)
	s.raw(15, e.args)
	s.textOr(16, e.tags)
	s.textOr(17, e.urn)
	s.textOr(18, e.source)
	s.raw(19, e.metadata)
	s.intOr(20, flag(e.faulty))
	s.intOr(21, e.recovered)
	s.textOr(22, e.correlation)
	s.intOr(23, e.startBy)
	s.textOr(24, e.schedule)
	s.intOr(25, e.nth)
	s.intOr(26, e.occurrence)
	if err := s.run(); err != nil {
		return 0, err
	}
	return c.db.LastInsertRowID(), nil
}

// newWait is a row of waiting on its way.
type newWait struct {
	job, due, body    int64
	undecided         string // the retry function that is to decide; then there is no due time
	faulty            bool
	why               stint.State
	attempt, priority int
	losses, suspect   int
	queue, kind       string
}

const waitSQL = `
insert into stint_waiting (job, due, body, why, attempt, priority, losses, suspect, queue, kind, undecided, faulty)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func (w *newWait) args() []any {
	var due, faulty any = w.due, nil
	if w.undecided != "" {
		due = nil
	}
	if w.faulty {
		faulty = 1
	}
	return []any{w.job, due, w.body, string(w.why), w.attempt, w.priority, w.losses, w.suspect, w.queue, w.kind, orNil(w.undecided), faulty}
}

// flag is how a rare truth is stored: as 1, or not at all.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// fetchSQL reads one entry with its contents, which a later entry of a job
// has from its first.
const fetchSQL = `
select e.pos, ifnull(e.job, e.pos), e.queue, e.priority, e.kind, e.attempt, e.losses, e.suspect,
       ifnull(e.due, e.created), b.created, case when e.body is null then ifnull(e.due, e.created) else ifnull(b.due, b.created) end,
       b.policy, b.timeout, b.args, b.metadata, b.tags, b.urn, b.source, b.max_losses, b.recovered, b.correlation, b.start_by,
       b.schedule, b.nth, b.occurrence
from stint_entries e
join stint_entries b on b.pos = ifnull(e.body, e.pos)
where e.pos = ?`

// fetch reads entries in the order asked. Nearly always nobody has cancelled
// anything; then no entry is asked about it.
func (s *Store) fetch(c *conn, at []stint.Position) ([]stint.Entry, error) {
	cancels, err := c.found(anyCancelledSQL)
	if err != nil {
		return nil, err
	}
	q, err := c.prepare(fetchSQL)
	if err != nil {
		return nil, err
	}
	entries := make([]stint.Entry, 0, len(at))
	for _, pos := range at {
		q.int(1, int64(pos))
		err := q.each(func(q *stmt) error {
			entries = append(entries, stint.Entry{})
			return s.scanEntry(c, q, &entries[len(entries)-1])
		})
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", pos, err)
		}
	}
	for i := range entries {
		if !cancels {
			break
		}
		if entries[i].Cancelled, err = c.found(cancelledSQL, int64(entries[i].ID)); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (s *Store) scanEntry(c *conn, q *stmt, e *stint.Entry) (err error) {
	e.Pos = stint.Position(q.ColumnInt64(0))
	e.ID = stint.ID(q.ColumnInt64(1))
	e.Queue = q.name(2)
	e.Priority = q.ColumnInt(3)
	e.Kind = q.name(4)
	e.Attempt = q.ColumnInt(5)
	e.Losses = q.ColumnInt(6)
	e.Suspect = q.ColumnInt(7)
	e.Ready = q.time(8)
	e.Created = q.time(9)
	e.Due = q.time(10)
	if e.Retry, err = s.policies.read(c, q.ColumnInt64(11)); err != nil {
		return err
	}
	e.Timeout = time.Duration(q.ColumnInt64(12)) * time.Microsecond
	e.Args = q.json(13)
	e.Metadata = q.json(14)
	e.URN = q.ColumnText(16)
	e.Source = q.ColumnText(17)
	e.MaxLosses = q.maxLosses(18)
	e.Provenance.Recovered = stint.ID(q.ColumnInt64(19))
	e.Correlation = cmp.Or(q.ColumnText(20), e.ID.String())
	e.StartBy = q.time(21)
	if !q.isNull(22) {
		e.Provenance.Schedule, e.Provenance.Nth, e.Provenance.Occurrence = q.name(22), q.ColumnInt64(23), q.time(24)
	}
	e.Tags, err = list[string](q, 15)
	return err
}
