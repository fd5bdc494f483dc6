package stint_test

import (
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/store"
)

// A schedule is declared by every engine of the program; each occurrence makes one
// job, whoever fires it.
func ExampleKind_Schedule() {
	type Report struct{ To string }
	sendReport := stint.NewKind[Report]("send_report", stint.Timeout(time.Hour))

	nightly := sendReport.Schedule("nightly", cron.MustParse("30 2 * * *"), Report{To: "ops"},
		stint.Zone("Europe/Berlin"), stint.Unique(), stint.Queue("reports"))

	mux := stint.NewMux()
	mux.Schedule(nightly)

	// When it would run around the night in which there is no half past two:
	s := &store.ScheduleInfo{Schedule: nightly, After: time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)}
	times, err := store.NewPlanner(mux.Recurrences()).Upcoming(s, 3)
	for _, at := range times {
		fmt.Println(at)
	}
	fmt.Println(err)
	// Output:
	// 2026-03-28 02:30:00 +0100 CET
	// 2026-03-29 03:00:00 +0200 CEST
	// 2026-03-30 02:30:00 +0200 CEST
	// <nil>
}

// What no expression can say, a function does. It is stored by its name, and asked in
// the programs that have it.
func ExampleMux_Recurrence() {
	mux := stint.NewMux()
	mux.Recurrence("doubling", func(after time.Time, _ *time.Location) (time.Time, bool) {
		since := after.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		return after.Add(max(time.Hour, since)), true
	})
	mux.Schedule(stint.Schedule{Name: "probe", Recurrence: cron.Function("doubling"), Job: stint.NewJob{Kind: "probe"}})

	s := &store.ScheduleInfo{Schedule: mux.Schedules()[0], After: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	times, _ := store.NewPlanner(mux.Recurrences()).Upcoming(s, 5)
	for _, at := range times {
		fmt.Println(at.Format("Jan 2 15:04"))
	}
	// Output:
	// Jan 1 01:00
	// Jan 1 02:00
	// Jan 1 04:00
	// Jan 1 08:00
	// Jan 1 16:00
}
