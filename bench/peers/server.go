package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

// throwAway are the settings of a server that is started for a contest alone:
// those of docs/performance.md, else PostgreSQL's own.
var throwAway = map[string]string{
	"shared_buffers":             "1GB",
	"max_wal_size":               "8GB",
	"max_connections":            "500",
	"dynamic_shared_memory_type": "posix",
	"max_prepared_transactions":  "0",
}

// server is the PostgreSQL that everybody works on.
type server struct {
	url   *url.URL // of a database to be connected to while others are created and dropped
	close func() error
}

// openServer connects to a server, or starts one of a major version when there
// is no URL; 0 is the newest that is installed.
func openServer(ctx context.Context, address string, major int) (*server, error) {
	s := &server{close: func() error { return nil }}
	if address == "" {
		started, err := pgtest.Open(pgtest.Options{Major: major, Fsync: true, Settings: throwAway})
		if err != nil {
			return nil, fmt.Errorf("start a PostgreSQL server, as --db names none: %w", err)
		}
		address, s.close = started.URL("postgres"), started.Close
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, fmt.Errorf("--db: not a URL such as postgres://user:password@host/database")
	}
	s.url = u
	if err := s.check(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// check refuses a server on which the figures would not be those of durable
// queues.
func (s *server) check(ctx context.Context) error {
	var commit, fsync string
	err := s.ask(ctx, "select current_setting('synchronous_commit'), current_setting('fsync')", &commit, &fsync)
	switch {
	case err != nil:
		return fmt.Errorf("--db: %w", err)
	case commit != "on" || fsync != "on":
		return fmt.Errorf("--db: synchronous_commit is %s and fsync is %s; both must be on, for everybody's jobs to be durable", commit, fsync)
	}
	return nil
}

// about says what the server is, for the report.
func (s *server) about(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range []string{"server_version", "synchronous_commit", "fsync", "full_page_writes", "wal_level", "shared_buffers", "max_wal_size", "max_connections", "autovacuum_naptime"} {
		var value string
		if err := s.ask(ctx, "select current_setting('"+name+"')", &value); err != nil {
			return nil, err
		}
		all[name] = value
	}
	return all, nil
}

// database creates a database, hands its URL to f, and drops it. It begins with
// a checkpoint, so that nobody writes out what the one before has left.
func (s *server) database(ctx context.Context, f func(url string) error) error {
	var b [4]byte
	rand.Read(b[:])
	name := "stint_peers_" + hex.EncodeToString(b[:])
	if err := s.do(ctx, "create database "+name, "checkpoint"); err != nil {
		return err
	}
	u := *s.url
	u.Path = "/" + name
	err := f(u.String())
	// It is dropped after an interrupt, too.
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(err, s.do(limit, "drop database "+name+" with (force)"))
}

func (s *server) do(ctx context.Context, statements ...string) error {
	return s.connected(ctx, func(c *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := c.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

func (s *server) ask(ctx context.Context, question string, answers ...any) error {
	return s.connected(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, question).Scan(answers...) })
}

func (s *server) connected(ctx context.Context, f func(*pgx.Conn) error) error {
	c, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	return f(c)
}
