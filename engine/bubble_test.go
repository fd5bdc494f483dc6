package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// inBubble runs a test in a bubble, beside others.
func inBubble(t *testing.T, limit time.Duration, f func(t *testing.T, s *sqlite.Store)) {
	t.Parallel()
	bubble(t, limit, f)
}

// bubble runs a test on a real SQLite file in fake time. A livelock would
// spin through centuries; the deadline ends it.
func bubble(t *testing.T, limit time.Duration, f func(t *testing.T, s *sqlite.Store)) {
	synctest.Test(t, func(t *testing.T) {
		watch := time.AfterFunc(limit, func() { panic("the bubble's time is over") })
		defer watch.Stop()
		s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f(t, s)
		storetest.Verify(t, s)
	})
}

// lonely is a store that takes its time to tell of other engines, which are asked
// for every second: so fake hours go by fast, with few beats and looks.
type lonely struct{ store.Store }

func (l lonely) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	doze(ctx, 20*time.Minute)
	return l.Store.Engines(ctx)
}

func TestTheDefaultPolicyWaitsOneTwoFourUpTo512Minutes(t *testing.T) {
	inBubble(t, 48*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "fails", func(context.Context, *stint.Job) error { return errors.New("no") })
		stop := start(t, lonely{s}, mux, engine.Config{TimeToLive: time.Hour, Poll: time.Minute})
		id := enqueue(t, s, "fails", `{}`)
		time.Sleep(1023*time.Minute + time.Minute)
		synctest.Wait()
		job, err := s.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if job.State != stint.Failed || job.Reason != "retries exhausted" || len(job.Attempts) != 11 {
			t.Fatalf("it is %s (%s) after %d executions", job.State, job.Reason, len(job.Attempts))
		}
		wait := time.Minute
		for i, x := range job.Attempts[1:] {
			gap := x.Started.Sub(job.Attempts[i].Finished)
			if gap < wait || gap > wait+50*time.Millisecond {
				t.Errorf("attempt %d came %v after the one before, want %v", x.Attempt, gap, wait)
			}
			wait *= 2
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestJobsDueLaterRunInTheOrderOfTheirTimes(t *testing.T) {
	inBubble(t, 48*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		var got []stint.ID
		handle(mux, "note", func(_ context.Context, job *stint.Job) error {
			got = append(got, job.ID)
			return nil
		})
		eleven := enqueue(t, s, "note", `{}`, stint.Delay(11*time.Hour))
		ten := enqueue(t, s, "note", `{}`, stint.Delay(10*time.Hour))
		time.Sleep(12 * time.Hour) // both are overdue when the engine comes
		stop := start(t, s, mux, engine.Config{Slots: 1})
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0] != ten || got[1] != eleven {
			t.Errorf("they ran in the order %v, want %v", got, []stint.ID{ten, eleven})
		}
	})
}
