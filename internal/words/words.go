// Package words says numbers, instants and durations as people read them, alike on
// the command line and on pages.
package words

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/stint-go/stint/internal/duration"
)

// Visible shows control characters instead of sending them anywhere: names and
// outputs come from everywhere. Newlines and tabs stay.
func Visible(s string) string {
	if !strings.ContainsFunc(s, isHidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isHidden(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isHidden(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// Ago says how long ago or how soon an instant is, roughly; - for the zero time.
// The instant is the database's, so a second of difference is no news.
func Ago(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	switch d := now.Sub(t); {
	case d >= time.Second:
		return Between(t, now) + " ago"
	case d <= -time.Second:
		return "in " + Between(now, t)
	}
	return "now"
}

// Between says how long it is from one instant to a later one, roughly. A
// [time.Duration] ends after 292 years, so more than that is counted in days.
func Between(from, to time.Time) string {
	if d := to.Sub(from); d < math.MaxInt64 {
		return Rough(d)
	}
	return fmt.Sprintf("%dd", (to.Unix()-from.Unix())/(24*60*60))
}

// Rough is a duration in its two largest units at most.
func Rough(d time.Duration) string {
	for _, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if d >= 10*unit {
			return duration.Format(d.Truncate(unit))
		}
	}
	return d.Round(100 * time.Millisecond).String()
}

// Several names a few, and says how many more there are.
func Several(names []string) string {
	const few = 8
	if len(names) > few {
		return strings.Join(names[:few], ", ") + fmt.Sprintf(" and %d more", len(names)-few)
	}
	return strings.Join(names, ", ")
}

// Took shows how long something took, in three digits or so.
func Took(d time.Duration) string {
	for _, unit := range []time.Duration{time.Minute, time.Second, time.Millisecond, time.Microsecond} {
		if d >= 100*unit {
			return d.Round(unit).String()
		}
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// Count groups digits: 1,234,567.
func Count[N int | int64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Counted is a number of things: 1 job, 2 jobs.
func Counted[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return Count(n) + " " + thing
}

// Listed reads names as people say them: a, b and c.
func Listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Size is a number of bytes in the largest unit of which there is at least one.
func Size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	size, units := float64(n)/(1<<10), []string{"KiB", "MiB", "GiB", "TiB"}
	unit := 0
	for size >= 1<<10 && unit < len(units)-1 {
		size, unit = size/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}

// Awaits says which signals and which answers a job waits for, and the ends of which jobs: awaits the signal "a" or "b", or the
// answer to "c". It is empty if there are none.
func Awaits(signals, questions []string, jobs ...int64) string {
	var parts []string
	for i, of := range [][]string{signals, questions} {
		if len(of) == 0 {
			continue
		}
		names := make([]string, len(of))
		for k, name := range of {
			names[k] = fmt.Sprintf("%q", name)
		}
		parts = append(parts, []string{"the signal ", "the answer to "}[i]+strings.Join(names, " or "))
	}
	for i, job := range jobs {
		parts = append(parts, fmt.Sprint([]string{"the end of job ", "of job "}[min(i, 1)], job))
	}
	if len(parts) == 0 {
		return ""
	}
	return "awaits " + strings.Join(parts, ", or ")
}
