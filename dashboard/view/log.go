package view

import (
	"context"
	"fmt"
	"math"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// MostLines is how many of its last lines are shown with a job.
const MostLines = 50

// logOf reads what the runs of a job said: how far they were, and their last lines.
func (j *Job) logOf(ctx context.Context, st store.LogReader) (err error) {
	if j.Progress, err = st.Progress(ctx, j.ID); err == nil {
		j.Log, err = st.Log(ctx, j.ID, store.LogFilter{Limit: MostLines, Last: true})
	}
	return err
}

// LastProgress is how far the last run of the job is; nil if that did not say.
func (j Job) LastProgress() *stint.Progress {
	n := len(j.Progress)
	if n == 0 || len(j.Log) > 0 && j.Log[len(j.Log)-1].Run > j.Progress[n-1].Run {
		return nil
	}
	return &j.Progress[n-1]
}

// ProgressInWords is how far a run is: 40%, page 40.
func ProgressInWords(p stint.Progress) string {
	said := fmt.Sprintf("%d%%", Percent(p))
	if p.Text != "" {
		said += ", " + words.Visible(p.Text)
	}
	return said
}

// Percent is how far a run is. Only one that is done has 100.
func Percent(p stint.Progress) int { return int(math.Floor(100*p.Fraction + 1e-9)) }

// LeftOut is how many lines were left out before one of a list that begins with the first line of a run, or
// anywhere if it is the last part.
func LeftOut(lines []stint.LogLine, i int) int {
	switch {
	case i == 0:
		return 0
	case lines[i].Run != lines[i-1].Run:
		return lines[i].N - 1
	}
	return lines[i].N - lines[i-1].N - 1
}
