package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// hesitant is a store whose flushes take long, fail, or fail when they are
// done.
type hesitant struct {
	*sqlite.Store
	rnd *rand.Rand // of the finish stage
}

func (h *hesitant) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	time.Sleep(time.Duration(h.rnd.IntN(20)) * time.Millisecond)
	lost := errors.New("the connection broke")
	switch h.rnd.IntN(4) {
	case 0:
		return 0, lost
	case 1:
		if _, err := h.Store.Finish(ctx, engine, claims, done); err != nil {
			return 0, err
		}
		return 0, lost
	}
	return h.Store.Finish(ctx, engine, claims, done)
}

// An outcome and what follows it are written together, so no flush can overtake
// the one with the attempt before, however flushes fare.
func TestAttemptsOfAJobAreRecordedInTheirOrder(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		const n, attempts = 40, 4
		mux := stint.NewMux()
		handle(mux, "k", func(_ context.Context, job *stint.Job) error {
			if job.Attempt < attempts {
				return errors.New("not yet")
			}
			return nil
		})
		var ids []stint.ID
		for range n {
			ids = append(ids, enqueue(t, s, "k", `{}`, stint.Retry(retry.Fixed(attempts, 0))))
		}
		stop := start(t, &hesitant{s, storetest.NewSeed(t).Rand("flushes")}, mux, engine.Config{Slots: 8})
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			job, err := s.Job(t.Context(), id)
			if err != nil || job.State != stint.Completed || len(job.Attempts) != attempts {
				t.Fatalf("it is %+v, error %v", job, err)
			}
			for i, x := range job.Attempts {
				if x.Attempt != i+1 || i > 0 && x.Started.Before(job.Attempts[i-1].Finished) {
					t.Errorf("job %d: number %d is attempt %d, from %v to %v", id, i+1, x.Attempt, x.Started, x.Finished)
				}
			}
		}
	})
}
