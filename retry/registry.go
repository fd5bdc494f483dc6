package retry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// ErrUnknownFunc says that a policy asks for a function that this process does
// not have. The decision belongs to a process that has it.
var ErrUnknownFunc = errors.New("unknown retry function")

// Func decides about an error in code: for what a policy of data cannot say. It
// sees the error, and in the failure the number of attempts, how long this one
// took and when the job was created. It answers with [Again], perhaps To
// another queue, or with [Final].
//
// It is called by many goroutines at once. It is not asked about lost attempts,
// nor about errors that only, except or the error itself rule out.
type Func func(cause error, f Failure) Decision

// Registry holds the functions of a process by name. The zero Registry is empty
// and ready; all methods may be called concurrently, and those that only look
// also on a nil one.
type Registry struct {
	mu    sync.RWMutex
	funcs map[string]Func
}

// Register makes fn answer for policies made by Function(name). A name is taken
// once: which of two functions decides must not depend on the order of imports.
func (r *Registry) Register(name string, fn Func) error {
	if bad := checkName("name", name); bad != "" {
		return fmt.Errorf("register retry function: %s", bad)
	}
	if fn == nil {
		return fmt.Errorf("register retry function %q: it is nil", name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.funcs[name] != nil {
		return fmt.Errorf("register retry function %q: it is registered already", name)
	}
	if r.funcs == nil {
		r.funcs = make(map[string]Func)
	}
	r.funcs[name] = fn
	return nil
}

// Decide is [Policy.Decide] with functions asked. Its only error wraps
// ErrUnknownFunc, and only when this failure's decision is that function's. A
// function that panics counts as the default policy, and the Note says so.
func (r *Registry) Decide(p Policy, f Failure, cause error) (Decision, error) {
	return p.decide(f, func(name string, f Failure) (Decision, error) {
		fn := r.find(name)
		if fn == nil {
			return Decision{}, fmt.Errorf("%w %q", ErrUnknownFunc, name)
		}
		f.Classes = slices.Clone(f.Classes) // the function may keep or change it
		return call(name, fn, f, cause), nil
	})
}

func (r *Registry) find(name string) Func {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.funcs[name]
}

func call(name string, fn Func, f Failure, cause error) (d Decision) {
	defer func() {
		if v := recover(); v != nil {
			d = fallback(f)
			d.Note = clean(fmt.Sprintf("decided by the default policy: retry function %s panicked: %v", name, v))
		}
	}()
	return tidy(fn(cause, f))
}

// tidy makes a function's answer one that can be stored. A text that a database
// refuses would otherwise lose the outcome of the job.
func tidy(d Decision) Decision {
	d.Note = clean(d.Note)
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
	if bad := checkName("queue", d.Queue); bad != "" {
		d.Queue, d.Note = "", clean("it stays in its queue: "+bad)
	}
	return d
}

// clean cuts a text of unknown origin to the length of a name, on one line.
func clean(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxName)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
