package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/report"
)

// pinned is what holding the horizon does to stint.
const pinned = "vacuum cannot clean up what was deleted since: claims and outcomes do not step over it and stay fast, but the tables of what waits and of heartbeats grow"

const endSession = "if nobody needs it: select pg_terminate_backend({pid}); against the next one: alter role {role} set idle_in_transaction_session_timeout = '5min'"

var (
	horizonSession  = warning("horizon_session", "its transaction pins the horizon {for} ({who}); "+pinned, endSession)
	transactionIdle = warning("transaction_idle",
		"its transaction is open {for}, and idle ({who}); it keeps the locks that it has, and whoever changes a table that it touched waits", endSession)
	slotIdle = warning("horizon_slot", "nobody is connected to it, and {what}", "connect what it is for, or drop it: select pg_drop_replication_slot({name})")
	slotSlow = warning("horizon_slot", "{what}", "have its standby or subscriber catch up, and set max_slot_wal_keep_size")
)

// session is another connection to the server.
type session struct {
	PID         int32
	User        string
	Application string
	State       string
	Query       string
	Since       *time.Time
	Seconds     float64
	Age         int64 // in transactions
}

// who describes whose session it is, and what it does.
func (s session) who() string {
	text := "of " + s.User
	if s.Application != "" {
		text += ", " + s.Application
	}
	if s.State != "" {
		text += ", " + s.State
	}
	if s.Query != "" {
		text += ": " + s.Query
	}
	return text
}

func (s session) figures() map[string]any {
	f := map[string]any{"pid": s.PID, "user": s.User, "application": s.Application, "state": s.State, "query": s.Query, "age_transactions": s.Age}
	if s.Since != nil {
		f["since"], f["since_seconds"] = s.Since.UTC(), s.Seconds
	}
	return f
}

// sessionColumns are those of a session but for its pid. It cuts statements: some are megabytes of values.
const sessionColumns = `
  coalesce(a.usename::text, ''), coalesce(a.application_name, ''), coalesce(a.state, ''),
  left(regexp_replace(coalesce(a.query, ''), '\s+', ' ', 'g'), 120), a.xact_start,
  coalesce(extract(epoch from clock_timestamp() - a.xact_start), 0)::double precision,
  coalesce(greatest(age(a.backend_xmin), age(a.backend_xid)), 0)::bigint`

// horizonSessions are transactions of this database that were begun long ago,
// or that have been idle for a while: those of others do not hold up its
// vacuum. A role that may not see since when they run goes by how many transactions
// began after them.
func (x *examination) horizonSessions(ctx context.Context, tx pgx.Tx) error {
	type open struct {
		session
		Idle float64
		Pins bool
	}
	all, err := ask[open](ctx, tx, `
		select a.pid, `+sessionColumns+`,
		  case when a.state like 'idle in transaction%' then coalesce(extract(epoch from clock_timestamp() - a.state_change), 0) else 0 end::double precision,
		  a.backend_xmin is not null or a.backend_xid is not null
		from pg_stat_activity a
		where a.datname = current_database() and a.pid <> pg_backend_pid() and (a.backend_xmin is not null or a.backend_xid is not null or a.state like 'idle in transaction%')
		  and coalesce(a.backend_type, '') not in ('autovacuum worker', 'walsender')
		  and (a.xact_start < clock_timestamp() - $1::interval
		       or a.state like 'idle in transaction%' and a.state_change < clock_timestamp() - $2::interval
		       or a.xact_start is null and greatest(age(a.backend_xmin), age(a.backend_xid)) > 1000000)
		order by a.xact_start limit 20`, x.normal.held, x.normal.idle)
	for _, s := range all {
		rule, since, figures := horizonSession, "for many transactions", s.figures()
		if s.Since != nil {
			since = fmt.Sprintf("for %v, since %s UTC", ago(s.Seconds), s.Since.UTC().Format(time.DateTime))
		}
		if s.Idle > 0 {
			figures["idle_seconds"] = s.Idle
		}
		if !s.Pins {
			if rule = transactionIdle; s.Seconds < x.normal.held.Seconds() {
				rule.Severity = report.SeverityNote
			}
		}
		x.find(rule.With("for", since, "who", s.who(), "role", pgx.Identifier{s.User}.Sanitize()).Find(fmt.Sprint("session ", s.PID), figures))
	}
	return err
}

// horizonSlots are replication slots: what one pins stays pinned while nothing
// is connected to it.
func (x *examination) horizonSlots(ctx context.Context, tx pgx.Tx) error {
	type slot struct {
		Name         string
		Active       bool
		Age, Catalog int64
		WAL          int64
	}
	all, err := ask[slot](ctx, tx, `
		select slot_name::text, active, coalesce(age(xmin), 0)::bigint, coalesce(age(catalog_xmin), 0)::bigint,
		       coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, restart_lsn), 0)::bigint
		from pg_replication_slots
		where xmin is not null or catalog_xmin is not null or restart_lsn is not null
		order by slot_name limit 50`)
	for _, s := range all {
		var what []string
		if s.Age > 0 && (!s.Active || s.Age > 1_000_000) {
			what = append(what, "it pins the horizon {xmin_age} transactions ago; "+pinned)
		}
		if s.Catalog > 0 && !s.Active {
			what = append(what, "it pins the horizon of the catalogues {catalog_xmin_age} transactions ago")
		}
		if s.WAL >= x.normal.keptWAL || !s.Active {
			what = append(what, "it keeps {kept_wal_bytes} of WAL, which grows until the disk is full")
		}
		if len(what) == 0 {
			continue
		}
		rule := slotIdle
		if s.Active {
			rule = slotSlow
		}
		rule.Problem = strings.Replace(rule.Problem, "{what}", strings.Join(what, "; "), 1)
		x.find(rule.With("name", quoteLiteral(s.Name)).Find("replication slot "+s.Name,
			map[string]any{"active": s.Active, "xmin_age": s.Age, "catalog_xmin_age": s.Catalog, "kept_wal_bytes": s.WAL}))
	}
	return err
}

var (
	// Prepared transactions outlive their session and the server.
	horizonPrepared = question{about: "prepared transactions", rule: warning("horizon_prepared",
		"{owner} prepared it {since_seconds} ago, and nobody has ended it: it keeps its locks, and jobs enqueued in it stay unseen; "+pinned,
		"ask who coordinates it; then commit prepared {quoted}, or rollback prepared {quoted}"), sql: `
		select 'prepared transaction ' || gid as subject, gid, quote_literal(gid) as quoted, owner::text, prepared as since,
		       extract(epoch from clock_timestamp() - prepared)::double precision as since_seconds
		from pg_prepared_xacts
		where database = current_database() and prepared < clock_timestamp() - @held::interval order by prepared limit 20`}

	// Standbys may have the primary keep what their own queries look at.
	horizonStandbys = question{about: "standbys", rule: warning("horizon_standby",
		"a query on {address}, with hot_standby_feedback, pins the horizon {xmin_age} transactions ago; "+pinned,
		"end the long query on the standby, or switch hot_standby_feedback off there"), sql: `
		select format('standby %s (session %s)', application_name, pid) as subject, pid, coalesce(application_name, '') as application,
		       coalesce(host(client_addr), 'a socket') as address, age(backend_xmin)::bigint as xmin_age
		from pg_stat_replication where backend_xmin is not null and age(backend_xmin) > 1000000 order by 5 desc limit 20`}
)

// ago is a time span for people.
func ago(seconds float64) time.Duration {
	return report.Roughly(time.Duration(seconds * float64(time.Second)))
}

func quoteLiteral(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
