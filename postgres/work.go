package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// workConns is how many connections the engines of a store have for
	// themselves, whatever its producers do with theirs: beats, outcomes and
	// burials must not queue after enqueues.
	workConns = 6

	// claimConns of these may be claims: one that waits for a lane must not
	// keep a beat from being sent.
	claimConns = 3

	// idleConns is how long such a connection stays open without use: each costs the server
	// memory, of which an idle fleet should need little, and a new one some milliseconds.
	idleConns = 15 * time.Second
)

// work is the pool that everything of engines goes through once one joined,
// and the program's pool until then.
func (s *Store) work() *pgxpool.Pool { return cmp.Or(s.working.Load(), s.pool) }

// startWork opens the engines' pool, with the program's settings for
// connections. The first engine's time to live sets its timeouts.
func (s *Store) startWork(ctx context.Context, ttl time.Duration) error {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.working.Load() != nil {
		return nil
	}
	config := s.pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = workConns, 0, 0
	config.MaxConnIdleTime, config.HealthCheckPeriod = min(config.MaxConnIdleTime, idleConns), min(config.HealthCheckPeriod, idleConns)
	s.suit(config.ConnConfig)
	after := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if after != nil {
			if err := after(ctx, conn); err != nil {
				return err
			}
		}
		if err := checkSpoken(conn); err != nil {
			return err
		}
		return limitSession(ctx, conn, ttl)
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return fmt.Errorf("open the engines' connections: %w", err)
	}
	s.working.Store(pool)
	return nil
}

// limitSession sees to it that the server ends, well within the time to live,
// what a client that froze or was cut off left behind, and no sooner, whatever is
// set for its role: a session that waits for a lock would be refused otherwise. It
// gives statements the memory of the server's own default at least: with less, some
// need files, which a role may not have (temp_file_limit). It leaves sessions of a
// pooler alone, which other programs use as well: a pooler tells another
// process number than the server. Settings that a server does not have are
// passed over. (To read pg_settings takes 85 kB, and a file where there is less.)
func limitSession(ctx context.Context, conn *pgx.Conn, ttl time.Duration) error {
	limit := fmt.Sprint((ttl * 2 / 3).Milliseconds())
	seconds := fmt.Sprint(max(1, int(ttl.Seconds()/4)))
	_, err := conn.Exec(ctx, `
		select set_config(w.name, w.value, false)
		from (values ('statement_timeout', $2), ('lock_timeout', $2), ('idle_in_transaction_session_timeout', $2), ('transaction_timeout', $2),
		             ('tcp_user_timeout', $2), ('tcp_keepalives_idle', $3), ('tcp_keepalives_interval', $3), ('tcp_keepalives_count', '3'),
		             ('work_mem', greatest(pg_size_bytes(current_setting('work_mem')) / 1024, 4096)::text))
		  as w(name, value)
		where pg_backend_pid() = $1 and current_setting(w.name, true) is not null`, int32(conn.PgConn().PID()), limit, seconds)
	if err != nil {
		return fmt.Errorf("limit the session: %w", err)
	}
	return nil
}
