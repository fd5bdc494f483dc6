package sqlite

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// A day of jobs passes in a moment, on a real file, with a listener, several
// producers and two processes' worth of stores.
func TestADayInABubble(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		const hours, producers = 24, 3
		// Asking every 10 ms for a day would be 8.6 million questions.
		s := open(t, path, Config{Poll: time.Minute})
		other := open(t, path, Config{Poll: time.Minute})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), (hours+2)*time.Hour)
		defer cancel()

		rung := make(chan struct{}, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			err := s.Listen(ctx, func(store.News) {
				select {
				case rung <- struct{}{}:
				default:
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
		for p := range producers {
			wg.Go(func() {
				for range hours {
					jobs := someJobs(3)
					jobs[1].Delay = 30 * time.Minute
					enqueue(t, []*Store{s, other}[p%2], jobs)
					time.Sleep(time.Hour)
				}
			})
		}

		w := storetest.Join(t, s, "noop")
		done := 0
		for next := time.Duration(-1); done < hours*producers*3; {
			timer := time.NewTimer(time.Hour)
			if next >= 0 {
				timer.Reset(next)
			}
			select {
			case <-rung:
			case <-timer.C:
			case <-ctx.Done():
				t.Fatalf("%d jobs were done when the time was over", done)
			}
			p, err := s.Promote(ctx, time.Time{}, 100)
			if err != nil {
				t.Fatal(err)
			}
			next = p.Next
			for _, e := range w.ClaimAll() {
				if late := time.Since(e.Due); late < 0 || late > time.Minute {
					t.Errorf("job %d was claimed %v after it was due", e.ID, late)
				}
				w.Complete(e)
				done++
			}
		}
		cancel()
		wg.Wait()
		if passed := time.Since(start); passed < (hours-1)*time.Hour {
			t.Errorf("only %v passed", passed)
		}
		job, err := s.Job(t.Context(), 1)
		if err != nil || job.State != stint.Completed || job.Created.Year() != 2000 || job.Finished.Year() != 2000 {
			t.Errorf("the first job is %+v, error %v; want the bubble's time", job, err)
		}
		storetest.Verify(t, s)
	})
	t.Logf("took %v", time.Since(began))
}

// Waiting for another connection's transaction passes fake time, not real.
func TestWaitingForTheFileInABubble(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		a, b := open(t, path), open(t, path)
		start := time.Now()
		held := make(chan struct{})
		go func() {
			_ = a.write(t.Context(), func(c *conn) (bool, error) {
				close(held)
				time.Sleep(5 * time.Second)
				return false, nil
			})
		}()
		<-held
		enqueue(t, b, someJobs(1))
		if passed := time.Since(start); passed < 5*time.Second || passed > 6*time.Second {
			t.Errorf("it waited for %v, want a little more than 5s", passed)
		}
	})
}
