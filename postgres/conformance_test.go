package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/storetest"
)

// TestConformance proves the contract on each server, with the defaults that
// databases have and with others. In -short it has the others only, since all other tests use
// the defaults, but where servers are named, such as the oldest, the defaults only.
func TestConformance(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, server *pgtest.Server) {
		places := map[string]place{
			"plain": {template: installed},
			// Everything that can be otherwise, at once.
			"odd": {template: elsewhere, config: Config{Schema: elsewhereName}, isolation: "repeatable read", std: true, hasty: true, batched: true},
		}
		majors := os.Getenv("STINT_PG_MAJORS") != ""
		switch {
		case testing.Short() && majors:
			delete(places, "odd")
		case testing.Short():
			delete(places, "plain")
		case majors:
			places["serializable"] = place{template: installed, isolation: "serializable"}
		}
		if os.Getenv("STINT_PG_POOLED") != "" && pooler != nil {
			places = map[string]place{"pooled": {template: installed, through: pooler(t, server)}}
		}
		for name, p := range places {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				storetest.Run(t, p.harness(server))
			})
		}
	})
}

// pooler starts one before a server and says how databases are reached by way
// of it; nil where there is none.
var pooler func(t *testing.T, server *pgtest.Server) func(url string) string

// place is a kind of database to run the suite on.
type place struct {
	template  *pgtest.Template
	config    Config
	isolation string                  // the default of its sessions
	std       bool                    // callers' transactions are those of database/sql
	hasty     bool                    // the sums follow the clock at once
	batched   bool                    // one job is stored as a batch is, where the tests are about unique jobs
	through   func(url string) string // the address by way of a pooler; may be nil
}

// hasten lets the sums keep up with a test, but where the doctor would see it.
func (p place) hasten(t testing.TB, s *Store) {
	if p.hasty && !strings.Contains(t.Name(), "/Doctor/") {
		exec(t, s, sumAtOnceSQL)
	}
}

func (p place) harness(server *pgtest.Server) storetest.Harness {
	return storetest.Harness{
		Pooled: p.through != nil,
		Open: func(t testing.TB) storetest.Store {
			url := p.template.On(t, server)
			if p.isolation != "" {
				must(t, setDefault(t.Context(), url, "default_transaction_isolation", p.isolation))
			}
			if p.through != nil {
				url = p.through(url)
			}
			s := openStore(t, url, p.config)
			p.hasten(t, s)
			if p.batched && strings.Contains(t.Name(), "/Unique/") {
				s.sql.oneOfMore = s.sql.unique
			}
			return s
		},
		Again: func(t testing.TB, of storetest.Store) (storetest.Store, error) {
			s, err := Open(context.Background(), of.(*Store).url(), p.config)
			if err == nil {
				t.Cleanup(s.Close)
			}
			return s, err
		},
		Begin: func(t testing.TB, of storetest.Store) (storetest.Tx, error) { return p.begin(t, of.(*Store), "") },
		BeginToFinish: func(t testing.TB, of storetest.Store) (storetest.Tx, error) {
			return p.begin(t, of.(*Store), pgx.ReadCommitted)
		},
		Pin: func(t testing.TB, of storetest.Store) (func(), error) {
			tx := begin(t, of.(*Store), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			_, err := tx.Exec(t.Context(), `select pg_current_xact_id(), count(*) from pg_class`)
			return func() { _ = tx.Rollback(context.Background()) }, err
		},
		SetSchema: func(t testing.TB, of storetest.Store, installed, oldest int) error {
			s := of.(*Store)
			_, err := s.pool.Exec(t.Context(), s.sql.in(`update stint.meta set version = $1, oldest = $2`), installed, oldest)
			return err
		},
		Pass: func(t testing.TB, of storetest.Store, d time.Duration) error {
			s := of.(*Store)
			for _, text := range []string{
				`update stint.idempotency set expires = expires - $1 * interval '1 microsecond', until = until - $1 * interval '1 microsecond'`,
				`update stint.executions set started = started - $1 * interval '1 microsecond', finished = finished - $1 * interval '1 microsecond'`,
				`update stint.engine_history set ended = ended - $1 * interval '1 microsecond'`,
				`update stint.changes set at = at - $1 * interval '1 microsecond'`,
			} {
				if _, err := s.pool.Exec(t.Context(), s.sql.in(text), d.Microseconds()); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// begin begins a caller's transaction, of the isolation that the session has
// unless one is named.
func (p place) begin(t testing.TB, s *Store, isolation pgx.TxIsoLevel) (storetest.Tx, error) {
	if p.std {
		return beginStd(t, s, isolation)
	}
	return beginPGX(t, s, isolation)
}

// callerTx is a user's transaction on a connection of its own, through either
// driver.
type callerTx struct {
	tx       stint.Tx
	exec     func(sql string) error
	end      func(verb string) error // the driver's own, which ends what is not prepared
	close    func()
	prepared string
	over     bool
}

func beginPGX(t testing.TB, s *Store, isolation pgx.TxIsoLevel) (storetest.Tx, error) {
	conn := connect(t, s)
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: isolation})
	if err != nil {
		return nil, err
	}
	exec := func(sql string) error {
		_, err := conn.Exec(context.Background(), sql)
		return err
	}
	return &callerTx{tx: Tx(tx), exec: exec, end: exec, close: func() { conn.Close(context.Background()) }}, nil
}

func beginStd(t testing.TB, s *Store, isolation pgx.TxIsoLevel) (storetest.Tx, error) {
	db := stdlib.OpenDB(*s.pool.Config().ConnConfig)
	t.Cleanup(func() { db.Close() })
	var options sql.TxOptions
	if isolation == pgx.ReadCommitted {
		options.Isolation = sql.LevelReadCommitted
	}
	tx, err := db.BeginTx(t.Context(), &options)
	if err != nil {
		return nil, err
	}
	return &callerTx{
		tx: SQLTx(tx),
		exec: func(sql string) error {
			_, err := tx.Exec(sql)
			return err
		},
		end: func(verb string) error {
			if verb == "commit" {
				return tx.Commit()
			} else if verb == "rollback" {
				return tx.Rollback()
			}
			// Database/sql knows nothing of what was prepared; its own
			// rollback only warns.
			_ = tx.Rollback()
			_, err := db.Exec(verb)
			return err
		},
		close: func() { db.Close() },
	}, nil
}

func (c *callerTx) Tx() stint.Tx                 { return c.tx }
func (c *callerTx) Savepoint(name string) error  { return c.exec("savepoint " + name) }
func (c *callerTx) RollbackTo(name string) error { return c.exec("rollback to " + name) }
func (c *callerTx) Commit() error                { return c.finish("commit") }
func (c *callerTx) Rollback() error              { return c.finish("rollback") }

func (c *callerTx) finish(verb string) error {
	if c.over {
		return nil
	}
	c.over = true
	defer c.close()
	if c.prepared != "" {
		verb = fmt.Sprintf("%s prepared '%s'", verb, c.prepared)
	}
	return c.end(verb)
}

func (c *callerTx) Prepare() error {
	c.prepared = fmt.Sprintf("two phases %p", c)
	return c.exec(fmt.Sprintf("prepare transaction '%s'", c.prepared))
}
