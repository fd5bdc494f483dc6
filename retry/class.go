package retry

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stint-go/stint/internal/valid"
)

// ErrorClass declares a name for errors: those for which [errors.Is] finds one
// of these. Policies choose by the name, executions show it, and it means the
// same in every program that declares it, whatever the errors' types:
//
//	var NoRows = retry.ErrorClass("no_rows", sql.ErrNoRows)
//
//	retry.Default().Except(NoRows)
//
// An error may be of several errorClasses. All of them go to the policy; the one
// declared first is stored, before all of them "panic" and "timeout", which
// stint declares itself. An error that nobody declared is of the class of its
// innermost type, such as "net.OpError".
//
// Declare classes while the program starts, best in package-level variables.
// It panics when the name can never be right or is taken, and returns it.
func ErrorClass(name string, is ...error) string {
	if len(is) == 0 || slices.Contains(is, nil) {
		panic(fmt.Sprintf("stint: error class %q: it has no error, or nil for one", name))
	}
	return declare(name, isOneOf(slices.Clone(is)...))
}

// ErrorClassOf declares a name for errors of a type: those in which
// [errors.AsType] finds one, and if there are functions, one for which some of
// them says so:
//
//	retry.ErrorClassOf[*net.OpError]("network")
//	retry.ErrorClassOf("deadlock", func(e *pgconn.PgError) bool { return e.Code == "40P01" })
//
// It is otherwise [ErrorClass].
func ErrorClassOf[E error](name string, which ...func(E) bool) string {
	if slices.ContainsFunc(which, func(f func(E) bool) bool { return f == nil }) {
		panic(fmt.Sprintf("stint: error class %q: a function is nil", name))
	}
	return declare(name, isOf(slices.Clone(which)))
}

// errorClass is a declared name for errors.
type errorClass struct {
	name string
	is   func(error) bool
}

// errorClasses are the declared ones in the order of their declarations. They are
// read with every failure and written while the program starts.
var errorClasses struct {
	mu   sync.Mutex
	list atomic.Pointer[[]errorClass]
}

// isOneOf reports whether an error is one of these.
func isOneOf(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
}

// isOf reports whether there is an error of a type in another one, and if there are functions,
// one for which some of them says so.
func isOf[E error](which []func(E) bool) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[E](err)
		return ok && (len(which) == 0 || slices.ContainsFunc(which, func(f func(E) bool) bool { return f(e) }))
	}
}

// declare adds a class. It panics when the name can never be right or is taken, and returns it.
func declare(name string, is func(error) bool) string {
	err := valid.Name("error class", name)
	if err == nil {
		err = CheckClass(name)
	}
	if err != nil {
		panic(fmt.Sprintf("stint: error class %q: %v", name, err))
	}
	errorClasses.mu.Lock()
	defer errorClasses.mu.Unlock()
	known := declared()
	if slices.ContainsFunc(known, func(c errorClass) bool { return c.name == name }) {
		panic(fmt.Sprintf("stint: error class %q is declared already", name))
	}
	list := append(slices.Clone(known), errorClass{name, is})
	errorClasses.list.Store(&list)
	return name
}

func declared() []errorClass {
	if list := errorClasses.list.Load(); list != nil {
		return *list
	}
	return nil
}

// ErrorClasses names what an error is, for policies that choose by it: the declared
// classes that it is of, in the order of their declarations, and the type of
// the error that everything else was wrapped around. An error that has a method ErrorClass() string is
// called what that returns: so are errors of workers in other languages.
func ErrorClasses(err error) []string {
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
	if len(list) > 0 && (CheckClass(inside) != nil || inside == "stint.PanicError") {
		return list // of a type that tells nothing beside that
	}
	return append(list, inside)
}

// has asks an error about itself, which runs methods of its own.
func (c errorClass) has(err error) (is bool) {
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	return c.is(err)
}

// innermost is the type of the error that everything else was wrapped around.
func innermost(err error) string {
	for next := unwrap(err); next != nil; next = unwrap(err) {
		err = next
	}
	switch e := err.(type) {
	case *valid.Error:
		return "stint.InvalidError" // as programs call it
	case interface{ ErrorClass() string }: // of a program in another language
		return e.ErrorClass()
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
