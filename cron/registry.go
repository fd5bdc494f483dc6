package cron

import (
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint/internal/named"
)

// Function asks the function registered under name in the process that needs the
// next time (see [Registry]): functions cannot be stored, their names can. A
// mistake is in the Recurrence: see [Recurrence.Validate].
func Function(name string) Recurrence {
	if bad := checkName(name); bad != "" {
		return Recurrence{bad: bad}
	}
	return Recurrence{rule: function{name}}
}

// Func returns the name of the function that is to be asked, if it is one.
func (r Recurrence) Func() (name string, ok bool) {
	f, ok := r.rule.(function)
	return f.name, ok
}

// function is Function.
type function struct{ name string }

func (function) next(time.Time, *time.Location) (time.Time, bool) { return time.Time{}, false }
func (function) resume(time.Time, time.Time, *time.Location) (time.Time, bool) {
	return time.Time{}, false
}
func (f function) text() string  { return functionPrefix + f.name }
func (f function) words() string { return fmt.Sprintf("as the function %s says", f.name) }

// ErrUnknownFunc says that a recurrence asks for a function that this process
// does not have. The next time belongs to a process that has it.
var ErrUnknownFunc = errors.New("unknown recurrence function")

// UnknownFuncError is an [ErrUnknownFunc] with the name of the function.
type UnknownFuncError struct{ Name string }

// Error names the function.
func (e *UnknownFuncError) Error() string { return fmt.Sprintf("%v %q", ErrUnknownFunc, e.Name) }

// Is makes it match [ErrUnknownFunc].
func (e *UnknownFuncError) Is(target error) bool { return target == ErrUnknownFunc }

// Func finds the next time in code: for what no expression can say. It returns
// the first occurrence strictly after an instant, or ok=false when there is none
// any more. Its answer must depend on its arguments alone, for it is asked by
// several machines, again after a crash, and ahead of time to show what is to
// come. It is called by many goroutines at once, and the zone is never nil.
type Func func(after time.Time, zone *time.Location) (next time.Time, ok bool)

// Registry holds the functions of a process by name. The zero Registry is empty
// and ready; all methods may be called concurrently, and those that only look
// also on a nil one.
type Registry struct{ funcs named.Funcs[Func] }

// Register makes fn answer for recurrences made by Function(name). A name is taken once.
func (r *Registry) Register(name string, fn Func) error {
	return r.funcs.Register("recurrence function", name, checkName(name), fn, fn == nil)
}

// Names lists the functions by name.
func (r *Registry) Names() []string {
	if r == nil {
		return nil
	}
	return r.funcs.Names()
}

// Next is [Recurrence.Next] with functions asked. An error is the mistake in the
// recurrence, an [UnknownFuncError], or says that the function panicked or gave a
// time that is not after the one it was asked about. A function's time is rounded
// up to a whole microsecond, which is what databases keep.
func (r *Registry) Next(rec Recurrence, after time.Time, zone *time.Location) (next time.Time, ok bool, err error) {
	if err := rec.Validate(); err != nil {
		return time.Time{}, false, err
	}
	name, isFunc := rec.Func()
	if !isFunc {
		next, ok = rec.Next(after, zone)
		return next, ok, nil
	}
	fn := r.find(name)
	if fn == nil {
		return time.Time{}, false, &UnknownFuncError{name}
	}
	if zone == nil {
		zone = time.UTC
	}
	return call(name, fn, after.Round(0).In(zone), zone)
}

// Resume is [Recurrence.Resume] with functions asked, and the errors of Next.
func (r *Registry) Resume(rec Recurrence, last, now time.Time, zone *time.Location) (next time.Time, ok bool, err error) {
	if _, isFunc := rec.Func(); isFunc || rec.bad != "" {
		if last.After(now) {
			now = last
		}
		return r.Next(rec, now, zone)
	}
	next, ok = rec.Resume(last, now, zone)
	return next, ok, nil
}

// Upcoming is the function [Upcoming] with functions asked. With an error come
// the times before it.
func (r *Registry) Upcoming(rec Recurrence, after time.Time, zone *time.Location, n int) ([]time.Time, error) {
	var times []time.Time
	for range n {
		next, ok, err := r.Next(rec, after, zone)
		if !ok || err != nil {
			return times, err
		}
		times, after = append(times, next), next
	}
	return times, nil
}

func (r *Registry) find(name string) Func {
	if r == nil {
		return nil
	}
	return r.funcs.Find(name)
}

func call(name string, fn Func, after time.Time, zone *time.Location) (next time.Time, ok bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			next, ok, err = time.Time{}, false, fmt.Errorf("recurrence function %q panicked: %v", name, v)
		}
	}()
	next, ok = storable(fn(after, zone))
	if !ok {
		return time.Time{}, false, nil
	}
	if !next.After(after) {
		// To believe it would be to run the same occurrence for ever.
		return time.Time{}, false, fmt.Errorf("recurrence function %q gave %s, which is not after %s",
			name, next.Format(time.RFC3339Nano), after.Format(time.RFC3339Nano))
	}
	next = next.Round(0).In(zone)
	if whole := next.Truncate(time.Microsecond); whole.Before(next) {
		next = whole.Add(time.Microsecond)
	}
	return next, true, nil
}
