package stint

import (
	"context"
	"log/slog"
	"math"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// Bounds of what a run may say. A line counts with the bytes of its text and [LineCost] more.
const (
	MaxProgressText = 64       // bytes of the text of a progress
	MaxLine         = 4 << 10  // bytes of one line
	MaxLogHead      = 16 << 10 // of the first lines of a run
	MaxLogTail      = 48 << 10 // of its last ones
	LineCost        = 32       // for the time and the level of a line
)

// Progress is how far a run said it was.
type Progress struct {
	Run      int64     `json:"run" doc:"Which run of the job: a later one has a higher number"`
	Attempt  int       `json:"attempt"`
	N        int       `json:"-"` // which one of its run, from 1
	At       time.Time `json:"at" doc:"When it said so"`
	Fraction float64   `json:"fraction" doc:"How much is done, from 0 to 1"`
	Text     string    `json:"text,omitempty"`
}

// LogLine is a line that a run logged.
type LogLine struct {
	Run     int64      `json:"run" doc:"Which run of the job: a later one has a higher number"`
	Attempt int        `json:"attempt"`
	N       int        `json:"n" doc:"Which line of its run, from 1. Lines whose numbers are missing were left out"`
	At      time.Time  `json:"at"`
	Level   slog.Level `json:"level"`
	Text    string     `json:"text,omitempty"`
}

// SetProgress says how far the running handler is: a fraction from 0 to 1, and what it does, as in
//
//	stint.SetProgress(ctx, float64(page)/float64(pages), fmt.Sprintf("page %d of %d", page, pages))
//
// The last call counts. People see it on the page of the job, with stint jobs show and by the API, about a
// second later: it goes to the database with the next heartbeat of the engine, which writes anyway, or with
// the outcome, and stays with the attempt. So it costs next to nothing, and may be called as often as one
// likes; a crash loses what came since the last heartbeat.
//
// A fraction below 0 counts as 0, also one that is no number, and one above 1 as 1. Of the text the first
// [MaxProgressText] bytes are kept, and no character is cut in two. A context that is not a running handler's does nothing.
func SetProgress(ctx context.Context, fraction float64, text string) {
	l := runFrom(ctx).openLog()
	if l == nil {
		return
	}
	if math.IsNaN(fraction) {
		fraction = 0
	}
	text = valid.Clean(text)
	if len(text) > MaxProgressText {
		text = valid.CleanCut(text[:MaxProgressText])
	}
	l.setProgress(Progress{At: time.Now(), Fraction: min(max(fraction, 0), 1), Text: text})
}

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
