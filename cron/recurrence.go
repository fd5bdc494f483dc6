// Package cron holds recurrences: the answer to "when does this happen again?".
//
// A recurrence is a value, not an object. It is read from a few words or built
// from them,
//
//	cron.MustParse("30 2 * * MON-FRI")
//	cron.Every(90 * time.Second)
//	cron.Function("full-moon")
//
// compared with ==, written as text or JSON, stored beside a schedule, and
// asked for its next time by whichever machine happens to need it:
//
//	                       ┌───────────── recurrence ─────────────┐
//	after, time zone ─────▶│ floating calendar ▶ the zone's clock │─────▶ the next time,
//	                       └──────────────────────────────────────┘        or never again
//
// The time zone is no part of it. One recurrence means local times, and the
// zone is said when it is asked, so that the same text serves everywhere.
//
// # Text
//
//	minute  hour  day of month  month    day of week
//	0-59    0-23  1-31          1-12     0-7 (0 and 7 are Sunday)
//	                            JAN-DEC  SUN-SAT
//
// A field is a list, separated by commas, of
//
//	5      one value
//	8-17   a range; 8-17/2 is every second value of it
//	*      every value, also written ?
//	*/15   every 15th value, counted from the lowest
//	5/15   every 15th value from 5 on
//	L      day of month: the last one; LW the last weekday, Monday to Friday
//	15W    day of month: the weekday nearest the 15th, within its month
//	5L     day of week: the last Friday of the month
//	2#3    day of week: the third Tuesday of the month
//
// Names and macros are read in either case: @hourly, @daily (also @midnight),
// @weekly, @monthly, @yearly (also @annually). "every 90s", also written
// "@every 90s", is an interval.
//
// When both days are restricted, a date matches if either does: "0 0 1 * MON" is
// the first of the month and every Monday. A field that begins with a star does
// not restrict in this sense, even with a step, and then both must match, as in
// Vixie's cron: "0 0 */2 * MON" is the Mondays with an odd date.
//
// # Clocks that jump
//
// Times are found on a calendar without zones and then looked up on the zone's
// clock. An expression is fixed when its minutes and hours are named, such as
// "30 2 * * *" or "0 9-17 * * *". It is a wildcard when one of the two fields
// has an item that spans all its values, with or without a step: *, */15, 0-59,
// 0/15, or when its values are all there are.
//
//	                             fixed: 30 2 * * *         wildcard: 30 * * * *
//	the local time exists once   then                      then
//	it does not exist (a gap)    right after the gap       nothing
//	it exists twice (a repeat)   the first of the two      both times
//
// So what is meant once a day happens once a day, and what is meant every so
// often happens every so often. Several fixed times in one gap all mean the
// instant right after it, where they happen once. Said in one sentence, a fixed
// time is when the clock first shows it or, having jumped, something later; a
// wildcard is whenever the clock shows a time that matches. A gap may be an hour,
// half an hour or a whole day: Samoa had no 2011-12-30.
//
// # Intervals
//
// An interval has no calendar and no zone: it is so much time after the previous
// occurrence. Whoever uses it keeps its anchor, the first occurrence or any later
// one. See [Recurrence.Next] and [Recurrence.Resume].
package cron

import (
	"cmp"
	"time"
)

// Recurrence says when something happens again and again. It is a plain value,
// safe to share and to compare with ==: recurrences written alike, apart from
// space, case and synonyms, are equal. The zero value never happens.
type Recurrence struct {
	rule rule // nil: never

	// The mistake made while building, as text, so that == compares it.
	bad string
}

// A rule is one way to recur. Rules are comparable.
type rule interface {
	// next is the first occurrence after an instant, which for an interval is
	// the previous occurrence.
	next(after time.Time, zone *time.Location) (time.Time, bool)
	// resume is the first occurrence after now of the series that last is of.
	resume(last, now time.Time, zone *time.Location) (time.Time, bool)
	text() string
	words() string
}

// IsZero tells whether it is the zero value, which never happens. A Recurrence
// with a mistake is not zero.
func (r Recurrence) IsZero() bool { return r == Recurrence{} }

// Validate returns the mistake made in building it, as an error that wraps
// [ErrInvalid], or nil. What Parse returned has none, nor has the zero value.
func (r Recurrence) Validate() error {
	if r.bad == "" {
		return nil
	}
	return invalid(r.bad)
}

// Next returns the first occurrence strictly after an instant, in the given
// zone, or ok=false when there is none any more. A nil zone is UTC.
//
// For a cron expression after may be any instant. For an interval it is the
// previous occurrence, to which the interval is added; use Resume to find one
// from any other instant. The zero Recurrence, one with a mistake, and a function
// have none here: ask a function through [Registry.Next].
//
// A cron expression is looked at for 41 years ahead, more than from any of its
// dates to the next, and up to the year 9999, beyond which times cannot be
// stored. So a long series of calls ends with ok=false.
func (r Recurrence) Next(after time.Time, zone *time.Location) (next time.Time, ok bool) {
	if r.rule == nil {
		return time.Time{}, false
	}
	return storable(r.rule.next(after, cmp.Or(zone, time.UTC)))
}

// Resume returns the first occurrence strictly after now of the series that an
// occurrence last belongs to, so that a series that was held up goes on without
// what was missed: an interval keeps its beat, last + k × d, and everything else
// has its Next after the later of the two. Otherwise it is like Next.
func (r Recurrence) Resume(last, now time.Time, zone *time.Location) (next time.Time, ok bool) {
	if r.rule == nil {
		return time.Time{}, false
	}
	return storable(r.rule.resume(last, now, cmp.Or(zone, time.UTC)))
}

// Upcoming returns the next n occurrences of r after an instant, in order: what
// n calls of Next give, each after the one before. There are fewer when it never
// happens again.
func Upcoming(r Recurrence, after time.Time, zone *time.Location, n int) []time.Time {
	var times []time.Time
	for range n {
		next, ok := r.Next(after, zone)
		if !ok {
			break
		}
		times, after = append(times, next), next
	}
	return times
}

// String returns the text form that Parse reads, in upper case, with single
// spaces, and without synonyms. It is empty for the zero value.
func (r Recurrence) String() string {
	switch {
	case r.bad != "":
		return "invalid (" + r.bad + ")"
	case r.rule == nil:
		return ""
	}
	return r.rule.text()
}

// Words says for people when it happens, such as "at 02:30 on Monday to Friday",
// "every 90 seconds" or "never".
func (r Recurrence) Words() string {
	switch {
	case r.bad != "":
		return r.String()
	case r.rule == nil:
		return "never"
	}
	return r.rule.words()
}

// storable refuses times that JSON and databases cannot hold.
func storable(t time.Time, ok bool) (time.Time, bool) {
	utc := t.UTC().Year()
	if !ok || utc < 1 || utc > maxYear || t.Year() > maxYear {
		return time.Time{}, false
	}
	return t, true
}

// maxYear is the last one that has four digits.
const maxYear = 9999
