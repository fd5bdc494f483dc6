package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/storetest"
)

// A plain rowid starts again at 1 when a table is empty. Behind a frontier, new
// jobs would never run.
func TestPositionsAreNotReusedWhenHistoryIsDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, path)
	enqueue(t, s, someJobs(10))
	w := storetest.Join(t, s, "noop")
	w.Complete(w.ClaimAll()...)
	err := s.write(t.Context(), func(c *conn) (bool, error) {
		return false, c.db.Exec(`delete from stint_entries; delete from stint_executions`)
	})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.Enqueue(t.Context(), stint.Tx{}, someJobs(2))
	if err != nil || ids[0] != 11 {
		t.Fatalf("the ids are %v, error %v; want 11 and 12", ids, err)
	}
	if got := w.ClaimAll(); len(got) != 2 {
		t.Errorf("%d of the 2 new jobs were claimed", len(got))
	}
}

// Reusing the id as position runs a job due at 11 before one due at 10.
func TestPromotionDrawsPositionsInTheOrderOfDueTimes(t *testing.T) {
	s := open(t, Memory)
	at := time.Now().Add(20 * time.Millisecond)
	jobs := someJobs(3)
	jobs[0].RunAt, jobs[1].RunAt, jobs[2].RunAt = at.Add(2*time.Millisecond), at.Add(time.Millisecond), at
	ids, err := s.Enqueue(t.Context(), stint.Tx{}, jobs)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(at) + 5*time.Millisecond)
	if p, err := s.Promote(t.Context(), time.Time{}, 10); err != nil || p.Moved != 3 {
		t.Fatalf("promoted %+v, error %v", p, err)
	}
	var got []stint.ID
	for _, e := range storetest.Join(t, s, "noop").ClaimAll() {
		got = append(got, e.ID)
		if int64(e.Pos) <= int64(ids[2]) {
			t.Errorf("job %d has the position %d, which is not a fresh one", e.ID, e.Pos)
		}
	}
	if want := []stint.ID{ids[2], ids[1], ids[0]}; !slices.Equal(got, want) {
		t.Errorf("claimed %v, want %v", got, want)
	}
}

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
				return false, storeJobs(t.Context(), (*direct)(c), someJobs(1), make([]stint.ID, 1))
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

func TestAJudgeThatPanicsBuriesNobody(t *testing.T) {
	s := open(t, Memory)
	enqueue(t, s, someJobs(2))
	w := storetest.Join(t, s, "noop")
	w.ClaimAll()
	func() {
		defer func() {
			if recover() == nil {
				t.Errorf("the panic was swallowed")
			}
		}()
		_, _ = s.Bury(t.Context(), stint.Burial{Engine: w.Info.Token}, func(*stint.Entry, bool) stint.Execution { panic("no") })
	}()
	if n := w.Leave(); n != 2 {
		t.Errorf("afterwards %d entries were concluded, want 2", n)
	}
	storetest.Verify(t, s)
}

// U36: an impossible state cannot be stored, whoever tries.
func TestImpossibleStatesCannotBeStored(t *testing.T) {
	s := open(t, Memory)
	const (
		entry = `insert into stint_entries (lane, created, job, body, attempt, priority, losses, suspect, queue, kind, args, metadata, tags) values `
		exec  = `insert into stint_executions (pos, attempt, nonce, engine, slot, started, finished, outcome, final, result) values `
		wait  = `insert into stint_waiting (job, due, body, why, attempt, priority, losses, suspect, queue, kind) values `
		claim = `insert into stint_claims (lane, n, nonce, engine, serial, start, frontier, taken) values `
	)
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{entry + `(1, 1, null, null, 1, 0, 0, 0, 'q', 'k', '{}', null, null)`, true},
		{entry + `(1, 1, null, null, 1, 0, 0, 0, 'q', 'k', null, null, null)`, false},   // no arguments
		{entry + `(1, 1, 9, 9, 1, 0, 0, 0, 'q', 'k', '{}', null, null)`, false},         // arguments twice
		{entry + `(1, 1, null, 9, 1, 0, 0, 0, 'q', 'k', null, null, null)`, false},      // contents elsewhere, job here
		{entry + `(1, 1, null, null, 1, 0, 0, 0, 'q', 'k', '{', null, null)`, false},    // no JSON
		{entry + `(1, 1, null, null, 1, 0, 0, 0, 'q', 'k', '{}', '[]', null)`, false},   // metadata is an object
		{entry + `(1, 1, null, null, 1, 0, 0, 0, 'q', 'k', '{}', null, '{}')`, false},   // tags are a list
		{entry + `(1, 1, null, null, 0, 0, 0, 0, 'q', 'k', '{}', null, null)`, false},   // attempt 0
		{entry + `(1, 1, null, null, 1, 101, 0, 0, 'q', 'k', '{}', null, null)`, false}, // priority
		{entry + `(-2, 1, null, null, 1, 0, 0, 0, 'q', 'k', '{}', null, null)`, false},  // lane
		{entry + `('x', 1, null, null, 1, 0, 0, 0, 'q', 'k', '{}', null, null)`, false}, // type
		{exec + `(1, 1, 1, 1, 1, 5, 6, 1, 1, null)`, true},
		{exec + `(1, 1, 1, 1, 1, 5, 6, 1, 1, null)`, false}, // twice
		{exec + `(2, 1, 1, 1, 1, 5, 6, 1, 0, null)`, false}, // completed is final
		{exec + `(2, 1, 1, 1, 1, 5, 6, 6, 0, null)`, false}, // cancelled is final
		{exec + `(2, 1, 1, 1, 1, 5, 6, 7, 0, null)`, false}, // expired is final
		{exec + `(2, 1, 1, 1, 1, 5, 6, 3, 1, null)`, false}, // snoozed never is
		{exec + `(2, 1, 1, 1, 1, 5, 6, 4, 1, null)`, false}, // returned never is
		{exec + `(2, 1, 1, 1, 1, 5, 6, 8, 1, null)`, false}, // no such outcome
		{exec + `(2, 1, 1, 1, 1, 5, 6, 1, 2, null)`, false}, // final is yes or no
		{exec + `(2, 1, 1, 1, 1, 7, 6, 1, 1, null)`, false}, // ended before it began
		{exec + `(2, 1, 1, 1, 1, 5, 6, 1, 1, 'x')`, false},  // no JSON
		{exec + `(2, 1, 1, 1, 1, 5, 6, 2, 0, '[1]'), (3, 1, 1, 1, 0, 5, 5, 2, 1, null), (4, 1, 1, 1, 0, 5, 5, 5, 0, null)`, true},
		{wait + `(1, 5, 1, 'scheduled', 1, 0, 0, 0, 'q', 'k')`, true},
		{wait + `(1, 5, 1, 'retrying', 1, 0, 0, 0, 'q', 'k')`, false}, // waits twice
		{wait + `(2, 5, 1, 'bored', 1, 0, 0, 0, 'q', 'k')`, false},
		{claim + `(1, 1, 1, 1, 1, 0, 5, 5)`, true},
		{claim + `(1, 1, 1, 1, 1, 5, 6, 1)`, false},  // a stale frontier
		{claim + `(1, 2, 1, 1, 1, 5, 5, 0)`, false},  // an empty claim
		{claim + `(1, 2, 1, 1, 1, 5, 7, 3)`, false},  // more than there is room for
		{claim + `(-1, 1, 1, 1, 1, 0, 5, 5)`, false}, // of the lane that nobody claims
	} {
		err := s.write(t.Context(), func(conn *conn) (bool, error) { return false, conn.db.Exec(c.text) })
		if (err == nil) != c.ok {
			t.Errorf("%s\n  gives %v", c.text, err)
		}
	}
}

func TestHistoryCostsLooksAndPagesNothing(t *testing.T) {
	s := open(t, Memory)
	for _, f := range []stint.Filter{
		{}, {Before: 10}, {State: stint.Completed}, {State: stint.Available}, {State: stint.Running}, {State: stint.Failed},
		{State: stint.Retrying}, {Tag: "t"}, {URN: "u"}, {Kind: "k", Queue: "q"},
	} {
		text, args := jobsQuery(f)
		plan := plan(t, s, text, args...)
		if strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("the list for %+v sorts all that there is:\n%s", f, plan)
		}
		if rare := f.State != "" && f.State != stint.Completed || f.Tag+f.URN != ""; rare && strings.Contains(plan, "SCAN e\n") {
			t.Errorf("the list for %+v reads the whole log:\n%s", f, plan)
		}
	}
	for name, text := range map[string]string{"look": lookSQL, "held": heldSQL, "fetch": fetchSQL, "next": nextDueSQL, "due": dueSQL, "job": jobSQL} {
		for line := range strings.Lines(plan(t, s, text)) {
			if strings.HasPrefix(line, "SCAN") && !strings.HasPrefix(line, "SCAN l") && !strings.HasPrefix(line, "SCAN json_each") &&
				!strings.HasPrefix(line, "SCAN b\n") && !strings.HasPrefix(line, "SCAN r") {
				t.Errorf("%s reads a whole table: %s", name, line)
			}
		}
	}
}

// plan is how SQLite answers a query, a step on each line.
func plan(t *testing.T, s *Store, text string, args ...any) string {
	t.Helper()
	var steps strings.Builder
	err := s.read(t.Context(), func(c *conn) error {
		return c.query("explain query plan "+text, args, func(q *stmt) error {
			steps.WriteString(q.ColumnText(3) + "\n")
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps.String()
}
