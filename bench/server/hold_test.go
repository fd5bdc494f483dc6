package server

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// ask answers with one value.
func ask[T any](t *testing.T, url, question string, args ...any) (v T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), question, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

const (
	idle    = "select count(*) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'"
	writing = idle + " and backend_xid is not null"
	reading = idle + " and backend_xmin is not null"
)

func TestAPinnedHorizonIsASnapshotAndAnIdleWriter(t *testing.T) {
	url := pgtest.New(t)
	h, err := PinHorizon(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if w, r := ask[int](t, url, writing), ask[int](t, url, reading); w != 1 || r != 1 {
		t.Errorf("%d transactions have a number and %d a snapshot, want one of each", w, r)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestEachWriterHasATransactionNumber(t *testing.T) {
	url := pgtest.New(t)
	h, err := OpenWriters(t.Context(), url, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := ask[int](t, url, writing); n != 3 {
		t.Errorf("%d write transactions are open, want 3", n)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestAServerWithoutThatManyConnectionsIsRefusedAtOnce(t *testing.T) {
	url := pgtest.New(t)
	_, err := OpenWriters(t.Context(), url, 100_000, 7)
	if err == nil || !strings.Contains(err.Error(), "hold 100000 write transactions open and leave 7") || !strings.Contains(err.Error(), "max_connections") {
		t.Errorf("got %v", err)
	}
	if n := ask[int](t, url, idle); n != 0 {
		t.Errorf("%d transactions were opened", n)
	}
}

func TestATransactionThatWasEndedIsNoticed(t *testing.T) {
	url := pgtest.New(t)
	h, err := PinHorizon(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	ask[bool](t, url, "select bool_or(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and backend_xid is not null")
	if err := h.Close(); err == nil || !strings.Contains(err.Error(), "a write transaction that was held open ended") {
		t.Errorf("got %v", err)
	}
}

func TestTheLimitsOfTheDatabaseDoNotEndWhatIsHeld(t *testing.T) {
	url := pgtest.New(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "do $$ begin execute format('alter database %I set idle_in_transaction_session_timeout = 1', current_database()); end $$"); err != nil {
		t.Fatal(err)
	}
	h, err := OpenWriters(t.Context(), url, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // fifty times the limit
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnotherTransactionIsNotTheOneThatWasHeld(t *testing.T) {
	url := pgtest.New(t)
	h, err := OpenWriters(t.Context(), url, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.sessions[0].conn.Exec(t.Context(), "rollback; begin"); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err == nil || !strings.Contains(err.Error(), "it is another one now") {
		t.Errorf("got %v", err)
	}
}
