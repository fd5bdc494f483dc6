package engine_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
)

func TestAnEngineMayBeRunAgainAndNotTwiceAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		e := newEngine(t, s, mux, engine.Config{Instance: "same"})
		for range 2 {
			stop := runs(t, e, s)
			until(t, s, enqueue(t, s, "work", `{}`), stint.Completed)
			if err := e.Run(t.Context()); err == nil {
				t.Error("it was run a second time while it ran")
			}
			// Stopping it more than once is stopping it.
			for range 2 {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}
			if roster, err := s.Engines(t.Context()); err != nil || len(roster) != 0 {
				t.Errorf("the roster has %v, %v", roster, err)
			}
		}
		// One whose context has ended before does nothing.
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.Run(over); err != nil {
			t.Error(err)
		}
		id := enqueue(t, s, "work", `{}`)
		time.Sleep(20 * time.Millisecond)
		if job := info(t, s, id); job.State != stint.Available {
			t.Errorf("the job is %s, and no engine runs", job.State)
		}
	})
}

func TestAnEngineWithoutANameIsCalledAfterItsHostAndUnlikeOthers(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		host, err := os.Hostname()
		if err != nil {
			t.Skip(err)
		}
		seen := map[string]bool{}
		for range 2 {
			mux := stint.NewMux()
			handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
			stop := start(t, s, mux, engine.Config{})
			x := until(t, s, enqueue(t, s, "work", `{}`), stint.Completed).Attempts[0]
			if !regexp.MustCompile("^"+regexp.QuoteMeta(host)+"-[0-9a-f]{6}$").MatchString(x.Instance) || x.Host != host || x.PID != os.Getpid() {
				t.Errorf("it ran on %s: %s, process %d", x.Instance, x.Host, x.PID)
			}
			seen[x.Instance] = true
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if len(seen) != 2 {
			t.Errorf("two engines are called %s", fmt.Sprint(seen))
		}
	})
}
