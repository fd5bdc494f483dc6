package valid

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is how many bytes a name may have: of a queue, kind, tag, urn, source, correlation or
// idempotency key.
const MaxName = 255

// ErrInvalid matches every error about an input that can never be right.
var ErrInvalid = errors.New("stint: invalid")

// Error says what is wrong with an input, and where.
type Error struct {
	Field   string // the part that is wrong: "queue", "args"
	Problem string
}

// Error names the field and the problem.
func (e *Error) Error() string { return e.Field + ": " + e.Problem }

// Is makes every Error match [ErrInvalid].
func (e *Error) Is(target error) bool { return target == ErrInvalid }

// Invalid makes an [Error].
func Invalid(field, format string, args ...any) error {
	return &Error{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Queue reports what is wrong with the name of one queue, such as a job is
// to be in: see [Name]. "*" means every queue and names none.
func Queue(name string) error {
	if name == "*" {
		return Invalid("queue", `"*" means every queue and names none`)
	}
	return Name("queue", name)
}

// Name reports what is wrong with the name of a queue, kind, tag, urn,
// source, correlation or idempotency key: it is 1 to 255 bytes of UTF-8 without
// control characters and without space at its ends.
func Name(field, name string) error {
	switch {
	case name == "":
		return Invalid(field, "the name is empty")
	case len(name) > MaxName:
		return Invalid(field, "the name has %d bytes, more than %d", len(name), MaxName)
	case !utf8.ValidString(name):
		return Invalid(field, "%q is not UTF-8", name)
	case strings.TrimSpace(name) != name:
		return Invalid(field, "%q has space at an end", name)
	}
	for i, r := range name {
		if unicode.IsControl(r) {
			return Invalid(field, "%q has a control character at byte %d", name, i)
		}
	}
	return nil
}
