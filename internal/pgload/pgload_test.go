package pgload

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// connection is one to look at a database with.
func connection(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func run(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, text := range statements {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// ask asks for one value.
func ask[T any](t *testing.T, conn *pgx.Conn, text string) (v T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), text).Scan(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestAProbeCountsWhatWasWritten(t *testing.T) {
	url := pgtest.New(t)
	p, err := NewProbe(t.Context(), url+"&pool_max_conns=3")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	one, other := connection(t, url), connection(t, url)
	// Vacuuming by itself draws numbers too.
	run(t, one, "alter system set autovacuum = off", "select pg_reload_conf()", "create table t (id int primary key)", "insert into t values (1), (2)")
	read := func() Counters {
		t.Helper()
		c, err := p.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}

	before := read()
	if u := read().Since(before); u.Transactions != 0 || u.Multixacts != 0 {
		t.Errorf("when nothing happened it saw %+v", u)
	}

	before = read()
	for i := range 10 {
		run(t, one, fmt.Sprintf("insert into t values (%d)", 10+i))
	}
	run(t, one, "select count(*) from t")
	if u := read().Since(before); u.Transactions != 10 || u.WAL < 500 || u.WAL > 1<<20 || u.Multixacts != 0 {
		t.Errorf("of ten single inserts it saw %+v", u)
	}

	before = read()
	for _, row := range []string{"1", "2"} {
		run(t, one, "begin", "select from t where id = "+row+" for key share")
		run(t, other, "begin", "select from t where id = "+row+" for key share", "commit")
		run(t, one, "commit")
	}
	if u := read().Since(before); u.Multixacts != 2 || u.Transactions != 4 {
		t.Errorf("of two rows that two locked at once it saw %+v", u)
	}
}

// A session that ended is part of it, and so is one that goes on.
func TestAProbeReadsTheProcessorTimeOfTheServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells it")
	}
	url := pgtest.New(t)
	p, err := NewProbe(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	before, err := p.Read(t.Context())
	if err != nil || !before.cpuKnown {
		t.Fatalf("the server runs here, and its time is not known: %+v, %v", before, err)
	}
	const burn = "select count(*) from generate_series(1, 200000) a where a % 7 = 1"
	stays, ends := connection(t, url), connection(t, url)
	run(t, stays, burn)
	run(t, ends, burn)
	_ = ends.Close(t.Context())
	after, err := p.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if u := after.Since(before); !u.CPUKnown || u.CPU < tick {
		t.Errorf("after some work it saw %+v", u)
	}
}

// schemas are those of a database that are not its own.
const schemas = `select count(*) from pg_namespace where nspname like 'floor%'`

func TestALogWorksOffEveryJobOnceAndInOrder(t *testing.T) {
	url := pgtest.New(t)
	look := connection(t, url)
	l, err := NewLog(t.Context(), url, "floor", LogOptions{Producers: 2, Batch: 70, Taken: 40})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil || ask[int](t, look, schemas) != 0 {
			t.Errorf("it left something behind: %v", err)
		}
	}()
	var appended, worked atomic.Int64
	count := func(a *atomic.Int64) func(int) { return func(n int) { a.Add(int64(n)) } }
	if err := l.Append(t.Context(), 301, count(&appended)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{100, 201} {
		if err := l.Work(t.Context(), n, count(&worked)); err != nil {
			t.Fatal(err)
		}
	}
	if a, w := appended.Load(), worked.Load(); a != 301 || w != 301 {
		t.Errorf("it tells of %d and %d jobs, want 301", a, w)
	}
	if n := ask[int](t, look, "select count(*) from floor.jobs join floor.history using (pos)"); n != 301 {
		t.Errorf("%d jobs have a history, want 301", n)
	}
	if err := l.Work(t.Context(), 1, count(&worked)); err == nil || !strings.Contains(err.Error(), "1 of them are not there") {
		t.Errorf("of a job that is not there it says %v", err)
	}
}

func TestALogEndsWithItsContext(t *testing.T) {
	l, err := NewLog(t.Context(), pgtest.New(t), "floor", LogOptions{Producers: 1, Batch: 10, Taken: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	if err := l.Append(ctx, 1_000_000_000, func(int) { cancel() }); err == nil {
		t.Error("a thousand million jobs were appended")
	}
}

func TestInsertsAreRowsLikeThoseOfAnotherTable(t *testing.T) {
	url := pgtest.New(t)
	look := connection(t, url)
	run(t, look, "create table model (id bigint generated by default as identity primary key, a text check (a <> 'x'), b jsonb default '[]')", "create index on model (a)")
	i, err := NewInserts(t.Context(), url, "floor", 2, pgx.Identifier{"public", "model"}, []Column{{"id", 7}, {"a", "x"}})
	if err == nil {
		t.Error("a row with the same key as the one before was taken", i.Close())
	}
	if n := ask[int](t, look, schemas); n != 0 {
		t.Error("what failed left its schema behind")
	}
	run(t, look, "create sequence ids", "alter table model alter id drop identity", "alter table model alter id set default nextval('ids')")
	i, err = NewInserts(t.Context(), url, "floor", 2, pgx.Identifier{"public", "model"}, []Column{{"a", "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Insert(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if n := ask[int](t, look, "select count(*) from floor.rows where a = 'x' and b = '[]' and id > 0"); n != 3 {
		t.Errorf("there are %d rows, want one of each producer's beginning and one more", n)
	}
	if n := ask[int](t, look, "select count(*) from pg_indexes where schemaname = 'floor'"); n != 2 {
		t.Errorf("there are %d indexes, want two", n)
	}
	if err := i.Close(); err != nil || ask[int](t, look, schemas) != 0 {
		t.Errorf("it left something behind: %v", err)
	}
}

func TestARoundInsertsNotifiesAndReads(t *testing.T) {
	url := pgtest.New(t)
	look := connection(t, url)
	r, err := NewRounds(t.Context(), url, "floor")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := r.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if ids := ask[[]int64](t, look, "select array_agg(id order by id) from floor.rows"); !slices.Equal(ids, []int64{1, 2, 3, 4}) {
		t.Errorf("the rows are %v, want one to begin with and three more", ids)
	}
	if err := r.Close(); err != nil || ask[int](t, look, schemas) != 0 {
		t.Errorf("it left something behind: %v", err)
	}
}
