package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/powerloss"
	"github.com/stint-go/stint/storetest"
)

// See also internal/proof/chaos, which fills a real disk below a fleet.
func TestOnAFullDiskNothingIsTakenOrLostAndWorkGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	const jobs = 400
	disk, path := powerloss.New(t), filepath.Join(t.TempDir(), "jobs.db")
	s, err := openOn(t.Context(), system{disk.Name(), disk.SyncDir}, path, Config{}, schemaSteps())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	enqueue(t, s, someJobs(jobs))
	var (
		runs     sync.Map
		ran      atomic.Int64
		troubles atomic.Int64
		odd      atomic.Pointer[error]
	)
	mux := stint.NewMux()
	mux.Add(stint.KindInfo{Name: "noop"}, func(_ context.Context, job *stint.Job) (json.RawMessage, error) {
		if _, again := runs.LoadOrStore(job.ID, true); again {
			t.Errorf("job %d ran twice", job.ID)
		}
		ran.Add(1)
		time.Sleep(5 * time.Millisecond)
		return nil, nil
	})
	e, err := engine.New(s, mux, engine.Config{Slots: 2, OnEvent: func(e event.Event) {
		if e.Type == event.EventTrouble {
			if troubles.Add(1); !strings.Contains(e.Err.Error(), "the disk is full") {
				odd.Store(&e.Err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	until(t, "some ran", time.Minute, func() bool { return ran.Load() > jobs/4 })

	disk.Room(disk.Used())
	for range 20 {
		_, err := s.Enqueue(t.Context(), stint.Tx{}, someJobs(1))
		if err == nil || !strings.Contains(err.Error(), "enqueue 1 jobs: the disk is full") || errors.Is(err, stint.ErrUnstorable) {
			t.Fatalf("an enqueue on a full disk says: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Completed] == 0 {
		t.Errorf("nobody can look at it: %v, error %v", counts, err)
	}
	if n := troubles.Load(); n == 0 || n > 40 {
		t.Errorf("in two seconds %d troubles were told of", n)
	}
	disk.Room(0)
	until(t, "all are done", 10*time.Second, func() bool {
		counts, err := s.Counts(t.Context())
		return err == nil && counts[stint.Completed] == jobs
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := odd.Load(); err != nil {
		t.Errorf("a trouble does not say that the disk is full: %v", *err)
	}
	storetest.Verify(t, s)
	t.Logf("%d troubles were told of", troubles.Load())
}
