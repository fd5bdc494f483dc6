package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	if err := b.setUp(func() error { return errors.Join(b.mirror(s), b.dir.mirrorClock(s.dir)) }); err != nil {
		t.Fatal(err)
	}
	b.until(t)
	b.awaitStream(s)
	return b
}

// Follow throws away all that the server has and makes it a standby of another one. It returns when it has what that one
// has. A copy that is cut off, as where that one's sessions end, is begun anew.
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
	at := fmt.Sprintf("primary_conninfo = 'host=%s port=%d user=%s password=%s'\nwal_retrieve_retry_interval = '200ms'\n", primary.host(), primary.port, superuser, primary.password)
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
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.SocketURL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, query).Scan(into)
}
