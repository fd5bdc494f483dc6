package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
)

// Report is what a job of each schedule is told.
type Report struct {
	Title string `json:"title"`
}

// Print prints a report.
var Print = stint.NewKind[Report]("print_report", stint.Timeout(time.Minute))

// program is the handlers and schedules, which every engine of it declares: one
// that is there already keeps its counters and goes on where it was.
func program(out io.Writer) *stint.Mux {
	mux := stint.NewMux()
	var mu sync.Mutex // handlers run side by side
	stint.Handle(mux, Print, func(_ context.Context, job *stint.Job, in Report) error {
		mu.Lock()
		defer mu.Unlock()
		_, err := fmt.Fprintf(out, "%s, for %s: job %d\n", in.Title, job.Origin.Occurrence.UTC().Format(time.RFC3339), job.ID)
		return err
	})
	mux.Recurrence("last-weekday", lastWeekday)
	mux.Schedule(
		// Each night by Berlin's clock, also in the nights in which that jumps. Of
		// the nights that nobody was there for, one is made up for.
		Print.Schedule("nightly", cron.MustParse("30 2 * * *"), Report{"the night's report"}, stint.Zone("Europe/Berlin")),

		// Every two seconds, but not while the last one still goes on, and what was
		// missed is not worth anything any more.
		Print.Schedule("pulse", cron.Every(2*time.Second), Report{"the pulse"}, stint.Unique(), stint.MissedNone),

		Print.Schedule("month-end", cron.Function("last-weekday"), Report{"the month's books"}, stint.Zone("America/New_York")),
	)
	return mux
}

// lastWeekday is six in the evening of the last day of a month that is no
// Saturday or Sunday. A recurrence function answers with the first such time
// after another one; it has no memory.
func lastWeekday(after time.Time, zone *time.Location) (time.Time, bool) {
	local := after.In(zone)
	for month := local.Month(); ; month++ {
		t := time.Date(local.Year(), month+1, 0, 18, 0, 0, 0, zone)
		for t.Weekday() == time.Saturday || t.Weekday() == time.Sunday {
			t = t.AddDate(0, 0, -1)
		}
		if t.After(after) {
			return t, true
		}
	}
}
