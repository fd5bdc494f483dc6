package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.LogReader = (*Store)(nil)

const (
	// maySaySQL reports whether what an attempt says is accepted: its engine has it, and it did not end.
	maySaySQL = `
	select 1 where exists (select 1 from stint_claims where lane = ? and n = ? and nonce = ? and engine = ?)
	  and exists (select 1 from stint_entries where pos = ?5) and not exists (select 1 from stint_executions where pos = ?5)`

	addLinesSQL = `
	insert into stint_lines (job, pos, n, at, level, text)
	select ?1, ?2, l.value ->> 0, l.value ->> 1, l.value ->> 2, l.value ->> 3 from json_each(?3) l where true
	on conflict do nothing`

	leaveOutSQL = `delete from stint_lines where job = ? and pos = ? and n between ? and ?`

	// progressSQL keeps the later one: a request may be held up.
	progressSQL = `
	insert into stint_progress (job, pos, n, at, fraction, text) values (?, ?, ?, ?, cast(? as real), ?)
	on conflict (job, pos) do update set n = excluded.n, at = excluded.at, fraction = excluded.fraction, text = excluded.text
	where n < excluded.n`

	// Bounds are compared as rows, which the primary key serves.
	firstLinesSQL = `
	select l.pos, e.attempt, l.n, l.at, l.level, l.text from stint_lines l join stint_entries e on e.pos = l.pos
	where l.job = ? and (l.pos, l.n) > (?, ?) order by l.pos, l.n limit ?`

	lastLinesSQL = `
	select l.pos, e.attempt, l.n, l.at, l.level, l.text from stint_lines l join stint_entries e on e.pos = l.pos
	where l.job = ? and (l.pos, l.n) > (?, ?) order by l.pos desc, l.n desc limit ?`

	progressesSQL = `
	select p.pos, e.attempt, p.n, p.at, p.fraction, ifnull(p.text, '') from stint_progress p join stint_entries e on e.pos = p.pos
	where p.job = ? order by p.pos desc limit ?`
)

// logKeeper is a transaction that keeps what attempts say.
type logKeeper struct {
	found func(text string, args ...any) (bool, error)
	exec  func(text string, args ...any) error
}

func (c *conn) logs(engine store.EngineID, r *store.LogRecord, now time.Time) error {
	if r == nil {
		return nil
	}
	return logKeeper{c.found, func(text string, args ...any) error {
		_, err := c.exec(text, args...)
		return err
	}}.logs(engine, r, now)
}

// logs keeps what an attempt said, unless its engine lost it or it ended. Nil is nothing.
func (k logKeeper) logs(engine store.EngineID, r *store.LogRecord, now time.Time) error {
	if r == nil {
		return nil
	}
	may, err := k.found(maySaySQL, int64(r.Claim.Lane), r.Claim.N, int64(r.Claim.Nonce), int64(engine), int64(r.Pos))
	if err != nil || !may {
		return err
	}
	job, pos := int64(r.Job), int64(r.Pos)
	at := func(t time.Time) int64 { return micro(now.Add(-max(0, now.Sub(t)))) }
	if len(r.Lines) > 0 {
		rows := make([][4]any, len(r.Lines))
		for i, l := range r.Lines {
			rows[i] = [4]any{l.N, at(l.At), int(l.Level), l.Text}
		}
		text, err := json.Marshal(rows)
		if err == nil {
			err = k.exec(addLinesSQL, job, pos, json.RawMessage(text))
		}
		if err != nil {
			return err
		}
	}
	if r.To > 0 {
		if err := k.exec(leaveOutSQL, job, pos, r.From, r.To); err != nil {
			return err
		}
	}
	if p := r.Progress; p != nil {
		return k.exec(progressSQL, job, pos, p.N, at(p.At), strconv.FormatFloat(p.Fraction, 'g', -1, 64), nilText(p.Text))
	}
	return nil
}

// Log implements [store.LogReader].
func (s *Store) Log(ctx context.Context, job stint.ID, f store.LogFilter) ([]stint.LogLine, error) {
	text, limit := firstLinesSQL, f.Limit
	if limit <= 0 {
		limit = -1
	}
	if f.Last {
		text = lastLinesSQL
	}
	lines, err := collect(ctx, s, fmt.Sprintf("read the log of job %d", job), text, []any{int64(job), f.Run, f.N, limit}, func(q *stmt) stint.LogLine {
		return stint.LogLine{Run: q.ColumnInt64(0), Attempt: q.ColumnInt(1), N: q.ColumnInt(2), At: q.time(3), Level: slog.Level(q.ColumnInt(4)), Text: q.ColumnText(5)}
	})
	if f.Last {
		slices.Reverse(lines)
	}
	return lines, err
}

// Progress implements [store.LogReader].
func (s *Store) Progress(ctx context.Context, job stint.ID) ([]stint.Progress, error) {
	all, err := collect(ctx, s, fmt.Sprintf("read the progress of job %d", job), progressesSQL, []any{int64(job), store.MostProgress}, func(q *stmt) stint.Progress {
		return stint.Progress{Run: q.ColumnInt64(0), Attempt: q.ColumnInt(1), N: q.ColumnInt(2), At: q.time(3), Fraction: q.ColumnFloat(4), Text: q.ColumnText(5)}
	})
	slices.Reverse(all)
	return all, err
}
