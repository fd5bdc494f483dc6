package shelljob

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/stint-go/stint/internal/valid"
)

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
