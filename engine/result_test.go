package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
)

func TestWhatAHandlerSetsCountsInsteadOfWhatItReturns(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		no := errors.New("no")
		set := func(ctx context.Context, result any, err error, retriable bool) {
			if e := stint.SetResult(ctx, result); e != nil {
				t.Error(e)
			}
			if err != nil {
				if e := stint.SetError(ctx, err, retriable); e != nil {
					t.Error(e)
				}
			}
		}
		began := make(chan struct{}, 10)
		wait := func(ctx context.Context) { began <- struct{}{}; <-ctx.Done() }
		cases := map[string]struct {
			do      func(ctx context.Context) error
			want    string // outcome, result, class of the error, how many attempts
			timeout time.Duration
			cancel  bool
		}{
			"result and error":       {do: func(ctx context.Context) error { set(ctx, 1, nil, false); return no }, want: "completed 1  after 1"},
			"error and none":         {do: func(ctx context.Context) error { set(ctx, nil, no, true); return nil }, want: "failed  errors.errorString after 2"},
			"not retriable":          {do: func(ctx context.Context) error { set(ctx, 2, no, false); return nil }, want: "failed 2 errors.errorString after 1"},
			"a wish for another":     {do: func(ctx context.Context) error { set(ctx, 3, stint.Cancel("no"), true); return nil }, want: "cancelled 3  after 1"},
			"panic":                  {do: func(ctx context.Context) error { set(ctx, 1, no, false); panic("oh") }, want: "failed  panic after 2"},
			"goexit":                 {do: func(ctx context.Context) error { set(ctx, 1, nil, false); runtime.Goexit(); return nil }, want: "failed  errors.errorString after 2"},
			"result after timeout":   {timeout: 10 * time.Millisecond, do: func(ctx context.Context) error { <-ctx.Done(); set(ctx, 1, nil, false); return ctx.Err() }, want: "completed 1  after 1"},
			"error before timeout":   {timeout: 10 * time.Millisecond, do: func(ctx context.Context) error { set(ctx, nil, no, true); <-ctx.Done(); return nil }, want: "failed  timeout after 2"},
			"result though unwanted": {cancel: true, do: func(ctx context.Context) error { wait(ctx); set(ctx, 1, nil, false); return ctx.Err() }, want: "completed 1  after 1"},
			"error when unwanted":    {cancel: true, do: func(ctx context.Context) error { wait(ctx); set(ctx, nil, no, true); return nil }, want: "cancelled  errors.errorString after 1"},
			"a result like no JSON":  {do: func(ctx context.Context) error { set(ctx, "\x00", nil, false); return no }, want: "completed   after 1"},
		}
		mux := stint.NewMux()
		for kind, c := range cases {
			handle(mux, kind, func(ctx context.Context, _ *stint.Job) error { return c.do(ctx) })
		}
		start(t, s, mux, engine.Config{Slots: 4})
		for kind, c := range cases {
			opts := []stint.Option{stint.Retry(retry.Fixed(1, 0)), stint.Timeout(max(c.timeout, time.Millisecond))}
			if c.timeout == 0 {
				opts = opts[:1]
			}
			id := enqueue(t, s, kind, `{}`, opts...)
			if c.cancel {
				<-began
				cancelJob(t, s, id)
			}
			var job *stint.JobInfo
			eventually(t, kind+" has ended", func() bool {
				var err error
				job, err = s.Job(t.Context(), id)
				return err == nil && job.State.Final()
			})
			x := job.Attempts[len(job.Attempts)-1]
			class := ""
			if x.Error != nil {
				class = x.Error.Class
			}
			if got := fmt.Sprintf("%v %s %s after %d", x.Outcome, x.Result, class, len(job.Attempts)); got != c.want {
				t.Errorf("%s: %q, want %q", kind, got, c.want)
			}
		}
	})
}

func TestWhatAHandlerSetsWhenItIsStoppedIsJudgedAsReturned(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		began := make(chan struct{}, 2)
		handle(mux, "succeeds", func(ctx context.Context, _ *stint.Job) error {
			began <- struct{}{}
			<-ctx.Done()
			return errors.Join(stint.SetResult(ctx, 1), ctx.Err())
		})
		handle(mux, "fails", func(ctx context.Context, _ *stint.Job) error {
			began <- struct{}{}
			<-ctx.Done()
			return stint.SetError(ctx, ctx.Err(), false)
		})
		done, back := enqueue(t, s, "succeeds", `{}`), enqueue(t, s, "fails", `{}`)
		stop := start(t, s, mux, engine.Config{Slots: 2, Grace: 10 * time.Millisecond})
		<-began
		<-began
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		until(t, s, done, stint.Completed)
		if job := until(t, s, back, stint.Available); job.Attempt != 1 || job.Attempts[0].Outcome != stint.OutcomeReturned {
			t.Errorf("it is at attempt %d after %v", job.Attempt, job.Attempts[0].Outcome)
		}
	})
}
