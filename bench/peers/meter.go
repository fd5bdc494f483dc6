package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/bench/contest"
	spent "github.com/stint-go/stint/bench/server"
)

// meter reads what a database has and what its server and this process have spent.
type meter struct {
	conn    *pgx.Conn
	probe   *spent.Probe
	history string
	steps   int // in the history, when it was looked at last

	// At the start:
	began time.Time
	spent spent.Counters
	cpu   time.Duration
	rows  int
	bytes int64
}

func newMeter(ctx context.Context, url, history string) (*meter, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	probe, err := spent.NewProbe(ctx, url)
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return &meter{conn: conn, probe: probe, history: history}, nil
}

func (m *meter) close() {
	m.probe.Close()
	_ = m.conn.Close(context.Background())
}

// patience is how long a turn may take.
const patience = 10 * time.Minute

// until waits until something is done and n workflows, counted with children, are recorded as completed.
func (m *meter) until(ctx context.Context, done <-chan struct{}, n int) error {
	limit, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not all of %d workflows have completed within %v", n, patience))
	defer cancel()
	select {
	case <-done:
	case <-limit.Done():
		return context.Cause(limit)
	}
	for {
		var completed int
		err := m.conn.QueryRow(limit, m.history).Scan(&completed, &m.steps)
		switch {
		case err != nil:
			return errors.Join(context.Cause(limit), err)
		case completed > n:
			return fmt.Errorf("of %d workflows the history has %d", n, completed)
		case completed == n:
			return nil
		}
		if err := pause(limit, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// start gathers statistics, and begins to measure.
func (m *meter) start(ctx context.Context) (err error) {
	if _, err = m.conn.Exec(ctx, "analyze"); err != nil {
		return err
	}
	if m.rows, m.bytes, err = m.size(ctx); err != nil {
		return err
	}
	if m.spent, err = m.probe.Read(ctx); err != nil {
		return err
	}
	m.cpu, _ = contest.ProcessTime()
	m.began = time.Now()
	return nil
}

// figures are what was measured since the start, by its units.
func (m *meter) figures(ctx context.Context, unit string, units int) (contest.Figures, error) {
	took, n := time.Since(m.began), float64(units)
	cpu, known := contest.ProcessTime()
	now, err := m.probe.Read(ctx)
	if err != nil {
		return nil, err
	}
	rows, bytes, err := m.size(ctx)
	if err != nil {
		return nil, err
	}
	used := now.Since(m.spent)
	f := contest.Figures{
		plural[unit] + "/s": n / took.Seconds(),
		"WAL bytes/" + unit: float64(used.WAL) / n,
		"rows/" + unit:      float64(rows-m.rows) / n,
		"bytes/" + unit:     float64(bytes-m.bytes) / n,
	}
	if known {
		f["CPU µs/"+unit] = float64((cpu - m.cpu).Microseconds()) / n
	}
	if used.CPUKnown {
		f["server CPU µs/"+unit] = float64(used.CPU.Microseconds()) / n
	}
	return f, nil
}

// size counts the rows of all tables, and the bytes of them and of their indexes.
func (m *meter) size(ctx context.Context) (rows int, bytes int64, err error) {
	tables, err := m.conn.Query(ctx, `
		select format('%I.%I', n.nspname, c.relname), pg_total_relation_size(c.oid)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and n.nspname <> 'information_schema' and n.nspname not like 'pg\_%'`)
	if err != nil {
		return 0, 0, err
	}
	var name string
	var size int64
	var names []string
	_, err = pgx.ForEachRow(tables, []any{&name, &size}, func() error {
		names, bytes = append(names, name), bytes+size
		return nil
	})
	for _, name := range names {
		n := 0
		if err == nil {
			err = m.conn.QueryRow(ctx, "select count(*) from "+name).Scan(&n)
		}
		rows += n
	}
	return rows, bytes, err
}
