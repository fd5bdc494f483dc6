package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		ctx, cancel := shortly()
		defer cancel()
		if err := s.admin(ctx, fmt.Sprintf("drop database if exists %s with (force)", quote(name))); err != nil {
			t.Errorf("pgtest: drop the test's database: %v", err)
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

// admin executes statements, one after the other, in the maintenance database. A session that is new needs twice as
// long to create a database as one that has done so, so a shared server keeps those that nobody uses.
func (s *Server) admin(ctx context.Context, statements ...string) error {
	conn, err := s.session(ctx)
	if err != nil {
		return err
	}
	defer s.keep(ctx, conn)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return nil
}

// session returns one that admin may use: one that is kept and was not ended by a test, or a new one.
func (s *Server) session(ctx context.Context) (*pgx.Conn, error) {
	for {
		select {
		case conn := <-s.sessions:
			if conn.Ping(ctx) == nil {
				return conn, nil
			}
			conn.Close(ctx)
		default:
			return pgx.Connect(ctx, s.SocketURL("postgres"))
		}
	}
}

func (s *Server) keep(ctx context.Context, conn *pgx.Conn) {
	if s.t == nil && !conn.IsClosed() {
		select {
		case s.sessions <- conn:
			return
		default:
		}
	}
	conn.Close(ctx)
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

// clusters are those that the tests of this process share, one for each installation in use.
var clusters struct {
	mu     sync.Mutex // guards the map only; nobody starts or stops a server under it
	starts map[Installation]func() (*Server, error)
}

// Shared returns the cluster that the tests of this process share, of one major version or, for 0, the newest one
// found. The first call starts it.
func Shared(t testing.TB, major int) *Server {
	t.Helper()
	server, err := sharedStart(Require(t, major))()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// sharedStart returns the function that starts the cluster of an installation when it is first called.
func sharedStart(installation Installation) func() (*Server, error) {
	clusters.mu.Lock()
	defer clusters.mu.Unlock()
	if start, ok := clusters.starts[installation]; ok {
		return start
	}
	start := sync.OnceValues(func() (*Server, error) { return open(installation, Options{}) })
	if clusters.starts == nil {
		clusters.starts = make(map[Installation]func() (*Server, error))
	}
	clusters.starts[installation] = start
	return start
}

// stopShared stops the shared clusters. Tests may start them again afterwards.
func stopShared() error {
	clusters.mu.Lock()
	starts := clusters.starts
	clusters.starts = nil
	clusters.mu.Unlock()
	var errs []error
	for _, start := range starts {
		if server, err := start(); err == nil { // A start that failed has already failed a test.
			errs = append(errs, server.close())
		}
	}
	return errors.Join(errs...)
}

// WithPrograms returns the newest installation that has these programs, which not every one has. The test is skipped
// where there is none.
func WithPrograms(t testing.TB, names ...string) Installation {
	t.Helper()
	all := Installations()
	i := slices.IndexFunc(all, func(i Installation) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			_, err := os.Stat(i.program(name))
			return err != nil
		})
	})
	if i < 0 {
		t.Skipf("no PostgreSQL on this machine has all of %v; found: %v", names, all)
	}
	return all[i]
}

// Dump writes all of a database to a file, as it was at one moment, and returns the file's path. The installation must have
// pg_dump.
func (s *Server) Dump(database string) string {
	s.own("Dump").Helper()
	path := filepath.Join(s.dir.path, database+".dump")
	if err := s.run("pg_dump", "--format=custom", "--compress=0", "--dbname="+s.SocketURL(database), "--file="+path); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	return path
}

// Restore fills an empty database from a file that [Server.Dump] wrote. The roles that it names must be there, and the
// installation must have pg_restore.
func (s *Server) Restore(path, database string) {
	s.own("Restore").Helper()
	if err := s.run("pg_restore", "--exit-on-error", "--dbname="+s.SocketURL(database), path); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
}
