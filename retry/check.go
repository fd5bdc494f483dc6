package retry

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/named"
)

// ErrInvalid is what every error about a malformed policy wraps, whether it was
// built, decoded or parsed: the mistake of whoever wrote it, not of a store.
var ErrInvalid = errors.New("invalid retry policy")

// A policy is stored with each job and read by people: what nobody could
// survey is refused. Rows, cases and class names count as parts.
const (
	maxParts = 100
	maxDepth = 5
)

func invalid(bad string) error { return fmt.Errorf("%w: %s", ErrInvalid, bad) }

// The checks below return what is wrong as text, or nothing, so that cmp.Or
// takes the first mistake of several.

func checkRetries(n int) string {
	if n < 0 || n > MaxRetries {
		return fmt.Sprintf("retries is %d; it must be between 0 and %d", n, MaxRetries)
	}
	return ""
}

// checkWait wants a duration from least, which is 0 or 1 ns, to MaxWait.
func checkWait(what string, d, least time.Duration) string {
	switch {
	case d < 0:
		return fmt.Sprintf("%s is %s; it must not be negative", what, FormatDuration(d))
	case d < least:
		return what + " is 0s; it must be longer"
	case d > MaxWait:
		return fmt.Sprintf("%s is %s; the longest is %s", what, FormatDuration(d), FormatDuration(MaxWait))
	}
	return ""
}

// opaque are types that tell nothing of an error: what makes errors of a text
// or around another error gives this type to all of them, so a policy for one
// of these classes would be about whatever happens to go wrong.
var opaque = map[string]string{
	"errors.errorString":  "errors.New makes",
	"errors.joinError":    "errors.Join makes",
	"errors.fundamental":  "errors.New and errors.Errorf make",
	"errors.withStack":    "errors.WithStack makes",
	"errors.withMessage":  "errors.WithMessage makes",
	"fmt.errorString":     "fmt.Errorf makes",
	"fmt.wrapError":       "fmt.Errorf makes",
	"fmt.wrapErrors":      "fmt.Errorf makes",
	"xerrors.errorString": "xerrors.New makes",
	"xerrors.noWrapError": "xerrors.Errorf makes",
	"xerrors.wrapError":   "xerrors.Errorf makes",
}

// checkClass guards the classes that policies choose by.
func checkClass(what, class string) string {
	if bad := named.Check(what, class); bad != "" {
		return bad
	}
	if makes, ok := opaque[strings.TrimPrefix(class, "*")]; ok {
		return fmt.Sprintf("%s %q is the type of every error that %s; declare a class for those that you mean, "+
			`as in retry.ErrorClass("no_rows", sql.ErrNoRows)`, what, class, makes)
	}
	return ""
}

// CheckClass reports what is wrong with the name of an error class, as an error
// that wraps [ErrInvalid], or nil. The types of errors.New, fmt.Errorf and the
// like are refused: every error of a text would be of that class.
func CheckClass(class string) error {
	if bad := checkClass("class", class); bad != "" {
		return invalid(bad)
	}
	return nil
}

// weighed refuses a policy that has grown too large or too deep. Everything
// inside it was weighed before, so the walk is short.
func (p Policy) weighed() Policy {
	if p.bad != "" {
		return p
	}
	parts, depth := weigh(p)
	switch {
	case depth > maxDepth:
		return p.refused(fmt.Sprintf("policies are nested %d deep; the deepest is %d", depth, maxDepth))
	case parts > maxParts:
		return p.refused(fmt.Sprintf("rows, cases and classes add up to %d; the most is %d", parts, maxParts))
	}
	return p
}

func weigh(p Policy) (parts, depth int) {
	parts = len(p.only.names()) + len(p.except.names())
	switch r := p.rule.(type) {
	case timetable:
		for range r.rows.all {
			parts++
		}
	case byError:
		for c := range r.cases.all {
			n, d := weigh(c.then)
			parts, depth = parts+1+n, max(depth, d)
		}
	}
	return parts, depth + 1
}
