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
	limits                  string
	flow                    int64
}

const appendSQL = `
insert into stint_entries (lane, created, job, body, due, policy, timeout, attempt, priority, losses, suspect,
  max_losses, queue, kind, args, tags, urn, source, metadata, faulty, recovered, correlation, start_by,
  schedule, nth, occurrence, limits, flow)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// entryColumns is how many values that takes.
const entryColumns = 28

// append appends an entry and returns its position.
func (c *conn) append(e *newEntry) (int64, error) { return c.appendAll([]newEntry{*e}) }

// appendAll appends entries, at positions that follow one another, and returns
// the last.
func (c *conn) appendAll(all []newEntry) (last int64, err error) {
	var room [entryColumns]value
	for len(all) > 0 {
		n := bulk(len(all), func(i int) int { return all[i].size() })
		s, err := c.prepareRows(appendSQL, n)
		if err != nil {
			return 0, err
		}
		for i := range n {
			s.set(i, all[i].values(room[:0])...)
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

// values appends those of [appendSQL].
func (e *newEntry) values(v []value) []value {
	return append(v, num(e.lane), num(e.created), numOr(e.job), numOr(e.body), numOr(e.due),
		numOr(e.policy), numOr(e.timeout), num(e.attempt), num(e.priority), num(e.losses), num(e.suspect),
		numOf(e.maxLosses), text(e.queue), text(e.kind), raw(e.args), textOr(e.tags), textOr(e.urn), textOr(e.source),
		raw(e.metadata), numOr(flag(e.faulty)), numOr(e.recovered), textOr(e.correlation), numOr(e.startBy),
		textOr(e.schedule), numOr(e.nth), numOr(e.occurrence), textOr(e.limits), numOr(e.flow))
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
	limits            string
	awaits            string // of a blocked one, as in [store.Next]
	needs             bool   // it waits for jobs, or is a flow; then there is no due time
	watch             int64  // the newest of these
}

// entry is the row of the log that the waiting row becomes.
func (w *newWait) entry(lane store.LaneID, created int64) *newEntry {
	return &newEntry{
		lane: lane, created: created, job: w.job, body: w.body,
		attempt: w.attempt, priority: w.priority, losses: w.losses, suspect: w.suspect, queue: w.queue, kind: w.kind, faulty: w.faulty,
		limits: w.limits,
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
insert into stint_waiting (job, due, body, why, attempt, priority, losses, suspect, queue, kind, undecided, faulty, limits, awaits, watch, verdict)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func (w *newWait) args() []any {
	var due, faulty, verdict any = w.due, nil, nil
	if w.undecided != "" {
		due = nil
	}
	if w.needs {
		due, verdict = nil, 0
	}
	if w.faulty {
		faulty = 1
	}
	return []any{w.job, due, w.body, string(w.why), w.attempt, w.priority, w.losses, w.suspect, w.queue, w.kind, orNil(w.undecided), faulty, orNil(w.limits), orNil(w.awaits), nilInt(w.watch), verdict}
}

// flag stores a rare truth as 1, and 0 is null.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
