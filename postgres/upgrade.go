package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint/internal/steps"
)

// metaTable is where the version stands.
const metaTable = "stint.meta"

// migrateLock is the advisory lock under which schemas are changed, so that
// of ten programs that start at once one installs.
//
// It is tried and never waited for. A session that waits for a lock has a
// snapshot meanwhile, and an index that is built concurrently waits for every
// older snapshot of the database: the two would wait for each other.
const migrateLock = 0x7374696e74 // "stint"

// errOthers says that another session is changing a schema of this database.
var errOthers = errors.New("another program is changing the schema")

// pace is how a step waits for locks that others hold.
type pace struct {
	// lock is how long at a time. A session that comes after a waiting alter table
	// waits for it in turn, so this is how long all work may stand still. It
	// is less than an engine may go without a beat, and more than the second
	// (deadlock_timeout) after which an autovacuum makes room.
	lock time.Duration

	pause, longest time.Duration // between two tries, at first and at most
	patience       time.Duration // in all
}

var unhurried = pace{lock: 2 * time.Second, pause: 250 * time.Millisecond, longest: 10 * time.Second, patience: 5 * time.Minute}

// upgrade does a step, unless another session has done it meanwhile.
func (s *Store) upgrade(ctx context.Context, step steps.Step) error {
	if step.Online {
		return s.patiently(ctx, func() error { return translate(s.online(ctx, step)) })
	}
	return s.alone(ctx, step.Version-1, func(tx pgx.Tx) error {
		return execMany(ctx, tx.Conn(), s.sql.in(step.Text+"\n"+step.Record(metaTable)))
	})
}

// alone runs f in a transaction while which no other session changes a schema, if
// the schema has the version still. It may run more than once.
func (s *Store) alone(ctx context.Context, version int, f func(tx pgx.Tx) error) error {
	begin := beginLongSQL + fmt.Sprintf("; set local lock_timeout = %d", s.pace.lock.Milliseconds())
	return s.patiently(ctx, func() error {
		return translate(pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{BeginQuery: begin}, func(tx pgx.Tx) error {
			mine := false
			if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, migrateLock).Scan(&mine); err != nil {
				return err
			}
			if !mine {
				return errOthers
			}
			if info, err := s.installed(ctx, tx); err != nil || info.Installed != version {
				return err
			}
			if err := s.actForOwner(ctx, tx.Conn(), "set local role "); err != nil {
				return err
			}
			return f(tx)
		}))
	})
}

// online does a step whose statements cannot be in a transaction. It takes the
// lock for its session: that ends with what the session was doing.
//
// These statements wait for locks that stop no other session: writers and readers of
// the table do not queue after them. So they wait as long as it takes.
func (s *Store) online(ctx context.Context, step steps.Step) error {
	conn, err := s.dial(ctx, "stint migrate")
	if err != nil {
		return err
	}
	defer hangUp(ctx, conn)
	if err := s.ownsSession(ctx, conn); err != nil {
		return err
	}
	mine := false
	if err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1)`, migrateLock).Scan(&mine); err != nil {
		return err
	} else if !mine {
		return errOthers
	}
	// Let go of here and not only by the end of the session, which a pooler
	// may keep.
	defer func() {
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = conn.Exec(bye, `select pg_advisory_unlock($1)`, migrateLock)
	}()
	if info, err := s.installed(ctx, conn); err != nil || info.Installed != step.Version-1 {
		return err
	}
	if _, err := conn.Exec(ctx, `
		select set_config(name, '0', false) from unnest(array['statement_timeout', 'transaction_timeout', 'lock_timeout']) as name
		where current_setting(name, true) is not null`); err != nil {
		return err
	}
	if err := s.actForOwner(ctx, conn, "set role "); err != nil {
		return err
	}
	for _, statement := range step.Statements() {
		if err := s.dropInvalid(ctx, conn, steps.Builds(statement)); err != nil {
			return err
		}
		if err := execMany(ctx, conn, s.sql.in(statement)); err != nil {
			return err
		}
	}
	return execMany(ctx, conn, s.sql.in(step.Record(metaTable)))
}

// actForOwner becomes the owner of a schema that is there, where the session's
// role is a member of it: what is made belongs to the same role, whichever of its
// members makes it.
func (s *Store) actForOwner(ctx context.Context, conn *pgx.Conn, become string) error {
	var owner string
	err := conn.QueryRow(ctx, `
		select r.rolname from pg_catalog.pg_namespace n join pg_catalog.pg_roles r on r.oid = n.nspowner
		where n.nspname = $1 and r.rolname <> current_user and pg_has_role(current_user, r.oid, 'member')`, s.schema).Scan(&owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	return execMany(ctx, conn, become+pgx.Identifier{owner}.Sanitize())
}

// dropInvalid drops what is left of an index whose building was cut off. It
// costs every write of its table and serves no query.
func (s *Store) dropInvalid(ctx context.Context, conn *pgx.Conn, index string) error {
	invalid := false
	err := conn.QueryRow(ctx, `
		select exists (select from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
		               join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		               where n.nspname = $1 and c.relname = $2 and not i.indisvalid)`, s.schema, index).Scan(&invalid)
	if err != nil || !invalid {
		return err
	}
	return execMany(ctx, conn, "drop index concurrently if exists "+s.sql.schema+"."+pgx.Identifier{index}.Sanitize())
}

// execMany runs statements by the simple protocol, which takes many at once.
func execMany(ctx context.Context, conn *pgx.Conn, text string) error {
	_, err := conn.PgConn().Exec(ctx, text).ReadAll()
	return err
}

// patiently tries again what gave way to others, later each time. For another
// program that changes the schema it waits until ctx ends.
func (s *Store) patiently(ctx context.Context, try func() error) error {
	begun, pause := time.Now(), s.pace.pause
	for turn := 10 * time.Millisecond; ; {
		err := try()
		wait := rand.N(pause/2) + pause/2
		switch {
		case errors.Is(err, errOthers):
			wait, turn = rand.N(turn)+turn/2, min(2*turn, time.Second)
		case !gaveWay(err):
			return err
		case time.Since(begun) > s.pace.patience:
			return fmt.Errorf("what it changes stayed locked%s: %w", s.inTheWay(ctx), err)
		default:
			pause = min(2*pause, s.pace.longest)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// gaveWay reports a lock that was not to be had in time, and of a deadlock.
func gaveWay(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "40P01")
}

// inTheWay names the transaction that has held locks on the schema for longest.
func (s *Store) inTheWay(ctx context.Context) string {
	var text string
	err := s.pool.QueryRow(ctx, `
		select format(' (process %s, %s of %s, is in a transaction since %s)', a.pid, coalesce(nullif(a.application_name, ''), 'a session'),
		              a.usename, to_char(a.xact_start at time zone 'utc', 'HH24:MI:SS "UTC"'))
		from pg_stat_activity a
		where a.pid <> pg_backend_pid() and exists (
		  select from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
		  where l.pid = a.pid and l.granted and n.nspname = $1)
		order by a.xact_start limit 1`, s.schema).Scan(&text)
	if err != nil {
		return "" // it is only a hint
	}
	return text
}
