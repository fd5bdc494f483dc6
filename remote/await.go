package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/retry"
)

// waitOnce is how long one request waits: proxies cut what is silent for a minute.
var waitOnce = 30 * time.Second

const (
	waitAtMost = 5 * time.Second        // between two requests that fail
	waitFirst  = 100 * time.Millisecond // after the first that failed
	waitAgain  = time.Second            // between two requests that a server answers without having waited
)

// Await implements [store.Awaiter]. After a first look the server answers each request
// when the job has ended, or after half a minute; then the next one is sent. Each caller
// has a connection of its own meanwhile. An error of the first look is returned. After
// that a restart of the server, a connection that breaks and an answer of 500 or more do
// not end the wait: it goes on until ctx ends, with up to five seconds between requests.
func (s *Store) Await(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	job, err := s.Job(ctx, id)
	if err != nil || job.State.Final() {
		return job, err
	}
	wait := waitOnce
	if limit := s.client.Timeout; limit > 0 {
		wait = min(wait, limit/2)
	}
	in := ops.ShowInput{ID: int64(id), Wait: retry.FormatDuration(wait)}
	for pause := waitFirst; ; {
		sent := time.Now()
		shown, err := ops.ShowJob.Call(ctx, s, in)
		e, _ := errors.AsType[*Error](err)
		_, broken := errors.AsType[*wayError](err)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("await job %d: %w", id, context.Cause(ctx))
		case err == nil && shown.State.Final():
			return shown.JobInfo, nil
		case err == nil:
			if pause = waitFirst; time.Since(sent) < wait/2 {
				rest(ctx, waitAgain)
			}
		case broken || e != nil && e.Status >= http.StatusInternalServerError:
			if rest(ctx, pause); ctx.Err() != nil {
				return nil, fmt.Errorf("await job %d: %w; the last request failed: %w", id, context.Cause(ctx), err)
			}
			pause = min(2*pause, waitAtMost)
		default:
			return nil, err
		}
	}
}

// rest waits for a while, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
