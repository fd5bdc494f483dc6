package stint

import (
	"fmt"
	"slices"

	"github.com/stint-go/stint/internal/failure"
	"github.com/stint-go/stint/retry"
)

// The classes that every program has, before its own.
var (
	_ = failure.Declare("panic", failure.IsOf[*PanicError](nil))
	_ = failure.Declare("timeout", failure.IsOneOf(ErrTimeout))
	_ = failure.Declare("cancelled", failure.IsOneOf(ErrCancelled))
	_ = failure.Declare("lost", failure.IsOneOf(retry.ErrLost))
	_ = failure.Declare("unstorable", failure.IsOneOf(ErrUnstorable))
)

// ErrorClass declares a name for errors: those for which [errors.Is] finds one
// of these. Policies choose by the name, executions show it, and it means the
// same in every program that declares it, whatever the errors' types:
//
//	var NoRows = stint.ErrorClass("no_rows", sql.ErrNoRows)
//
//	retry.Default().Except(NoRows)
//
// An error may be of several classes. All of them go to the policy; the one
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
	return failure.Declare(name, failure.IsOneOf(slices.Clone(is)...))
}

// ErrorClassOf declares a name for errors of a type: those in which
// [errors.AsType] finds one, and if there are functions, one for which some of
// them says so:
//
//	stint.ErrorClassOf[*net.OpError]("network")
//	stint.ErrorClassOf("deadlock", func(e *pgconn.PgError) bool { return e.Code == "40P01" })
//
// It is otherwise [ErrorClass].
func ErrorClassOf[E error](name string, which ...func(E) bool) string {
	if slices.ContainsFunc(which, func(f func(E) bool) bool { return f == nil }) {
		panic(fmt.Sprintf("stint: error class %q: a function is nil", name))
	}
	return failure.Declare(name, failure.IsOf(slices.Clone(which)))
}
