package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

// ailment is a setting's value that hurts.
type ailment struct {
	setting  string
	hurts    func(value string) bool
	severity stint.Severity
	code     string
	problem  string // %s is the value
	remedy   string // %s is how it is taken back for the role
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

const serverSetting = "alter system set %s; then select pg_reload_conf()"

// ailments are the settings that hurt, and what each does.
var ailments = []ailment{
	{"fsync", is("off"), stint.SeverityProblem, "fsync_off",
		"a power cut may leave the database in ruins", fmt.Sprintf(serverSetting, "fsync = on")},
	{"full_page_writes", is("off"), stint.SeverityProblem, "full_page_writes_off",
		"a power cut may tear pages, unless the file system never does", fmt.Sprintf(serverSetting, "full_page_writes = on")},
	{"synchronous_commit", is("off"), stint.SeverityWarning, "synchronous_commit_off",
		"a crash of the server loses what was enqueued or asked for in its last moments, though it was acknowledged; engines wait for the disk all the same", "%s"},
	{"autovacuum", is("off"), stint.SeverityWarning, "autovacuum_off",
		"the tables of what waits and of beats grow with every change, and transaction numbers run out", fmt.Sprintf(serverSetting, "autovacuum = on")},
	{"track_counts", is("off"), stint.SeverityWarning, "track_counts_off",
		"autovacuum does not learn where it is needed", fmt.Sprintf(serverSetting, "track_counts = on")},
	{"default_transaction_isolation", is("serializable", "repeatable read"), stint.SeverityNote, "isolation",
		"it is %s; stint says read committed where it owns the transaction, at one statement more for each, and its functions refuse others", "%s"},
	{"statement_timeout", shorter(5 * time.Second), stint.SeverityWarning, "statement_timeout_short",
		"%s ms: engines set their own, but lists, deletions in bulk and migrations are cut off", "%s"},
	{"lock_timeout", shorter(time.Second), stint.SeverityWarning, "lock_timeout_short",
		"%s ms: engines set their own, but who changes jobs, or enqueues under a key, beside somebody else is refused instead of waiting", "%s"},
	{"idle_in_transaction_session_timeout", shorter(time.Second), stint.SeverityWarning, "idle_in_transaction_timeout_short",
		"%s ms: a program that pauses for so long within a transaction in which it enqueues loses its session", "%s"},
	{"transaction_timeout", shorter(5 * time.Second), stint.SeverityWarning, "transaction_timeout_short",
		"%s ms: handlers that complete their job in a transaction of their own, and migrations, are cut off", "%s"},
	{"idle_session_timeout", shorter(24 * time.Hour), stint.SeverityNote, "idle_session_timeout",
		"%s ms: connections that listen are idle by nature; they come back and look again, at a cost", "%s"},
	{"old_snapshot_threshold", func(v string) bool { return v != "-1" && v != "" }, stint.SeverityNote, "old_snapshot_threshold",
		"%s minutes: long reads, as audits and dumps, may fail with \"snapshot too old\"", fmt.Sprintf(serverSetting, "old_snapshot_threshold = -1") + ", and restart"},
	{"log_min_duration_statement", is("0"), stint.SeverityNote, "logs_every_statement",
		"each statement is logged with its time: several lines for each batch of jobs", fmt.Sprintf(serverSetting, "log_min_duration_statement = -1")},
	{"log_statement", is("all", "mod"), stint.SeverityNote, "logs_every_statement",
		"it is %s: statements are logged with the arguments of jobs", fmt.Sprintf(serverSetting, "log_statement = 'none'")},
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
		value, there := values[a.setting]
		if !there || !a.hurts(value) {
			continue
		}
		f := stint.Finding{
			Severity: a.severity, Code: a.code, Subject: a.setting,
			Problem: strings.Replace(a.problem, "%s", value, 1), Remedy: strings.Replace(a.remedy, "%s", x.reset(a.setting), 1), Figures: map[string]any{"value": value},
		}
		x.find(f)
	}
	return x.synchronous(ctx, tx, values)
}

// synchronous sees whether commits wait for a standby that is not there.
func (x *examination) synchronous(ctx context.Context, tx pgx.Tx, values map[string]string) error {
	names, commit := values["synchronous_standby_names"], values["synchronous_commit"]
	if names == "" || commit == "off" || commit == "local" || x.standby {
		return nil
	}
	// What state a standby is in is for those to see who may; that it is connected, for all.
	var connected int
	err := tx.QueryRow(ctx, `
		select count(*)::integer from pg_stat_replication
		where sync_state in ('sync', 'quorum') or sync_state is null`).Scan(&connected)
	if err != nil || connected > 0 {
		return err
	}
	x.find(stint.Finding{
		Severity: stint.SeverityProblem, Code: "standby_missing", Subject: "synchronous_standby_names",
		Problem: "it names " + names + ", and no such standby is connected: commits wait for ever",
		Remedy:  "start the standby, or do without: alter system set synchronous_standby_names = ''; then select pg_reload_conf()",
	})
	return nil
}
