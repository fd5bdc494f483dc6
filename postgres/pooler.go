package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// way is what the way to the server is like.
type way struct {
	isolation string // the default of its sessions
	database  string // the encoding of the database
	pooled    bool   // a pooler stands between, which may lend a session for each transaction
}

// see looks at it, without preparing anything.
func see(ctx context.Context, pool *pgxpool.Pool) (way, error) {
	var w way
	err := pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		var backend int32
		var session string
		err := c.QueryRow(ctx, `select current_setting('default_transaction_isolation'), current_setting('server_encoding'), current_setting('client_encoding'), pg_backend_pid()`,
			pgx.QueryExecModeExec).Scan(&w.isolation, &w.database, &session, &backend)
		if err != nil {
			return err
		}
		w.pooled = isPooled(c.Conn(), backend)
		return checkEncoding(session)
	})
	if err != nil {
		return w, fmt.Errorf("connect to the database: %w", err)
	}
	return w, nil
}

// openPool opens a pool that suits the way to the server.
func openPool(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, way, error) {
	direct := config.Copy()
	speakUTF8(direct.ConnConfig)
	pool, w, err := openAndSee(ctx, direct)
	if err != nil || !w.pooled {
		return pool, w, err
	}
	pool.Close()
	config = config.Copy()
	unprepared(config.ConnConfig)
	return openAndSee(ctx, config)
}

func openAndSee(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, way, error) {
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, way{}, err
	}
	w, err := see(ctx, pool)
	if err != nil {
		pool.Close()
		return nil, w, err
	}
	return pool, w, nil
}

// isPooled reports whether a connection leads to something else than the server,
// whose process number is given: poolers tell one of their own.
func isPooled(conn *pgx.Conn, backend int32) bool { return int32(conn.PgConn().PID()) != backend }

// unprepared has connections prepare no statements, unless the program that made the
// configuration chose how they run. What one session has prepared another one
// does not have, and a pooler may lend any.
func unprepared(config *pgx.ConnConfig) {
	if !choosesMode(config) {
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
}

// suit has connections beside the program's pool do as that does.
func (s *Store) suit(config *pgx.ConnConfig) {
	s.traceAsWell(config)
	if s.pooled {
		unprepared(config)
	} else {
		speakUTF8(config)
	}
}

// choosesMode reports whether the program chose how statements run.
func choosesMode(config *pgx.ConnConfig) bool {
	return config.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement || strings.Contains(config.ConnString(), "default_query_exec_mode")
}

// errLent explains that a caller that needs a session of its own cannot have one.
var errLent = errors.New("a pooler that shares sessions among transactions stands between this program and the server")

const (
	// ringTakes is how long a notification may take to be heard.
	ringTakes = 2 * time.Second

	// deafFor is how long a store believes that it hears nothing before it
	// tries again: it may have been moved to the server itself.
	deafFor = time.Minute
)

// ownsSession makes sure that a connection has a session of its own, which one to
// the server itself has: it hears what it asked to hear. Through a pooler that
// shares sessions, a session is left that listens to a channel of no use.
func (s *Store) ownsSession(ctx context.Context, conn *pgx.Conn) error {
	if !s.pooled {
		return nil
	}
	channel := pgx.Identifier{s.sql.channel + "_probe"}.Sanitize()
	probe := rand.Text()
	if _, err := conn.Exec(ctx, "listen "+channel); err != nil {
		return err
	}
	if _, err := s.pool.Exec(ctx, `select pg_notify($1, $2)`, s.sql.channel+"_probe", probe); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, ringTakes)
	defer cancel()
	for {
		n, err := conn.WaitForNotification(wait)
		switch {
		case err == nil && n.Payload == probe:
			_, err = conn.Exec(ctx, "unlisten "+channel)
			return err
		case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return errLent
		case err != nil:
			return err
		}
	}
}

// explainPooled adds to an error of a statement that was prepared elsewhere
// what to do about it.
func explainPooled(err error) error {
	return fmt.Errorf("%w: have the pool prepare no statements, by default_query_exec_mode=cache_describe in its URL: %w", errLent, err)
}
