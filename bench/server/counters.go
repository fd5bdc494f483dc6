// Package server tells what a PostgreSQL server spends, and holds transactions
// open on it, while something else is measured:
//
//	Probe   counters.go, cpu.go   what the server has spent, before and after
//	Hold    hold.go               transactions that are held open meanwhile
package server

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Counters are what a server has counted up to one moment. They mean something
// only in pairs: see [Counters.Since].
type Counters struct {
	wal         int64
	transaction int64 // the reading's own number
	cpu         time.Duration
	cpuKnown    bool
}

// Use is what a whole server spent between two moments: on what was measured,
// on everybody else, and on its own upkeep.
type Use struct {
	// WAL is bytes of the write-ahead log, with the images of pages that the
	// first change behind a checkpoint writes.
	WAL int64

	// Transactions is how many transaction numbers were given out: to each
	// transaction that wrote, and to each block of PL/pgSQL with a handler for
	// exceptions that wrote. What only read needs none, and no flush either.
	Transactions int64

	// CPU is the processor time of all of the server's processes. CPUKnown says
	// whether it could be read: only on the server's own machine, where there
	// is a /proc.
	CPU      time.Duration
	CPUKnown bool
}

// Probe reads counters over a connection of its own. It is for one goroutine.
type Probe struct {
	conn *pgx.Conn
	proc fs.FS
}

// NewProbe connects to the server of a URL. Close it when done.
func NewProbe(ctx context.Context, url string) (*Probe, error) {
	// The pool's own parser takes the pool's parameters out of the URL.
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the database URL: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to read the server's counters: %w", err)
	}
	return &Probe{conn, os.DirFS("/proc")}, nil
}

// Close ends the connection.
func (p *Probe) Close() { _ = p.conn.Close(context.Background()) }

// countersSQL reads what the server counts at once. The statistics views would
// not do: a session tells them of its commits up to a second later, or when it
// ends. So transactions are counted by the number that this statement draws for
// itself, which comes after all that were drawn before.
// The insert position also counts what an asynchronous commit has yet to write.
const countersSQL = `
select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, pg_current_xact_id()::text::bigint,
       pg_backend_pid(), coalesce((select backend_start from pg_stat_activity where pid = pg_backend_pid()), 'epoch')`

// Read reads the counters as they are now. It draws one transaction number,
// which [Counters.Since] leaves out.
func (p *Probe) Read(ctx context.Context) (Counters, error) {
	var (
		c       Counters
		backend int
		started time.Time
	)
	if err := p.conn.QueryRow(ctx, countersSQL).Scan(&c.wal, &c.transaction, &backend, &started); err != nil {
		return c, fmt.Errorf("read the server's counters: %w", err)
	}
	c.cpu, c.cpuKnown = serverCPU(p.proc, backend, started)
	return c, nil
}

// Since is what was spent between two readings of the same server.
func (c Counters) Since(before Counters) Use {
	u := Use{
		WAL:          c.wal - before.wal,
		Transactions: c.transaction - before.transaction - 1,
		CPUKnown:     c.cpuKnown && before.cpuKnown,
	}
	if u.CPUKnown {
		u.CPU = c.cpu - before.cpu
	}
	return u
}
