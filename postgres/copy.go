package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

// copyFrom is from how many jobs on a batch goes to the server by COPY. That takes
// half of the processor time of an insertion, and another round trip.
const copyFrom = 200

// reserveSQL is what has to be known before: the jobs' ids, drawn in their order,
// the time, and which of the policies the database has. In a caller's
// transaction it rings as well.
const reserveSQL = `
select (select array_agg(nextval('stint.positions')) from (select generate_series(1, $1::int)) g), clock_timestamp(),
       array(select p.id from stint.policies p where p.id = any ($2::bigint[])),
       case when $3::boolean then pg_notify('stint', 'work ' || pg_current_xact_id()) is null end`

// copyable tells whether COPY can store the jobs: each has to be its own entry and
// nothing else.
func copyable(tx stint.Tx, jobs []stint.NewJob) bool {
	if len(jobs) < copyFrom {
		return false
	}
	if h, ok := tx.Handle.(pgx.Tx); tx.Handle != nil && (!ok || h.Conn() == nil) {
		return false // database/sql has no COPY
	}
	for i := range jobs {
		if !plain(&jobs[i]) {
			return false
		}
	}
	return true
}

// enqueueCopied stores jobs that are copyable.
func (s *Store) enqueueCopied(ctx context.Context, tx stint.Tx, jobs []stint.NewJob, limits []string, known dictionary, ring bool) ([]stint.Receipt, error) {
	var q interface {
		QueryRow(context.Context, string, ...any) pgx.Row
		Conn() *pgx.Conn
	}
	if h, ok := tx.Handle.(pgx.Tx); ok {
		q = h
	} else {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Release()
		q = conn
	}
	if err := checkSpoken(q.Conn()); err != nil {
		return nil, err
	}
	c := copyBatch{jobs: jobs, limits: limits, known: known, lanes: lanes{}}
	ids, there := make([]int64, 0, len(jobs)), []int64(nil)
	err := q.QueryRow(ctx, s.sql.reserve, len(jobs), known.ids, ring).Scan(&ids, &c.created, &there, nil)
	if err != nil {
		return nil, translate(err)
	}
	c.ids, c.there = ids, there
	text := s.sql.in("copy stint.entries (" + strings.Join(c.choose(), ", ") + ") from stdin (format binary)")
	heard := s.hear()
	heard.sent(text)
	tag, err := q.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(c.rows()), text)
	heard.answered(tag.RowsAffected(), err)
	if err != nil {
		return nil, translate(err)
	}
	receipts := make([]stint.Receipt, len(ids))
	for i, id := range ids {
		receipts[i].ID = stint.ID(id)
	}
	return receipts, nil
}

// copied is a batch on its way through COPY.
type copyBatch struct {
	jobs    []stint.NewJob
	limits  []string // nil if no job has any
	known   dictionary
	ids     []int64
	created time.Time
	there   []int64 // the policies that the database has

	columns []copyColumn
	lanes   lanes
}

// copyColumn appends one column of a job, with its length before it. Needed tells
// whether a job says something there: it is null otherwise. Nil says that all do.
type copyColumn struct {
	name   string
	needed func(c *copyBatch, j *stint.NewJob) bool
	put    func(b []byte, c *copyBatch, j *stint.NewJob, i int) []byte
}

var copyColumns = []copyColumn{
	{"pos", nil, func(b []byte, c *copyBatch, _ *stint.NewJob, i int) []byte { return putInt8(b, c.ids[i]) }},
	{"lane", nil, func(b []byte, c *copyBatch, j *stint.NewJob, i int) []byte {
		return putInt8(b, c.lanes.of(c.limits, j, i))
	}},
	// Volatile defaults would have the server insert row by row.
	{"created", nil, func(b []byte, c *copyBatch, _ *stint.NewJob, _ int) []byte {
		return putInt8(b, c.created.UnixMicro()-epoch)
	}},
	{"queue", nil, textOf(func(j *stint.NewJob) string { return j.Queue })},
	{"priority", nil, func(b []byte, _ *copyBatch, j *stint.NewJob, _ int) []byte { return putInt2(b, int16(j.Priority)) }},
	{"kind", nil, textOf(func(j *stint.NewJob) string { return j.Kind })},
	{"args", nil, func(b []byte, _ *copyBatch, j *stint.NewJob, _ int) []byte { return putJSON(b, j.Args) }},
	{"policy", (*copyBatch).hasPolicy, func(b []byte, c *copyBatch, j *stint.NewJob, _ int) []byte {
		return putInt8(b, c.known.ids[c.known.place(j.Retry)-1])
	}},
	{"retry", (*copyBatch).lacksPolicy, func(b []byte, c *copyBatch, j *stint.NewJob, _ int) []byte {
		return putJSON(b, []byte(c.known.bodies[c.known.place(j.Retry)-1]))
	}},
	{"timeout", func(_ *copyBatch, j *stint.NewJob) bool { return j.Timeout > 0 }, func(b []byte, _ *copyBatch, j *stint.NewJob, _ int) []byte {
		return putInt8(b, j.Timeout.Milliseconds())
	}},
	{"max_losses", func(_ *copyBatch, j *stint.NewJob) bool { return j.MaxLosses != nil }, func(b []byte, _ *copyBatch, j *stint.NewJob, _ int) []byte {
		return putInt2(b, int16(*j.MaxLosses))
	}},
	{"urn", func(_ *copyBatch, j *stint.NewJob) bool { return j.URN != "" }, textOf(func(j *stint.NewJob) string { return j.URN })},
	{"source", func(_ *copyBatch, j *stint.NewJob) bool { return j.Source != "" }, textOf(func(j *stint.NewJob) string { return j.Source })},
	{"metadata", func(_ *copyBatch, j *stint.NewJob) bool { return j.Metadata != nil }, func(b []byte, _ *copyBatch, j *stint.NewJob, _ int) []byte {
		return putJSON(b, j.Metadata)
	}},
	{"correlation", func(_ *copyBatch, j *stint.NewJob) bool { return j.Correlation != "" },
		textOf(func(j *stint.NewJob) string { return j.Correlation })},
	{"limits", func(_ *copyBatch, j *stint.NewJob) bool { return len(j.Limits) > 0 }, func(b []byte, c *copyBatch, _ *stint.NewJob, i int) []byte {
		return putText(b, c.limits[i])
	}},
}

func textOf(of func(j *stint.NewJob) string) func([]byte, *copyBatch, *stint.NewJob, int) []byte {
	return func(b []byte, _ *copyBatch, j *stint.NewJob, _ int) []byte { return putText(b, of(j)) }
}

// choose picks the columns in which some job has a value, and returns their names.
func (c *copyBatch) choose() (names []string) {
	for _, col := range copyColumns {
		needed := col.needed == nil
		for i := 0; i < len(c.jobs) && !needed; i++ {
			needed = col.needed(c, &c.jobs[i])
		}
		if needed {
			c.columns, names = append(c.columns, col), append(names, col.name)
		}
	}
	return names
}

func (c *copyBatch) hasPolicy(j *stint.NewJob) bool {
	place := c.known.place(j.Retry)
	return place > 0 && slices.Contains(c.there, c.known.ids[place-1])
}

func (c *copyBatch) lacksPolicy(j *stint.NewJob) bool {
	place := c.known.place(j.Retry)
	return place > 0 && !slices.Contains(c.there, c.known.ids[place-1])
}

// rows are all jobs in PostgreSQL's binary format of COPY.
func (c *copyBatch) rows() []byte {
	size := 32
	for i := range c.jobs {
		j := &c.jobs[i]
		size += 8*len(c.columns) + 40 + len(j.Queue) + len(j.Kind) + len(j.Args) + len(j.Metadata) + len(j.URN) + len(j.Source) + len(j.Correlation)
	}
	b := append(make([]byte, 0, size), "PGCOPY\n\xff\r\n\x00"...)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // no flags, nothing more in the head
	for i := range c.jobs {
		b = binary.BigEndian.AppendUint16(b, uint16(len(c.columns)))
		j := &c.jobs[i]
		for k := range c.columns {
			if col := &c.columns[k]; col.needed == nil || col.needed(c, j) {
				b = col.put(b, c, j, i)
			} else {
				b = putNull(b)
			}
		}
	}
	return append(b, 0xff, 0xff)
}
