package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/link"
	"github.com/stint-go/stint/jobs"
	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/ops"
)

// maxCallback bounds what is read of a callback: a signal's value, and what is around it.
const maxCallback = 1<<20 + 1<<10

// callback takes what the receiver of an http job's request says when it has done the work. It may be sent again, also
// after the end of the job, which its answer may not have come before: the first one counts.
func (b *Dashboard) callback(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	status, detail := http.StatusNoContent, ""
	c, refused := b.link.OpenCallback(r.PathValue("token"), time.Now())
	switch {
	case b.config.LinkKey == "":
		status, detail = http.StatusNotFound, "this server takes no callbacks"
	case errors.Is(refused, link.ErrExpired):
		status, detail = http.StatusGone, "it comes too late: the job no longer waits for it"
	case refused != nil:
		status, detail = http.StatusForbidden, "the URL is not valid: it may be incomplete"
	default:
		if err := b.takeCallback(ctx, w, r, c); err != nil {
			status, detail = refusal(err)
			if status == http.StatusServiceUnavailable {
				b.config.Log.ErrorContext(ctx, "a callback failed", "job", c.Job, "error", err)
				detail = "the callback could not be kept: send it again in a moment"
			}
		}
	}
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	guard.WriteProblem(w, status, detail)
}

// takeCallback sends a callback to its job as the signal that it awaits.
func (b *Dashboard) takeCallback(ctx context.Context, w http.ResponseWriter, r *http.Request, c link.Callback) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallback))
	if err != nil {
		return &stint.InvalidError{Field: "body", Problem: "it cannot be read, or is longer than 1 MiB"}
	}
	if len(body) == 0 {
		body = []byte("{}")
	}
	told, err := jobs.Decode[httpjob.Callback](body)
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok {
		return &stint.InvalidError{Field: strings.Replace(invalid.Field, "args", "body", 1), Problem: invalid.Problem}
	} else if err != nil {
		return err
	}
	value, err := json.Marshal(told)
	if err != nil {
		return err
	}
	name := httpjob.CallbackSignal(c.Attempt)
	_, err = ops.SendSignal.Call(guard.With(ctx, guard.Identity{Name: "callback", Role: guard.Operator}), b.api, ops.SignalInput{
		JobName: ops.JobName{ID: int64(c.Job)}, Body: ops.NewSignal{Name: name, Value: value, Key: name},
	})
	return err
}
