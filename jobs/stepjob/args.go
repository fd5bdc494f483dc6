package stepjob

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/stint-go/stint/internal/valid"
)

// MaxSteps is how many steps one job may have.
const MaxSteps = 100

// Args are the arguments of a job: at least one step.
type Args struct {
	Steps []Step `json:"steps"`
}

// Step is one entry of the list.
type Step struct {
	// Do names the operation.
	Do string `json:"do"`

	// Args are the operation's arguments. None means {}.
	Args json.RawMessage `json:"args,omitempty"`

	// Name is what errors and results call the step, for lists in which an
	// operation is there more than once. Empty means the operation's name.
	Name string `json:"name,omitempty"`
}

func (s Step) name() string { return cmp.Or(s.Name, s.Do) }

// args are the operation's arguments, never missing.
func (s Step) args() json.RawMessage {
	if len(s.Args) == 0 || string(s.Args) == "null" {
		return json.RawMessage("{}")
	}
	return s.Args
}

// Check reports the first thing that can never be right whatever operations
// there are, as a [stint.InvalidError], or nil.
func (a Args) Check() error {
	switch {
	case len(a.Steps) == 0:
		return valid.Invalid("args.steps", "at least one step is needed")
	case len(a.Steps) > MaxSteps:
		return valid.Invalid("args.steps", "%d steps are more than %d", len(a.Steps), MaxSteps)
	}
	for i, s := range a.Steps {
		if err := valid.Name("do", s.Do); err != nil {
			return valid.Invalid("args.steps", "step %d: %v", i+1, err)
		}
		if s.Name == "" {
			continue
		}
		if err := valid.Name("name", s.Name); err != nil {
			return valid.Invalid("args.steps", "step %d: %v", i+1, err)
		}
	}
	return nil
}

// StepError says which step of a job failed.
type StepError struct {
	Step int    // its place in the list, counted from 1
	Name string // as in [Step], or the operation's
	Err  error
}

// Error names the step before it says what happened.
func (e *StepError) Error() string { return fmt.Sprintf("step %d (%s): %v", e.Step, e.Name, e.Err) }

// Unwrap is what the operation returned.
func (e *StepError) Unwrap() error { return e.Err }
