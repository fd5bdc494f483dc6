package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

func TestEachStatementIsToldWithItsTimeAndRowsAndWithoutItsArguments(t *testing.T) {
	var mu sync.Mutex
	var all []event.Query
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), Config{OnQuery: func(q event.Query) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, q)
		panic("a listener is no part of the store")
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client := stint.NewClient(s)
	id, err := client.Enqueue(t.Context(), stint.NewJob{Kind: "kind", Args: []byte(`"a secret"`)})
	if err != nil {
		t.Fatal(err)
	}
	if job, err := s.Job(t.Context(), id); err != nil || job.Kind != "kind" {
		t.Fatalf("the job is %+v, %v", job, err)
	}
	if _, err := s.Jobs(t.Context(), store.Filter{}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	told := func(part string) (q event.Query) {
		for _, q := range all {
			if strings.Contains(q.Text, part) {
				return q
			}
		}
		t.Errorf("nobody was told of %q", part)
		return q
	}
	if q := told("insert into stint_entries"); q.Rows != 1 || q.Took <= 0 || q.Err != nil {
		t.Errorf("of the insert it was told %+v", q)
	}
	if q := told("commit"); q.Took <= 0 {
		t.Errorf("of the commit it was told %+v", q)
	}
	told("begin immediate")
	told("select")
	for _, q := range all {
		if strings.Contains(q.Text, "a secret") {
			t.Errorf("an argument was told: %s", q.Text)
		}
	}
}

func TestAStatementThatFailsIsToldWithItsError(t *testing.T) {
	var all []event.Query
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), Config{OnQuery: func(q event.Query) { all = append(all, q) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.write(t.Context(), func(c *conn) (bool, error) {
		_, err := c.exec(`insert into stint_meta (one) values (1)`)
		return false, err
	}); err == nil {
		t.Fatal("it did not fail")
	}
	for _, q := range all {
		if q.Err != nil {
			return
		}
	}
	t.Errorf("no error among %+v", all)
}

// Asking the file whether others have committed, four times a second and more, is no news.
func TestTheQuestionWhetherTheFileChangedIsNotTold(t *testing.T) {
	var mu sync.Mutex
	var all []string
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), Config{Poll: time.Millisecond, OnQuery: func(q event.Query) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, q.Text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Listen(ctx, func(store.News) {}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, text := range all {
		if strings.Contains(text, "data_version") {
			t.Fatalf("it was told of %s", text)
		}
	}
}

// One that is missing would be that of the last time.
func TestAStatementRunsOnlyWithAllItsValues(t *testing.T) {
	s := open(t, Memory)
	err := s.read(t.Context(), func(c *conn) error {
		const either = `select 1 from stint_entries where pos in (?, ?)`
		if _, err := c.found(either, 1, 2); err != nil {
			return err
		}
		for _, args := range [][]any{{1}, {1, 2, 3}, nil} {
			if _, err := c.found(either, args...); err == nil || !strings.Contains(err.Error(), "for 2 parameters") {
				t.Errorf("with %d of its 2 values it fails with %v", len(args), err)
			}
		}
		_, err := c.found(either, 1, 2)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
