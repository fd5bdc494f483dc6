package shelljob

import (
	"fmt"
	"os"
)

// Result is what is kept of an attempt, of a failed one too.
type Result struct {
	// ExitCode is the command's; 128 and the signal's number when a signal
	// ended it, as shells have it.
	ExitCode int `json:"exit_code"`

	// Signal is the name of the signal that ended the command, such as
	// SIGKILL. Empty when it ended by itself, and on Windows.
	Signal string `json:"signal,omitempty"`

	// Output is what the command and its children wrote to both streams, in
	// the order of arrival, made storable.
	Output string `json:"output"`

	// Truncated says that Output lacks its middle; a line in its place
	// tells how much.
	Truncated bool `json:"truncated,omitzero"`
}

// ExitError says that a command failed: its exit code was not 0, or a signal
// ended it.
type ExitError struct {
	Code   int    // as in [Result]
	Signal string // as in [Result]
	Output string // the end of the output, about 1 KiB
}

const shownOutput = 1 << 10

// Error shows how the command ended and the end of its output.
func (e *ExitError) Error() string {
	how := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != "" {
		how = "ended by " + e.Signal
	}
	if e.Output == "" {
		return how + ", no output"
	}
	return how + ": " + e.Output
}

// conclude turns how a command ended into its result and, unless that is a
// success, an error.
func conclude(state *os.ProcessState, out *output) (*Result, error) {
	r := &Result{}
	r.ExitCode, r.Signal = status(state)
	r.Output, r.Truncated = out.text()
	if r.ExitCode == 0 && r.Signal == "" {
		return r, nil
	}
	return r, &ExitError{r.ExitCode, r.Signal, lastLines(r.Output, shownOutput)}
}
