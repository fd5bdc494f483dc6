package cron_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint/cron"
)

// What an engine pays for each occurrence of a schedule: a thousand schedules of
// one minute ask a thousand times a minute.
func BenchmarkNext(b *testing.B) {
	for _, text := range []string{"* * * * *", "*/5 9-17 * * MON-FRI", "30 2 * * *", "0 6 L * *", "0 0 29 2 *", "every 90s"} {
		for _, zone := range []string{"UTC", "America/New_York"} {
			b.Run(text+" "+zone, func(b *testing.B) {
				r, zone := cron.MustParse(text), mustZone(b, zone)
				begin := time.Date(2026, 7, 1, 12, 0, 0, 0, zone)
				at := begin
				for b.Loop() {
					next, ok := r.Next(at, zone)
					if at = next; !ok || at.Year() > 2100 {
						at = begin
					}
				}
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		cron.MustParse("*/5 9-17 * JAN-MAR,6 MON-FRI")
	}
}
