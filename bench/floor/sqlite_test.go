package floor

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint/bench/contest"
)

func ask(t *testing.T, c *sqlite3.Conn, text string) int {
	t.Helper()
	s, _, err := c.Prepare(text)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !s.Step() {
		t.Fatal(s.Err())
	}
	return s.ColumnInt(0)
}

func TestALogInAFileWorksOffEveryJobOnce(t *testing.T) {
	l, err := NewSQLiteLog(filepath.Join(t.TempDir(), "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, n := range []int{taken + 301, 200} {
		if err := contest.Recorded(t.Context(), l, n, func() error {
			_, err := contest.Burn(t.Context(), l, n, contest.Bulk{Batch: 70})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := ask(t, l.reads, "select count(*) from jobs join history using (pos)"); n != taken+501 {
		t.Errorf("%d jobs have a history, want %d", n, taken+501)
	}
	if n := ask(t, l.writes, "pragma synchronous"); n != 2 {
		t.Errorf("synchronous is %d, want full", n)
	}
}

func TestALogInAFileEndsWithItsContext(t *testing.T) {
	l, err := NewSQLiteLog(filepath.Join(t.TempDir(), "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := contest.Burn(ctx, l, 100_000_000, contest.Bulk{Batch: 10}); err == nil {
		t.Error("a hundred million jobs were stored")
	}
}

func TestRowsAreInsertedAndReadAgain(t *testing.T) {
	r, err := NewRows(filepath.Join(t.TempDir(), "rows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range 3 {
		if err := r.Insert(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		if err := r.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := ask(t, r.writes, "select count(*) from jobs"); n != 6 {
		t.Errorf("there are %d rows, want 6", n)
	}
	if _, err := NewRows(filepath.Join(t.TempDir(), "nowhere", "rows.db")); err == nil {
		t.Error("a file was opened where there is no directory")
	}
}
