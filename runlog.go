package stint

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// RunLog is what a run said, or some of it.
type RunLog struct {
	Progress *Progress // the last one; nil for none, or for none that is new
	Lines    []LogLine // in their order
	Bytes    int       // what the lines count together

	// Of what was said before, lines whose numbers are from From to To, both included, are left out to keep to
	// the bounds; none if To is 0.
	From, To int
}

// Empty reports whether nothing was said.
func (l *RunLog) Empty() bool { return l.Progress == nil && len(l.Lines) == 0 && l.To == 0 }

// Log returns what the run said and nobody took yet: a test that calls a handler with a Run of its own finds
// there what that said. Of many lines the first and the last ones are there.
func (a *Run) Log() RunLog {
	a.mu.Lock()
	l := a.log
	a.mu.Unlock()
	if l == nil {
		return RunLog{}
	}
	return l.pending()
}

// TakenLog tells the run that what Log returned, or the beginning of its lines, is in the database. Engines call it.
func (a *Run) TakenLog(l RunLog) {
	a.mu.Lock()
	log := a.log
	a.mu.Unlock()
	if log != nil {
		log.taken(l)
	}
}

// openLog returns where the run keeps what it says; nil if there is none that may say something.
func (a *Run) openLog() *runLog {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil
	}
	if a.log == nil {
		a.log = &runLog{}
	}
	return a.log
}

// runLog keeps what a run says until the database has it, within the bounds:
//
//	n   1 ─────── head │ head+1 ──── out │ out+1 ────────── n
//	    the first lines  left out          the last lines
//	    ───────────────── told: in the database up to here
//
// Of the last lines it knows the sizes also of those that the database has: they are left out there when
// newer ones need their room.
type runLog struct {
	mu       sync.Mutex // guards the rest
	progress *Progress  // the last one; nil for none
	shown    *Progress  // the one that the database has

	n         int // how many lines there were
	headBytes int
	head      int       // the number of the last of the first lines, once that is known: n until then
	closed    bool      // it is known
	first     []LogLine // of the first lines those that the database may not have
	last      []LogLine // the last lines; without texts where the database has them
	sizes     []int     // of the last lines
	lastBytes int
	told      int // the database has the lines up to this one
	out       int // the last line that was left out; 0 for none
	toldOut   int // the database has left out the lines up to this one
}

func (l *runLog) setProgress(p Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.N = 1; l.progress != nil {
		p.N = l.progress.N + 1
	}
	l.progress = &p
}

// add adds a text, each of its lines as one.
func (l *runLog) add(at time.Time, level slog.Level, text string) {
	text = strings.TrimRight(valid.Clean(text), "\r\n")
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) > MaxLine {
			line = valid.CleanHead(line, MaxLine)
		}
		l.addLine(LogLine{At: at, Level: level, Text: strings.TrimRight(line, "\r")})
	}
}

func (l *runLog) addLine(line LogLine) {
	l.n++
	line.N = l.n
	size := lineSize(line)
	if !l.closed && l.headBytes+size <= MaxLogHead {
		l.headBytes, l.head = l.headBytes+size, l.n
		l.first = append(l.first, line)
		return
	}
	l.closed = true
	l.last, l.sizes = append(l.last, line), append(l.sizes, size)
	for l.lastBytes += size; l.lastBytes > MaxLogTail; {
		l.out = l.last[0].N
		l.lastBytes -= l.sizes[0]
		l.last[0] = LogLine{}
		l.last, l.sizes = l.last[1:], l.sizes[1:]
	}
}

func lineSize(line LogLine) int { return len(line.Text) + LineCost }

// pending is what the database may not have.
func (l *runLog) pending() RunLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all RunLog
	if l.progress != l.shown {
		all.Progress = new(*l.progress)
	}
	all.Lines = append(slices.Clone(l.first), l.last[l.known():]...)
	for _, line := range all.Lines {
		all.Bytes += lineSize(line)
	}
	if l.out > l.toldOut {
		all.From, all.To = max(l.head, l.toldOut)+1, l.out
	}
	return all
}

// known is how many of the last lines the database has.
func (l *runLog) known() int {
	if len(l.last) == 0 {
		return 0
	}
	return min(max(0, l.told-l.last[0].N+1), len(l.last))
}

// taken notes that the database has what pending returned.
func (l *runLog) taken(t RunLog) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Progress != nil && l.progress != nil && t.Progress.N == l.progress.N {
		l.shown = l.progress
	}
	if len(t.Lines) > 0 {
		l.told = max(l.told, t.Lines[len(t.Lines)-1].N)
	}
	l.toldOut = max(l.toldOut, t.To)
	told := 0
	for told < len(l.first) && l.first[told].N <= l.told {
		told++
	}
	l.first = slices.Delete(l.first, 0, told)
	for i := range l.known() {
		l.last[i].Text = ""
	}
}
