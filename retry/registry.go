package retry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/stint-go/stint/internal/named"
)

// ErrUnknownFunc says that a policy asks for a function that this process does
// not have. The decision belongs to a process that has it.
var ErrUnknownFunc = errors.New("unknown retry function")

// UnknownFuncError is an [ErrUnknownFunc] with the name of the function.
type UnknownFuncError struct{ Name string }

// Error names the function.
func (e *UnknownFuncError) Error() string { return fmt.Sprintf("%v %q", ErrUnknownFunc, e.Name) }

// Is makes it match [ErrUnknownFunc].
func (e *UnknownFuncError) Is(target error) bool { return target == ErrUnknownFunc }

// Func decides about an error in code: for what a policy of data cannot say. It
// sees the error, and in the failure its classes and its text, the number of
// attempts, how long this one took, and when the job was created and due. It
// answers with [Again] or [At], perhaps To another queue, or with [Final].
//
// The cause is the error itself where the process that decides is the one that
// saw it, and otherwise a [Told]: never nil.
//
// It is called by many goroutines at once. It is not asked about lost attempts,
// nor about errors that only, except or the error itself rule out. Should it
// panic, the default policy decides.
type Func func(cause error, f Failure) Decision

// Told is an error that another process saw: its text is all that is left of
// it. What is to be recognised there has a declared class, and that stands in
// the failure.
type Told string

// Error is the text of the error that it was.
func (e Told) Error() string { return string(e) }

// When makes a Func of two questions: is the error retriable at all, and if so,
// how long to wait after the n-th charged attempt. A negative wait is none:
// then the failure is final, for [ReasonNoDate].
func When(retriable func(cause error) bool, wait func(n int) time.Duration) Func {
	return func(cause error, f Failure) Decision {
		if !retriable(cause) {
			return Final(ReasonNotRetriable)
		}
		if d := wait(f.count()); d >= 0 {
			return Again(d)
		}
		return Final(ReasonNoDate)
	}
}

// Registry holds the functions of a process by name. The zero Registry is empty
// and ready; all methods may be called concurrently, and those that only look
// also on a nil one.
type Registry struct{ funcs named.Funcs[Func] }

// Register makes fn answer for policies made by Function(name). A name is taken once.
func (r *Registry) Register(name string, fn Func) error {
	return r.funcs.Register("retry function", name, named.Check("name", name), fn, fn == nil)
}

// Names lists the functions by name.
func (r *Registry) Names() []string {
	if r == nil {
		return nil
	}
	return r.funcs.Names()
}

// Decide is [Policy.Decide] with functions asked. Its only error is an
// [UnknownFuncError], and only when this failure's decision is that function's. A
// function that panics counts as the default policy, and the Note says so.
func (r *Registry) Decide(p Policy, f Failure, cause error) (Decision, error) {
	return p.decide(f, func(name string, f Failure) (Decision, error) {
		fn := r.find(name)
		if fn == nil {
			return Decision{}, &UnknownFuncError{name}
		}
		f.Classes = slices.Clone(f.Classes) // the function may keep or change it
		if cause == nil {
			cause = Told(f.Message)
		}
		return call(name, fn, f, cause), nil
	})
}

func (r *Registry) find(name string) Func {
	if r == nil {
		return nil
	}
	return r.funcs.Find(name)
}

func call(name string, fn Func, f Failure, cause error) (d Decision) {
	defer func() {
		if v := recover(); v != nil {
			d = fallback(f)
			d.Note = clean(fmt.Sprintf("decided by the default policy: retry function %s panicked: %v", name, v))
		}
	}()
	return tidy(fn(cause, f), f)
}

// tidy makes a function's answer one that can be stored. A text that a database
// refuses would otherwise lose the outcome of the job.
func tidy(d Decision, f Failure) Decision {
	d.Note = clean(d.Note)
	if !d.Date.IsZero() {
		d.Wait, d.Date = d.Date.Sub(f.Now), time.Time{}
	}
	if !d.Retry {
		reason := clean(d.Reason)
		if reason == "" {
			reason = ReasonNoDate
		}
		return Decision{Reason: reason, Note: d.Note}
	}
	d.Reason = ""
	d.Wait = min(max(d.Wait, 0*time.Second), MaxWait)
	if d.Queue == "" {
		return d
	}
	if bad := named.Check("queue", d.Queue); bad != "" {
		d.Queue, d.Note = "", clean("it stays in its queue: "+bad)
	}
	return d
}

// clean cuts a text of unknown origin to the length of a name, on one line.
func clean(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), named.MaxName)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
