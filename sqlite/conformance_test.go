package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		SingleWriter: true,
		Open: func(t testing.TB) storetest.Store {
			return open(t, filepath.Join(t.TempDir(), "jobs.db"))
		},
		Again: func(t testing.TB, of storetest.Store) (storetest.Store, error) {
			s, err := Open(t.Context(), of.(*Store).path)
			if err == nil {
				t.Cleanup(func() { _ = s.Close() })
			}
			return s, err
		},
		Begin: func(t testing.TB, of storetest.Store) (storetest.Tx, error) {
			tx, err := database(t, of.(*Store).path).BeginTx(t.Context(), nil)
			return callersTx{tx}, err
		},
		Pin: func(t testing.TB, of storetest.Store) (func(), error) {
			tx, err := database(t, of.(*Store).path).BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
			if err != nil {
				return nil, err
			}
			var n int
			return func() { _ = tx.Rollback() }, tx.QueryRow(`select count(*) from stint_entries`).Scan(&n)
		},
		SetSchema: func(t testing.TB, of storetest.Store, installed, oldest int) error {
			_, err := database(t, of.(*Store).path).Exec(`update stint_meta set version = ?, oldest = ?`, installed, oldest)
			return err
		},
		Pass: func(t testing.TB, of storetest.Store, d time.Duration) error {
			for _, text := range []string{
				`update stint_idempotency set expires = expires - ?1, until = until - ?1`, `update stint_changes set at = at - ?1`,
				`update stint_executions set started = started - ?1, finished = finished - ?1`, `update stint_engine_history set ended = ended - ?1`,
			} {
				if _, err := database(t, of.(*Store).path).Exec(text, d.Microseconds()); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// open opens a store that the test closes.
func open(t testing.TB, path string, config ...Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, config...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// database opens the file as a user's program does.
func database(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// sqlTx gives the caller's transaction a name that does not collide with the
// method Tx.
type sqlTx = sql.Tx

type callersTx struct{ *sqlTx }

func (tx callersTx) Tx() stint.Tx { return Tx(tx.sqlTx) }

func (tx callersTx) Savepoint(name string) error {
	_, err := tx.Exec("savepoint " + name)
	return err
}

func (tx callersTx) RollbackTo(name string) error {
	_, err := tx.Exec("rollback to " + name)
	return err
}
