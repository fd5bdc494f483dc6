package sqliteload

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
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

func TestALogWorksOffEveryJobOnce(t *testing.T) {
	l, err := NewLog(filepath.Join(t.TempDir(), "log.db"), LogOptions{Batch: 70, Taken: 40})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	appended, worked := 0, 0
	if err := l.Append(t.Context(), 301, func(n int) { appended += n }); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{100, 201} {
		if err := l.Work(t.Context(), n, func(n int) { worked += n }); err != nil {
			t.Fatal(err)
		}
	}
	if appended != 301 || worked != 301 {
		t.Errorf("it tells of %d and %d jobs, want 301", appended, worked)
	}
	if n := ask(t, l.reads, "select count(*) from jobs join history using (pos)"); n != 301 {
		t.Errorf("%d jobs have a history, want 301", n)
	}
	if err := l.Work(t.Context(), 1, func(int) {}); err == nil || !strings.Contains(err.Error(), "1 of them are not there") {
		t.Errorf("of a job that is not there it says %v", err)
	}
	if n := ask(t, l.writes, "pragma synchronous"); n != 2 {
		t.Errorf("synchronous is %d, want full", n)
	}
}

func TestALogEndsWithItsContext(t *testing.T) {
	l, err := NewLog(filepath.Join(t.TempDir(), "log.db"), LogOptions{Batch: 10, Taken: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	if err := l.Append(ctx, 1_000_000_000, func(int) { cancel() }); err == nil {
		t.Error("a thousand million jobs were appended")
	}
	if err := l.Append(t.Context(), 100, func(int) {}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	if err := l.Work(ctx, 100, func(int) { cancel() }); err == nil {
		t.Error("it went on working")
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
