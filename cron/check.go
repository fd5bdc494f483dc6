package cron

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrInvalid is what every error about a malformed recurrence is, whether it was
// built, decoded or parsed: the mistake of whoever wrote it.
var ErrInvalid = errors.New("invalid recurrence")

// invalid is a mistake that says by itself what it is about.
type invalid string

func (e invalid) Error() string        { return "cron: " + string(e) }
func (e invalid) Is(target error) bool { return target == ErrInvalid }

func invalidf(format string, args ...any) error { return invalid(fmt.Sprintf(format, args...)) }

// maxText is the length of the longest text, in bytes. All minutes written out
// in a list have 169.
const maxText = 1000

// maxName is the length of the longest name of a function, in bytes.
const maxName = 255

// checkName guards what ends up in databases and terminals. Like the checks of
// package retry it returns what is wrong, or nothing. Space at either end would
// be lost in a text.
func checkName(name string) string {
	switch {
	case name == "":
		return "the name of the function is empty; write for example function:full-moon"
	case len(name) > maxName:
		return fmt.Sprintf("the name of the function has %d bytes; the longest has %d", len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Sprintf("the name of the function %q is not valid UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Sprintf("the name of the function %q has a control character", name)
	case strings.TrimSpace(name) != name:
		return fmt.Sprintf("the name of the function %q has space around it", name)
	}
	return ""
}
