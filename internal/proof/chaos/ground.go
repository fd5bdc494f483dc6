//go:build unix

package chaos

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver" // for transactions of the workload's own

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// Store is what a fleet needs of one.
type Store interface {
	store.Store
	store.Inspector
	store.Canceller
	store.Operator
	store.Pauser
	store.ScheduleKeeper
	store.Auditor
}

// Ground is the database that a fleet works on, through stint and past it.
type Ground struct {
	Store Store
	Pool  *pgxpool.Pool // nil on SQLite
	db    *sql.DB       // with the pool's connections on PostgreSQL
}

// Audit reads the ledger, also where sessions of the store were ended that it does not know of yet.
func (g *Ground) Audit(ctx context.Context) (l *store.Ledger, err error) {
	for range 20 {
		l, err = g.Store.Audit(ctx)
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "57P01" {
			break
		}
	}
	return l, err
}

// NewGround is a database of PostgreSQL that somebody opened, and closes.
func NewGround(store *postgres.Store, pool *pgxpool.Pool) *Ground {
	return &Ground{store, pool, stdlib.OpenDBFromPool(pool)}
}

// Open opens a database by its URL, or a file by its path.
func Open(ctx context.Context, db string) (*Ground, error) {
	if !strings.HasPrefix(db, "postgres://") {
		return openFile(ctx, db)
	}
	store, err := postgres.Open(ctx, db)
	if err != nil {
		return nil, err
	}
	pool, err := openPool(ctx, db)
	if err != nil {
		store.Close()
		return nil, err
	}
	return NewGround(store, pool), nil
}

// share opens a database whose store has the workload's connections.
func share(ctx context.Context, db string) (*Ground, error) {
	pool, err := openPool(ctx, db)
	if err != nil {
		return nil, err
	}
	store, err := postgres.New(ctx, pool)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return NewGround(store, pool), nil
}

// openPool opens the workload's own connections, which must do with any pooler
// between.
func openPool(ctx context.Context, db string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(db)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	return pgxpool.NewWithConfig(ctx, config)
}

func openFile(ctx context.Context, path string) (*Ground, error) {
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	file, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(20000)")
	if err != nil {
		_ = store.Close()
		return nil, err
	}
	return &Ground{Store: store, db: file}, nil
}

// Close closes it.
func (g *Ground) Close() {
	_ = g.db.Close()
	switch store := g.Store.(type) {
	case *postgres.Store:
		store.Close()
		g.Pool.Close()
	case *sqlite.Store:
		_ = store.Close()
	}
}

// Prepare makes what the workload needs beside stint's own schema.
func (g *Ground) Prepare(ctx context.Context) error {
	_, err := g.db.ExecContext(ctx, effects)
	return err
}

// version names the database and its version.
func (g *Ground) version(ctx context.Context) (name string, err error) {
	text := `select 'SQLite ' || sqlite_version()`
	if g.Pool != nil {
		text = `select 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)`
	}
	err = g.db.QueryRowContext(ctx, text).Scan(&name)
	return name, err
}

// table is the name of one of stint's tables and views.
func (g *Ground) table(name string) string {
	if g.Pool == nil {
		return "stint_" + name
	}
	return "stint." + name
}

// each calls do with each row of a query, scanned.
func (g *Ground) each(ctx context.Context, text string, into []any, do func() error) error {
	rows, err := g.db.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := do(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Sound wants a file to be whole, down to its pages.
func (g *Ground) Sound(ctx context.Context) error {
	if g.Pool != nil {
		return nil
	}
	var found string
	var bad []error
	err := g.each(ctx, `pragma integrity_check`, []any{&found}, func() error {
		if found != "ok" {
			bad = append(bad, errors.New(found))
		}
		return nil
	})
	return errors.Join(append(bad, err)...)
}

// recent is how far back [Ground.Ended] looks, in entries.
const recent = 2000

// Ended tells whether one of the newest jobs has been completed that began after
// an instant.
func (g *Ground) Ended(ctx context.Context, began time.Time) (yes bool, err error) {
	since := any(began)
	if g.Pool == nil {
		since = began.UnixMicro()
	}
	text := `select exists (select 1 from (select outcome, started from %s order by pos desc limit %d) as newest where outcome = %d and started > $1)`
	err = g.db.QueryRowContext(ctx, fmt.Sprintf(text, g.table("executions"), recent, stint.OutcomeCompleted), since).Scan(&yes)
	return yes, err
}

// GoesOn waits until a job ends that begins from now on, and tells how long that
// took. The database may be away meanwhile.
func (g *Ground) GoesOn(ctx context.Context, within time.Duration) (time.Duration, error) {
	for now := time.Now(); ; {
		again, err := g.Ended(ctx, now)
		switch took := time.Since(now); {
		case err == nil && again:
			return took, nil
		case took > within || ctx.Err() != nil:
			return took, fmt.Errorf("within %v no job ended that began then: %w", within, cmp.Or(err, ctx.Err(), errNothingEnds))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

var errNothingEnds = errors.New("nothing ends")

// transaction is one of the workload's own.
type transaction struct {
	stint.Tx
	exec     func(ctx context.Context, text string, args ...any) error
	commit   func(ctx context.Context) error
	rollback func(ctx context.Context) error // does nothing after the end
}

func (g *Ground) begin(ctx context.Context) (*transaction, error) {
	if g.Pool != nil {
		tx, err := g.Pool.Begin(ctx)
		if err != nil {
			return nil, err
		}
		return &transaction{
			Tx: postgres.Tx(tx),
			exec: func(ctx context.Context, text string, args ...any) error {
				_, err := tx.Exec(ctx, text, args...)
				return err
			},
			commit:   tx.Commit,
			rollback: tx.Rollback,
		}, nil
	}
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	return &transaction{
		Tx: sqlite.Tx(tx),
		exec: func(ctx context.Context, text string, args ...any) error {
			_, err := tx.ExecContext(ctx, text, args...)
			return err
		},
		commit:   func(context.Context) error { return tx.Commit() },
		rollback: func(context.Context) error { return tx.Rollback() },
	}, nil
}

// advance are statements that have every number which rises go on from another
// one: positions, the claims of each lane, and changes.
var (
	advance = []string{
		`select setval('stint.positions', $1)`,
		`select setval('stint.change_numbers', $1)`,
		`update stint.claims c set n = c.n + $1 - m.n, pending_n = c.pending_n + $1 - m.n
		 from (select lane, max(n) as n from stint.claims group by lane) m where m.lane = c.lane`,
	}
	advanceFile = []string{
		`update sqlite_sequence set seq = $1 where name = 'stint_entries'`,
		`update sqlite_sequence set seq = $1 where name = 'stint_changes'`,
		`update stint_claims set n = stint_claims.n + $1 - m.n
		 from (select lane, max(n) as n from stint_claims group by lane) m where m.lane = stint_claims.lane`,
	}
)

// Advance has every number that rises go on after another one. Nobody may work
// meanwhile.
func (g *Ground) Advance(ctx context.Context, to int64) error {
	list := advance
	if g.Pool == nil {
		list = advanceFile
	}
	tx, err := g.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.rollback(context.WithoutCancel(ctx)) }()
	for _, text := range list {
		if err := tx.exec(ctx, text, to); err != nil {
			return err
		}
	}
	return tx.commit(ctx)
}

// Pin opens a transaction that has a number, has seen stint's log and stays open: vacuum can clean up nothing that dies from
// then on, until the connection is closed or the transaction is ended.
func Pin(ctx context.Context, url string) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	for _, text := range []string{`begin isolation level repeatable read`, `select pg_current_xact_id()`, `select count(*) from stint.entries`} {
		if _, err := conn.Exec(ctx, text); err != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
			return nil, err
		}
	}
	return conn, nil
}

// Thief takes a server's connections, and gives them back.
type Thief struct {
	url string

	mu    sync.Mutex
	taken []*pgx.Conn
}

// NewThief makes one who connects by a URL.
func NewThief(url string) *Thief { return &Thief{url: url} }

// Take takes all connections that are free, and says how many it has.
func (th *Thief) Take(ctx context.Context) int {
	th.mu.Lock()
	defer th.mu.Unlock()
	for {
		conn, err := pgx.Connect(ctx, th.url)
		if err != nil {
			return len(th.taken)
		}
		th.taken = append(th.taken, conn)
	}
}

// Keep takes all connections that are free, and again every so often what
// somebody else let go of, until they are given back.
func (th *Thief) Keep(ctx context.Context, every time.Duration) (giveBack func()) {
	th.Take(ctx)
	taking, enough := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for taking.Err() == nil {
			th.Take(taking)
			select {
			case <-taking.Done():
			case <-time.After(every):
			}
		}
	})
	return func() {
		enough()
		all.Wait()
		th.GiveBack()
	}
}

// GiveBack gives all of them back.
func (th *Thief) GiveBack() {
	th.mu.Lock()
	defer th.mu.Unlock()
	for _, conn := range th.taken {
		_ = conn.Close(context.Background())
	}
	th.taken = nil
}
