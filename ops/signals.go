package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
)

// ListSignals lists the signals of a job, or is [stint.ErrNotFound].
var ListSignals = declare(&Op[JobName, List[view.Signal]]{
	Decl: Decl{
		Name: "jobs signals", Method: http.MethodGet, Path: "/jobs/{id}/signals", Summary: "List the signals that were sent to a job, with their whole values",
		Doc: "By number. One that a step of the job has taken names that step.",
	},
	do: func(ctx context.Context, l *Local, in *JobName) (List[view.Signal], error) {
		id := stint.ID(in.ID)
		signals, err := listed(view.SignalsOf(ctx, l.Store, id))
		if err == nil && len(signals.Items) == 0 {
			_, err = l.Store.Job(ctx, id)
		}
		l.seenSignals(ctx, signals.Items)
		return signals, err
	},
})

// NewSignal is a signal to be sent.
type NewSignal struct {
	Name  string          `json:"name" minLength:"1" maxLength:"255" doc:"The name under which the job's handler awaits it"`
	Value json.RawMessage `json:"value,omitempty" doc:"What the handler gets: any JSON of at most 1 MiB; null unless given"`
	Key   string          `json:"key,omitempty" maxLength:"255" doc:"Of several signals of a job with the same key the first one counts, and the others do nothing: so a request whose answer was lost can be sent again"`
}

// signal is the signal, with null for no value.
func (n NewSignal) signal() stint.Signal {
	s := stint.Signal{Name: n.Name, Value: n.Value, Key: n.Key}
	if len(s.Value) == 0 {
		s.Value = json.RawMessage("null")
	}
	return s
}

// details are without the value, which belongs to the handler as arguments do.
func (n NewSignal) details() any {
	said := map[string]string{"name": n.Name}
	if n.Key != "" {
		said["key"] = n.Key
	}
	return said
}

// SignalInput is a signal, and the job that it is sent to.
type SignalInput struct {
	JobName
	Body NewSignal
}

func (s SignalInput) check() error {
	signal := s.Body.signal()
	err := signal.Check()
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok && invalid.Field == "signal" {
		err = valid.Invalid("name", "%s", invalid.Problem)
	}
	return inError("body", err)
}

// SendSignal sends a signal to a job. It is [stint.ErrNotFound] if there is no such job, and
// [stint.ErrEnded] if it comes too late.
var SendSignal = declare(&Op[SignalInput, None]{
	Decl: Decl{
		Name: "jobs signal", Method: http.MethodPost, Path: "/jobs/{id}/signal", Needs: guard.Operator, Summary: "Send a signal to a job, whose handler awaits it",
		Doc: "It may come before the handler awaits it: it is kept for the job until a step takes it. A job that is blocked since it awaits a signal of this name runs at once. " +
			"Signals of one name are taken in the order of their numbers. A job that has ended gets none: 409. With a `key` a request whose answer was lost can be sent again.",
	},
	do: func(ctx context.Context, l *Local, in *SignalInput) (None, error) {
		return None{}, l.Store.Signal(ctx, stint.Tx{}, stint.ID(in.ID), in.Body.signal())
	},
	said: func(in *SignalInput, _ None) string {
		return fmt.Sprintf("signal %s is sent to job %d", words.Visible(in.Body.Name), in.ID)
	},
})
