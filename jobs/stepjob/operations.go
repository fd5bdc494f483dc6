package stepjob

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/jobs"
)

// Operations are what steps may name. Fill it before an engine starts; after
// that it must not change. The zero value is not ready: use [NewOperations].
type Operations struct {
	all map[string]Operation
}

// NewOperations returns a set without operations.
func NewOperations() *Operations { return &Operations{all: map[string]Operation{}} }

// Operation is what a step can do. [Func] makes one of a function, [Of] of a
// kind's handler.
type Operation struct {
	// Check reports what about the arguments of a step can never be right, or
	// nil. It is asked about all steps of a job before the first one runs. Nil
	// accepts everything.
	Check func(args json.RawMessage) error

	// Run performs a step. What it returns beside an error is handed to the
	// next step and kept, also when the step failed; nil is nothing.
	Run func(ctx context.Context, in Input) (json.RawMessage, error)
}

// Input is what a step is given.
type Input struct {
	// Args are the step's arguments, {} when it has none.
	Args json.RawMessage

	// Previous is what the step before came to; nil for the first step, and
	// after one without a result.
	Previous json.RawMessage

	// Step is the step's place in the list, counted from 1, and Last says
	// that none comes after it.
	Step int
	Last bool

	// Job is the job that the step belongs to, with the attempt that this is.
	// Its arguments are the whole list.
	Job stint.Job
}

// Add offers an operation under a name. Like [stint.Mux.Add] it panics when the
// name can never be right or is taken.
func (o *Operations) Add(name string, op Operation) {
	if err := valid.Name("do", name); err != nil {
		panic(fmt.Sprintf("stepjob: operation %q: %v", name, err))
	}
	if op.Run == nil {
		panic(fmt.Sprintf("stepjob: operation %q: there is nothing to run", name))
	}
	if _, twice := o.all[name]; twice {
		panic(fmt.Sprintf("stepjob: there is an operation %q already", name))
	}
	o.all[name] = op
}

// Names lists the operations in the order of the alphabet.
func (o *Operations) Names() []string { return slices.Sorted(maps.Keys(o.all)) }

// Check reports the first thing about a job's arguments that can never be right
// where these operations are offered, as a [stint.InvalidError], or nil.
// Producers that know the operations ask before they enqueue; the handler asks
// before the first step.
func (o *Operations) Check(a Args) error {
	if err := a.Check(); err != nil {
		return err
	}
	for i, s := range a.Steps {
		op, ok := o.all[s.Do]
		if !ok {
			return valid.Invalid("args.steps", "step %d: there is no operation %q; there are %s", i+1, s.Do, strings.Join(o.Names(), ", "))
		}
		if op.Check == nil {
			continue
		}
		if err := op.Check(s.args()); err != nil {
			return valid.Invalid("args.steps", "step %d (%s): %v", i+1, s.name(), err)
		}
	}
	return nil
}

// Func makes an operation of a function with typed arguments and result. The
// arguments are strict: see [jobs.Decode].
func Func[A, R any](f func(ctx context.Context, in Input, args A) (R, error)) Operation {
	return Operation{
		Check: func(raw json.RawMessage) error {
			_, err := jobs.Decode[A](raw)
			return err
		},
		Run: func(ctx context.Context, in Input) (json.RawMessage, error) {
			args, err := jobs.Decode[A](in.Args)
			if err != nil {
				return nil, stint.NoRetry(err)
			}
			result, err := f(ctx, in, args)
			if err != nil {
				return nil, err
			}
			raw, err := json.Marshal(result)
			if err != nil {
				return nil, stint.NoRetry(fmt.Errorf("encode the result: %w", err))
			}
			return raw, nil
		},
	}
}

// Of makes an operation of a kind's handler: it sees the job with the step's
// arguments in place of the list.
func Of(h stint.Handler) Operation {
	return Operation{Run: func(ctx context.Context, in Input) (json.RawMessage, error) {
		job := in.Job
		job.Args = in.Args
		return h(ctx, &job)
	}}
}
