package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

// pinned is what somebody who holds the horizon does to stint.
const pinned = "vacuum cannot clean up what was deleted since: claims and outcomes do not step over it and stay fast, but the tables of what waits and of beats grow"

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

func (s session) subject() string { return fmt.Sprintf("session %d", s.PID) }

// who says whose session it is, and what it does.
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

// sessionColumns cuts statements: some are megabytes of values.
const sessionColumns = `
  a.pid, coalesce(a.usename::text, ''), coalesce(a.application_name, ''), coalesce(a.state, ''),
  left(regexp_replace(coalesce(a.query, ''), '\s+', ' ', 'g'), 120), a.xact_start,
  coalesce(extract(epoch from clock_timestamp() - a.xact_start), 0)::double precision,
  coalesce(greatest(age(a.backend_xmin), age(a.backend_xid)), 0)::bigint`

// horizonSessions are transactions of this database that were begun long ago,
// or that nobody has gone on with for a while: those of others do not hold up its
// vacuum. Whoever may not see since when they run goes by how many transactions
// began after them.
func (x *examination) horizonSessions(ctx context.Context, tx pgx.Tx) error {
	type open struct {
		session
		Idle float64
		Pins bool
	}
	rows, err := tx.Query(ctx, `
		select `+sessionColumns+`,
		  case when a.state like 'idle in transaction%' then coalesce(extract(epoch from clock_timestamp() - a.state_change), 0) else 0 end::double precision,
		  a.backend_xmin is not null or a.backend_xid is not null
		from pg_stat_activity a
		where a.datname = current_database() and a.pid <> pg_backend_pid() and (a.backend_xmin is not null or a.backend_xid is not null or a.state like 'idle in transaction%')
		  and coalesce(a.backend_type, '') not in ('autovacuum worker', 'walsender')
		  and (a.xact_start < clock_timestamp() - $1::interval
		       or a.state like 'idle in transaction%' and a.state_change < clock_timestamp() - $2::interval
		       or a.xact_start is null and greatest(age(a.backend_xmin), age(a.backend_xid)) > 1000000)
		order by a.xact_start limit 20`, x.normal.held, x.normal.idle)
	if err != nil {
		return err
	}
	var o open
	s := &o.session
	_, err = pgx.ForEachRow(rows, []any{&s.PID, &s.User, &s.Application, &s.State, &s.Query, &s.Since, &s.Seconds, &s.Age, &o.Idle, &o.Pins}, func() error {
		since := "for many transactions"
		if s.Since != nil {
			since = fmt.Sprintf("for %v, since %s UTC", ago(s.Seconds), s.Since.UTC().Format(time.DateTime))
		}
		f := stint.Finding{
			Severity: stint.SeverityWarning, Code: "horizon_session", Subject: s.subject(),
			Problem: fmt.Sprintf("its transaction pins the horizon %s (%s); %s", since, s.who(), pinned),
			Remedy:  fmt.Sprintf("if nobody needs it: select pg_terminate_backend(%d); against the next one: alter role %s set idle_in_transaction_session_timeout = '5min'", s.PID, pgx.Identifier{s.User}.Sanitize()),
			Figures: s.figures(),
		}
		if o.Idle > 0 {
			f.Figures["idle_seconds"] = o.Idle
		}
		if !o.Pins {
			f.Code = "transaction_idle"
			f.Problem = fmt.Sprintf("its transaction is open %s, and idle (%s); it keeps the locks that it has, and whoever changes a table that it touched waits", since, s.who())
			if s.Seconds < x.normal.held.Seconds() {
				f.Severity = stint.SeverityNote
			}
		}
		x.find(f)
		return nil
	})
	return err
}

// horizonPrepared are prepared transactions, which outlive their session and
// the server.
func (x *examination) horizonPrepared(ctx context.Context, tx pgx.Tx) error {
	type prepared struct {
		GID, Owner string
		At         time.Time
		Seconds    float64
	}
	all, err := ask[prepared](ctx, tx, `
		select gid, owner::text, prepared, extract(epoch from clock_timestamp() - prepared)::double precision from pg_prepared_xacts
		where database = current_database() and prepared < clock_timestamp() - $1::interval order by prepared limit 20`, x.normal.held)
	if err != nil {
		return err
	}
	for _, p := range all {
		x.find(stint.Finding{
			Severity: stint.SeverityWarning, Code: "horizon_prepared", Subject: "prepared transaction " + p.GID,
			Problem: fmt.Sprintf("%s prepared it %v ago, and nobody has ended it: it keeps its locks, and jobs enqueued in it stay unseen; %s", p.Owner, ago(p.Seconds), pinned),
			Remedy:  fmt.Sprintf("ask who coordinates it; then commit prepared %s, or rollback prepared %[1]s", quoteLiteral(p.GID)),
			Figures: map[string]any{"gid": p.GID, "owner": p.Owner, "since": p.At.UTC(), "since_seconds": p.Seconds},
		})
	}
	return nil
}

// horizonSlots are replication slots: what one pins stays pinned while nobody
// is connected to it.
func (x *examination) horizonSlots(ctx context.Context, tx pgx.Tx) error {
	type slot struct {
		Name, Kind   string
		Active       bool
		Age, Catalog int64
		WAL          int64
	}
	all, err := ask[slot](ctx, tx, `
		select slot_name::text, slot_type, active, coalesce(age(xmin), 0)::bigint, coalesce(age(catalog_xmin), 0)::bigint,
		       coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, restart_lsn), 0)::bigint
		from pg_replication_slots
		where xmin is not null or catalog_xmin is not null or restart_lsn is not null
		order by slot_name limit 50`)
	if err != nil {
		return err
	}
	for _, s := range all {
		f := stint.Finding{
			Severity: stint.SeverityWarning, Code: "horizon_slot", Subject: "replication slot " + s.Name,
			Figures: map[string]any{"active": s.Active, "xmin_age": s.Age, "catalog_xmin_age": s.Catalog, "kept_wal_bytes": s.WAL},
		}
		var what []string
		if s.Age > 0 && (!s.Active || s.Age > 1_000_000) {
			what = append(what, fmt.Sprintf("it pins the horizon %d transactions ago; %s", s.Age, pinned))
		}
		if s.Catalog > 0 && !s.Active {
			what = append(what, fmt.Sprintf("it pins the horizon of the catalogues %d transactions ago", s.Catalog))
		}
		if s.WAL >= x.normal.keptWAL || !s.Active {
			what = append(what, fmt.Sprintf("it keeps %d MB of WAL, which grows until the disk is full", s.WAL>>20))
		}
		if len(what) == 0 {
			continue
		}
		f.Problem = strings.Join(what, "; ")
		f.Remedy = "have its standby or subscriber catch up, and set max_slot_wal_keep_size"
		if !s.Active {
			f.Problem = "nobody is connected to it, and " + f.Problem
			f.Remedy = fmt.Sprintf("connect what it is for, or drop it: select pg_drop_replication_slot(%s)", quoteLiteral(s.Name))
		}
		x.find(f)
	}
	return nil
}

// horizonStandbys are standbys that have the primary keep what their own
// queries look at.
func (x *examination) horizonStandbys(ctx context.Context, tx pgx.Tx) error {
	type standby struct {
		PID               int32
		Application, Addr string
		Age               int64
	}
	all, err := ask[standby](ctx, tx, `
		select pid, coalesce(application_name, ''), coalesce(host(client_addr), 'a socket'), age(backend_xmin)::bigint
		from pg_stat_replication where backend_xmin is not null and age(backend_xmin) > 1000000 order by 4 desc limit 20`)
	if err != nil {
		return err
	}
	for _, s := range all {
		x.find(stint.Finding{
			Severity: stint.SeverityWarning, Code: "horizon_standby", Subject: fmt.Sprintf("standby %s (session %d)", s.Application, s.PID),
			Problem: fmt.Sprintf("a query on %s, with hot_standby_feedback, pins the horizon %d transactions ago; %s", s.Addr, s.Age, pinned),
			Remedy:  "end the long query on the standby, or switch hot_standby_feedback off there",
			Figures: map[string]any{"pid": s.PID, "application": s.Application, "address": s.Addr, "xmin_age": s.Age},
		})
	}
	return nil
}

// ago is a time span for people.
func ago(seconds float64) time.Duration {
	d := time.Duration(seconds * float64(time.Second))
	if d > 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

func quoteLiteral(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
