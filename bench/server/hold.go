package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Hold is transactions that are held open, each on a connection of its own,
// while something else is measured. [Hold.Close] fails when one of them ended
// before: what was measured then was not what was meant.
type Hold struct{ sessions []*session }

// session is a connection in a transaction.
type session struct {
	conn *pgx.Conn
	what string // the transaction, for people
	xid  string // what was asked for when it began; empty where it has none
}

// PinHorizon holds open what a forgotten backup and a forgotten program would
// together: a repeatable-read transaction with its snapshot, and an idle
// transaction that has written. From then on vacuum can remove nothing of the
// database that becomes dead.
func PinHorizon(ctx context.Context, url string) (*Hold, error) {
	h := &Hold{}
	if err := h.open(ctx, url, "a snapshot", "begin isolation level repeatable read", "select pg_current_snapshot()::text"); err != nil {
		return nil, errors.Join(err, h.end())
	}
	if err := h.write(ctx, url); err != nil {
		return nil, errors.Join(err, h.end())
	}
	return h, nil
}

// OpenWriters holds n write transactions open, each with a transaction number.
// So many connections as spare says must stay free for others; a server that
// does not have that many is refused before one is opened.
func OpenWriters(ctx context.Context, url string, n, spare int) (*Hold, error) {
	if err := room(ctx, url, n+spare); err != nil {
		return nil, fmt.Errorf("hold %d write transactions open and leave %d connections to others: %w", n, spare, err)
	}
	h := &Hold{}
	for i := range n {
		if err := h.write(ctx, url); err != nil {
			return nil, errors.Join(fmt.Errorf("write transaction %d of %d: %w", i+1, n, err), h.end())
		}
	}
	return h, nil
}

// room refuses a server that has fewer connections to give.
func room(ctx context.Context, url string, wanted int) error {
	conn, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// The connection that asks is one of those that are taken, and is free
	// again right away.
	const question = `
		select current_setting('max_connections')::int,
			current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
				- (select count(*)::int - 1 from pg_stat_activity where backend_type = 'client backend')`
	var most, free int
	if err := conn.QueryRow(ctx, question).Scan(&most, &free); err != nil {
		return err
	}
	if free < wanted {
		return fmt.Errorf("the server has %d of its %d connections free (max_connections)", max(0, free), most)
	}
	return nil
}

// connect opens a connection that no limit of the server's ends while it is idle.
func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	// The pool's own parser takes the pool's parameters out of the address.
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	// By the extended protocol the result of the last statement stays open with
	// its snapshot until the next one, and a writer would be a reader too.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	// Asking pg_settings for the names leaves out what an older server does
	// not have.
	const patient = `
		select set_config(name, '0', false) from pg_settings
		where name in ('idle_in_transaction_session_timeout', 'transaction_timeout', 'statement_timeout', 'lock_timeout')`
	if _, err := conn.Exec(ctx, patient); err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

// write opens a transaction that has a transaction number, as if it had written.
func (h *Hold) write(ctx context.Context, url string) error {
	return h.open(ctx, url, "a write transaction", "begin isolation level read committed", "select pg_current_xact_id()::text")
}

// open begins a transaction and has it take what the statement gives it.
func (h *Hold) open(ctx context.Context, url, what, begin, take string) error {
	conn, err := connect(ctx, url)
	if err != nil {
		return err
	}
	s := &session{conn: conn, what: what}
	h.sessions = append(h.sessions, s)
	if _, err := conn.Exec(ctx, begin); err != nil {
		return err
	}
	var taken string
	if err := conn.QueryRow(ctx, take).Scan(&taken); err != nil {
		return err
	}
	return conn.QueryRow(ctx, stillOpen).Scan(&s.xid)
}

// stillOpen names the transaction that a session is in, empty when it has no
// number.
const stillOpen = "select coalesce(pg_current_xact_id_if_assigned()::text, '')"

// Close ends the transactions. Its error says that one of them had not been
// open all the time.
func (h *Hold) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, s := range h.sessions {
		if err := s.check(ctx); err != nil {
			return errors.Join(fmt.Errorf("%s that was held open ended: %w", s.what, err), h.end())
		}
	}
	return h.end()
}

// check asks the server whether the session is in the transaction that it began.
// A connection can be dead without a word.
func (s *session) check(ctx context.Context) error {
	var xid string
	if err := s.conn.QueryRow(ctx, stillOpen).Scan(&xid); err != nil {
		return err
	}
	if xid != s.xid || s.conn.PgConn().TxStatus() != 'T' {
		return errors.New("it is another one now")
	}
	return nil
}

// end closes the connections, which rolls back.
func (h *Hold) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var failed error
	for _, s := range h.sessions {
		if err := s.conn.Close(ctx); err != nil && !s.conn.IsClosed() {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
