package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/report"
)

// newestMajor is the newest server that the tests run on.
const newestMajor = 18

var (
	serverTooOld  = problem("server_too_old", "stint needs 13 or newer", "upgrade the server")
	serverUntried = note("server_untried", fmt.Sprintf("this stint was tested up to PostgreSQL %d", newestMajor), "see whether there is a newer stint")
	encodingWrong = problem("encoding", "its encoding is {encoding}, which cannot hold every text",
		"create a database with the encoding UTF8, and restore a dump into it")
	serverInRecovery = problem("server_in_recovery", "it is a standby, or still recovers, and takes no writes",
		"connect to the primary (target_session_attrs=read-write in the URL), or promote this one: select pg_promote()")
	readOnly      = problem("read_only", "transactions of this role in this database may only read", "{reset}")
	limitedView   = note("limited_view", "it does not see what other roles' sessions do, since when and with which statement", "grant pg_monitor to {role}")
	throughPooler = note("pooler", "something stands between this program and the server; engines' sessions keep the timeouts of that",
		"have engines connect to the server itself, or see that the pooler's sessions end when a client is gone")
	listenDeaf = warning("listen_deaf", "a notification did not arrive within {limit}, so engines find new jobs by their polls only",
		"a pooler in transaction mode does that: have engines connect to the server itself, or to the pooler in session mode")
)

// server looks at what kind of server this is, and with whose rights.
func (x *examination) server(ctx context.Context, tx pgx.Tx) error {
	var (
		encoding string
		backend  int32
		reads    bool
	)
	err := tx.QueryRow(ctx, `
		select current_setting('server_version_num')::integer, current_setting('server_encoding'), pg_is_in_recovery(), current_user::text,
		       pg_has_role('pg_read_all_stats', 'member'), pg_backend_pid(),
		       coalesce((select bool_or(reset_val = 'on') from pg_settings where name = 'default_transaction_read_only'), false)`,
	).Scan(&x.version, &encoding, &x.standby, &x.role, &x.sees, &backend, &reads)
	if err != nil {
		return err
	}
	switch major := x.version / 10000; {
	case major < 13:
		x.find(serverTooOld.Find(fmt.Sprint("PostgreSQL ", major), nil))
	case major > newestMajor:
		x.find(serverUntried.Find(fmt.Sprint("PostgreSQL ", major), nil))
	}
	if encoding != "UTF8" {
		x.find(encodingWrong.With("encoding", encoding).Find("the database", nil))
	}
	if x.standby {
		x.find(serverInRecovery.Find("the server", nil))
	} else if reads {
		x.find(readOnly.With("reset", x.reset("default_transaction_read_only")).Find("default_transaction_read_only", nil))
	}
	if !x.sees {
		x.find(limitedView.With("role", pgx.Identifier{x.role}.Sanitize()).Find("role "+x.role, nil))
	}
	if isPooled(tx.Conn(), backend) {
		x.find(throughPooler.Find("the connection", nil))
	}
	return nil
}

// reset is how a setting of a role or database is taken back.
func (x *examination) reset(setting string) string {
	return fmt.Sprintf("alter role %s reset %s, or the same of the database, where \\drds in psql lists it; or leave it out of the URL", pgx.Identifier{x.role}.Sanitize(), setting)
}

// wraparound looks how near the server is to taking no more writes, and
// connections how many of them are left.
var (
	wraparound = question{about: "transaction numbers", rule: warning("wraparound",
		"the oldest row is {age} of them old; near 2100000000 the server takes no more writes",
		"find what keeps vacuum from freezing (see the findings about the horizon), end it, and run: vacuum (freeze, verbose)"), sql: `
		select kind as subject, age, case when age > 1575000000 then 'problem' end as severity
		from (
		  select 'transaction numbers' as kind, age(datfrozenxid)::bigint as age from pg_database where datname = current_database()
		  union all select 'multixact numbers', mxid_age(datminmxid)::bigint from pg_database where datname = current_database()) ages
		where age >= @frozen::bigint`}

	connections = question{about: "connections", rule: warning("connections_short",
		"{used} of {room} connections are in use; an engine needs up to 9, and one that cannot connect sends no heartbeat",
		"raise max_connections, give programs smaller pools (pool_max_conns in the URL), or put a pooler in session mode before those that need none of their own"), sql: `
		select 'max_connections' as subject, used, room
		from (select count(*) as used, current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint as room
		      from pg_stat_activity where backend_type = 'client backend') c
		where used >= @full_share::double precision * room`}
)

// listening sees whether a notification reaches a listener, on a channel of its own.
func (x *examination) listening(ctx context.Context) {
	if x.standby || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*x.normal.look)
	defer cancel()
	heard, err := x.hears(ctx)
	if err != nil {
		x.notLookedAt(question{about: "whether LISTEN works"}, err)
	} else if !heard {
		x.find(listenDeaf.With("limit", x.normal.ring.String()).Find("LISTEN and NOTIFY", nil))
	}
}

func (x *examination) hears(ctx context.Context) (bool, error) {
	conn, err := x.dial(ctx, "stint doctor")
	if err != nil {
		return false, err
	}
	defer hangUp(ctx, conn)
	var channel string
	err = x.pool.QueryRow(ctx, `select 'stint_doctor_' || replace(gen_random_uuid()::text, '-', '')`).Scan(&channel)
	if err != nil {
		return false, err
	}
	if _, err := conn.Exec(ctx, "listen "+channel); err != nil {
		return false, err
	}
	if _, err := x.pool.Exec(ctx, `select pg_notify($1, '')`, channel); err != nil {
		return false, err
	}
	wait, cancel := context.WithTimeout(ctx, x.normal.ring)
	defer cancel()
	_, err = conn.WaitForNotification(wait)
	return err == nil, nil
}

// ailment is a setting's value that hurts.
type ailment struct {
	setting string
	hurts   func(value string) bool
	rule    report.Rule // {value} is the value, {reset} how it is taken back for the role
}

// is is one of some values.
func is(values ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(values, value) }
}

// shorter is of settings in milliseconds, of which 0 is none.
func shorter(d time.Duration) func(string) bool {
	return func(value string) bool {
		ms, err := strconv.ParseInt(value, 10, 64)
		return err == nil && ms > 0 && time.Duration(ms)*time.Millisecond < d
	}
}

func serverWide(setting string) string {
	return "alter system set " + setting + "; then select pg_reload_conf()"
}

// ailments are the settings that hurt, and what each does.
var ailments = []ailment{
	{"fsync", is("off"), problem("fsync_off",
		"a power cut may leave the database in ruins", serverWide("fsync = on"))},
	{"full_page_writes", is("off"), problem("full_page_writes_off",
		"a power cut may tear pages, unless the file system never does", serverWide("full_page_writes = on"))},
	{"synchronous_commit", is("off"), warning("synchronous_commit_off",
		"a crash of the server loses what was enqueued or asked for in its last moments, though it was acknowledged; engines wait for the disk all the same", "{reset}")},
	{"autovacuum", is("off"), warning("autovacuum_off",
		"the tables of what waits and of beats grow with every change, and transaction numbers run out", serverWide("autovacuum = on"))},
	{"track_counts", is("off"), warning("track_counts_off",
		"autovacuum does not learn where it is needed", serverWide("track_counts = on"))},
	{"default_transaction_isolation", is("serializable", "repeatable read"), note("isolation",
		"it is {value}; stint says read committed where it owns the transaction, at one statement more for each, and its functions refuse others", "{reset}")},
	{"statement_timeout", shorter(5 * time.Second), warning("statement_timeout_short",
		"{value} ms: engines set their own, but lists, deletions in bulk and migrations are cut off", "{reset}")},
	{"lock_timeout", shorter(time.Second), warning("lock_timeout_short",
		"{value} ms: engines set their own, but who changes jobs, or enqueues under a key, beside somebody else is refused instead of waiting", "{reset}")},
	{"idle_in_transaction_session_timeout", shorter(time.Second), warning("idle_in_transaction_timeout_short",
		"{value} ms: a program that pauses for so long within a transaction in which it enqueues loses its session", "{reset}")},
	{"transaction_timeout", shorter(5 * time.Second), warning("transaction_timeout_short",
		"{value} ms: handlers that complete their job in a transaction of their own, and migrations, are cut off", "{reset}")},
	{"idle_session_timeout", shorter(24 * time.Hour), note("idle_session_timeout",
		"{value} ms: connections that listen are idle by nature; they come back and look again, at a cost", "{reset}")},
	{"old_snapshot_threshold", func(v string) bool { return v != "-1" && v != "" }, note("old_snapshot_threshold",
		"{value} minutes: long reads, as audits and dumps, may fail with \"snapshot too old\"", serverWide("old_snapshot_threshold = -1")+", and restart")},
	{"log_min_duration_statement", is("0"), note("logs_every_statement",
		"each statement is logged with its time: several lines for each batch of jobs", serverWide("log_min_duration_statement = -1"))},
	{"log_statement", is("all", "mod"), note("logs_every_statement",
		"it is {value}: statements are logged with the arguments of jobs", serverWide("log_statement = 'none'"))},
}

// settings looks at what sessions of this role in this database begin with: an
// engine's own timeouts and those of this look are not in it.
func (x *examination) settings(ctx context.Context, tx pgx.Tx) error {
	type setting struct{ Name, Value string }
	rows, err := ask[setting](ctx, tx, `select name, reset_val from pg_settings where reset_val is not null`)
	if err != nil {
		return err
	}
	values := map[string]string{}
	for _, s := range rows {
		values[s.Name] = s.Value
	}
	for _, a := range ailments {
		if value, ok := values[a.setting]; ok && a.hurts(value) {
			x.find(a.rule.With("reset", x.reset(a.setting)).Find(a.setting, map[string]any{"value": value}))
		}
	}
	return x.synchronous(ctx, tx, values)
}

var standbyMissing = problem("standby_missing", "it names {names}, and no such standby is connected: commits wait for ever",
	"start the standby, or do without: alter system set synchronous_standby_names = ''; then select pg_reload_conf()")

// synchronous sees whether commits wait for a standby that is not there. What state
// one is in only some roles may see; that it is connected, all.
func (x *examination) synchronous(ctx context.Context, tx pgx.Tx, values map[string]string) error {
	names := values["synchronous_standby_names"]
	if names == "" || is("off", "local")(values["synchronous_commit"]) || x.standby {
		return nil
	}
	var connected int
	err := tx.QueryRow(ctx, `
		select count(*)::integer from pg_stat_replication
		where sync_state in ('sync', 'quorum') or sync_state is null`).Scan(&connected)
	if err == nil && connected == 0 {
		x.find(standbyMissing.With("names", names).Find("synchronous_standby_names", nil))
	}
	return err
}
