package postgres

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.LogReader = (*Store)(nil)

const (
	keepLogsSQL = `select stint.keep_logs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`

	// Bounds are compared as rows, which the primary key serves.
	firstLinesSQL = `
	select l.pos, e.attempt, l.n, l.at, l.level, l.text from stint.lines l join stint.entries e on e.pos = l.pos
	where l.job = $1 and (l.pos, l.n) > ($2, $3) order by l.pos, l.n limit $4`

	lastLinesSQL = `
	select l.pos, e.attempt, l.n, l.at, l.level, l.text from stint.lines l join stint.entries e on e.pos = l.pos
	where l.job = $1 and (l.pos, l.n) > ($2, $3) order by l.pos desc, l.n desc limit $4`

	progressSQL = `
	select p.pos, e.attempt, p.n, p.at, p.fraction, coalesce(p.text, '') from stint.progress p join stint.entries e on e.pos = p.pos
	where p.job = $1 order by p.pos desc limit $2`
)

// logColumns are the columns that stint.keep_logs takes: of attempts, then of their lines.
type logColumns struct {
	lane, n, nonce, pos, job []int64
	from, to, said           []int32
	age                      []int64
	fraction                 []float64
	text                     []string

	of, line []int32
	lineAge  []int64
	level    []int32
	lineText []string
}

// newLogColumns makes the columns of what attempts said, by position; nil of nothing.
func newLogColumns(logs []store.LogRecord) *logColumns {
	if len(logs) == 0 {
		return nil
	}
	logs = slices.SortedFunc(slices.Values(logs), func(a, b store.LogRecord) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Pos, b.Pos))
	})
	now, c := time.Now(), &logColumns{}
	for i := range logs {
		r := &logs[i]
		c.lane, c.n, c.nonce = append(c.lane, int64(r.Claim.Lane)), append(c.n, r.Claim.N), append(c.nonce, int64(r.Claim.Nonce))
		c.pos, c.job = append(c.pos, int64(r.Pos)), append(c.job, int64(r.Job))
		c.from, c.to = append(c.from, int32(r.From)), append(c.to, int32(r.To))
		p := cmp.Or(r.Progress, &stint.Progress{At: now})
		c.said, c.age = append(c.said, int32(p.N)), append(c.age, age(now, p.At))
		c.fraction, c.text = append(c.fraction, p.Fraction), append(c.text, p.Text)
		for _, l := range r.Lines {
			c.of, c.line, c.lineAge = append(c.of, int32(i+1)), append(c.line, int32(l.N)), append(c.lineAge, age(now, l.At))
			c.level, c.lineText = append(c.level, int32(l.Level)), append(c.lineText, l.Text)
		}
	}
	return c
}

// logsOf makes the columns of what attempts said that ended.
func logsOf(done []store.Completion) *logColumns {
	var logs []store.LogRecord
	for i := range done {
		if r := done[i].Log; r != nil {
			logs = append(logs, *r)
		}
	}
	return newLogColumns(logs)
}

// args are the columns as arguments of a statement, after the engine.
func (c *logColumns) args() []any {
	return []any{c.lane, c.n, c.nonce, c.pos, c.job, c.from, c.to, c.said, c.age, c.fraction, c.text,
		notNil(c.of), notNil(c.line), notNil(c.lineAge), notNil(c.level), notNil(c.lineText)}
}

// params are the same for a pipeline; nil of nothing.
func (c *logColumns) params() []param {
	if c == nil {
		return nil
	}
	return []param{int8array(c.lane), int8array(c.n), int8array(c.nonce), int8array(c.pos), int8array(c.job),
		int4array(c.from), int4array(c.to), int4array(c.said), int8array(c.age), float8array(c.fraction), texts8(c.text),
		int4array(c.of), int4array(c.line), int8array(c.lineAge), int4array(c.level), texts8(c.lineText)}
}

// texts8 is an array of texts of which none is null.
func texts8(values []string) param {
	return arrayOf(pgtype.TextArrayOID, pgtype.TextOID, values, putText)
}

// beatWith sends a beat and what attempts said before it, in one message and one transaction.
func (s *Store) beatWith(ctx context.Context, logs []store.LogRecord, engine store.EngineID, beat statement, scan func(pgx.Row) error) error {
	batch := &pgx.Batch{}
	explicit := s.explicit.Load()
	if explicit {
		batch.Queue(beginSQL)
	}
	batch.Queue(s.sql.in(keepLogsSQL), append([]any{engine}, newLogColumns(logs).args()...)...)
	batch.Queue(beat.text, beat.args...).QueryRow(scan)
	if explicit {
		batch.Queue(commitSQL)
	}
	return translate(spoken(ctx, s.work(), func(c *pgxpool.Conn) error { return c.SendBatch(ctx, batch).Close() }))
}

// Log implements [store.LogReader].
func (s *Store) Log(ctx context.Context, job stint.ID, f store.LogFilter) ([]stint.LogLine, error) {
	text := firstLinesSQL
	if f.Last {
		text = lastLinesSQL
	}
	var limit *int
	if f.Limit > 0 {
		limit = &f.Limit
	}
	lines, err := collect(ctx, s.pool, fmt.Sprintf("read the log of job %d", job), s.sql.in(text), []any{job, f.Run, f.N, limit},
		func(row pgx.CollectableRow) (l stint.LogLine, err error) {
			var level int
			err = scan(row, &l.Run, &l.Attempt, &l.N, &l.At, &level, &l.Text)
			l.Level = slog.Level(level)
			return l, err
		})
	if f.Last {
		slices.Reverse(lines)
	}
	return lines, err
}

// Progress implements [store.LogReader].
func (s *Store) Progress(ctx context.Context, job stint.ID) ([]stint.Progress, error) {
	all, err := collect(ctx, s.pool, fmt.Sprintf("read the progress of job %d", job), s.sql.in(progressSQL), []any{job, store.MostProgress},
		func(row pgx.CollectableRow) (p stint.Progress, err error) {
			err = scan(row, &p.Run, &p.Attempt, &p.N, &p.At, &p.Fraction, &p.Text)
			return p, err
		})
	slices.Reverse(all)
	return all, err
}
