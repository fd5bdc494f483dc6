package floor

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Rounds are what no job can do without that is stored, announced and read by
// somebody else, one after the other: one row is inserted and committed, one
// NOTIFY goes to a listener in this process, and that one reads the row.
type Rounds struct {
	*site
	speaks, listens *pgxpool.Conn
	hears           *pgx.Conn // of listens
	insert, read    string
}

// NewRounds creates the table in a schema of its own, which must not be there
// yet, and begins to listen. Close it when done.
func NewRounds(ctx context.Context, url, schema string) (*Rounds, error) {
	// The reader has a third connection: the listener's may be told of
	// something at any time.
	s, err := build(ctx, url, schema, 3, `create table %s.rows (id bigint generated always as identity primary key, args jsonb not null)`)
	if err != nil {
		return nil, err
	}
	r := &Rounds{site: s, insert: s.in(`insert into %s.rows (args) values ($1) returning id`), read: s.in(`select id, args from %s.rows where id = $1`)}
	if err := r.open(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Rounds) open(ctx context.Context) (err error) {
	if r.speaks, err = r.pool.Acquire(ctx); err != nil {
		return err
	}
	if r.listens, err = r.pool.Acquire(ctx); err != nil {
		return err
	}
	r.hears = r.listens.Conn()
	if _, err := r.hears.Exec(ctx, r.in("listen %s")); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return r.Round(ctx) // connections are open and statements prepared from now on
}

// Round goes once around. It is for one goroutine.
func (r *Rounds) Round(ctx context.Context) error {
	var id int64
	if err := r.speaks.QueryRow(ctx, r.insert, []byte("null")).Scan(&id); err != nil {
		return fmt.Errorf("insert a row: %w", err)
	}
	if _, err := r.speaks.Exec(ctx, "select pg_notify($1, '')", r.schema); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	if _, err := r.hears.WaitForNotification(ctx); err != nil {
		return fmt.Errorf("wait for the notification: %w", err)
	}
	var args []byte
	if err := r.pool.QueryRow(ctx, r.read, id).Scan(&id, &args); err != nil {
		return fmt.Errorf("read the row: %w", err)
	}
	return nil
}

// Close drops the table and ends the connections.
func (r *Rounds) Close() error {
	for _, conn := range []*pgxpool.Conn{r.speaks, r.listens} {
		if conn != nil {
			conn.Release()
		}
	}
	return r.site.Close()
}
