package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// trace is what happened, for whoever has to find out why. Texts are made only
// when somebody reads them.
type trace struct {
	began time.Time

	mu    sync.Mutex
	lines []line
}

type line struct {
	at     time.Duration
	who    string
	jobs   []int64 // that it is about
	format string
	args   []any // never changed after they were handed over
}

func (t *trace) note(who string, jobs []int64, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{time.Since(t.began), who, jobs, format, args})
}

// tell shows the whole story of a few jobs, and the last lines of everything.
func (t *trace) tell(jobs []int64, last int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, job := range jobs {
		fmt.Fprintf(&b, "all about job %d:\n", job)
		for i := range t.lines {
			if slices.Contains(t.lines[i].jobs, job) {
				t.lines[i].print(&b)
			}
		}
	}
	fmt.Fprintf(&b, "the last of %d events:\n", len(t.lines))
	for i := len(t.lines) - min(last, len(t.lines)); i < len(t.lines); i++ {
		t.lines[i].print(&b)
	}
	return b.String()
}

func (l *line) print(b *strings.Builder) {
	fmt.Fprintf(b, "  %11.6f %-9s %s", l.at.Seconds(), l.who, fmt.Sprintf(l.format, l.args...))
	if len(l.jobs) > 0 {
		fmt.Fprintf(b, " %v", l.jobs)
	}
	b.WriteByte('\n')
}
