package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
)

func TestHooksOfARunNowAreThoseOfAnyRun(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var j journal
		mux := stint.NewMux()
		mux.Hook(j.hooks(""))
		handle(mux, "fine", func(context.Context, *stint.Job) error { return nil })
		handle(mux, "fails", func(context.Context, *stint.Job) error { return errors.New("no") })
		e := newEngine(t, s, mux, engine.Config{Queues: []string{"other"}})
		for _, running := range []bool{false, true} {
			if running {
				runs(t, e, s)
			}
			for _, c := range []struct {
				kind   string
				policy retry.Policy
				want   string
			}{
				{"fine", retry.None(), "success 1, finally 1"},
				{"fails", retry.Fixed(1, time.Hour), "failure 1, finally 1"},
				{"fails", retry.None(), "failure 1, last 1, finally 1"},
			} {
				x := runNow(t, e, newJob(c.kind, `{}`, stint.Retry(c.policy)))
				eventually(t, "its hooks were called", func() bool { return len(j.of(x.Job)) >= len(c.want) })
				if got := j.of(x.Job); got != c.want {
					t.Errorf("%s, with the engine running %v: %s, want %s", c.kind, running, got, c.want)
				}
			}
		}
	})
}
