// Package floor has the least that anybody must do who keeps the same promises
// with the same database, to compare a job queue with:
//
//	NewPostgresLog, NewSQLiteLog   a log read in order, as fast as it goes by hand: a contest.Queue
//	NewInserts                     PostgreSQL: one bare row for each transaction
//	NewRounds                      PostgreSQL: one insert, one NOTIFY, one select
//	NewRows                        SQLite: one bare row for each transaction, read again if asked
//
// Each works in a schema of its own, which it drops when it is closed, or in a
// file of its own, which whoever made its directory removes.
package floor

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// site is a schema of a floor's own, with connections to it.
type site struct {
	pool   *pgxpool.Pool
	schema string
}

// build creates a schema, which must not be there yet, and what stands in it:
// statements in which every %s is the schema. Sessions flush each commit to
// the disk, whatever the server's default.
func build(ctx context.Context, url, schema string, connections int, statements ...string) (*site, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the database URL: %w", err)
	}
	config.MaxConns = int32(connections)
	config.ConnConfig.RuntimeParams["application_name"] = "stint floor"
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	s := &site{pool, schema}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, text := range append([]string{"create schema %s"}, statements...) {
			if _, err := tx.Exec(ctx, s.in(text)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("create the schema %s: %w", schema, err)
	}
	return s, nil
}

// in puts the schema into a statement.
func (s *site) in(text string) string {
	return strings.ReplaceAll(text, "%s", pgx.Identifier{s.schema}.Sanitize())
}

// table names one of the schema's.
func (s *site) table(name string) pgx.Identifier {
	return pgx.Identifier{s.schema, name}
}

// Close drops the schema with all that is in it and ends the connections.
func (s *site) Close() error {
	defer s.pool.Close()
	if _, err := s.pool.Exec(context.Background(), s.in("drop schema if exists %s cascade")); err != nil {
		return fmt.Errorf("drop the schema %s: %w", s.schema, err)
	}
	return nil
}
