package server

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

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

func TestAProbeCountsWhatWasWritten(t *testing.T) {
	url := pgtest.New(t)
	p, err := NewProbe(t.Context(), url+"&pool_max_conns=3")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	one := connection(t, url)
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
	if u := read().Since(before); u.Transactions != 0 {
		t.Errorf("when nothing happened it saw %+v", u)
	}

	before = read()
	for i := range 10 {
		run(t, one, fmt.Sprintf("insert into t values (%d)", 10+i))
	}
	run(t, one, "select count(*) from t")
	if u := read().Since(before); u.Transactions != 10 || u.WAL < 500 || u.WAL > 1<<20 {
		t.Errorf("of ten single inserts it saw %+v", u)
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
