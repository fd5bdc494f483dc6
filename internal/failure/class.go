// Package failure is what an error means for the attempt that it ended: its classes, and
// whether it asks for another ending than failure.
package failure

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// class is a declared name for errors.
type class struct {
	name string
	is   func(error) bool
}

// classes are the declared ones in the order of their declarations. They are
// read with every failure and written while the program starts.
var classes struct {
	mu   sync.Mutex
	list atomic.Pointer[[]class]
}

// IsOneOf reports whether an error is one of these.
func IsOneOf(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
}

// IsOf reports whether there is an error of a type in another one, and if there are functions,
// one for which some of them says so.
func IsOf[E error](which []func(E) bool) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[E](err)
		return ok && (len(which) == 0 || slices.ContainsFunc(which, func(f func(E) bool) bool { return f(e) }))
	}
}

// Declare adds a class. It panics when the name can never be right or is taken, and returns it.
func Declare(name string, is func(error) bool) string {
	err := valid.Name("error class", name)
	if err == nil {
		err = retry.CheckClass(name)
	}
	if err != nil {
		panic(fmt.Sprintf("stint: error class %q: %v", name, err))
	}
	classes.mu.Lock()
	defer classes.mu.Unlock()
	known := declared()
	if slices.ContainsFunc(known, func(c class) bool { return c.name == name }) {
		panic(fmt.Sprintf("stint: error class %q is declared already", name))
	}
	list := append(slices.Clone(known), class{name, is})
	classes.list.Store(&list)
	return name
}

func declared() []class {
	if list := classes.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Classes names what an error is, for policies that choose by it: the declared
// classes that it is of, in the order of their declarations, and the type of
// the error that everything else was wrapped around.
func Classes(err error) []string {
	if err == nil {
		return nil
	}
	var list []string
	for _, c := range declared() {
		if c.has(err) {
			list = append(list, c.name)
		}
	}
	inside := innermost(err)
	if len(list) > 0 && (retry.CheckClass(inside) != nil || inside == "stint.PanicError") {
		return list // of a type that tells nothing beside that
	}
	return append(list, inside)
}

// has asks an error about itself, which runs methods of its own.
func (c class) has(err error) (is bool) {
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	return c.is(err)
}

// As finds an error of a type in another one, which runs methods of that: a nil
// pointer in an error, say, has them, and they panic. Then nothing is found.
func As[E error](err error) (found E, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return errors.AsType[E](err)
}

// innermost is the type of the error that everything else was wrapped around.
func innermost(err error) string {
	for next := unwrap(err); next != nil; next = unwrap(err) {
		err = next
	}
	if _, ok := err.(*valid.Error); ok {
		return "stint.InvalidError" // as programs call it
	}
	return strings.TrimPrefix(reflect.TypeOf(err).String(), "*")
}

// unwrap goes one step in; of several errors joined it follows the first. There
// is nothing in one whose method panics.
func unwrap(err error) (inside error) {
	defer func() {
		if recover() != nil {
			inside = nil
		}
	}()
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			if e != nil {
				return e
			}
		}
		return nil
	}
	return errors.Unwrap(err)
}

// Message is the text of an error, also of one whose method panics.
func Message(err error) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("(the error cannot be shown: its method Error panicked: %v)", v)
		}
	}()
	return err.Error()
}
