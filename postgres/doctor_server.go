package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

// newestMajor is the newest server that the tests run on.
const newestMajor = 18

// server looks at what kind of server this is, and with whose rights.
func (x *examination) server(ctx context.Context, tx pgx.Tx) error {
	var (
		encoding string
		backend  int32
		readOnly bool
	)
	err := tx.QueryRow(ctx, `
		select current_setting('server_version_num')::integer, current_setting('server_encoding'), pg_is_in_recovery(), current_user::text,
		       pg_has_role('pg_read_all_stats', 'member'), pg_backend_pid(),
		       coalesce((select bool_or(reset_val = 'on') from pg_settings where name = 'default_transaction_read_only'), false)`,
	).Scan(&x.version, &encoding, &x.standby, &x.role, &x.sees, &backend, &readOnly)
	if err != nil {
		return err
	}
	major := x.version / 10000
	switch {
	case major < 13:
		x.find(stint.Finding{Severity: stint.SeverityProblem, Code: "server_too_old", Subject: fmt.Sprint("PostgreSQL ", major),
			Problem: "stint needs 13 or newer", Remedy: "upgrade the server"})
	case major > newestMajor:
		x.find(stint.Finding{Severity: stint.SeverityNote, Code: "server_untried", Subject: fmt.Sprint("PostgreSQL ", major),
			Problem: fmt.Sprintf("this stint was tested up to PostgreSQL %d", newestMajor), Remedy: "see whether there is a newer stint"})
	}
	if encoding != "UTF8" {
		x.find(stint.Finding{Severity: stint.SeverityProblem, Code: "encoding", Subject: "the database",
			Problem: "its encoding is " + encoding + ", which cannot hold every text", Remedy: "create a database with the encoding UTF8, and restore a dump into it"})
	}
	if x.standby {
		x.find(stint.Finding{Severity: stint.SeverityProblem, Code: "server_in_recovery", Subject: "the server",
			Problem: "it is a standby, or still recovers, and takes no writes", Remedy: "connect to the primary (target_session_attrs=read-write in the URL), or promote this one: select pg_promote()"})
	} else if readOnly {
		x.find(stint.Finding{Severity: stint.SeverityProblem, Code: "read_only", Subject: "default_transaction_read_only",
			Problem: "transactions of this role in this database may only read", Remedy: x.reset("default_transaction_read_only")})
	}
	if !x.sees {
		x.find(stint.Finding{Severity: stint.SeverityNote, Code: "limited_view", Subject: "role " + x.role,
			Problem: "it does not see what other roles' sessions do, since when and with which statement", Remedy: "grant pg_monitor to " + pgx.Identifier{x.role}.Sanitize()})
	}
	if isPooled(tx.Conn(), backend) {
		x.find(stint.Finding{Severity: stint.SeverityNote, Code: "pooler", Subject: "the connection",
			Problem: "something stands between this program and the server; engines' sessions keep the time-outs of that",
			Remedy:  "have engines connect to the server itself, or see that the pooler's sessions end when a client is gone"})
	}
	return nil
}

// reset is how a setting of a role or database is taken back.
func (x *examination) reset(setting string) string {
	return fmt.Sprintf("alter role %s reset %s, or the same of the database, where \\drds in psql lists it; or leave it out of the URL", pgx.Identifier{x.role}.Sanitize(), setting)
}

// wraparound looks how near the server is to taking no more writes.
func (x *examination) wraparound(ctx context.Context, tx pgx.Tx) error {
	const last = 2_100_000_000
	type age struct {
		What string
		Age  int64
	}
	ages, err := ask[age](ctx, tx, `
		select 'transaction numbers', age(datfrozenxid)::bigint from pg_database where datname = current_database()
		union all select 'multixact numbers', mxid_age(datminmxid)::bigint from pg_database where datname = current_database()`)
	if err != nil {
		return err
	}
	for _, a := range ages {
		if a.Age < x.normal.frozen {
			continue
		}
		f := stint.Finding{
			Severity: stint.SeverityWarning, Code: "wraparound", Subject: a.What,
			Problem: fmt.Sprintf("the oldest row is %d of them old; near %d the server takes no more writes", a.Age, int64(last)),
			Remedy:  "find what keeps vacuum from freezing (see the findings about the horizon), end it, and run: vacuum (freeze, verbose)",
			Figures: map[string]any{"age": a.Age},
		}
		if a.Age > last*3/4 {
			f.Severity = stint.SeverityProblem
		}
		x.find(f)
	}
	return nil
}

// connections compares those in use with those that there are.
func (x *examination) connections(ctx context.Context, tx pgx.Tx) error {
	var used, room int
	err := tx.QueryRow(ctx, `
		select (select count(*) from pg_stat_activity where backend_type = 'client backend')::integer,
		       current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer`).Scan(&used, &room)
	if err != nil || float64(used) < x.normal.fullShare*float64(room) {
		return err
	}
	x.find(stint.Finding{
		Severity: stint.SeverityWarning, Code: "connections_short", Subject: "max_connections",
		Problem: fmt.Sprintf("%d of %d connections are in use; an engine needs up to 8, and one that cannot connect cannot beat", used, room),
		Remedy:  "raise max_connections, give programs smaller pools (pool_max_conns in the URL), or put a pooler in session mode before those that need none of their own",
		Figures: map[string]any{"used": used, "room": room},
	})
	return nil
}

// listening sees whether a ring reaches whoever listens, on a channel that
// nobody else knows.
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
		x.find(stint.Finding{
			Severity: stint.SeverityWarning, Code: "listen_deaf", Subject: "LISTEN and NOTIFY",
			Problem: fmt.Sprintf("a notification did not arrive within %v, so engines find new jobs by their polls only", x.normal.ring),
			Remedy:  "a pooler in transaction mode does that: have engines connect to the server itself, or to the pooler in session mode",
		})
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
