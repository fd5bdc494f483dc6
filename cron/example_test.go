package cron_test

import (
	"fmt"
	"time"

	"github.com/stint-go/stint/cron"
)

func ExampleParse() {
	for _, text := range []string{"30 2 * * mon-fri", "@monthly", "every 90s", "0 0 31 2 *"} {
		r, err := cron.Parse(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s: %s\n", r, r.Words())
	}
	// Output:
	// 30 2 * * MON-FRI: at 02:30 on Monday to Friday
	// @monthly: at 00:00 on day 1 of the month
	// every 1m30s: every 90 seconds
	// cron: day of month 31 never comes in month 2 with day of week *
}

// In the night to 2026-03-29 clocks in Berlin jump from 02:00 to 03:00, so there
// is no 02:30. What is fixed happens right after the gap.
func ExampleRecurrence_Next() {
	berlin, err := cron.Zone("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	nightly := cron.MustParse("30 2 * * *")
	at := time.Date(2026, 3, 28, 0, 0, 0, 0, berlin)
	for range 3 {
		at, _ = nightly.Next(at, berlin)
		fmt.Println(at)
	}
	// Output:
	// 2026-03-28 02:30:00 +0100 CET
	// 2026-03-29 03:00:00 +0200 CEST
	// 2026-03-30 02:30:00 +0200 CEST
}

// In the night to 2026-10-25 clocks in Berlin are set back from 03:00 to 02:00,
// so 02:30 is there twice. A wildcard happens both times, what is fixed once.
func ExampleUpcoming() {
	berlin, err := cron.Zone("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	begin := time.Date(2026, 10, 25, 1, 45, 0, 0, berlin)
	fmt.Println("hourly")
	for _, at := range cron.Upcoming(cron.MustParse("30 * * * *"), begin, berlin, 3) {
		fmt.Println(at)
	}
	fmt.Println("nightly")
	for _, at := range cron.Upcoming(cron.MustParse("30 2 * * *"), begin, berlin, 2) {
		fmt.Println(at)
	}
	// Output:
	// hourly
	// 2026-10-25 02:30:00 +0200 CEST
	// 2026-10-25 02:30:00 +0100 CET
	// 2026-10-25 03:30:00 +0100 CET
	// nightly
	// 2026-10-25 02:30:00 +0200 CEST
	// 2026-10-26 02:30:00 +0100 CET
}

// After an outage an interval goes on in its beat, without what was missed.
func ExampleRecurrence_Resume() {
	r := cron.Every(15 * time.Minute)
	last := time.Date(2026, 7, 1, 12, 5, 0, 0, time.UTC)
	next, _ := r.Resume(last, last.Add(2*time.Hour+time.Minute), time.UTC)
	fmt.Println(next.Format(time.TimeOnly))
	// Output: 14:20:00
}

// A program's own rule: every working day at noon but for its holidays.
func ExampleRegistry() {
	noon := cron.MustParse("0 12 * * MON-FRI")
	holidays := map[string]bool{"2026-12-25": true, "2027-01-01": true}

	var functions cron.Registry
	err := functions.Register("working days", func(after time.Time, zone *time.Location) (time.Time, bool) {
		for {
			next, ok := noon.Next(after, zone)
			if !ok || !holidays[next.Format(time.DateOnly)] {
				return next, ok
			}
			after = next
		}
	})
	if err != nil {
		panic(err)
	}

	times, err := functions.Upcoming(cron.Function("working days"), time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC), time.UTC, 3)
	for _, at := range times {
		fmt.Println(at.Format("Mon 2 Jan"), err)
	}
	// Output:
	// Thu 24 Dec <nil>
	// Mon 28 Dec <nil>
	// Tue 29 Dec <nil>
}
