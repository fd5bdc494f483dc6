//go:build unix

package chaos

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Pin opens a transaction that has a number, has seen stint's log and stays open: vacuum can clean up nothing that dies from
// then on, until the connection is closed or the transaction is ended.
func Pin(ctx context.Context, url string) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	for _, text := range []string{`begin isolation level repeatable read`, `select pg_current_xact_id()`, `select count(*) from stint.entries`} {
		if _, err := conn.Exec(ctx, text); err != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
			return nil, err
		}
	}
	return conn, nil
}
