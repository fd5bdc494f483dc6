package sqlite

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// mark is a moment in what was recorded: the frontiers at that time, and what
// was claimed and had no outcome then. What is recorded after it is of these, or
// was claimed after it. The zero mark is before everything.
type mark struct {
	n     int64
	lanes string
	open  string
}

const (
	newestMarkSQL = `select n, lanes, open from stint_marks order by n desc limit 1`
	markBeforeSQL = `select n, lanes, open from stint_marks where at <= ? order by n desc limit 1`
	addMarkSQL    = `insert into stint_marks (at, lanes, open) values (?, ?, ?)`
	hereSQL       = `select json_group_object(cast(lane as text), frontier) from (` + frontiersSQL + `)`

	// Of the marks that are older than any question asks for, the newest is kept.
	oldMarksSQL = `delete from stint_marks where n < (select max(n) from stint_marks where at <= ?)`

	// openSQL lists what is claimed and has no outcome, by the bounds that
	// engines tell with their beats; of those that vanished from the roster
	// without a burial, by none.
	openSQL = `
	select o.token, e.pos, ifnull(e.job, e.pos) as job, e.queue, e.kind
	from (select token, low from stint_beats
	      union all
	      select token, 0 from stint_engine_history where ended is null and token not in (select token from stint_engines)) o
	cross join stint_claims c indexed by stint_claims_engine on c.engine = o.token and c.serial >= o.low
	cross join stint_entries e indexed by stint_entries_lane on e.lane = c.lane and e.pos > c.start and e.pos <= c.frontier
	where not exists (select 1 from stint_executions x where x.pos = e.pos)`

	// attemptsSQL are the attempts that began and were recorded after a mark: they
	// ran, or were lost with their engine. What a clock that was set makes
	// negative counts as 0.
	attemptsSQL = `
	select x.finished, e.kind, e.queue, x.outcome, x.slot > 0, ifnull(x.job, x.pos), x.finished - x.started,
	       max(0, x.started - ifnull(e.due, e.created))
	from (select e.pos from (` + frontiersSQL + `) f
	      cross join stint_entries e indexed by stint_entries_lane
	        on e.lane = f.lane and e.pos <= f.frontier
	        and e.pos > ifnull((select m.value from json_each(?1) m where m.key = cast(f.lane as text)), 0)
	      union all
	      select value from json_each(?2)) p
	cross join stint_executions x on x.pos = p.pos
	cross join stint_entries e on e.pos = x.pos
	where x.slot > 0 or x.outcome = 5`
)

// markKept is for how long a mark may be asked for.
const markKept = 2 * time.Minute

func (c *conn) newestMark() (mark, error) { return c.mark(newestMarkSQL) }

// markBefore is the newest mark of a time, or the zero mark.
func (c *conn) markBefore(t time.Time) (mark, error) { return c.mark(markBeforeSQL, micro(t)) }

func (c *conn) mark(text string, args ...any) (mark, error) {
	m := mark{lanes: "{}", open: "[]"}
	err := c.query(text, args, func(q *stmt) error {
		m = mark{q.ColumnInt64(0), q.ColumnText(1), q.ColumnText(2)}
		return nil
	})
	return m, err
}

// here returns the mark of this moment.
func (c *conn) here() (m mark, err error) {
	if m.lanes, err = oneRow(c, firstText[string], hereSQL); err != nil {
		return m, err
	}
	open, err := allRows(c, func(q *stmt) store.Position { return store.Position(q.ColumnInt64(1)) }, openSQL)
	m.open = arrayOf(open)
	return m, err
}

func (c *conn) addMark(m mark, now time.Time) error {
	if _, err := c.exec(addMarkSQL, micro(now), m.lanes, m.open); err != nil {
		return err
	}
	_, err := c.exec(oldMarksSQL, micro(now.Add(-markKept)))
	return err
}

// holder returns which attempts were recorded before the mark.
func (m mark) holder() (holds func(pos store.Position, lane int64) bool, err error) {
	lanes, open := map[string]int64{}, []store.Position{}
	if err := json.Unmarshal([]byte(m.lanes), &lanes); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(m.open), &open); err != nil {
		return nil, err
	}
	return func(pos store.Position, lane int64) bool {
		return int64(pos) <= lanes[strconv.FormatInt(lane, 10)] && !slices.Contains(open, pos)
	}, nil
}

// summed returns which attempts are in the sums.
func (c *conn) summed() (func(pos store.Position, lane int64) bool, error) {
	m, err := c.newestMark()
	if err != nil {
		return nil, err
	}
	return m.holder()
}

// attempt is one that began.
type attempt struct {
	finished     time.Time
	kind, queue  string
	outcome      stint.Outcome
	ran          bool // it was not lost
	job          stint.ID
	took, waited time.Duration
}

// attempts hands over those that were recorded after a mark.
func (c *conn) attempts(m mark, each func(*attempt) error) error {
	return c.query(attemptsSQL, []any{m.lanes, m.open}, func(q *stmt) error {
		a := scanAttempt(q, 0)
		return each(&a)
	})
}

func scanAttempt(q *stmt, col int) attempt {
	us := func(col int) time.Duration { return time.Duration(q.ColumnInt64(col)) * time.Microsecond }
	return attempt{
		finished: q.time(col), kind: q.name(col + 1), queue: q.name(col + 2), outcome: stint.Outcome(q.ColumnInt(col + 3)),
		ran: q.ColumnInt64(col+4) != 0, job: stint.ID(q.ColumnInt64(col + 5)), took: us(col + 6), waited: us(col + 7),
	}
}
