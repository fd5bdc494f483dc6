package sim

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	_ "github.com/ncruces/go-sqlite3/driver" // for transactions of the producers' own

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// ground is the store under all processes, with what others than SQLite's do
// besides, and what programs in other languages do to it.
type ground struct {
	*sqlite.Store
	db *sql.DB

	mu  sync.Mutex
	cut []store.EngineID // whose burials were cut short
}

// write runs do in a transaction of its own.
func (g *ground) write(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// each reads rows.
func (g *ground) each(ctx context.Context, query string, row func(rows *sql.Rows) error) error {
	return each(ctx, g.db, query, row)
}

// reader is a database or a transaction.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func each(ctx context.Context, from reader, query string, row func(rows *sql.Rows) error, args ...any) error {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// count reads a number.
func (g *ground) count(ctx context.Context, query string) (n int, err error) {
	err = g.db.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// states counts the jobs that people see.
func (g *ground) states(ctx context.Context) (map[stint.State]int64, error) {
	all := map[stint.State]int64{}
	err := g.each(ctx, `select state, count(*) from stint_jobs group by state`, func(rows *sql.Rows) error {
		var state stint.State
		var n int64
		err := rows.Scan(&state, &n)
		all[state] = n
		return err
	})
	return all, err
}

const (
	markSQL  = `insert into stint_cancellations (job, at, why) values (?, 1, ?) on conflict do nothing`
	openSQL  = `select count(*) from stint_jobs where id = ?1 and not exists (` + finalSQL + `)`
	finalSQL = `select 1 from stint_executions x where (x.pos = ?1 and x.job is null or x.job = ?1) and x.final = 1`
)

// mark cancels jobs as a program without a client does, and tells which of
// them had not ended: there the markers stand.
func (g *ground) mark(ctx context.Context, ids []stint.ID, why string) (stand []stint.ID, err error) {
	err = g.write(ctx, func(tx *sql.Tx) error {
		for _, id := range ids {
			if _, err := tx.ExecContext(ctx, markSQL, int64(id), why); err != nil {
				return err
			}
			open := 0
			if err := tx.QueryRowContext(ctx, openSQL, int64(id)).Scan(&open); err != nil {
				return err
			}
			if open > 0 {
				stand = append(stand, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return stand, nil
}

// fast is a directory in memory, where the system has one.
func fast() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// must is for what can only fail where the simulator itself is broken.
func must[T any](value T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("sim: %v", err))
	}
	return value
}

// template is a file with the schema, made once: installing it takes longer
// than copying it.
var template = sync.OnceValue(func() []byte {
	dir := must(os.MkdirTemp(fast(), "stint-sim-"))
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "jobs.db")
	must(0, must(sqlite.Open(context.Background(), path)).Close())
	db := openDatabase(path)
	for _, text := range slices.Concat(asideSQL, []string{effectsSQL}, journalSQL) {
		must(db.Exec(text))
	}
	must(0, db.Close())
	return must(os.ReadFile(path))
})

// openDatabase opens the file as a user's program does.
func openDatabase(path string) *sql.DB {
	db := must(sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(20000)"))
	db.SetMaxOpenConns(1)
	return db
}
