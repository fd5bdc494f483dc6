package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
)

// What shares a transaction must not share its fate.
func TestOneRefusedPartUndoesNoOther(t *testing.T) {
	s := open(t, Memory)
	bad := errors.New("refused")
	hold, held := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // keeps the writer, so that the others gather behind it
		_ = s.write(t.Context(), func(*conn) (bool, error) { close(held); <-hold; return false, nil })
	})
	<-held
	var errs [20]error
	for i := range errs {
		wg.Go(func() {
			errs[i] = s.write(t.Context(), func(c *conn) (bool, error) {
				if _, err := c.exec(tagSQL, fmt.Sprint(i), int64(i)); err != nil {
					return false, err
				}
				if i%3 == 0 {
					return false, bad
				}
				return false, nil
			})
		})
	}
	gathered(t, s, len(errs))
	close(hold)
	wg.Wait()
	for i, err := range errs {
		if want := i%3 == 0; want != errors.Is(err, bad) {
			t.Errorf("part %d: %v", i, err)
		}
		there := false
		err := s.read(t.Context(), func(c *conn) (err error) {
			there, err = c.found(`select 1 from stint_job_tags where job = ?`, int64(i))
			return err
		})
		if want := i%3 != 0; err != nil || there != want {
			t.Errorf("part %d is there: %v, want %v (%v)", i, there, want, err)
		}
	}
}

// A full disk undoes the whole transaction, also what others put into it.
func TestALostTransactionIsMadeUpForPartByPart(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	hold, held := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.write(t.Context(), func(c *conn) (bool, error) { close(held); <-hold; return false, nil })
	})
	<-held
	var errs [5]error
	for i := range errs {
		wg.Go(func() {
			errs[i] = s.write(t.Context(), func(c *conn) (bool, error) {
				if i == 2 {
					return false, errors.Join(sqlite3.FULL, c.db.Exec(`rollback`))
				}
				return false, storeJobs(t.Context(), (*direct)(c), someJobs(1), make([]stint.Receipt, 1), nil)
			})
		})
	}
	gathered(t, s, len(errs))
	close(hold)
	wg.Wait()
	for i, err := range errs {
		if (i == 2) != errors.Is(err, sqlite3.FULL) {
			t.Errorf("part %d: %v", i, err)
		}
	}
	if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Available] != 4 {
		t.Errorf("the counts are %v, error %v; want 4 available", counts, err)
	}
}

// gathered waits until n parts wait for the writer.
func gathered(t *testing.T, s *Store, n int) {
	t.Helper()
	for range 1000 {
		s.writer.mu.Lock()
		waiting := len(s.writer.queue)
		s.writer.mu.Unlock()
		if waiting == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("%d parts never gathered", n)
}

func TestWhoGivesUpWaitingHasWrittenNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, path)
	tx, err := database(t, path).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), Tx(tx), someJobs(1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Enqueue(ctx, stint.Tx{}, someJobs(10)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside an open transaction an enqueue gives %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	enqueue(t, s, someJobs(1))
	if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Available] != 2 {
		t.Errorf("the counts are %v, error %v; want 2 available", counts, err)
	}
}

func TestABusyFileIsToldAsSuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, path, Config{Busy: 20 * time.Millisecond})
	tx, err := database(t, path).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := s.Enqueue(t.Context(), Tx(tx), someJobs(1)); err != nil {
		t.Fatal(err)
	}
	_, err = s.Enqueue(t.Context(), stint.Tx{}, someJobs(1))
	if !errors.Is(err, sqlite3.BUSY) || !strings.Contains(err.Error(), "enqueue 1 jobs: another connection") {
		t.Errorf("beside an open transaction an enqueue gives %v", err)
	}
}
