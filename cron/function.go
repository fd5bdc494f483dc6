package cron

import (
	"fmt"
	"time"
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
