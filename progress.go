package stint

import (
	"context"
	"math"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// MaxProgressText is how many bytes the text of a progress has, at most.
const MaxProgressText = 64

// Progress is how far a run said it was.
type Progress struct {
	Run      int64     `json:"run" doc:"Which run of the job: a later one has a higher number"`
	Attempt  int       `json:"attempt"`
	N        int       `json:"-"` // which one of its run, from 1
	At       time.Time `json:"at" doc:"When it said so"`
	Fraction float64   `json:"fraction" doc:"How much is done, from 0 to 1"`
	Text     string    `json:"text,omitempty"`
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
