package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// In a bubble it is the year 2000, or any later one after a sleep, and the
// server outside knows better. Time goes by in there only while nobody waits for
// the server, and then in leaps: a clock can hardly be more wrong.
func TestAProgramWhoseClockIsYearsOffEnqueuesAndWorksOnTime(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, sleep := range map[string]time.Duration{"behind": 0, "ahead": 100 * year} {
		t.Run(name, func(t *testing.T) {
			url := migrated.New(t)
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(sleep)
				worksOnTime(t, url, 20*year)
			})
		})
	}
}

func worksOnTime(t *testing.T, url string, off time.Duration) {
	s, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	real, err := s.Now(t.Context())
	if err != nil || time.Until(real).Abs() < off {
		t.Fatalf("the server's clock says %v and ours %v: %v", real, time.Now(), err)
	}
	mux := stint.NewMux()
	handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
	handle(mux, "fails", func(_ context.Context, job *stint.Job) error {
		if job.Attempt == 1 {
			return errors.New("no")
		}
		return nil
	})
	const wait = 300 * time.Millisecond
	hour := stint.StartWithin(time.Hour)
	now, in := enqueue(t, s, "work", `{}`, hour), enqueue(t, s, "work", `{}`, stint.Delay(wait), hour)
	late := enqueue(t, s, "work", `{}`, stint.StartBy(real.Add(-time.Second)))
	at := enqueue(t, s, "work", `{}`, stint.RunAt(real.Add(wait)), stint.StartBy(real.Add(time.Hour)))
	day := enqueue(t, s, "work", `{}`, stint.Delay(24*time.Hour))
	fails := enqueue(t, s, "fails", `{}`, stint.Retry(retry.Timetable(retry.Row{Younger: time.Minute, Wait: wait})))
	// A listener, who waits for the server all the time, would stop the time in here.
	e, err := engine.New(struct {
		store.Store
		store.Clock
	}{s, s}, mux, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	for _, id := range []stint.ID{now, in, at, fails} {
		job := untilHere(t, s, id)
		if job.State != stint.Completed {
			t.Errorf("job %d is %s: %s", id, job.State, job.Reason)
		}
		if late := job.Started.Sub(job.Due); late < 0 || late > 10*time.Second {
			t.Errorf("job %d began %v after its time", id, late)
		}
		if early := job.Due.Sub(job.Created); id != now && (early < 0 || early > time.Minute) {
			t.Errorf("job %d was due %v after it was made", id, early)
		}
	}
	if job := untilHere(t, s, late); job.Reason != retry.ReasonExpired {
		t.Errorf("what was to begin a second ago is %s: %s", job.State, job.Reason)
	}
	if job, err := s.Job(t.Context(), day); err != nil || job.State != stint.Scheduled {
		t.Errorf("what is due tomorrow is %v, %v", job, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	storetest.Verify(t, s)
}

// untilHere waits for a job's end by the clock of whoever asks.
func untilHere(t *testing.T, s store.Inspector, id stint.ID) *stint.JobInfo {
	t.Helper()
	for range 100_000 {
		job, err := s.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if job.State.Final() {
			return job
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("waited in vain for job %d", id)
	return nil
}
