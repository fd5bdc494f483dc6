package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"testing"

	sqldriver "github.com/ncruces/go-sqlite3/driver"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// completing is a handler that completes a job in transactions of a database.
type completing struct {
	*Store
	w *storetest.Worker
	c store.Claim
	x store.Completion
}

func working(t *testing.T, s *Store) *completing {
	enqueue(t, s, someJobs(1))
	w := storetest.Join(t, s, "noop")
	c, err := w.TryClaim(t.Context(), store.ClaimRequest{Lane: store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID, Max: 1})
	if err != nil || len(c.Entries) != 1 {
		t.Fatalf("claimed %v, error %v", c.Positions, err)
	}
	return &completing{s, w, c, w.Conclude(c.Entries[0], store.Result{Outcome: stint.OutcomeCompleted})}
}

// in begins a transaction, lets the handler write, and completes.
func (h *completing) in(t *testing.T, db *sql.DB, statements ...string) error {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range statements {
		if _, err := tx.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	return h.FinishTx(t.Context(), Tx(tx), h.w.Info.Token, h.c.ClaimRef, h.x)
}

func (h *completing) is(t *testing.T, want stint.State) {
	t.Helper()
	if job, err := h.Job(t.Context(), h.x.Job); err != nil || job.State != want {
		t.Errorf("the job is %+v, error %v; want %s", job, err, want)
	}
}

// A commit that the database refuses leaves nothing, and that is known.
func TestACommitThatIsRefusedLeavesNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	db := database(t, s.path)
	db.SetMaxOpenConns(1)
	for _, text := range []string{
		`pragma foreign_keys = on`, `create table a (id integer primary key)`,
		`create table b (a integer references a deferrable initially deferred)`,
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	h := working(t, s)
	if err := h.in(t, db, `insert into b values (1)`); err == nil || errors.Is(err, stint.ErrCommitUnknown) {
		t.Errorf("completing gives %v", err)
	}
	h.is(t, stint.Running)
	if err := h.in(t, db, `insert into a values (1)`, `insert into b values (1)`); err != nil {
		t.Error(err)
	}
	h.is(t, stint.Completed)
	storetest.Verify(t, s)
}

// When the driver says that a commit failed, the file knows better.
func TestACommitThatHappenedIsNoError(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	db := sql.OpenDB(liar{"file:" + s.path, driver.Tx.Commit})
	t.Cleanup(func() { _ = db.Close() })
	h := working(t, s)
	if err := h.in(t, db); err != nil {
		t.Errorf("completing gives %v, though it was committed", err)
	}
	h.is(t, stint.Completed)
	h = working(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.commit(t.Context(), tx, completedSQL, int64(h.x.Pos)); !errors.Is(err, stint.ErrCommitUnknown) {
		t.Errorf("when nobody can look, completing gives %v, want ErrCommitUnknown", err)
	}
}

// When a commit failed and the engine is buried before anybody looks, there is a
// record of the claim, and it says that the job was handed back.
func TestACommitThatFailedIsNoSuccessWhenItsEngineIsBuried(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	complete(t, s, 1)
	h := working(t, s)
	db := sql.OpenDB(liar{"file:" + s.path, func(tx driver.Tx) error {
		if err := tx.Rollback(); err != nil {
			return err
		}
		_, err := storetest.Bury(t.Context(), s, store.Burial{Engine: h.w.Info.Token}, storetest.Judge)
		return err
	}})
	t.Cleanup(func() { _ = db.Close() })
	if err := h.in(t, db); err == nil || errors.Is(err, stint.ErrCommitUnknown) {
		t.Errorf("completing gives %v, though it was rolled back", err)
	}
	h.is(t, stint.Available)
	storetest.Verify(t, s)
}

// liar is a driver that does something at a commit, and says that it failed.
type liar struct {
	path   string
	commit func(driver.Tx) error
}

func (l liar) Driver() driver.Driver { return &sqldriver.SQLite{} }

func (l liar) Connect(context.Context) (driver.Conn, error) {
	c, err := (&sqldriver.SQLite{}).Open(l.path)
	return lyingConn{c, l.commit}, err
}

type lyingConn struct {
	driver.Conn
	commit func(driver.Tx) error
}

func (c lyingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return lyingTx{tx, c.commit}, err
}

type lyingTx struct {
	driver.Tx
	commit func(driver.Tx) error
}

func (tx lyingTx) Commit() error {
	return errors.Join(tx.commit(tx.Tx), errors.New("no answer"))
}
