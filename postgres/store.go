package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/store"
)

// Config says where in the database stint lives and what opening may do. The
// zero value is right for most.
type Config struct {
	// Schema is the PostgreSQL schema, by default "stint". Lower-case
	// letters, digits and underscores.
	Schema string

	// Upgrade lets opening bring an older schema up to date, even though it
	// holds jobs. Installing into a database that has none is always done.
	Upgrade bool

	// NoInstall leaves the database as it is: opening fails with
	// [store.ErrSchema] when the schema is missing.
	NoInstall bool

	// OnQuery is told every statement that the store ran, how long that took and
	// what came of it, but for the steps of the schema: see [event.Query]. It is
	// called from many goroutines, after each statement, and holds up its
	// caller. Of a store made by [New] it sees what engines run, and of others
	// only what the program's own pool does not see: set a tracer there. A
	// tracer that the pool has already is kept. Nil costs nothing.
	OnQuery func(event.Query)

	// SkipCheck opens without looking at the schema at all, for programs that
	// migrate. Other methods may fail until that was done.
	SkipCheck bool
}

// Store is a database with stint's schema. Make one with [Open] or [New]. Its
// methods may be called concurrently.
type Store struct {
	pool     *pgxpool.Pool // the program's
	owned    bool          // whether Close closes the pool
	schema   string        // unquoted: its form needs no quotes beyond reserved words
	config   Config
	sql      statements
	policies policies
	notifier notifier

	// explicit says that transactions must name their isolation, because the
	// session's default is not read committed.
	explicit atomic.Bool

	pooled   bool         // a pooler stands between this program and the server
	prepares bool         // statements may be prepared
	deaf     atomic.Int64 // until when a pooler is believed to swallow notifications, in nanoseconds of the wall clock; 0 where none was found

	starting sync.Mutex                   // held while the engines' pool is opened
	working  atomic.Pointer[pgxpool.Pool] // nil until an engine joined
	claiming chan struct{}                // room for claims among its connections

	presences sync.Map // of engines that joined by this store: *presence by store.EngineID

	joined atomic.Pointer[map[store.EngineID]joinedEngine] // what engines of the last roster said when they joined

	keepAlive time.Duration // of the listening connection

	sound atomic.Pointer[time.Time] // when the schema was last found to be as it should be; nil if it was not

	noted notesSeen

	waits store.Waits // calls that wait for jobs to end

	steps []steps.Step // of the schema, oldest first
	pace  pace         // at which steps wait for their locks
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Inspector = (*Store)(nil)
	_ store.Listener  = (*Store)(nil)
	_ store.Migrator  = (*Store)(nil)
	_ store.Auditor   = (*Store)(nil)
	_ store.Clock     = (*Store)(nil)
)

// Open connects to a database by URL or key=value string, as libpq understands
// them, and installs the schema when the database has none. A password from a file
// (PGPASSFILE, PGSERVICEFILE) is read again for each connection. Close the store
// when done.
func Open(ctx context.Context, url string, config ...Config) (*Store, error) {
	pc, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the database URL: %w", err)
	}
	if !strings.Contains(url, "pool_max_conn_idle_time") {
		pc.MaxConnIdleTime, pc.HealthCheckPeriod = idleConns, min(pc.HealthCheckPeriod, idleConns)
	}
	pc.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if now, err := pgconn.ParseConfig(url); err == nil {
			c.Password = now.Password
		}
		return nil
	}
	params := pc.ConnConfig.RuntimeParams
	params["application_name"] = cmp.Or(params["application_name"], "stint")
	if len(config) > 0 {
		traceQueries(pc.ConnConfig, config[0].OnQuery)
	}
	pool, way, err := openPool(ctx, pc)
	if err != nil {
		return nil, translate(err)
	}
	s, err := newOn(ctx, pool, way, oneOf(config), known())
	if err != nil {
		pool.Close()
		return nil, translate(err)
	}
	s.owned = true
	return s, nil
}

// New makes a store on a pool that the program has already. The pool stays the
// program's to close. Its sessions must have the client_encoding UTF8, which is the
// default: any other is refused, here and when something is stored. Engines open a few connections of their own beside it,
// with its settings; Close ends those.
func New(ctx context.Context, pool *pgxpool.Pool, config ...Config) (*Store, error) {
	return newSteps(ctx, pool, oneOf(config), known())
}

// oneOf is the configuration that was given, or the default.
func oneOf(config []Config) Config {
	if len(config) > 0 {
		return config[0]
	}
	return Config{}
}

// known are the steps of the schema that this program knows.
func known() []steps.Step { return slices.Concat(steps.Must(schemaFiles), steps.Later) }

// newSteps is New with a schema that tests may choose.
func newSteps(ctx context.Context, pool *pgxpool.Pool, c Config, all []steps.Step) (*Store, error) {
	way, err := see(ctx, pool)
	if err != nil {
		return nil, err
	}
	return newOn(ctx, pool, way, c, all)
}

// newOn makes a store on a pool of which it is known what its way to the server is
// like.
func newOn(ctx context.Context, pool *pgxpool.Pool, way way, c Config, all []steps.Step) (*Store, error) {
	var err error
	if c.Schema, err = schemaOr(c.Schema); err != nil {
		return nil, err
	}
	s := &Store{pool: pool, schema: c.Schema, config: c, keepAlive: keepAlive, claiming: make(chan struct{}, claimConns),
		steps: all, pace: unhurried}
	s.sql.load(c.Schema)
	s.waits = store.NewWaits(s.ended)
	s.notifier.send = s.ring
	conn := pool.Config().ConnConfig
	s.pooled = way.pooled
	s.prepares = conn.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement && (!s.pooled || choosesMode(conn))
	s.explicit.Store(way.isolation != "read committed")
	if c.SkipCheck {
		return s, nil
	}
	if err := checkDatabase(way.database); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// defaultSchema is the schema if none is named.
const defaultSchema = "stint"

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

// schemaOr is the schema of a name, which needs no quotes beyond reserved words.
func schemaOr(name string) (string, error) {
	name = cmp.Or(name, defaultSchema)
	if !schemaName.MatchString(name) {
		return "", &stint.InvalidError{Field: "schema", Problem: fmt.Sprintf("%q is not lower-case letters, digits and underscores, 1 to 48", name)}
	}
	return name, nil
}

// Close releases the store's own connections: all of a store made by [Open],
// and the engines' of one made by [New].
func (s *Store) Close() {
	s.waits.Close()
	s.notifier.wait()
	s.presences.Range(func(engine, _ any) bool { s.Release(engine.(store.EngineID)); return true })
	if pool := s.working.Load(); pool != nil {
		pool.Close()
	}
	if s.owned {
		s.pool.Close()
	}
}

// Now implements [store.Clock].
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.work().QueryRow(ctx, "select clock_timestamp()").Scan(&now)
	return now, translate(err)
}

// beginIdleSQL begins a transaction of several messages. A program that is
// frozen between two of them must not hold what it locked for ever: the server
// ends its session.
const beginIdleSQL = beginSQL + `; set local idle_in_transaction_session_timeout = '5s'`

// transact runs f in a read committed transaction and commits.
func (s *Store) transact(ctx context.Context, f func(tx pgx.Tx) error) error {
	return translate(spoken(ctx, s.pool, func(c *pgxpool.Conn) error {
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{BeginQuery: beginIdleSQL}, f)
	}))
}

// beginLongSQL begins one whose statements may take longer than the session
// lets them.
const beginLongSQL = beginIdleSQL + `;
	select set_config(name, '0', true) from unnest(array['statement_timeout', 'transaction_timeout']) as name where current_setting(name, true) is not null`

// transactWork is transact on the engines' connections.
func (s *Store) transactWork(ctx context.Context, f func(tx pgx.Tx) error) error {
	return translate(pgx.BeginTxFunc(ctx, s.work(), pgx.TxOptions{BeginQuery: beginLongSQL}, f))
}

// once runs one statement as a read committed transaction, and hands its row
// to scan unless that is nil. Everything is one message: nothing can be cut
// off while a lock is held.
func (s *Store) once(ctx context.Context, scan func(pgx.Row) error, text string, args ...any) error {
	return s.onceOn(ctx, s.work(), scan, text, args...)
}

func (s *Store) onceOn(ctx context.Context, pool *pgxpool.Pool, scan func(pgx.Row) error, text string, args ...any) error {
	batch := &pgx.Batch{}
	explicit := s.explicit.Load()
	if explicit {
		batch.Queue(beginSQL)
	}
	q := batch.Queue(text, args...)
	if scan != nil {
		q.QueryRow(scan)
	}
	if explicit {
		batch.Queue(commitSQL)
	}
	return translate(spoken(ctx, pool, func(c *pgxpool.Conn) error { return c.SendBatch(ctx, batch).Close() }))
}

// errIsolation is what the schema's functions answer in a transaction that is
// not read committed.
var errIsolation = errors.New("the session's default isolation is not read committed")

// retryExplicit runs f again when it turns out that the session's defaults
// changed: from then on every transaction says its isolation itself.
func retryExplicit[T any](s *Store, f func() (T, error)) (T, error) {
	v, err := f()
	if errors.Is(err, errIsolation) {
		s.explicit.Store(true)
		return f()
	}
	return v, err
}
