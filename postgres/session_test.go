package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint/internal/pgtest"
)

// What is set for a role, for the sake of other programs, ends nothing that an
// engine does or waits for; what froze is ended well within its time to live.
func TestTheSessionsOfEnginesHaveTimeOutsOfTheirOwn(t *testing.T) {
	s := openStore(t, pgtest.New(t))
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		config := s.pool.Config()
		config.ConnConfig.RuntimeParams[name] = "10"
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		must(t, err)
		t.Cleanup(pool.Close)
		mine, err := New(t.Context(), pool)
		must(t, err)
		t.Cleanup(mine.Close)
		must(t, mine.startWork(t.Context(), 6*time.Second))
		for what, p := range map[string]*pgxpool.Pool{"10ms": pool, "4s": mine.work()} {
			if got := setting(t.Context(), t, p, name); got != what {
				t.Errorf("%s is %s, want %s", name, got, what)
			}
		}
	}
}

func setting(ctx context.Context, t *testing.T, pool *pgxpool.Pool, name string) (value string) {
	t.Helper()
	must(t, pool.QueryRow(ctx, "select current_setting($1)", name).Scan(&value))
	return value
}
