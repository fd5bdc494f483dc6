//go:build unix

package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
)

func TestAnEngineNoticesThatItsFileIsRemovedOrReplaced(t *testing.T) {
	for says, away := range map[string]func(t *testing.T, path string){
		"was removed": func(t *testing.T, path string) { move(t, path, path+".away") },
		"was replaced by another file": func(t *testing.T, path string) {
			if err := open(t, path+".other").Close(); err != nil {
				t.Fatal(err)
			}
			move(t, path, path+".away")
			move(t, path+".other", path)
		},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "jobs.db")
			s := open(t, path)
			troubles := make(chan event.Event, 100)
			e, err := engine.New(s, stint.NewMux(), engine.Config{TimeToLive: time.Second, OnEvent: func(e event.Event) {
				if e.Type == event.EventTrouble {
					select {
					case troubles <- e:
					default:
					}
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- e.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-done; err != nil {
					t.Errorf("the engine ended with %v", err)
				}
			}()
			until(t, "it is ready", time.Minute, func() bool { return e.Ready(ctx) == nil })

			away(t, path)
			err = e.Ready(ctx)
			var not *event.UnreadyError
			if !errors.As(err, &not) || not.Condition != event.ConditionDatabase || !strings.Contains(err.Error(), path+" "+says) {
				t.Errorf("it says that it is ready, or not what is wrong: %v", err)
			}
			for told := false; !told; {
				select {
				case trouble := <-troubles:
					told = trouble.Doing == "beat" && strings.Contains(trouble.Err.Error(), path+" "+says)
				case <-time.After(time.Minute):
					t.Fatal("a minute later nobody was told")
				}
			}
			if _, err := s.connect(ctx, false); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("another connection is opened, to whatever stands there: %v", err)
			}

			move(t, path+".away", path)
			until(t, "it is ready when the file is back", time.Minute, func() bool { return e.Ready(ctx) == nil })
		})
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
