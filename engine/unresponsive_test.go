package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
)

func TestAHandlerThatTakesNoNoticeOfItsEndIsToldOfOnce(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "deaf", func(context.Context, *stint.Job) error { time.Sleep(time.Minute); return errors.New("late") })
		handle(mux, "slow", func(ctx context.Context, _ *stint.Job) error {
			<-ctx.Done()
			time.Sleep(4 * time.Second)
			return ctx.Err()
		})
		told := map[stint.ID][]event.Event{}
		after := map[stint.ID]time.Duration{}
		began := time.Now()
		stop := start(t, s, mux, engine.Config{Slots: 4, OnEvent: func(e event.Event) {
			if e.Type == event.EventTrouble && e.Job != nil {
				told[e.Job.ID], after[e.Job.ID] = append(told[e.Job.ID], e), time.Since(began)
			}
		}})
		bounded := enqueue(t, s, "deaf", `{}`, stint.Retry(retry.None()), stint.Timeout(10*time.Second))
		cancelled := enqueue(t, s, "deaf", `{}`, stint.Retry(retry.None()))
		enqueue(t, s, "deaf", `{}`, stint.Retry(retry.None())) // nobody ends it
		enqueue(t, s, "slow", `{}`, stint.Retry(retry.None()), stint.Timeout(10*time.Second))
		time.Sleep(20 * time.Second)
		if _, err := s.Cancel(t.Context(), []stint.ID{cancelled}, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		for id, cause := range map[stint.ID]error{bounded: stint.ErrTimeout, cancelled: stint.ErrCancelled} {
			all := told[id]
			if len(all) != 1 || all[0].About != "deaf" || !strings.HasSuffix(all[0].Doing, " deaf") || !errors.Is(all[0].Err, cause) {
				t.Errorf("of %d is told %+v, want %v once", id, all, cause)
			}
		}
		if len(told) != 2 {
			t.Errorf("told is of %v, want two", told)
		}
		if d := after[bounded]; d < 15*time.Second || d > 17*time.Second {
			t.Errorf("that one was to end after 10s is told after %v", d)
		}
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}
