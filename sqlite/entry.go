package sqlite

import (
	"encoding/json"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// newEntry is a row of the log on its way. Zero in job, body, due, policy,
// timeout and startBy is null, as is empty text.
type newEntry struct {
	lane                    store.LaneID
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
func (c *conn) append(e *newEntry) (int64, error) { return c.appendAll([]newEntry{*e}) }

// appendAll appends entries, at positions that follow one another, and returns
// the last.
func (c *conn) appendAll(all []newEntry) (last int64, err error) {
	for len(all) > 0 {
		n := bulk(len(all), func(i int) int { return all[i].size() })
		s, err := c.prepareRows(appendSQL, n)
		if err != nil {
			return 0, err
		}
		for i := range n {
			s.row(i)
			all[i].bind(s)
		}
		if err := s.run(); err != nil {
			return 0, err
		}
		all = all[n:]
	}
	return c.db.LastInsertRowID(), nil
}

// size counts the bytes of its texts that may be long.
func (e *newEntry) size() int { return len(e.args) + len(e.metadata) + len(e.tags) }

// bind binds the values of [appendSQL].
func (e *newEntry) bind(s *stmt) {
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

// entry is the row of the log that the waiting row becomes.
func (w *newWait) entry(lane store.LaneID, created int64) *newEntry {
	return &newEntry{
		lane: lane, created: created, job: w.job, body: w.body,
		attempt: w.attempt, priority: w.priority, losses: w.losses, suspect: w.suspect, queue: w.queue, kind: w.kind, faulty: w.faulty,
	}
}

// takeWait deletes the waiting row that a query of [waitColumns] finds, and
// returns it; its job is 0 if there is none.
func (c *conn) takeWait(text string, args ...any) (newWait, error) {
	w, err := oneRow(c, scanWait, text, args...)
	if err == nil && w.job != 0 {
		_, err = c.exec(promotedSQL, w.job)
	}
	return w, err
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

// flag stores a rare truth as 1, and 0 is null.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
