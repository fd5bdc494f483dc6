package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
)

// The beat is no business of the slots: it goes on while all of them work, so
// nobody buries the engine and runs its jobs a second time.
func TestAJobLongerThanTheTimeToLiveRunsOnceWhileItsEngineBeats(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		const ttl = 4 * time.Second
		var began atomic.Int32
		beaten, beat := context.WithCancel(t.Context()) // once the test has seen four beats
		for range 2 {                                   // one has it, the other one could bury it
			mux := stint.NewMux()
			handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
				began.Add(1)
				select {
				case <-time.After(5 * ttl / 2):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				select {
				case <-beaten.Done():
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
			start(t, s, mux, engine.Config{Slots: 1, TimeToLive: ttl})
		}
		id := enqueue(t, s, "long", `{}`)
		beats := map[time.Time]bool{}
		var shown time.Time // as its start, while it ran
		eventually(t, "it has ended", func() bool {
			roster, err := s.Engines(t.Context())
			if err != nil || len(roster) != 2 {
				return false
			}
			for _, e := range roster {
				if len(e.Running) == 1 {
					beats[e.Beat] = true
					if shown = e.Started[e.Running[0]]; shown.IsZero() {
						t.Error("a beat says that it runs, and not since when")
					}
				}
			}
			if len(beats) == 4 {
				beat()
			}
			return info(t, s, id).State.Final()
		})
		if job := info(t, s, id); began.Load() != 1 || job.State != stint.Completed || len(job.Attempts) != 1 {
			t.Errorf("it began %d times and is %s after %d executions", began.Load(), job.State, len(job.Attempts))
		} else if shown.Sub(job.Started).Abs() > 2*time.Second { // each of the two is late by as long as its statement took
			t.Errorf("while it ran it showed as begun at %v, and afterwards at %v", shown, job.Started)
		}
	})
}
