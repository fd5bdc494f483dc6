package shelljob

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/stint-go/stint/internal/valid"
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

// output keeps the beginning and the end of what is written to it, in bounded
// memory. The beginning says what was tried, the end what went wrong.
type output struct {
	headMax, tailMax int

	mu    sync.Mutex // guards the rest
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring is written next
	total int64
}

func newOutput(limit int) *output {
	limit = max(0, limit)
	return &output{headMax: limit / 4, tailMax: limit - limit/4}
}

// Write never fails: a command is not to break because it says too much.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	o.total += int64(n)
	k := min(len(p), o.headMax-len(o.head))
	o.head = append(o.head, p[:k]...)
	p = p[max(k, len(p)-o.tailMax):]
	k = min(len(p), o.tailMax-len(o.tail))
	o.tail = append(o.tail, p[:k]...)
	for p = p[k:]; len(p) > 0; p = p[k:] {
		k = copy(o.tail[o.next:], p)
		o.next = (o.next + k) % len(o.tail)
	}
	return n, nil
}

// text is what was kept, storable, and whether something is missing from it,
// in which case a line says how much.
func (o *output) text() (text string, cut bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := string(o.tail[o.next:]) + string(o.tail[:o.next])
	missing := o.total - int64(len(o.head)) - int64(len(tail))
	if missing == 0 {
		return valid.Clean(string(o.head) + tail), false
	}
	head := valid.CleanCut(string(o.head))
	for i := 0; i < utf8.UTFMax-1 && tail != "" && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	note := fmt.Sprintf("\n[%d bytes cut]\n", missing)
	return head + note + valid.Clean(tail), true
}

// lastLines is the end of text for people: whole lines where possible, of at
// most max bytes.
func lastLines(text string, max int) string {
	text = strings.TrimSpace(text)
	if len(text) <= max {
		return text
	}
	text = text[len(text)-max:]
	if _, rest, ok := strings.Cut(text, "\n"); ok {
		return "[...]\n" + rest
	}
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return "[...]" + text
}
