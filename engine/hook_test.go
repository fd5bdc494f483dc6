package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/retry"
)

// journal is what happened to each job, in order.
type journal struct {
	mu    sync.Mutex
	lines map[stint.ID][]string
}

func (j *journal) note(id stint.ID, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lines == nil {
		j.lines = map[stint.ID][]string{}
	}
	j.lines[id] = append(j.lines[id], fmt.Sprintf(format, args...))
}

func (j *journal) of(id stint.ID) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines[id], ", ")
}

// hooks are hooks that write into the journal.
func (j *journal) hooks(name string) stint.Hooks {
	says := func(what string) stint.Hook {
		return func(_ context.Context, job *stint.Job, x *stint.Attempt) error {
			j.note(job.ID, "%s%s %d", name, what, x.Attempt)
			return nil
		}
	}
	return stint.Hooks{AfterSuccess: says("success"), AfterFailure: says("failure"), AfterLastFailure: says("last"), Finally: says("finally")}
}

func TestHooksAreCalledInTheirOrderAfterEachAttempt(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var j journal
		mux := stint.NewMux()
		mux.Hook(j.hooks(""))
		handler := map[string]func(*stint.Job) error{
			"fine":    func(*stint.Job) error { return nil },
			"fails":   func(*stint.Job) error { return errors.New("no") },
			"panics":  func(*stint.Job) error { panic("no") },
			"exits":   func(*stint.Job) error { runtime.Goexit(); return nil },
			"cancels": func(*stint.Job) error { return stint.Cancel("no") },
			"naps": func(*stint.Job) error {
				if strings.Contains(j.of(0), "napped") {
					return nil
				}
				j.note(0, "napped")
				return stint.Snooze(0)
			},
		}
		for kind, f := range handler {
			mux.Add(stint.KindInfo{Name: kind}, nothing(f)).Hook(stint.Hooks{
				AfterLastFailure: j.hooks("kind's ").AfterLastFailure, Finally: j.hooks("kind's ").Finally,
			})
		}
		again := stint.Retry(retry.Fixed(1, 0))
		want := map[stint.ID]string{
			enqueue(t, s, "fine", `{}`): "success 1, finally 1, kind's finally 1",
			enqueue(t, s, "fails", `{}`, again): "failure 1, finally 1, kind's finally 1, " +
				"failure 2, last 2, kind's last 2, finally 2, kind's finally 2",
			enqueue(t, s, "panics", `{}`, stint.Retry(retry.None())): "failure 1, last 1, kind's last 1, finally 1, kind's finally 1",
			enqueue(t, s, "exits", `{}`, stint.Retry(retry.None())):  "failure 1, last 1, kind's last 1, finally 1, kind's finally 1",
			enqueue(t, s, "cancels", `{}`):                           "finally 1, kind's finally 1",
			enqueue(t, s, "naps", `{}`):                              "finally 1, kind's finally 1, success 1, finally 1, kind's finally 1",
		}
		// One slot, so that one hook is called at a time.
		stop := start(t, s, mux, engine.Config{Slots: 1})
		for id := range want {
			eventually(t, fmt.Sprintf("job %d has ended", id), func() bool {
				job, err := s.Job(t.Context(), id)
				return err == nil && job.State.Final()
			})
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		for id, want := range want {
			if got := j.of(id); got != want {
				t.Errorf("job %d:\ngot  %s\nwant %s", id, got, want)
			}
		}
	})
}

func TestWhatAHookLearnsIsRecordedAlready(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		seen := make(chan string, 10)
		mux := stint.NewMux()
		handle(mux, "fails", func(context.Context, *stint.Job) error { return errors.New("no paper") })
		mux.Hook(stint.Hooks{AfterFailure: func(ctx context.Context, job *stint.Job, x *stint.Attempt) error {
			info, err := s.Job(ctx, job.ID)
			if err != nil {
				return err
			}
			next := "none"
			if !x.Final {
				next = fmt.Sprintf("attempt %d in %v", x.Attempt+1, x.RetryIn)
			}
			seen <- fmt.Sprintf("%s %v, %v %q final %v next %s, recorded %v",
				job.Kind, job.Tags, x.Outcome, x.Error.Message, x.Final, next, len(info.Attempts) >= x.Attempt)
			return nil
		}})
		start(t, s, mux, engine.Config{Slots: 1}) // and so one hook at a time
		enqueue(t, s, "fails", `{}`, stint.Tag("a"), stint.Retry(retry.Fixed(1, time.Millisecond)))
		for _, want := range []string{
			`fails [a], failed "no paper" final false next attempt 2 in 1ms, recorded true`,
			`fails [a], failed "no paper" final true next none, recorded true`,
		} {
			if got := <-seen; got != want {
				t.Errorf("\ngot  %s\nwant %s", got, want)
			}
		}
	})
}

func TestAHookInTroubleChangesNothingButIsTold(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var j journal
		var mu sync.Mutex
		var trouble []string
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
		for _, f := range []func() error{
			func() error { panic("oh") },
			func() error { return errors.New("no mail") },
			func() error { runtime.Goexit(); return nil },
		} {
			mux.Hook(stint.Hooks{AfterSuccess: func(context.Context, *stint.Job, *stint.Attempt) error { return f() }})
		}
		mux.Hook(stint.Hooks{Finally: j.hooks("").Finally})
		stop := start(t, s, mux, engine.Config{Slots: 1, OnEvent: func(ev event.Event) {
			if ev.Type == event.EventTrouble {
				mu.Lock()
				defer mu.Unlock()
				trouble = append(trouble, fmt.Sprintf("%d %s, which ends with %s: %v", ev.Job.ID, ev.Doing, ev.About, ev.Err))
			}
		}})
		ids := []stint.ID{enqueue(t, s, "work", `{}`), enqueue(t, s, "work", `{}`)}
		var want []string
		for _, id := range ids {
			if job := until(t, s, id, stint.Completed); len(job.Attempts) != 1 || job.Attempts[0].Error != nil || job.Reason != retry.ReasonDone {
				t.Errorf("the job is %+v", job)
			}
			for _, problem := range []string{"panic: oh", "no mail", "the hook ended its goroutine (runtime.Goexit)"} {
				want = append(want, fmt.Sprintf("%d call the after-success hook of work, which ends with work: %s", id, problem))
			}
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		// Hooks of jobs that were recorded together run in any order.
		slices.SortStableFunc(trouble, func(a, b string) int { return cmp.Compare(a[0], b[0]) })
		if !slices.Equal(trouble, want) {
			t.Errorf("the trouble is\n%s\nwant\n%s", strings.Join(trouble, "\n"), strings.Join(want, "\n"))
		}
		for _, id := range ids {
			if got := j.of(id); got != "finally 1" {
				t.Errorf("after the trouble of job %d came %q", id, got)
			}
		}
	})
}
