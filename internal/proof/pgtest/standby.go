package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby starts a private server that follows this one: it has what this one has, and this one's passwords;
// its clock can be set if this one's can.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	s.Set("wal_keep_size", "1GB") // for as long as a copy is made, and a standby restarts
	b := &Server{installation: s.installation, durable: s.durable, space: s.space, password: s.password}
	err := b.setUp(func() error {
		if s.dir.hasClock() {
			return errors.Join(b.mirror(s), b.dir.setClock(0))
		}
		return b.mirror(s)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.until(t)
	b.awaitStream(s)
	return b
}

// Follow throws away all that the server has and makes it a standby of another one. It returns when it has what that one
// has. A copy that is cut off, as where that one's sessions end, begins again.
func (s *Server) Follow(primary *Server) {
	s.own("Follow").Helper()
	mark := primary.logSize()
	err := s.follow(primary)
	for begin := time.Now(); err != nil && time.Since(begin) < startLimit; time.Sleep(200 * time.Millisecond) {
		s.t.Logf("pgtest: follow: %v; %v says:\n%s", err, primary.installation, primary.LogTail(mark))
		mark = primary.logSize()
		err = s.follow(primary)
	}
	if err != nil {
		s.t.Errorf("pgtest: follow: %v", err)
		return
	}
	s.awaitStream(primary)
}

func (s *Server) follow(primary *Server) error {
	s.verb.Lock()
	defer s.verb.Unlock()
	if err := s.halt(Immediate); err != nil {
		return err
	}
	// What is in the directory, and not itself: a file system may be mounted there.
	old, err := filepath.Glob(filepath.Join(s.dir.data(), "*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := s.mirror(primary); err != nil {
		return err
	}
	return s.launch()
}

// mirror fills the data directory with a copy of a running server's, which follows that server when it starts.
func (s *Server) mirror(primary *Server) error {
	if err := s.copyFrom(primary); err != nil {
		return err
	}
	at := fmt.Sprintf("primary_conninfo = 'host=%s port=%d user=%s password=%s'\nwal_retrieve_retry_interval = '200ms'\n", primary.dir.path, primary.port, superuser, primary.password)
	return errors.Join(s.write("standby.signal", ""), appendTo(filepath.Join(s.dir.data(), "postgresql.auto.conf"), at))
}

// awaitStream waits until the server has all that its primary had when it was asked.
func (s *Server) awaitStream(primary *Server) {
	s.t.Helper()
	var end string
	if err := primary.askUntil(func() bool { return end != "" }, `select pg_current_wal_flush_lsn()::text`, &end); err != nil {
		s.t.Errorf("pgtest: %v", err)
	}
	s.await("the standby follows its primary", `
		select pg_last_wal_replay_lsn() >= '`+end+`' and exists (select from pg_stat_wal_receiver where status = 'streaming')`)
}

// Promote makes a standby a primary, and returns when it takes writes. Its primary must have been stopped before, or there
// are two.
func (s *Server) Promote() {
	s.own("Promote").Helper()
	var done bool
	if err := s.ask(`select pg_promote(true, 60)`, &done); err != nil || !done {
		s.t.Errorf("pgtest: promote: %v, %v", done, err)
	}
}

// Synchronous has each commit wait, or wait no more, until a standby has it.
func (s *Server) Synchronous(on bool) {
	s.own("Synchronous").Helper()
	names, state, least := "*", "sync", "1"
	if !on {
		names, state, least = "", "async", "0"
	}
	s.Set("synchronous_standby_names", names)
	s.await("the standby is "+state, `
		select count(*) filter (where sync_state = '`+state+`') = greatest(count(*), `+least+`) from pg_stat_replication`)
}

// Detach has a standby receive nothing from its primary any more. It keeps what it has.
func (s *Server) Detach() {
	s.own("Detach").Helper()
	s.Set("primary_conninfo", "")
	s.await("the standby receives nothing", `select not exists (select from pg_stat_wal_receiver)`)
}

// Set changes a setting of the server that takes effect without a restart.
func (s *Server) Set(name, value string) {
	s.own("Set").Helper()
	s.Execute("alter system set "+name+" = '"+value+"'", "select pg_reload_conf()")
}

// Execute executes statements about the server as a whole, such as about its roles.
func (s *Server) Execute(statements ...string) {
	s.own("Execute").Helper()
	ctx, cancel := shortly()
	defer cancel()
	if err := s.admin(ctx, statements...); err != nil {
		s.t.Errorf("pgtest: %v", err)
	}
}

// await waits for a condition that the server tells.
func (s *Server) await(what, condition string) {
	s.t.Helper()
	var met bool
	if err := s.askUntil(func() bool { return met }, condition, &met); err != nil || !met {
		s.t.Errorf("pgtest: waited in vain until %s: %v", what, err)
	}
}

// askUntil asks again and again, also where the server does not answer for a while,
// and returns the last error when that lasts for too long.
func (s *Server) askUntil(enough func() bool, query string, into any) error {
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if err := s.ask(query, into); err == nil && enough() || time.Since(begin) >= startLimit {
			return err
		}
	}
}

// ask runs a query that gives one value.
func (s *Server) ask(query string, into any) error {
	ctx, cancel := shortly()
	defer cancel()
	conn, err := pgx.Connect(ctx, s.SocketURL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, query).Scan(into)
}

// copyFrom fills the data directory with a copy of a running server's. That is done by hand, since few installations have
// the program that does it. What changes while it is copied is made whole from the log, which the server has to be given
// from the beginning of the copy on.
func (s *Server) copyFrom(source *Server) error {
	ctx, cancel := shortly()
	defer cancel()
	conn, err := pgx.Connect(ctx, source.SocketURL("postgres")) // who ends it ends the copy
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	start, stop := `select pg_backup_start('copy', true)`, `select labelfile from pg_backup_stop(false)`
	if source.Major() < 15 {
		start, stop = `select pg_start_backup('copy', true, false)`, `select labelfile from pg_stop_backup(false, false)`
	}
	if _, err := conn.Exec(ctx, start); err != nil {
		return fmt.Errorf("begin a copy: %w", err)
	}
	if err := copyData(ctx, source.dir.data(), s.dir.data()); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, stop).Scan(&label); err != nil {
		return fmt.Errorf("end a copy: %w", err)
	}
	return s.write("backup_label", label)
}

// copyData copies a data directory that is in use. Files that vanish meanwhile are not missed.
func copyData(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(from, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir():
			if err := os.MkdirAll(filepath.Join(to, name), 0o700); err != nil {
				return err
			}
			return giveToServer(filepath.Join(to, name))
		case ofRunning(name):
			return nil
		}
		err = copyFile(path, filepath.Join(to, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// ofRunning tells which files are of a server that runs, and not of its data.
func ofRunning(name string) bool {
	return strings.HasPrefix(name, "postmaster.") || filepath.Dir(name) == "pg_wal" || filepath.Dir(name) == "pg_dynshmem"
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Close(), giveToServer(to))
}

// write writes a file of the data directory.
func (s *Server) write(name, text string) error {
	return writeFile(filepath.Join(s.dir.data(), name), text)
}
