package cron_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/cron"
)

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestNextIsStrictlyAfter(t *testing.T) {
	r := cron.MustParse("30 2 * * *")
	for after, want := range map[string]string{
		"2026-07-01T02:29:59.999999999Z": "2026-07-01T02:30:00Z",
		"2026-07-01T02:30:00Z":           "2026-07-02T02:30:00Z",
		"2026-07-01T02:30:00.000000001Z": "2026-07-02T02:30:00Z",
		"1969-12-31T23:59:59.5Z":         "1970-01-01T02:30:00Z",
		"0001-01-01T00:00:00Z":           "0001-01-01T02:30:00Z",
	} {
		next, ok := r.Next(instant(t, after), nil)
		if got := next.Format(time.RFC3339Nano); !ok || got != want || next.Location() != time.UTC {
			t.Errorf("after %s comes %s (%v, %s), want %s", after, got, ok, next.Location(), want)
		}
	}
}

func TestWhatEndsSaysSo(t *testing.T) {
	newYork := mustZone(t, "America/New_York")
	for _, tt := range []struct {
		text  string
		after string
		zone  *time.Location
		why   string
	}{
		{"* 2 * 3 SUN#2", "2026-01-01T00:00:00Z", newYork, "this hour is always skipped"},
		{"*/15 2 * 3 SUN#2", "2026-01-01T00:00:00Z", newYork, "this hour is always skipped"},
		{"@daily", "9999-12-31T00:00:00Z", time.UTC, "the year has more than four digits"},
		{"@hourly", "9999-12-31T23:30:00Z", newYork, "in UTC it is the year 10000"},
		{"@hourly", "9999-12-31T23:30:00Z", mustZone(t, "Asia/Tokyo"), "in Tokyo it is the year 10000"},
		{"every 36500d", "9901-01-01T00:00:00Z", time.UTC, "the year has more than four digits"},
	} {
		if next, ok := cron.MustParse(tt.text).Next(instant(t, tt.after), tt.zone); ok || !next.IsZero() {
			t.Errorf("%s after %s comes at %s, but %s", tt.text, tt.after, next, tt.why)
		}
	}
	if next, ok := (cron.Recurrence{}).Next(time.Now(), nil); ok {
		t.Errorf("the zero value happens at %s", next)
	}
	// What is fixed in the same gap does happen.
	want := "2026-03-08T03:00:00-04:00"
	if next, ok := cron.MustParse("30 2 * 3 SUN#2").Next(instant(t, "2026-01-01T00:00:00Z"), newYork); !ok || next.Format(time.RFC3339) != want {
		t.Errorf("the fixed one comes at %s, want %s", next, want)
	}
}

// The calendar repeats itself after 400 years, so this is all of it.
func TestTheRarestDatesAreFortyYearsApart(t *testing.T) {
	longest := 0
	for weekday := range 7 {
		r := cron.MustParse(fmt.Sprintf("0 0 29 2 */%d", max(weekday, 1)))
		if weekday > 1 {
			r = cron.MustParse(fmt.Sprintf("0 0 * 2 %d#5", weekday))
		}
		last, count := year(1995), 0
		for last.Year() < 2400 {
			next, ok := r.Next(last, time.UTC)
			if !ok {
				t.Fatalf("%s: nothing after %s", r, last)
			}
			longest = max(longest, next.Year()-last.Year())
			last, count = next, count+1
		}
		if count < 10 {
			t.Errorf("%s: %d times in 400 years", r, count)
		}
	}
	if longest != 40 {
		t.Errorf("the longest time between two dates is %d years, want 40", longest)
	}
}

// Not the table's expressions but any, around any change.
func TestRandomExpressionsAreAsTheOracleSays(t *testing.T) {
	seed, rounds := rand.Uint64(), 60
	if all {
		rounds = 20_000
	}
	if text := os.Getenv("STINT_CRON_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("STINT_CRON_SEED=%d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	found := map[string][]time.Time{}
	for range rounds {
		name := zones[chance.IntN(len(zones))]
		zone := mustZone(t, name)
		if found[name] == nil {
			found[name] = append(changes(zone, year(2006), year(2026)), year(2024))
		}
		at := found[name][chance.IntN(len(found[name]))]
		e := randomExpression(chance)
		if _, err := cron.Parse(e.text); err != nil {
			continue // never, as the 31st of February
		}
		compare(t, zone, at.Add(-30*time.Hour), at.Add(24*time.Hour), time.Minute, []expression{e})
	}
}

func randomExpression(chance *rand.Rand) expression {
	// Where clocks change: in the night.
	minute, spans := randomField(chance, 0, 59, 0, 59)
	hour, hourSpans := randomField(chance, 0, 23, 0, 4)
	fields := []string{minute, hour, "*", "*", "*"}
	if chance.IntN(3) == 0 {
		fields[2], _ = randomField(chance, 1, 31, 1, 31)
	}
	if chance.IntN(4) == 0 {
		fields[3], _ = randomField(chance, 1, 12, 1, 12)
	}
	if chance.IntN(3) == 0 {
		fields[4], _ = randomField(chance, 0, 6, 0, 6)
	}
	return expression{strings.Join(fields, " "), !spans && !hourSpans}
}

// randomField returns a list for a field, with values mostly between two, and
// whether it is a wildcard.
func randomField(chance *rand.Rand, low, high, from, to int) (list string, spans bool) {
	var items []string
	for range 1 + chance.IntN(3) {
		a := from + chance.IntN(to-from+1)
		b := a + chance.IntN(high-a+1)
		step := 1 + chance.IntN(min(high, 20))
		switch chance.IntN(8) {
		case 0:
			items = append(items, fmt.Sprintf("*/%d", step))
			spans = true
		case 1:
			items = append(items, fmt.Sprintf("%d-%d", a, b))
			spans = spans || a == low && b == high
		case 2:
			items = append(items, fmt.Sprintf("%d-%d/%d", a, b, step))
			spans = spans || a == low && b == high
		case 3:
			items = append(items, fmt.Sprintf("%d/%d", a, step))
			spans = spans || a == low
		default:
			items = append(items, fmt.Sprint(a))
		}
	}
	list = strings.Join(items, ",")
	full := true
	for n := low; n <= high; n++ {
		full = full && holds(list, n, low, high)
	}
	return list, spans || full
}

func TestUpcomingIsAChainOfNext(t *testing.T) {
	for _, text := range []string{"*/15 * * * *", "30 2 * * *", "0 0 29 2 *", "every 90s", "* 2 * 3 SUN#2"} {
		for _, name := range zones {
			r, zone := cron.MustParse(text), mustZone(t, name)
			at := instant(t, "2024-03-09T12:00:00Z")
			got := cron.Upcoming(r, at, zone, 20)
			var want []time.Time
			for range 20 {
				next, ok := r.Next(at, zone)
				if !ok {
					break
				}
				want = append(want, next)
				at = next
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s in %s: %v, want %v", text, name, got, want)
			}
		}
	}
	if got := cron.Upcoming(cron.Every(time.Hour), time.Now(), nil, 0); len(got) != 0 {
		t.Errorf("none are %v", got)
	}
}

func TestAnIntervalKeepsItsBeat(t *testing.T) {
	r := cron.Every(90 * time.Second)
	last := instant(t, "2026-07-01T12:00:00.25Z")
	for now, want := range map[string]string{
		"2026-07-01T11:00:00Z":    "2026-07-01T12:01:30.25Z", // the clock was set back
		"2026-07-01T12:00:00.25Z": "2026-07-01T12:01:30.25Z",
		"2026-07-01T12:01:30.2Z":  "2026-07-01T12:01:30.25Z",
		"2026-07-01T12:01:30.25Z": "2026-07-01T12:03:00.25Z",
		"2026-07-01T12:10:00Z":    "2026-07-01T12:10:30.25Z",
		"2826-07-01T12:00:00.25Z": "2826-07-01T12:01:30.25Z", // further than a Duration goes
	} {
		next, ok := r.Resume(last, instant(t, now), nil)
		if got := next.Format(time.RFC3339Nano); !ok || got != want {
			t.Errorf("at %s it goes on at %s (%v), want %s", now, got, ok, want)
		}
	}
}

func TestACronExpressionGoesOnAfterTheLaterOfTwo(t *testing.T) {
	r := cron.MustParse("@daily")
	early, late := instant(t, "2026-07-01T12:00:00Z"), instant(t, "2026-07-05T12:00:00Z")
	want := instant(t, "2026-07-06T00:00:00Z")
	for _, pair := range [][2]time.Time{{early, late}, {late, early}} {
		if next, ok := r.Resume(pair[0], pair[1], nil); !ok || !next.Equal(want) {
			t.Errorf("after %s and %s it goes on at %s", pair[0], pair[1], next)
		}
	}
}

// On this day time.ZoneBounds says that the period of the clock has ended.
func TestTheLastDayOfALeapYearIsFollowedByOthers(t *testing.T) {
	for _, year := range []int{2024, 2096} {
		after := time.Date(year, 12, 31, 12, 0, 0, 0, time.UTC)
		next, ok := cron.MustParse("0 12 1 7 *").Next(after, mustZone(t, "America/New_York"))
		want := fmt.Sprintf("%d-07-01T12:00:00-04:00", year+1)
		if got := next.Format(time.RFC3339); !ok || got != want {
			t.Errorf("after %s comes %s, want %s", after, got, want)
		}
	}
}
