package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-go/stint"
)

// A caller that has read in its transaction and then enqueues is told when
// somebody wrote in between; one that begins by enqueuing never is.
func TestATransactionThatBeginsByEnqueuingIsNeverRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, path)
	db := database(t, path)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // somebody who writes all the time
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				enqueue(t, s, someJobs(1))
			}
		}
	}()
	for range 200 {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Enqueue(t.Context(), Tx(tx), someJobs(2)); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-stopped
}

func TestATransactionElsewhereIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, other := open(t, filepath.Join(dir, "jobs.db")), open(t, filepath.Join(dir, "other.db"))
	for _, c := range []struct {
		name  string
		store *Store
		path  string
		says  string
	}{
		{"on another database with stint's tables", s, other.path, "it is on another database"},
		{"on a database without them", s, filepath.Join(dir, "bare.db"), "is it on"},
		{"for a store in memory", open(t, Memory), other.path, "in memory"},
	} {
		tx, err := database(t, c.path).Begin()
		if err != nil {
			t.Fatal(err)
		}
		ids, err := stint.NewClient(c.store).With(Tx(tx)).EnqueueMany(t.Context(), someJobs(1))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("a transaction %s gives ids %v, error %v", c.name, ids, err)
		}
		_ = tx.Rollback()
	}
	if _, err := s.Enqueue(t.Context(), Tx(nil), someJobs(1)); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("no transaction gives %v", err)
	}
}
