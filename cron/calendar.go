package cron

import (
	"strings"
	"time"
)

// calendar is a cron expression. What it knows of time is the floating calendar:
// dates and times of day, as seconds that a clock would have counted from 1970
// had it never been set.
type calendar struct {
	source         string // normalised
	minutes, hours set
	days           days
	months         set
	wildcard       bool
}

// horizon is how many years lie ahead of where a search for a date begins. Of all
// dates a 29th of February on a given weekday is the rarest: around a year such as
// 2100, which is no leap year, it takes 40.
const horizon = 41

// cycle is after how many years the calendar begins again, weekdays included.
const cycle = 400

func parseFields(words []string) (Recurrence, error) {
	if len(words) != 5 {
		return Recurrence{}, wrongCount(words)
	}
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "?", "*")
	}
	minutes, err := minuteField.parse(words[0], nil)
	if err != nil {
		return Recurrence{}, err
	}
	hours, err := hourField.parse(words[1], nil)
	if err != nil {
		return Recurrence{}, err
	}
	months, err := monthField.parse(words[3], nil)
	if err != nil {
		return Recurrence{}, err
	}
	days, err := parseDays(words[2], words[4])
	if err != nil {
		return Recurrence{}, err
	}
	c := calendar{
		source:   strings.Join(words, " "),
		minutes:  minutes.values,
		hours:    hours.values,
		days:     days,
		months:   months.values,
		wildcard: minutes.spans || hours.spans,
	}
	if _, ok := c.date(2000, time.January, 1, cycle); !ok {
		return Recurrence{}, invalidf("day of month %s never comes in month %s with day of week %s", words[2], words[3], words[4])
	}
	return Recurrence{rule: c}, nil
}

func wrongCount(words []string) error {
	const five = "minute, hour, day of month, month, day of week"
	if len(words) == 6 || len(words) == 7 {
		return invalidf("there are %d fields and should be five: %s; there is none for seconds or years, "+
			"but an interval may be of seconds, as in %q", len(words), five, "every 10s")
	}
	return invalidf("%q has %d of the five fields: %s", strings.Join(words, " "), len(words), five)
}

func (c calendar) text() string { return c.source }

// match returns the first time of the floating calendar at or after another
// that matches.
func (c calendar) match(from int64) (int64, bool) {
	day, second := floorDiv(from, secondsPerDay)
	date := time.Unix(day*secondsPerDay, 0).UTC()
	minute := int((second + 59) / 60)
	today := c.months.has(int(date.Month())) && c.days.in(date.Year(), date.Month()).has(date.Day())
	if today {
		if at, ok := c.timeOfDay(minute); ok {
			return day*secondsPerDay + at, true
		}
	}
	date, ok := c.date(date.Year(), date.Month(), date.Day()+1, horizon)
	if !ok {
		return 0, false
	}
	at, _ := c.timeOfDay(0)
	return date.Unix() + at, true
}

// timeOfDay returns the first time of a day at or after a minute of it, in seconds.
func (c calendar) timeOfDay(minute int) (int64, bool) {
	hour, ok := c.hours.from(minute / 60)
	if !ok {
		return 0, false
	}
	if hour == minute/60 {
		if m, ok := c.minutes.from(minute % 60); ok {
			return int64(hour*60+m) * 60, true
		}
		if hour, ok = c.hours.from(hour + 1); !ok {
			return 0, false
		}
	}
	m, _ := c.minutes.from(0)
	return int64(hour*60+m) * 60, true
}

// date returns the first date at or after a day of a month that matches, within
// some years. The day may be the one after the last.
func (c calendar) date(year int, month time.Month, day, years int) (time.Time, bool) {
	for last := year + years; year <= last; {
		if c.months.has(int(month)) {
			if n, ok := c.days.in(year, month).from(day); ok {
				return time.Date(year, month, n, 0, 0, 0, 0, time.UTC), true
			}
		}
		if month, day = month+1, 1; month > time.December {
			year, month = year+1, time.January
		}
	}
	return time.Time{}, false
}

const (
	secondsPerDay  = 24 * 60 * 60
	secondsPerYear = 31_556_952 // on the average
)

// floorDiv divides with a remainder that is never negative.
func floorDiv(a, b int64) (quotient, remainder int64) {
	quotient, remainder = a/b, a%b
	if remainder < 0 {
		quotient, remainder = quotient-1, remainder+b
	}
	return quotient, remainder
}
