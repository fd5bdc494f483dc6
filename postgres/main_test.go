package postgres

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/storetest"
)

// Most tests wait for the server most of the time, so more of them run at once
// than there are processors, unless the command line says otherwise.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6")
	flag.Parse()
	pgtest.Main(m)
}

// installed is a database with the schema where it belongs, elsewhere one
// with another name for it.
var (
	installed = pgtest.NewTemplate(func(ctx context.Context, url string) error { return install(ctx, url, Config{}) })
	elsewhere = pgtest.NewTemplate(func(ctx context.Context, url string) error {
		return install(ctx, url, Config{Schema: elsewhereName})
	})
)

// sumAtOnceSQL lets the sums follow the clock at once, which tests have no time to
// wait for.
const sumAtOnceSQL = `create or replace function stint.sum_lag() returns interval language sql immutable as $$ select interval '1 microsecond' $$`

// elsewhereName needs quotes wherever it stands.
const elsewhereName = "user"

func install(ctx context.Context, url string, config Config) error {
	s, err := Open(ctx, url, config)
	if err != nil {
		return err
	}
	s.Close()
	return nil
}

// newStore opens a store on a fresh database of the newest server.
func newStore(t testing.TB) *Store {
	t.Helper()
	return openStore(t, installed.New(t))
}

// possible checks of all entries what compares their columns. Checks of the table would cost each
// enqueue a seventh of its time.
func possible(t testing.TB, s *Store) {
	t.Helper()
	for _, rule := range []string{
		`(args is null) = (body is not null)`, // arguments stand exactly once, and are never null
		`body is null or job is not null`,
		`start_by >= due`, // else it could never begin
		`recovered < pos`,
		`(schedule is null) = (nth is null)`,
		`occurrence is null or schedule is not null`,
		`lane >= -1`,
	} {
		var n int
		if err := s.pool.QueryRow(context.Background(), s.sql.in(`select count(*) from stint.entries where not (`+rule+`)`)).Scan(&n); err != nil || n > 0 {
			t.Errorf("%d entries are not: %s; error %v", n, rule, err)
		}
	}
}

// verified opens one whose invariants are checked when the test ends.
func verified(t testing.TB) *Store {
	t.Helper()
	s := newStore(t)
	t.Cleanup(func() {
		storetest.Verify(t, s)
		possible(t, s)
	})
	return s
}

func openStore(t testing.TB, url string, config ...Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, config...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// url is where a store's database is.
func (s *Store) url() string { return s.pool.Config().ConnString() }

// connect opens a connection that has nothing to do with the store's pool.
func connect(t testing.TB, s *Store) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.url())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// begin begins a transaction on a connection of its own. It is rolled back
// with the connection when the test ends and did not end it.
func begin(t testing.TB, s *Store, opts ...pgx.TxOptions) pgx.Tx {
	t.Helper()
	tx, err := connect(t, s).BeginTx(t.Context(), append(opts, pgx.TxOptions{})[0])
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

type querier interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}

// value reads one value.
func value[T any](t testing.TB, q querier, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := q.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// exec runs a statement that must work.
func exec(t testing.TB, s *Store, sql string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), s.sql.in(sql), args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// limited opens a second handle on a database with so many connections.
func limited(t testing.TB, s *Store, conns int32) *Store {
	t.Helper()
	config, err := pgxpool.ParseConfig(s.url())
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	again, err := New(t.Context(), pool, s.config)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// setDefault makes a setting the default of a database's new sessions.
func setDefault(ctx context.Context, url, setting, to string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	name := pgx.Identifier{conn.Config().Database}.Sanitize()
	_, err = conn.Exec(ctx, fmt.Sprintf("alter database %s set %s = '%s'", name, setting, to))
	return err
}
