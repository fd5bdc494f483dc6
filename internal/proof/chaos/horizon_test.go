//go:build unix

package chaos_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// Somebody's transaction stays open, and another one is prepared and forgotten:
// vacuum can clean up nothing that died since.
func TestAPinnedHorizonUnderLoadLosesAndHoldsUpNothing(t *testing.T) {
	atLength(t)
	t.Parallel()
	pinned := 5 * time.Second
	if long() {
		pinned = time.Minute
	}
	w := newWorld(t, pgtest.New(t))
	l := w.load(2, 2, 0, 100*time.Millisecond)
	w.works()
	begin := func() *pgx.Conn {
		conn, err := chaos.Pin(t.Context(), w.url)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	open, forgotten := begin(), begin()
	defer open.Close(t.Context())
	if _, err := forgotten.Exec(t.Context(), `prepare transaction 'forgotten'`); err != nil {
		t.Fatal(err)
	}
	forgotten.Close(t.Context())
	defer func() {
		if _, err := w.pool.Exec(t.Context(), `rollback prepared 'forgotten'`); err != nil {
			t.Error(err)
		}
	}()
	slowest := time.Duration(0)
	for until := time.Now().Add(pinned); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		slowest = max(slowest, w.works())
		if _, err := w.pool.Exec(t.Context(), `vacuum stint.waiting, stint.beats`); err != nil {
			t.Fatal(err)
		}
	}
	dead := w.number(`select coalesce(sum(n_dead_tup), 0) from pg_stat_all_tables where schemaname = 'stint'`)
	t.Logf("%d transactions ended meanwhile, %d rows are dead; a job that began ended after %v at most",
		w.number(`select age(backend_xmin) from pg_stat_activity where pid = $1`, open.PgConn().PID()), dead, slowest)
	if dead < 100 {
		t.Errorf("%d rows are dead: nothing was pinned", dead)
	}
	if slowest > pace.Of(2*time.Second) {
		t.Errorf("a job that began ended only after %v", slowest)
	}
	l.end(time.Minute)
}
