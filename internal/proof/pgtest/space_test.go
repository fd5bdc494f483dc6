package pgtest

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestAServerRunsOutOfSpaceAndHasItBack(t *testing.T) {
	var dir string
	t.Run("inner", func(t *testing.T) {
		server := Start(t, Options{Space: 160 << 20})
		dir = server.dir.path
		url := server.New(t)
		execute(t, url, "create table grown as select 'here' as word")
		server.Fill()
		conn := connect(t, url)
		_, err := conn.Exec(t.Context(), "insert into grown select repeat('x', 1000) from generate_series(1, 10000)")
		if err == nil || !strings.Contains(err.Error(), "No space left on device") {
			t.Errorf("it could grow all the same: %v", err)
		}
		conn.Close(t.Context())
		// A server without room for its log ends by itself.
		eventually(t, "the server is gone", func() bool {
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				return true
			}
			defer conn.Close(t.Context())
			_, err = conn.Exec(t.Context(), "select pg_logical_emit_message(false, 'filler', repeat('x', 1000000)), pg_switch_wal()")
			return err != nil
		})
		server.Empty()
		server.Restart(Immediate)
		execute(t, url, "insert into grown select repeat('x', 1000) from generate_series(1, 10000)")
		if got := value(t, url, "select min(word) from grown"); got != "here" {
			t.Errorf("the table holds %q", got)
		}
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the run directory is still there: %v", err)
	}
}
