package shelljob

import (
	"bytes"
	"context"
	"log/slog"
	"sync"

	"github.com/stint-go/stint"
)

// lines makes what a command writes lines of the job's log, as it comes.
type lines struct {
	ctx context.Context
	log *slog.Logger // nil outside of an engine's run

	mu   sync.Mutex // guards the rest
	rest []byte     // of a line whose end has not come
	over bool
}

func newLines(ctx context.Context) *lines {
	l := &lines{ctx: ctx}
	if stint.JobFrom(ctx) != nil {
		l.log = stint.Logger(ctx)
	}
	return l
}

// Write never fails, as that of an output.
func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log == nil || l.over {
		return n, nil
	}
	for len(p) > 0 {
		line, after, ended := bytes.Cut(p, []byte("\n"))
		room := stint.MaxLine - len(l.rest)
		if len(line) > room { // a long line is several
			line, after, ended = p[:room], p[room:], true
		}
		if p = after; !ended {
			l.rest = append(l.rest, line...)
			break
		}
		l.print(line)
	}
	return n, nil
}

func (l *lines) print(line []byte) {
	l.log.InfoContext(l.ctx, string(append(l.rest, line...)))
	l.rest = l.rest[:0]
}

// end prints a last line that did not end. What is written after it is no line of the job.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log != nil && len(l.rest) > 0 {
		l.print(nil)
	}
	l.over = true
}
