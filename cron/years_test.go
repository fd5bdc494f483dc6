package cron_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint/cron"
)

// The zones whose clocks do what programs get wrong.
var zones = []string{
	"UTC",
	"America/New_York",
	"Europe/Berlin",
	"Europe/Dublin",        // winter is what is set back
	"Australia/Lord_Howe",  // half an hour
	"Pacific/Apia",         // no 2011-12-30
	"America/Sao_Paulo",    // no midnight, until 2018
	"America/Havana",       // no midnight, and 00:30 twice
	"Asia/Beirut",          // no midnight
	"Africa/Cairo",         // no midnight; summer time given up and taken up again
	"Africa/Casablanca",    // four changes a year, around Ramadan
	"America/Santiago",     // the last hour of a day twice
	"Asia/Tehran",          // half past; given up in 2022
	"Antarctica/Troll",     // two hours
	"Asia/Kathmandu",       // 5:45, and no changes
	"America/Caracas",      // half an hour off and on again, once each
	"Asia/Pyongyang",       // so did they
	"Europe/Istanbul",      // summer time for good
	"Antarctica/Macquarie", // and here
}

// The expressions: each way to write a field, where the clocks change and where
// they do not.
var expressions = []expression{
	{"* * * * *", false},
	{"*/15 * * * *", false},
	{"30 * * * *", false},
	{"0-59/20 * * * *", false},
	{"7,37 */3 * * *", false},
	{"*/10 0-3 * * *", false},
	{"* 2 * * *", false},
	{"0/30 1 * * SUN", false},
	{"10 0-23/2 * * 6,7", false},

	{"0 0 * * *", true},
	{"30 0 * * *", true},
	{"0 1 * * *", true},
	{"15 1 * * *", true},
	{"30 1 * * *", true},
	{"0 2 * * *", true},
	{"15 2 * * *", true},
	{"30 2 * * *", true},
	{"0,20,40 1-3 * * *", true},
	{"59 23 * * *", true},
	{"45 23,0,1 * * *", true},
	{"5/20 0-4/2 * * *", true},
	{"0 12 * * *", true},
	{"0 12 30 12 *", true},
	{"30 6 * * FRI", true},
	{"0 8-18/2 * * MON-FRI", true},
	{"0 3 1,15 * MON", true},
	{"0 3 */2 * 3", true},
	{"0 3 * 2-11/3 */2", true},
	{"0 3 31 * 1/2", true},
	{"30 0 L * *", true},
	{"15 2 LW,15W,1W,31W 3,4,10,11 *", true},
	{"30 2 * 3,10 0L,0#2", true},
	{"30 2 * 4,9 SUN#1,7#5", true},
	{"0 0 29 2 *", true},
}

// all asks for what takes minutes: make cron.
var all = os.Getenv("STINT_CRON_YEARS") != ""

// margin is what the oracle sees beyond what it is asked about: enough to know
// that the clock repeats a time, or never shows it.
const margin = 3 * 24 * time.Hour

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// changes are the instants at which a zone's offset is another than six hours
// before.
func changes(zone *time.Location, from, to time.Time) []time.Time {
	var found []time.Time
	const step = 6 * time.Hour
	_, before := from.In(zone).Zone()
	for at := from; at.Before(to); at = at.Add(step) {
		_, offset := at.In(zone).Zone()
		if offset != before {
			found = append(found, at)
		}
		before = offset
	}
	return found
}

// compare holds every occurrence that the package finds against the oracle's,
// and then asks for the next one from other instants than occurrences.
func compare(t *testing.T, zone *time.Location, from, to time.Time, step time.Duration, expressions []expression) (count int) {
	t.Helper()
	w := walkFrom(zone, from.Add(-margin), to.Add(margin), step)
	for _, e := range expressions {
		r := cron.MustParse(e.text)
		want := w.occurrences(e, from, to)
		count += len(want)
		at := from.Add(-time.Nanosecond)
		for i := 0; ; i++ {
			next, ok := r.Next(at, zone)
			if ok && !next.After(at) {
				t.Fatalf("%s, %s: after %s comes %s", zone, e.text, at.In(zone), next)
			}
			if !ok || !next.Before(to) {
				if i < len(want) {
					t.Errorf("%s, %s: after %s comes %s, want %s", zone, e.text, at.In(zone), next, time.Unix(want[i], 0).In(zone))
				}
				break
			}
			if i == len(want) || next.Unix() != want[i] || next.Nanosecond() != 0 {
				wanted := "none before " + to.In(zone).String()
				if i < len(want) {
					wanted = time.Unix(want[i], 0).In(zone).String()
				}
				t.Errorf("%s, %s: after %s comes %s, want %s", zone, e.text, at.In(zone), next, wanted)
				break
			}
			at = next
		}
		askBetween(t, zone, r, from, to, want)
	}
	return count
}

// askBetween asks for the time after instants that are no occurrences.
func askBetween(t *testing.T, zone *time.Location, r cron.Recurrence, from, to time.Time, want []int64) {
	t.Helper()
	// Odd steps, so that all minutes and fractions of one come by.
	step := max(to.Sub(from)/300, 11*time.Minute) + 7*time.Second + 13*time.Millisecond
	for at := from; at.Before(to); at = at.Add(step) {
		i, _ := slices.BinarySearch(want, at.Unix()+1)
		if at.Nanosecond() == 0 && i > 0 && want[i-1] == at.Unix() {
			continue
		}
		next, ok := r.Next(at, zone)
		if i == len(want) {
			if ok && next.Before(to) {
				t.Errorf("%s, %s: after %s comes %s, want none before %s", zone, r, at.In(zone), next, to.In(zone))
				return
			}
			continue
		}
		if !ok || next.Unix() != want[i] {
			t.Errorf("%s, %s: after %s comes %s, want %s", zone, r, at.In(zone), next, time.Unix(want[i], 0).In(zone))
			return
		}
	}
}

// everyNth takes a part of the expressions, another for each i.
func everyNth(expressions []expression, n, i int) []expression {
	var some []expression
	for k, e := range expressions {
		if (k+i)%n == 0 {
			some = append(some, e)
		}
	}
	return some
}

func year(n int) time.Time { return time.Date(n, 1, 1, 0, 0, 0, 0, time.UTC) }

// Around each change of twenty years, which is where rules differ. A change is
// found up to six hours late, and every expression has all hours around it. Each
// meets every sixth change of a zone, for the sake of speed; make cron is for all.
func TestEveryChangeOfTwentyYearsIsAsTheOracleSays(t *testing.T) {
	total := 0
	for _, name := range zones {
		zone := mustZone(t, name)
		for i, at := range changes(zone, year(2006), year(2026)) {
			total += compare(t, zone, at.Add(-18*time.Hour), at.Add(12*time.Hour), time.Minute, everyNth(expressions, 6, i/2))
		}
	}
	t.Logf("%d occurrences are the same", total)
}

// In a year without regard to changes, the last day of a leap year included.
func TestAYearIsAsTheOracleSays(t *testing.T) {
	total := compare(t, mustZone(t, "America/New_York"), year(2024), year(2025), time.Minute, everyNth(expressions, 3, 1))
	t.Logf("%d occurrences are the same", total)
}

// Whole days without a date, whole days twice, and offsets of odd seconds.
func TestTheOddestChangesAreAsTheOracleSays(t *testing.T) {
	for _, tt := range []struct {
		zone, from, to string
		step           time.Duration
	}{
		{"Pacific/Apia", "2011-12-27", "2012-01-03", time.Minute},      // no 30th
		{"Pacific/Fakaofo", "2011-12-27", "2012-01-03", time.Minute},   // nor here
		{"Pacific/Kwajalein", "1993-08-18", "1993-08-25", time.Minute}, // no 21st
		{"Pacific/Kwajalein", "1969-09-28", "1969-10-04", time.Minute}, // 23 hours twice
		{"Pacific/Kiritimati", "1994-12-29", "1995-01-04", time.Minute},
		{"Asia/Manila", "1844-12-29", "1845-01-03", 4 * time.Second}, // no 31st, and odd seconds
		{"Africa/Monrovia", "1972-01-05", "1972-01-09", 30 * time.Second},
		{"America/Juneau", "1867-10-16", "1867-10-21", time.Second}, // a day twice
		{"America/New_York", "2099-12-28", "2100-01-03", time.Minute},
		{"America/New_York", "2096-12-28", "2097-01-03", time.Minute},
	} {
		from, _ := time.Parse(time.DateOnly, tt.from)
		to, _ := time.Parse(time.DateOnly, tt.to)
		some := expressions
		if tt.step == time.Second && !all {
			continue
		}
		if tt.step < time.Minute {
			some = []expression{{"*/15 * * * *", false}, {"30 0 * * *", true}, {"0,20 */4 * * *", false}, {"0,40 23,0 * * *", true}, {"0 12 * * *", true}}
		}
		compare(t, mustZone(t, tt.zone), from, to, tt.step, some)
	}
}

// All minutes of twenty years in all zones.
func TestAllYearsAreAsTheOracleSays(t *testing.T) {
	if !all {
		t.Skip("set STINT_CRON_YEARS, or run make cron")
	}
	total := 0
	for _, name := range zones {
		zone := mustZone(t, name)
		begun, count := time.Now(), 0
		for decade := year(2006); decade.Before(year(2026)); decade = decade.AddDate(10, 0, 0) {
			count += compare(t, zone, decade, decade.AddDate(10, 0, 0), time.Minute, expressions)
		}
		t.Logf("%-20s %d occurrences of %d expressions in twenty years are the same (%.1fs)",
			name, count, len(expressions), time.Since(begun).Seconds())
		total += count
	}
	t.Logf("%-20s %d", "all", total)
}
