package httpjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
)

// Callback is what a receiver that answered 202 sends to the URL of the header Stint-Callback when it has done
// the work, as JSON. It is sent by POST. An empty body is the zero value, which is a success.
type Callback struct {
	// Result is kept with the job: see [Result.Callback].
	Result json.RawMessage `json:"result,omitempty"`

	// Error says that the work failed, and why.
	Error string `json:"error,omitempty"`

	// Final says that to send the request again cannot help. Without it the job's retry policy decides.
	Final bool `json:"final,omitempty"`
}

// Check reports what is wrong with it, as a [stint.InvalidError], or nil.
func (c Callback) Check() error {
	switch {
	case c.Error == "" && c.Final:
		return valid.Invalid("final", "it is for an error")
	case c.Error != "" && c.Result != nil:
		return valid.Invalid("result", "an error has none")
	}
	return nil
}

// CallbackSignal is the name of the signal that a job awaits in an attempt: its value is a [Callback].
func CallbackSignal(attempt int) string { return fmt.Sprintf("callback %d", attempt) }

// CallbackError says that the receiver accepted a request, and failed later.
type CallbackError struct{ Text string }

// Error shows what the receiver said.
func (e *CallbackError) Error() string { return "the receiver called back: " + e.Text }

// errNoCallback says that a receiver accepted a request, and did not say what came of it.
var errNoCallback = errors.New("no callback")

// sendAndWait performs an attempt whose receiver may do the work later. The request is a step, so that a run
// which begins after the wait does not send it again; each attempt has its own.
func (s *sender) sendAndWait(ctx context.Context, job *stint.Job, args Args) (*Result, error) {
	if s.callback == nil {
		return nil, errors.New("this engine has no URL for callbacks: see the settings of the kind http")
	}
	var answer *Result
	sent, err := stint.Step(ctx, fmt.Sprintf("request %d", job.Attempt), func(ctx context.Context) (*Result, error) {
		back, err := s.callback(job.ID, job.Attempt, time.Now().Add(time.Duration(args.Callback)))
		if err != nil {
			return nil, err
		}
		answer, err = s.request(ctx, job, args, back)
		return answer, err
	})
	if err != nil || sent.Status != http.StatusAccepted {
		if sent == nil {
			sent = answer // of a request that failed
		}
		return sent, err
	}
	signal := CallbackSignal(job.Attempt)
	told, err := stint.Await[Callback](ctx, signal, time.Duration(args.Callback))
	switch {
	case errors.Is(err, stint.ErrNoSignal):
		return sent, fmt.Errorf("%w in %v after status 202", errNoCallback, time.Duration(args.Callback))
	case err != nil:
		return nil, err
	case told.Error != "":
		failed := error(&CallbackError{valid.CleanCut(told.Error)})
		if told.Final {
			failed = stint.NoRetry(failed)
		}
		return sent, failed
	}
	sent.Callback = told.Result
	return sent, nil
}

// expected are the statuses that are a success: of a request that may be answered later, 202 as well.
func (a Args) expected() []int {
	if a.Callback == 0 || len(a.Expect) == 0 {
		return a.Expect
	}
	return append(slices.Clone(a.Expect), http.StatusAccepted)
}
