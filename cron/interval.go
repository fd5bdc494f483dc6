package cron

import (
	"fmt"
	"time"

	"github.com/stint-go/stint/internal/duration"
)

// Limits of an interval. More often than a second is no matter for a schedule,
// and the longest still leads to a date that every database and encoding has.
const (
	MinInterval = time.Second
	MaxInterval = 100 * 365 * 24 * time.Hour
)

// Every is the interval d: so much time from one occurrence to the next. It is
// at least a second, at most 100 years, and whole milliseconds, for databases
// round what is finer. A mistake is in the Recurrence: see [Recurrence.Validate].
func Every(d time.Duration) Recurrence {
	switch {
	case d < MinInterval:
		return Recurrence{bad: "the interval " + duration.Format(d) + " is too short; the shortest is " + duration.Format(MinInterval)}
	case d > MaxInterval:
		return Recurrence{bad: "the interval " + duration.Format(d) + " is too long; the longest is " + duration.Format(MaxInterval)}
	case d%time.Millisecond != 0:
		return Recurrence{bad: "the interval " + duration.Format(d) + " is not a whole number of milliseconds"}
	}
	return Recurrence{rule: interval{d}}
}

// Interval returns the time from one occurrence to the next, if it is an
// interval: one that no clock on a wall and so no zone says anything about.
func (r Recurrence) Interval() (d time.Duration, ok bool) {
	i, ok := r.rule.(interval)
	return i.d, ok
}

// interval is Every.
type interval struct{ d time.Duration }

func (i interval) next(after time.Time, zone *time.Location) (time.Time, bool) {
	return after.Round(0).Add(i.d).In(zone), true
}

func (i interval) resume(last, now time.Time, zone *time.Location) (time.Time, bool) {
	last = last.Round(0)
	if now.Before(last) {
		return i.next(last, zone)
	}
	// Not Sub alone, which ends at 292 years: the remainder is what counts.
	late := now.Round(0).Sub(last)
	for ; late == maxDuration; late = now.Round(0).Sub(last) {
		last = last.Add(maxDuration / i.d * i.d)
	}
	return i.next(last.Add(late/i.d*i.d), zone)
}

const maxDuration time.Duration = 1<<63 - 1

func (i interval) text() string { return "every " + duration.Format(i.d) }

// words counts in the largest unit that leaves nothing. A day of an interval has
// 24 hours, which is not what people call every day.
func (i interval) words() string {
	for _, unit := range []struct {
		name  string
		size  time.Duration
		least time.Duration // how many there are before it is used
	}{
		{"week", 7 * 24 * time.Hour, 2},
		{"day", 24 * time.Hour, 2},
		{"hour", time.Hour, 1},
		{"minute", time.Minute, 1},
		{"second", time.Second, 1},
	} {
		switch n := i.d / unit.size; {
		case i.d%unit.size != 0 || n < unit.least:
		case n == 1:
			return "every " + unit.name
		default:
			return fmt.Sprintf("every %d %ss", n, unit.name)
		}
	}
	return "every " + duration.Format(i.d)
}
