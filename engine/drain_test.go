package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
)

// TestADrainOutlivesThePlaceInTheRoster buries an engine that was asked to drain, before and after
// it learned of that, while a handler runs: it does not come back to work.
func TestADrainOutlivesThePlaceInTheRoster(t *testing.T) {
	for name, learns := range map[string]bool{"it learned of it": true, "it did not learn of it": false} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s anyStore) {
				mux := stint.NewMux()
				began := make(chan struct{}, 9)
				handle(mux, "long", func(ctx context.Context, _ *stint.Job) error {
					began <- struct{}{}
					<-ctx.Done()
					return context.Cause(ctx)
				})
				live := 9 * time.Second // a beat in three
				if learns {
					live = time.Second
				}
				e, err := engine.New(s, mux, engine.Config{Slots: 1, TimeToLive: live})
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() { done <- e.Run(t.Context()) }()
				enqueue(t, s, "long", `{}`)
				left := enqueue(t, s, "long", `{}`)
				<-began
				roster, err := s.Engines(t.Context())
				if err != nil || len(roster) != 1 {
					t.Fatal(roster, err)
				}
				if err := s.Drain(t.Context(), roster[0].Token); err != nil {
					t.Fatal(err)
				}
				if learns {
					eventually(t, "it leaves", func() bool { return e.Status().Leaving })
				} else if e.Status().Leaving {
					t.Fatal("it learned of it at once")
				}
				buryLiving(t, s)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if roster, err := s.Engines(t.Context()); err != nil || len(roster) != 0 {
					t.Errorf("the roster is %+v, %v", roster, err)
				}
				if n := len(began); n != 0 {
					t.Errorf("it began %d more jobs", n)
				}
				until(t, s, left, stint.Available)
			})
		})
	}
}
