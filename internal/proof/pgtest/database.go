package pgtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// databases numbers the databases of this process, so that no two have the same name.
var databases atomic.Int64

// New returns the URL of a new, empty database. It is dropped when the test ends, or goes with the server if that is a
// private one.
func (s *Server) New(t testing.TB) string {
	t.Helper()
	return s.clone(t, "template0") // Unlike template1 it takes no connections, which would be in the way of the copy.
}

// clone creates a database as a copy of another one. If the test fails, it prints what the server logged meanwhile.
func (s *Server) clone(t testing.TB, source string) string {
	t.Helper()
	ctx, cancel := shortly()
	defer cancel()
	mark := s.logSize()
	name := databaseName(t.Name())
	if err := s.create(ctx, name, source); err != nil {
		t.Fatal(err)
	}
	if s.t != nil {
		return s.URL(name) // A private server prints its own log, and may not even run at the end of the test.
	}
	t.Cleanup(func() {
		t.Helper()
		s.printLogOnFailure(t, mark)
		if err := s.drop(name); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return s.URL(name)
}

// databaseName makes a name that tells in the server's log which test it belongs to.
func databaseName(test string) string {
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(test))
	const limit = 40 // PostgreSQL cuts names at 63 bytes.
	return fmt.Sprintf("%s_%d", readable[:min(len(readable), limit)], databases.Add(1))
}

func (s *Server) create(ctx context.Context, name, source string) error {
	err := s.admin(ctx, fmt.Sprintf("create database %s template %s", quote(name), quote(source)))
	if err != nil {
		return fmt.Errorf("pgtest: create a database from %s: %w", source, err)
	}
	return nil
}

// drop removes a database and disconnects who still uses it.
func (s *Server) drop(name string) error {
	ctx, cancel := shortly()
	defer cancel()
	if err := s.admin(ctx, fmt.Sprintf("drop database if exists %s with (force)", quote(name))); err != nil {
		return fmt.Errorf("drop the test's database: %w", err)
	}
	return nil
}

// admin executes statements, one after the other, in a connection of their own to the maintenance database.
func (s *Server) admin(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.SocketURL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// Template is a database that is prepared once per server and cloned for each test. Make it a package variable.
type Template struct {
	prepare func(ctx context.Context, url string) error
}

// NewTemplate returns a template that prepare fills, such as with a schema. Prepare gets the URL of an empty database and
// must close its connections; what fails there fails every test that uses the template.
func NewTemplate(prepare func(ctx context.Context, url string) error) *Template {
	return &Template{prepare}
}

// New returns the URL of a new copy of the template on the shared cluster of the newest version found. It is dropped
// when the test ends.
func (tm *Template) New(t testing.TB) string {
	t.Helper()
	return tm.On(t, Shared(t, 0))
}

// On returns the URL of a new copy of the template on a server, which is dropped when the test ends.
func (tm *Template) On(t testing.TB, s *Server) string {
	t.Helper()
	once, _ := s.templates.LoadOrStore(tm, sync.OnceValues(func() (string, error) { return tm.build(s) }))
	source, err := once.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return s.clone(t, source)
}

// build prepares the database that copies are made of and then closes it, because PostgreSQL does not copy a database
// while somebody is connected to it.
func (tm *Template) build(s *Server) (string, error) {
	ctx, cancel := shortly()
	defer cancel()
	name := databaseName("template")
	if err := s.create(ctx, name, "template0"); err != nil {
		return "", err
	}
	if err := tm.prepare(ctx, s.URL(name)); err != nil {
		return "", fmt.Errorf("pgtest: prepare the template: %w", err)
	}
	err := s.admin(ctx,
		fmt.Sprintf("alter database %s with is_template true allow_connections false", quote(name)),
		fmt.Sprintf("select pg_terminate_backend(pid) from pg_stat_activity where datname = '%s'", name),
	)
	if err != nil {
		return "", fmt.Errorf("pgtest: close the template: %w", err)
	}
	return name, nil
}
