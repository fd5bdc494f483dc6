package stepjob

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"

	"github.com/stint-go/stint"
)

// Result is what is kept of an attempt, of a failed one too: the steps that ran,
// in their order. The last of them is the one that failed, if one did.
type Result struct {
	Steps []StepResult `json:"steps"`
}

// StepResult is what one step came to.
type StepResult struct {
	Name   string          `json:"name"` // as in [Step], or the operation's
	Result json.RawMessage `json:"result,omitempty"`

	// Omitted says that the results of all steps together are too large to be
	// kept, and that this one is left out. The step after it had it.
	Omitted bool `json:"omitted,omitzero"`
}

// maxKept is how many bytes of results are kept: all but a little of what an
// execution has room for.
const maxKept = 1<<20 - 64<<10

// run performs one attempt.
func (o *Operations) run(ctx context.Context, job *stint.Job, args Args) (*Result, error) {
	if err := o.Check(args); err != nil {
		return nil, stint.NoRetry(err)
	}
	r := &Result{}
	var previous json.RawMessage
	for i, s := range args.Steps {
		if ctx.Err() != nil {
			return r.fit(), &StepError{i + 1, s.name(), context.Cause(ctx)}
		}
		in := Input{Args: s.args(), Previous: previous, Step: i + 1, Last: i == len(args.Steps)-1, Job: *job}
		result, err := call(ctx, o.all[s.Do], in)
		if result != nil && !json.Valid(result) {
			// The work is done; another run would not make it any more valid.
			result, err = nil, errors.Join(err, stint.NoRetry(errors.New("what it returned is not JSON")))
		}
		r.Steps = append(r.Steps, StepResult{Name: s.name(), Result: result})
		if err != nil {
			return r.fit(), &StepError{i + 1, s.name(), err}
		}
		previous = result
	}
	return r.fit(), nil
}

// call runs an operation. A panic becomes an error here, where it is known
// which step it was.
func call(ctx context.Context, op Operation, in Input) (result json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &stint.PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	return op.Run(ctx, in)
}

// fit leaves out results, from the first on, until the rest can be kept. Nothing
// ran when there is none.
func (r *Result) fit() *Result {
	if len(r.Steps) == 0 {
		return nil
	}
	size := 0
	for _, s := range r.Steps {
		size += len(s.Result)
	}
	for i := 0; size > maxKept; i++ {
		size -= len(r.Steps[i].Result)
		if r.Steps[i].Result != nil {
			r.Steps[i].Result, r.Steps[i].Omitted = nil, true
		}
	}
	return r
}
