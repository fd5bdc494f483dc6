package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// hasty finds at once what is normal for a while.
var hasty = norms{
	held: 0, idle: 0, blocked: 0, queued: 0, stands: time.Minute, look: 5 * time.Second, whole: 20 * time.Second, ring: 2 * time.Second, frozen: 1_000_000_000, dead: 50_000, keptWAL: 10 << 30,
	history: 60 * 24 * time.Hour, fullShare: 0.999,
}

// found are the findings of a code.
func found(t testing.TB, s *Store, n norms, code string) []report.Finding {
	t.Helper()
	signs, err := (&examination{Store: s, normal: n}).run(t.Context())
	must(t, err)
	return slices.DeleteFunc(signs.Findings, func(f report.Finding) bool { return f.Code != code })
}

// finds wants one finding about a subject, with these words in what is wrong
// and how to mend it.
func finds(t testing.TB, s *Store, n norms, severity report.Severity, code, subject, problem, remedy string) {
	t.Helper()
	has(t, found(t, s, n, code), severity, code, subject, problem, remedy)
}

func has(t testing.TB, all []report.Finding, severity report.Severity, code, subject, problem, remedy string) {
	t.Helper()
	i := slices.IndexFunc(all, func(f report.Finding) bool { return f.Code == code && f.Subject == subject })
	if i < 0 {
		t.Errorf("no %s about %q is found, but %+v", code, subject, all)
		return
	}
	if f := all[i]; f.Severity != severity || !strings.Contains(f.Problem, problem) || !strings.Contains(f.Remedy, remedy) {
		t.Errorf("found is %+v\nwant a %s with %q and %q", f, severity, problem, remedy)
	}
}

func TestWhatCannotBeLookedAtWithoutAnIndexIsToBePutBack(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	b := &bench{t, s, nil}
	b.enqueue(1)
	exec(t, s, `drop index stint.entries_lane`)
	if _, err := s.Look(t.Context(), store.LaneHints{Mine: []store.LaneID{store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID}}); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "stint doctor") || !strings.Contains(err.Error(), "entries_lane") {
		t.Errorf("the lanes are looked at with the error %v", err)
	}
	all, err := report.Diagnose(t.Context(), s, report.Options{})
	must(t, err)
	has(t, all, report.SeverityProblem, "schema_missing_object", "index entries_lane", "not there", `CREATE INDEX CONCURRENTLY entries_lane ON "stint".entries`)
	missed := 0
	for _, f := range all {
		if f.Code == report.CodeNotChecked {
			missed++
			if !strings.Contains(f.Problem, "entries_lane") || !strings.Contains(f.Remedy, "schema_missing_object") {
				t.Errorf("found is %+v", f)
			}
		}
	}
	if missed == 0 {
		t.Errorf("everything could be looked at without the index: %+v", all)
	}
}

// One server with settings of its own: what is written reaches the disk, and
// logical slots can be made.
func TestAHealthyServerHasNothingButNotes(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{Fsync: true, Settings: map[string]string{"wal_level": "logical"}})
	s := openStore(t, installed.On(t, server))
	if major := server.Major(); major < 13 || major > newestMajor {
		t.Errorf("this is PostgreSQL %d", major)
	}
	w := (&bench{t, s, nil}).join()
	exec(t, s, `select pg_create_physical_replication_slot('unused')`) // it keeps nothing
	all, err := report.Diagnose(t.Context(), s, report.Options{})
	must(t, err)
	for _, f := range all {
		if f.Code != "kind_without_timeout" {
			t.Errorf("found is %+v", f)
		}
	}
	full := usual
	full.fullShare = 0
	clients := value[int](t, s.pool, `select count(*) from pg_stat_activity where backend_type = 'client backend'`)
	if all := found(t, s, full, "connections_short"); len(all) != 1 || all[0].Figures["used"].(int64) > int64(clients)+3 { // the server has more processes of its own
		t.Errorf("with %d clients found is %+v", clients, all)
	}
	exec(t, s, `select pg_create_physical_replication_slot('keeps', true)`)
	finds(t, s, usual, report.SeverityWarning, "horizon_slot", "replication slot keeps", "of WAL", "select pg_drop_replication_slot('keeps')")
	exec(t, s, `select pg_drop_replication_slot(name) from unnest('{unused,keeps}'::text[]) name`)

	// A slot that nobody is connected to.
	exec(t, s, `select pg_create_logical_replication_slot('forgotten', 'pgoutput')`)
	w.Leave() // so that it pins something
	finds(t, s, usual, report.SeverityWarning, "horizon_slot", "replication slot forgotten", "pins the horizon of the catalogues", "select pg_drop_replication_slot('forgotten')")
	exec(t, s, `select pg_drop_replication_slot('forgotten')`)

	// Settings of the whole server.
	changes := []struct {
		severity             report.Severity
		code, setting, value string
		problem              string
	}{
		{report.SeverityWarning, "autovacuum_off", "autovacuum", "off", "grow"},
		{report.SeverityWarning, "track_counts_off", "track_counts", "off", "autovacuum"},
		{report.SeverityProblem, "full_page_writes_off", "full_page_writes", "off", "tear"},
		{report.SeverityProblem, "fsync_off", "fsync", "off", "power cut"},
		{report.SeverityProblem, "standby_missing", "synchronous_standby_names", "berlin", "names berlin, and no such standby"},
	}
	for _, c := range changes {
		exec(t, s, fmt.Sprintf("alter system set %s = '%s'", c.setting, c.value))
	}
	exec(t, s, `create role sees_little login password 'x'`)
	server.Restart(pgtest.Fast)
	later := openSkipping(t, s.url())
	for _, c := range changes {
		finds(t, later, usual, c.severity, c.code, c.setting, c.problem, "alter system set "+c.setting)
	}
	// One that nobody waits for changes nothing, but for who cannot tell. Neither has
	// kept the horizon for long.
	u, err := url.Parse(s.url())
	must(t, err)
	u.User = url.UserPassword("sees_little", "x")
	little := openSkipping(t, u.String())
	unread := func(s *Store) []report.Finding { return found(t, s, usual, "standby_missing") }
	end := follow(t, later, "munich")
	if all := unread(later); len(all) != 1 {
		t.Errorf("with another standby, found is %+v", all)
	}
	if all := unread(little); len(all) != 0 {
		t.Errorf("who sees that there is one, found %+v", all)
	}
	end()
	end = follow(t, later, "berlin")
	wait(t, "the standby to be waited for", func() bool { return len(unread(later)) == 0 })
	if all := found(t, later, usual, "horizon_standby"); len(all) > 0 {
		t.Errorf("found is %+v", all)
	}
	end()
	little.pool.Close()
	later.pool.Close()

	// A server that takes no writes.
	must(t, os.WriteFile(filepath.Join(server.DataDir(), "standby.signal"), nil, 0o644))
	server.Restart(pgtest.Fast)
	standby := openSkipping(t, s.url())
	all, err = report.Diagnose(t.Context(), standby, report.Options{})
	must(t, err)
	has(t, all, report.SeverityProblem, "server_in_recovery", "the server", "takes no writes", "select pg_promote()")
	has(t, all, report.SeverityNote, "kind_without_timeout", "kinds k", "", "")
	for _, f := range all {
		if f.Code == report.CodeNotChecked {
			t.Errorf("found is %+v", f)
		}
	}
	standby.pool.Close()
}

// follow connects as a standby that has all there is, and that looks at what is there now.
func follow(t *testing.T, s *Store, name string) (end func()) {
	t.Helper()
	lsn := value[string](t, s.pool, `select pg_current_wal_flush_lsn()::text`)
	at, err := pglsn(lsn)
	must(t, err)
	xmin := value[int64](t, s.pool, `select txid_snapshot_xmin(txid_current_snapshot())`)
	config, err := pgconn.ParseConfig(s.url())
	must(t, err)
	config.RuntimeParams["replication"], config.RuntimeParams["application_name"] = "true", name
	conn, err := pgconn.ConnectConfig(t.Context(), config)
	must(t, err)
	end = func() { _ = conn.Conn().Close() } // before the server stops, which waits for it to have all
	t.Cleanup(end)
	wire := conn.Frontend()
	wire.SendQuery(&pgproto3.Query{String: "START_REPLICATION " + lsn})
	must(t, wire.Flush())
	for {
		said, err := wire.Receive()
		must(t, err)
		if _, begun := said.(*pgproto3.CopyBothResponse); begun {
			break
		}
	}
	reply := append([]byte{'r'}, make([]byte, 33)...)
	for _, from := range []int{1, 9, 17} { // written, flushed, applied
		binary.BigEndian.PutUint64(reply[from:], at)
	}
	wire.Send(&pgproto3.CopyData{Data: reply})
	feedback := append([]byte{'h'}, make([]byte, 24)...)
	binary.BigEndian.PutUint32(feedback[9:], uint32(xmin))
	wire.Send(&pgproto3.CopyData{Data: feedback})
	must(t, wire.Flush())
	wait(t, "the server to hear of it", func() bool {
		return value[bool](t, s.pool, `select exists (select from pg_stat_replication where application_name = $1 and backend_xmin is not null and state = 'streaming')`, name)
	})
	return end
}

// pglsn reads a place in the WAL.
func pglsn(text string) (at uint64, err error) {
	var high, low uint32
	_, err = fmt.Sscanf(text, "%X/%X", &high, &low)
	return uint64(high)<<32 | uint64(low), err
}

func TestWhatGrowsOrRunsOutIsFound(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	n := hasty
	n.frozen, n.fullShare, n.history, n.dead = -1, 0, 0, 10
	finds(t, s, n, report.SeverityWarning, "wraparound", "transaction numbers", "takes no more writes", "vacuum (freeze")
	finds(t, s, n, report.SeverityWarning, "wraparound", "multixact numbers", "", "")
	if all := found(t, s, n, "wraparound"); len(all) != 2 {
		t.Errorf("of other databases too, found is %+v", all)
	}
	finds(t, s, n, report.SeverityWarning, "connections_short", "max_connections", "of 197 connections are in use", "pool_max_conns")
	n.frozen = 1_600_000_000
	if all := found(t, s, n, "wraparound"); len(all) > 0 {
		t.Errorf("long before, found is %+v", all)
	}

	b := &bench{t, s, nil}
	w := b.join()
	b.enqueue(1)
	w.Complete(w.ClaimAll()...)
	finds(t, s, n, report.SeverityNote, "history_long", "the history", "goes back 0 days", "stint jobs delete")
	w.Leave()

	exec(t, s, `alter table stint.waiting set (autovacuum_enabled = off)`)
	exec(t, s, `insert into stint.waiting (job, due, body, why, attempt, priority, queue, kind) select i, now(), i, 'scheduled', 1, 0, 'q', 'k' from generate_series(1, 100) i`)
	exec(t, s, `delete from stint.waiting`)
	s.pool.Reset() // a session that ends tells what it did
	for deadline := time.Now().Add(30 * time.Second); len(found(t, s, n, "table_bloated")) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the server never told of the dead rows")
		}
	}
	finds(t, s, n, report.SeverityWarning, "table_bloated", "table waiting", "100 dead rows beside 0 live ones", `vacuum "stint"."waiting"`)
}

// What the remedy says about an index or a constraint is pasted, and done.
func TestWhatIsMissingIsMadeByPastingTheRemedy(t *testing.T) {
	t.Parallel()
	s := openStore(t, installed.On(t, pgtest.Shared(t, 0)), Config{Schema: elsewhereName})
	for _, lost := range []string{
		`drop index stint.executions_long`, `drop index stint.entries_schedule`, `drop index stint.executions_finished`,
		`alter table stint.waiting drop constraint waiting_check`, `alter table stint.executions drop constraint executions_pkey`,
		`drop index stint.waiting_due; create index waiting_due on stint.waiting (due)`,
		`alter table stint.waiting drop constraint waiting_check, add constraint waiting_check check (due > now())`,
	} {
		must(t, execMany(t.Context(), connect(t, s), s.sql.in(lost)))
		mended := false
		for _, code := range []string{"schema_missing_object", "schema_altered"} {
			for _, f := range found(t, s, usual, code) {
				if strings.HasPrefix(f.Remedy, "it comes with") {
					continue // and is there when that is
				}
				mended = true
				remedy := strings.TrimPrefix(f.Remedy, "put it back: ")
				must(t, execMany(t.Context(), connect(t, s), remedy))
			}
		}
		if left := slices.Concat(found(t, s, usual, "schema_missing_object"), found(t, s, usual, "schema_altered")); !mended || len(left) > 0 {
			t.Errorf("after %s and its remedy, found is %+v", lost, left)
		}
	}
}

// Whoever may not see all is told what of, and finds the rest.
func TestARoleThatMayNotSeeAllIsToldSo(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	role := "viewer_" + value[string](t, s.pool, `select current_database()`)
	exec(t, s, fmt.Sprintf(`create role %s login password 'x'`, role))
	t.Cleanup(func() {
		_, err := s.pool.Exec(context.Background(), fmt.Sprintf(`drop owned by %[1]s; drop role %[1]s`, role), pgx.QueryExecModeSimpleProtocol)
		must(t, err)
	})
	u, err := url.Parse(s.url())
	must(t, err)
	u.User = url.UserPassword(role, "x")
	theirs := openSkipping(t, u.String())
	look := func() []report.Finding {
		all, err := report.Diagnose(t.Context(), theirs, report.Options{})
		must(t, err)
		return all
	}
	has(t, look(), report.SeverityProblem, "schema_unreadable", "the schema", "permission denied", "stint migrate roles | psql")
	exec(t, s, fmt.Sprintf(`grant usage on schema stint to %s; grant select on stint.meta to %[1]s`, role), pgx.QueryExecModeSimpleProtocol)
	all := look()
	has(t, all, report.SeverityNote, "limited_view", "role "+role, "does not see", "grant pg_monitor to ")
	has(t, all, report.SeverityWarning, report.CodeNotChecked, "what is ready", "permission denied", `one of the roles "stint_viewer", "stint_engine" and "stint_owner"`)
	exec(t, s, fmt.Sprintf(`grant select on all tables in schema stint to %s`, role))
	for _, f := range look() {
		if f.Severity != report.SeverityNote && f.Code != "fsync_off" && f.Code != "full_page_writes_off" {
			t.Errorf("found is %+v", f)
		}
	}
}

// Of the documented roles three see what stint's tables say. The others are told
// which, and what was not seen is more than a note.
func TestTheRolesThatMayLookAreNamedToThoseThatMayNot(t *testing.T) {
	t.Parallel()
	f := hire(t, pgtest.Shared(t, 0), "looks")
	for role, may := range map[string]bool{"viewer": true, "engine": true, "owner": true, "producer": false, "caller": false, "worker": false} {
		s := openSkipping(t, f.login("my_"+role), Config{Schema: f.schema})
		all, err := report.Diagnose(t.Context(), s, report.Options{})
		must(t, err)
		unseen := 0
		for _, one := range all {
			if one.Code != report.CodeNotChecked && one.Code != "schema_unreadable" {
				continue
			}
			unseen++
			if may || one.Severity == report.SeverityNote || !strings.Contains(one.Remedy, `"looks_viewer", "looks_engine" and "looks_owner"`) {
				t.Errorf("as %s, found is %+v", role, one)
			}
		}
		if !may && unseen == 0 {
			t.Errorf("as %s, all could be looked at", role)
		}
	}
}

func TestWhereNobodyRingsTheDoctorSaysSo(t *testing.T) {
	t.Parallel()
	n := hasty
	n.ring = time.Nanosecond
	finds(t, newStore(t), n, report.SeverityWarning, "listen_deaf", "LISTEN and NOTIFY", "by their polls only", "session mode")
}

func TestADatabaseWithoutASchemaIsLookedAtToo(t *testing.T) {
	t.Parallel()
	s := openSkipping(t, pgtest.New(t))
	all, err := report.Diagnose(t.Context(), s, report.Options{})
	must(t, err)
	has(t, all, report.SeverityProblem, "schema_missing", "schema stint", "nothing can be enqueued", "stint migrate up")
	has(t, all, report.SeverityProblem, "fsync_off", "fsync", "", "")
	for _, f := range all {
		if f.Code == report.CodeNotChecked || strings.HasPrefix(f.Code, "schema_missing_") {
			t.Errorf("found is %+v", f)
		}
	}
}

// openSkipping opens as the doctor does, whatever state things are in.
func openSkipping(t testing.TB, url string, config ...Config) *Store {
	t.Helper()
	c := append(config, Config{})[0]
	c.SkipCheck = true
	return openStore(t, url, c)
}

func TestSettingsThatHurtAreFound(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, c := range []struct {
		setting, value string
		severity       report.Severity
		code, problem  string
	}{
		{"synchronous_commit", "off", report.SeverityWarning, "synchronous_commit_off", "acknowledged"},
		{"default_transaction_isolation", "serializable", report.SeverityNote, "isolation", "it is serializable"},
		{"statement_timeout", "900ms", report.SeverityWarning, "statement_timeout_short", "900 ms"},
		{"lock_timeout", "10ms", report.SeverityWarning, "lock_timeout_short", "10 ms"},
		{"idle_in_transaction_session_timeout", "100ms", report.SeverityWarning, "idle_in_transaction_timeout_short", "100 ms"},
		{"idle_session_timeout", "1min", report.SeverityNote, "idle_session_timeout", "60000 ms"},
		{"transaction_timeout", "1s", report.SeverityWarning, "transaction_timeout_short", "1000 ms"},
		{"log_min_duration_statement", "0", report.SeverityNote, "logs_every_statement", "several lines"},
		{"log_statement", "all", report.SeverityNote, "logs_every_statement", "it is all"},
		{"default_transaction_read_only", "on", report.SeverityProblem, "read_only", "only read"},
	} {
		t.Run(c.setting, func(t *testing.T) {
			if !value[bool](t, s.pool, `select exists (select from pg_settings where name = $1)`, c.setting) {
				t.Skip("this server does not have it")
			}
			changed := openSkipping(t, s.url()+"&"+url.Values{c.setting: {c.value}}.Encode())
			finds(t, changed, usual, c.severity, c.code, c.setting, c.problem, c.setting)
		})
	}
	for _, a := range ailments {
		if all := found(t, s, usual, a.rule.Code); len(all) > 0 && a.rule.Code != "fsync_off" && a.rule.Code != "full_page_writes_off" {
			t.Errorf("without it, found is %+v", all)
		}
	}
}

func TestWhoPinsTheHorizonIsNamed(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	reads := begin(t, s, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	pid := value[int32](t, reads, `select pg_backend_pid() from (values ('a  
	  monthly report')) v`)
	subject := fmt.Sprint("session ", pid)
	finds(t, s, hasty, report.SeverityWarning, "horizon_session", subject, "idle in transaction: select pg_backend_pid() from (values ('a monthly report')) v", fmt.Sprintf("pg_terminate_backend(%d)", pid))
	if all := found(t, s, usual, "horizon_session"); len(all) > 0 {
		t.Errorf("at once, found is %+v", all)
	}
	must(t, reads.Rollback(t.Context()))
	if all := found(t, s, hasty, "horizon_session"); len(all) > 0 {
		t.Errorf("when it has ended, found is %+v", all)
	}

	writes := begin(t, s)
	_, err := writes.Exec(t.Context(), s.sql.in(`select stint.enqueue('k', quiet => true); prepare transaction 'it''s mine'`))
	must(t, err)
	finds(t, s, hasty, report.SeverityWarning, "horizon_prepared", "prepared transaction it's mine", "nobody has ended it", "rollback prepared 'it''s mine'")
	if all := found(t, s, usual, "horizon_prepared"); len(all) > 0 {
		t.Errorf("at once, found is %+v", all)
	}
	if all := found(t, newStore(t), hasty, "horizon_prepared"); len(all) > 0 {
		t.Errorf("in another database, found is %+v", all)
	}
	exec(t, s, `rollback prepared 'it''s mine'`)
}

// A vacuum that the server began by itself has a snapshot and no end in sight, and holds
// up nobody.
func TestWhoPinsTheHorizonIsNoVacuumOfTheServers(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"autovacuum": "on", "autovacuum_naptime": "1s"}})
	s := openStore(t, installed.On(t, server))
	exec(t, s, `create table public.slow (x int) with (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)`)
	exec(t, s, `insert into public.slow select generate_series(1, 20000)`)
	exec(t, s, `delete from public.slow where x % 2 = 0`)
	wait(t, "the vacuum", func() bool {
		return value[bool](t, s.pool, `
			select count(*) > 0 from pg_stat_activity
			where backend_type = 'autovacuum worker' and datname = current_database() and backend_xmin is not null and query like '%public.slow%'`)
	})
	if all := found(t, s, hasty, "horizon_session"); len(all) > 0 {
		t.Errorf("found is %+v", all)
	}
}

// What sessions of other databases do is no concern of this one, nor what those do that
// have nothing to do with stint, unless they hold its tables or the horizon.
func TestWhatIsNoConcernOfStintIsNotTold(t *testing.T) {
	t.Parallel()
	s, other := newStore(t), newStore(t)
	for _, of := range []*Store{s, other} {
		exec(t, of, `create table public.mine ()`)
	}
	ended := make(chan error, 3)
	waits := func(conn *pgx.Conn, texts ...string) {
		for _, text := range texts[:len(texts)-1] {
			_, err := conn.Exec(t.Context(), text)
			must(t, err)
		}
		go func() {
			_, err := conn.Exec(context.Background(), texts[len(texts)-1])
			ended <- err
		}()
		pid, watch := conn.PgConn().PID(), connect(t, s)
		wait(t, "it to wait", func() bool { return value[bool](t, watch, `select cardinality(pg_blocking_pids($1)) > 0`, pid) })
	}
	var holders []pgx.Tx
	for _, c := range []struct {
		of    *Store
		holds string
		waits []string
	}{
		{s, `lock table public.mine`, []string{`select from public.mine`}},
		{other, `lock table public.mine`, []string{`set application_name = 'stint of another'`, `select from public.mine`}},
		{other, `select pg_current_xact_id(); lock table stint.queues`, []string{`select from stint.queues`}},
	} {
		holder := begin(t, c.of)
		_, err := holder.Exec(t.Context(), c.holds, pgx.QueryExecModeSimpleProtocol)
		must(t, err)
		holders = append(holders, holder)
		waits(connect(t, c.of), c.waits...)
	}
	if all := found(t, s, hasty, "blocked"); len(all) > 0 {
		t.Errorf("found is %+v", all)
	}
	for _, code := range []string{"horizon_session", "transaction_idle"} {
		for _, f := range found(t, s, hasty, code) {
			if !value[bool](t, s.pool, `select exists (select from pg_stat_activity where datname = current_database() and pid = $1)`, f.Figures["pid"]) {
				t.Errorf("found is %+v", f)
			}
		}
	}
	for _, holder := range holders {
		must(t, holder.Rollback(t.Context()))
		must(t, <-ended)
	}
}

func TestWhoBlocksIsNamed(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	holder := begin(t, s)
	_, err := holder.Exec(t.Context(), s.sql.in(`lock table stint.queues in access exclusive mode`))
	must(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := s.Pause(context.Background(), "q", "", "")
		ended <- err
	}()
	watch := connect(t, s) // outside of a transaction, within which what sessions do stands still
	blocked := func() bool {
		return value[bool](t, watch, `select exists (select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0)`)
	}
	for !blocked() { // each look is a round trip, and it comes to that
	}
	// A statement of its own reads the table that is locked, and is not waited for.
	n := hasty
	n.look = 500 * time.Millisecond
	pid := value[int32](t, holder, `select pg_backend_pid()`)
	all := found(t, s, n, "blocked")
	if len(all) == 0 || !strings.Contains(all[0].Problem, "stint.pause") || !strings.Contains(all[0].Remedy, fmt.Sprintf("pg_terminate_backend(%d)", pid)) {
		t.Errorf("found is %+v", all)
	}
	finds(t, s, n, report.SeverityWarning, report.CodeNotChecked, "what is ready", "is locked", fmt.Sprint("session ", pid0(all), " (blocked)"))
	// Of one that holds another table too, it is said for which it waits.
	both := connect(t, s)
	for _, text := range []string{`begin`, `select from stint.beats`} {
		_, err := both.Exec(t.Context(), text)
		must(t, err)
	}
	go func() {
		_, err := both.Exec(context.Background(), `select from stint.queues`)
		ended <- err
	}()
	waits := both.PgConn().PID()
	wait(t, "it to wait", func() bool { return value[bool](t, watch, `select cardinality(pg_blocking_pids($1)) > 0`, waits) })
	has(t, found(t, s, n, "blocked"), report.SeverityWarning, "blocked", fmt.Sprint("session ", waits), "(ACCESS SHARE on stint.queues) of postgres, active: select from stint.queues;", fmt.Sprintf("pg_terminate_backend(%d)", pid))
	must(t, holder.Rollback(t.Context()))
	for range 2 {
		must(t, <-ended)
	}
}

// Many may wait for one row, as programs do: that is worth a word as late as any other
// wait, and not as soon as one for a table.
func TestWhoBlocksARowIsNotNamedAtOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	_, err := s.Pause(t.Context(), "q", "", "")
	must(t, err)
	holder := begin(t, s)
	_, err = holder.Exec(t.Context(), `select from stint.queues for update`)
	must(t, err)
	ended, watch := make(chan error, 2), connect(t, s)
	for range 2 {
		conn := connect(t, s)
		go func() {
			_, err := conn.Exec(context.Background(), `update stint.queues set why = 'x'`)
			ended <- err
		}()
		pid := conn.PgConn().PID()
		wait(t, "it to wait", func() bool { return value[bool](t, watch, `select cardinality(pg_blocking_pids($1)) > 0`, pid) })
	}
	n := usual
	n.queued, n.blocked = 0, time.Hour
	if all := found(t, s, n, "blocked"); len(all) > 0 {
		t.Errorf("found is %+v", all)
	}
	must(t, holder.Rollback(t.Context()))
	for range 2 {
		must(t, <-ended)
	}
}

// pid0 is whom the first finding is about.
func pid0(all []report.Finding) any {
	if len(all) == 0 {
		return nil
	}
	return all[0].Figures["pid"]
}

// Somebody forgot a transaction, somebody else changes a table that it read, and
// all of stint stands behind that.
func TestTheHeadOfAQueueForALockIsNamed(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	reads := begin(t, s)
	_, err := reads.Exec(t.Context(), s.sql.in(`select count(*) from stint.entries`), pgx.QueryExecModeSimpleProtocol) // keeps no snapshot
	must(t, err)
	ended := make(chan error, 2)
	changes, waits := connect(t, s), connect(t, s)
	pid := func(conn *pgx.Conn) int32 { return int32(conn.PgConn().PID()) }
	forgot, head, behind := pid(reads.Conn()), pid(changes), pid(waits)
	watch := connect(t, s)
	run := func(conn *pgx.Conn, pid int32, text string) {
		go func() {
			_, err := conn.Exec(context.Background(), text)
			ended <- err
		}()
		for !value[bool](t, watch, `select cardinality(pg_blocking_pids($1)) > 0`, pid) { // a round trip each
		}
	}
	run(changes, head, `set search_path = stint; drop index entries_urn`)
	run(waits, behind, `select count(*) from stint.entries`)

	n := usual
	n.queued, n.blocked, n.idle = 0, time.Hour, 0
	began := time.Now()
	all, err := report.Diagnose(t.Context(), examined{s, n}, report.Options{})
	must(t, err)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	subject := fmt.Sprint("session ", head)
	has(t, all, report.SeverityProblem, "blocked", subject, "ACCESS EXCLUSIVE on stint.entries", fmt.Sprintf("pg_terminate_backend(%d)", forgot))
	has(t, all, report.SeverityProblem, "blocked", subject, fmt.Sprintf("session %d of ", forgot), fmt.Sprintf("pg_cancel_backend(%d)", head))
	has(t, all, report.SeverityProblem, "blocked", subject, "behind it wait 1 more", "")
	has(t, all, report.SeverityWarning, report.CodeNotChecked, "what is ready", "is locked", subject+" (blocked)")
	has(t, all, report.SeverityNote, "transaction_idle", fmt.Sprint("session ", forgot), "idle in transaction", fmt.Sprintf("pg_terminate_backend(%d)", forgot))
	if i := slices.IndexFunc(all, func(f report.Finding) bool { return f.Code == "blocked" && f.Subject == fmt.Sprint("session ", behind) }); i >= 0 {
		t.Errorf("who only stands behind is told of too: %+v", all[i])
	}
	must(t, reads.Rollback(t.Context()))
	for range 2 {
		must(t, <-ended)
	}
}

// A schema is compared as often as it is not what it should be, and else once a minute.
func TestASchemaThatWasSoundIsNotComparedAgainAtOnce(t *testing.T) {
	t.Parallel()
	s := verified(t)
	missing := func(deep bool) bool {
		signs, err := s.Examine(t.Context(), report.Options{Deep: deep})
		must(t, err)
		return slices.ContainsFunc(signs.Findings, func(f report.Finding) bool { return f.Code == "schema_missing_object" })
	}
	if missing(false) {
		t.Fatal("something is missing at once")
	}
	exec(t, s, `drop index stint.executions_long`)
	for i, c := range []struct{ deep, missing bool }{{false, false}, {true, true}, {false, true}} {
		if got := missing(c.deep); got != c.missing {
			t.Errorf("look %d: something is missing: %v", i+1, got)
		}
	}
	definition := wanted()["index executions_long"].Definition
	must(t, execMany(t.Context(), connect(t, s), strings.Replace(definition, " ON ", " ON "+s.schema+".", 1)))
	if missing(false) {
		t.Error("it is said to be missing when it is there again")
	}
}

// examined is a store with other norms.
type examined struct {
	*Store
	n norms
}

func (e examined) Examine(ctx context.Context, _ report.Options) (report.Facts, error) {
	return (&examination{Store: e.Store, normal: e.n}).run(ctx)
}

// A transaction that nobody goes on with is worth a word long before one that
// works: with a snapshot or a number of its own it holds up vacuum.
func TestATransactionThatNobodyGoesOnWithIsFound(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	if usual.idle != 30*time.Second || usual.held != 5*time.Minute {
		t.Error("the help of stint doctor names other times")
	}
	n := usual
	n.idle = 0
	for how, c := range map[string]struct {
		begin, code string
		severity    report.Severity
	}{
		"with a number":          {`begin; select txid_current()`, "horizon_session", report.SeverityWarning},
		"with a snapshot":        {`begin isolation level repeatable read; select 1 from stint.meta`, "horizon_session", report.SeverityWarning},
		"with neither":           {`begin; select 1 from stint.meta`, "transaction_idle", report.SeverityNote},
		"with neither, for long": {`begin; select 1 from stint.meta`, "transaction_idle", report.SeverityWarning},
	} {
		n := n
		if strings.HasSuffix(how, "long") {
			n.held = 0
		}
		conn := connect(t, s)
		_, err := conn.Exec(t.Context(), c.begin, pgx.QueryExecModeSimpleProtocol)
		must(t, err)
		pid := conn.PgConn().PID()
		finds(t, s, n, c.severity, c.code, fmt.Sprint("session ", pid), "UTC", fmt.Sprintf("pg_terminate_backend(%d)", pid))
		must(t, conn.Close(t.Context()))
	}
}

// Each way in which a schema differs is told with the object. A change and the
// look at it are one transaction, which is taken back.
func TestWhatSomebodyChangedInTheSchemaIsFound(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	view := strings.Replace(value[string](t, s.pool, `select pg_get_viewdef('stint.jobs'::regclass)`), "'running'", "'walking'", 1)
	for name, c := range map[string]struct {
		change                         string
		severity                       report.Severity
		code, subject, problem, remedy string
	}{
		"a function was replaced": {`create or replace function stint.steps() returns bigint language sql volatile set search_path = pg_catalog, pg_temp as 'select 0::bigint'`,
			report.SeverityProblem, "schema_altered", "function steps()", "replaced", "stint migrate print"},
		"a function lost its setting": {`alter function stint.steps() reset search_path`, report.SeverityProblem, "schema_altered", "function steps()", "replaced", ""},
		"a function is gone":          {`drop function stint.why_cancelled(bigint)`, report.SeverityProblem, "schema_missing_object", "function why_cancelled(p_job bigint)", "not there", "begins with create function stint.why_cancelled in what stint migrate print"},
		"a view was replaced": {`create or replace view stint.jobs as ` + view,
			report.SeverityProblem, "schema_altered", "view jobs", "replaced", ""},
		"an index is gone":             {`drop index stint.entries_lane`, report.SeverityProblem, "schema_missing_object", "index entries_lane", "not there", `CREATE INDEX CONCURRENTLY entries_lane ON "stint".entries USING btree (lane, xid, pos)`},
		"an index is another one":      {`drop index stint.waiting_due; create index waiting_due on stint.waiting (due)`, report.SeverityProblem, "schema_altered", "index waiting_due", "(due, (job + 0))", ""},
		"a column is wider":            {`alter table stint.kinds alter priority type integer`, report.SeverityProblem, "schema_altered", "column kinds.priority", "it is integer not null; this program installs smallint not null", ""},
		"a column is missing":          {`alter table stint.beats drop column asleep`, report.SeverityProblem, "schema_missing_object", "column beats.asleep", "", ""},
		"a column too many":            {`alter table stint.kinds add column owner text`, report.SeverityWarning, "schema_foreign", "column kinds.owner", "may not have it", ""},
		"a check is gone":              {`alter table stint.waiting drop constraint waiting_check`, report.SeverityProblem, "schema_missing_object", "constraint waiting.waiting_check", "", ""},
		"a domain lets more in":        {`alter domain stint.priority drop constraint priority_check`, report.SeverityProblem, "schema_altered", "domain priority", "it is smallint; this program installs smallint CHECK", "create domain stint.priority"},
		"a check too many":             {`alter table stint.entries add constraint small check (priority < 50)`, report.SeverityProblem, "foreign_constraint", "constraint entries.small", "refuse", "drop constraint small"},
		"a table is not logged":        {`alter table stint.executions set unlogged`, report.SeverityProblem, "schema_altered", "table executions", "it is unlogged", ""},
		"an index too many":            {`create index mine on stint.entries (kind)`, report.SeverityNote, "foreign_index", "index mine", "pays for it", `drop index "stint".mine`},
		"a trigger":                    {`create function public.t() returns trigger language plpgsql as 'begin return new; end'; create trigger mine before insert on stint.entries for each row execute function public.t()`, report.SeverityProblem, "foreign_trigger", "trigger entries.mine", "within what stint writes", `drop trigger mine on "stint".entries`},
		"a rule":                       {`create rule mine as on delete to stint.waiting do instead nothing`, report.SeverityProblem, "foreign_rule", "rule waiting.mine", "", "drop rule mine"},
		"a table of somebody's":        {`create table stint.remarks (a int)`, report.SeverityNote, "schema_foreign", "table remarks", "goes when", "schema of your own"},
		"row-level security":           {`alter table stint.entries enable row level security`, report.SeverityProblem, "row_security", "row-level security entries", "some of its rows", "disable row level security"},
		"an index that was half built": {`update pg_index set indisvalid = false where indexrelid = 'stint.entries_urn'::regclass`, report.SeverityProblem, "index_invalid", "index entries_urn", "not built to its end", "reindex index concurrently"},
		"autovacuum is off for one":    {`alter table stint.waiting set (autovacuum_enabled = off)`, report.SeverityWarning, "autovacuum_disabled", "table waiting", "never cleaned up", "reset (autovacuum_enabled)"},
		"another owner":                {`create role strange_owner; alter table stint.waiting owner to strange_owner`, report.SeverityWarning, "owners_differ", "schema stint", "strange_owner", "owner to"},
		"a copy of another database":   {`update stint.meta set entries_oid = 1`, report.SeverityWarning, "database_copied", "schema stint", "transaction numbers", "open it"},
		"a copy on another server":     {`update stint.meta set system_identifier = 1`, report.SeverityWarning, "database_copied", "schema stint", "transaction numbers", "open it"},
	} {
		t.Run(name, func(t *testing.T) {
			tx := begin(t, s)
			_, err := tx.Exec(t.Context(), c.change, pgx.QueryExecModeSimpleProtocol)
			must(t, err)
			_, err = tx.Exec(t.Context(), `set local search_path = stint`)
			must(t, err)
			x := &examination{Store: s, normal: usual}
			must(t, x.drift(t.Context(), tx))
			must(t, x.tables(t.Context(), tx))
			must(t, x.rows(t.Context(), tx, identity))
			has(t, x.signs.Findings, c.severity, c.code, c.subject, c.problem, c.remedy)
			must(t, tx.Rollback(t.Context()))
		})
	}
}

// What somebody took back, what is elsewhere, and what the server makes by itself is no
// change of the schema.
func TestWhatSomebodyChangedElsewhereIsNotFound(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	tx := begin(t, s)
	_, err := tx.Exec(t.Context(), `
		alter table stint.kinds add column owner text; alter table stint.kinds drop column owner;
		create table public.refs (p bigint references stint.policies, x text);
		create function public.t() returns trigger language plpgsql as 'begin return new; end';
		create trigger theirs before insert on public.refs for each row execute function public.t();
		create index theirs on public.refs (x);
		update pg_index set indisvalid = false where indexrelid = 'public.theirs'::regclass;
		create role strange_guest; alter table public.refs owner to strange_guest;
		create type stint.mine as (a int); alter type stint.mine owner to strange_guest;
		create materialized view stint.seen as select 1 as a; create index seen_a on stint.seen (a);
		set local search_path = stint`, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
	x := &examination{Store: s, normal: usual}
	for _, look := range []func(context.Context, pgx.Tx) error{x.drift, x.tables} {
		must(t, look(t.Context(), tx))
	}
	if all := x.signs.Findings; len(all) != 1 || all[0].Code != "schema_foreign" || all[0].Subject != "table seen" {
		t.Errorf("found is %+v, want the table that is not stint's", all)
	}
	for _, size := range x.signs.Sizes {
		if _, ours := wanted()["table "+size.Name]; !ours {
			t.Errorf("the size of %s is told", size.Name)
		}
	}
	must(t, tx.Rollback(t.Context()))
}
