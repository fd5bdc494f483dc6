//go:build unix

package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestAPoolerSharesASessionAmongTransactions(t *testing.T) {
	url := New(t)
	pooler := StartPooler(t, url, map[string]string{"default_pool_size": "1"})
	var sessions []int
	for range 2 {
		conn, err := pgx.Connect(t.Context(), pooler.URL(url))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var pid int
		if err := conn.QueryRow(t.Context(), `select pg_backend_pid()`, pgx.QueryExecModeExec).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		if pid == int(conn.PgConn().PID()) {
			t.Errorf("the program talks to process %d of the server itself", pid)
		}
		sessions = append(sessions, pid)
	}
	if sessions[0] != sessions[1] {
		t.Errorf("two connections have two sessions, %v", sessions)
	}
}
