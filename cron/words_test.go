package cron_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint/cron"
)

func TestWordsAreForPeople(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"30 2 * * *", "at 02:30 every day"},
		{"30 2 * * MON-FRI", "at 02:30 on Monday to Friday"},
		{"@daily", "at 00:00 every day"},
		{"@hourly", "every hour"},
		{"@weekly", "at 00:00 on Sunday"},
		{"@monthly", "at 00:00 on day 1 of the month"},
		{"@yearly", "at 00:00 on day 1 of January"},

		{"* * * * *", "every minute"},
		{"*/5 * * * *", "every 5 minutes"},
		{"0-59/15 * * * *", "every 15 minutes"},
		{"*/7 * * * *", "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour"},
		{"30 * * * *", "at minute 30 of every hour"},
		{"5-9,20 * * * *", "at minutes 5 to 9 and 20 of every hour"},
		{"0 */2 * * *", "every 2 hours from 00:00"},
		{"30 */2 * * *", "at minute 30 of every 2nd hour"},
		{"*/10 */3 * * *", "every 10 minutes of every 3rd hour"},
		{"* 9-17 * * *", "every minute of hours 9 to 17 every day"},
		{"*/5 9 * * *", "every 5 minutes of hour 9 every day"},
		{"15 9-17 * * 1-5", "every hour from 09:15 to 17:15 on Monday to Friday"},
		{"0,30 8,20 * * *", "at 08:00, 08:30, 20:00 and 20:30 every day"},
		{"0 1,2,3,9,10 * * *", "at minute 0 of hours 1 to 3, 9 and 10 every day"},

		{"0 6 1,15 * *", "at 06:00 on days 1 and 15 of the month"},
		{"0 6 L * *", "at 06:00 on the last day of the month"},
		{"0 6 1,15W,LW,L * *", "at 06:00 on day 1, the weekday nearest day 15, the last weekday and the last day of the month"},
		{"0 6 1 JAN,JUN-AUG *", "at 06:00 on day 1 of January and June to August"},
		{"0 6 * DEC *", "at 06:00 every day in December"},
		{"* * * DEC *", "every minute every day in December"},
		{"0 6 * * SAT,SUN", "at 06:00 on Saturday and Sunday"},
		{"0 6 * * FRI-SUN", "at 06:00 on Friday to Sunday"},
		{"0 6 * 3 MON", "at 06:00 on Monday in March"},
		{"0 6 * * TUE#2", "at 06:00 on the second Tuesday of the month"},
		{"0 6 * 3,9 5L", "at 06:00 on the last Friday of March and September"},
		{"0 6 * * 1,5#1,5L", "at 06:00 on Monday, the first Friday of the month and the last Friday of the month"},
		{"0 6 1 * MON", "at 06:00 on day 1 of the month or on Monday"},
		{"0 6 */2 * MON", "at 06:00 on every 2nd day of the month if it is Monday"},
		{"0 6 1-31 * MON", "at 06:00 every day"},

		{"every 1s", "every second"},
		{"every 90s", "every 90 seconds"},
		{"every 5m", "every 5 minutes"},
		{"every 1d", "every 24 hours"},
		{"every 2d", "every 2 days"},
		{"every 1w", "every 7 days"},
		{"every 2w", "every 2 weeks"},
		{"every 1.5s", "every 1s500ms"},
		{"function:full-moon", "as the function full-moon says"},
	} {
		if got := cron.MustParse(tt.text).Words(); got != tt.want {
			t.Errorf("%s is told as %q, want %q", tt.text, got, tt.want)
		}
	}
	if got := (cron.Recurrence{}).Words(); got != "never" {
		t.Errorf("the zero value is told as %q", got)
	}
	if got := cron.Every(time.Millisecond).Words(); got != "invalid (the interval 1ms is too short; the shortest is 1s)" {
		t.Errorf("a mistake is told as %q", got)
	}
}
