package postgres

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/report"
)

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
// engine's own time-outs and those of this look are not in it.
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
