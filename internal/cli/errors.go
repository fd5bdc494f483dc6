package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

// Exit codes. Scripts and supervisors rely on them.
const (
	exitOK           = 0
	exitFailed       = 1
	exitUsage        = 2 // the command line or an input can never be right
	exitStillRunning = 3 // stopped while handlers were still running
	exitMemory       = 4 // stopped because of --memory-limit; to be started again
)

// errReported says that the command failed and has said so already.
var errReported = errors.New("reported")

// usageError is the caller's mistake.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// hintedError carries advice. The outermost hint is shown.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

func withHint(err error, format string, args ...any) error {
	return &hintedError{err, fmt.Sprintf(format, args...)}
}

func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, engine.ErrStillRunning):
		return exitStillRunning
	case isMemory(err):
		return exitMemory
	case errors.As(err, &usage), errors.Is(err, stint.ErrInvalid), errors.Is(err, retry.ErrInvalid), errors.Is(err, cron.ErrInvalid):
		return exitUsage
	}
	return exitFailed
}

// isMemory reports whether an engine left because its process had grown too
// large.
func isMemory(err error) bool {
	_, ok := errors.AsType[*engine.MemoryError](err)
	return ok
}

// asUsage words what the parser of the command line found.
func asUsage(err error, cmd *cobra.Command) error {
	var (
		usage   *usageError
		invalid *pflag.InvalidValueError
		number  *strconv.NumError
	)
	switch {
	case errors.As(err, &usage):
		return err
	case errors.As(err, &invalid) && errors.As(err, &number):
		return settingf(invalid.GetFlag().Name, "%q is not a number that fits", number.Num)
	case errors.As(err, &invalid):
		return &usageError{&settingError{flag: invalid.GetFlag().Name, err: invalid.Unwrap()}}
	}
	return withHint(&usageError{err}, "%s --help explains its use", cmd.CommandPath())
}

// report prints an error: one line, and one with a hint where there is one.
func (a *app) report(err error) {
	if errors.Is(err, errReported) {
		return
	}
	fmt.Fprintln(a.err, "stint: "+oneLine(err.Error()))
	var hinted *hintedError
	if errors.As(err, &hinted) {
		fmt.Fprintln(a.err, "hint: "+hinted.hint)
	}
}

// oneLine makes a message one line, which some drivers' are not, and says the
// program's name only where it begins.
func oneLine(message string) string {
	lines := strings.FieldsFunc(message, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	message = words.Visible(strings.Join(lines, " "))
	message = strings.ReplaceAll(message, ": stint: ", ": ")
	for _, prefix := range []string{"stint: ", "engine: "} {
		message = strings.TrimPrefix(message, prefix)
	}
	return message
}
