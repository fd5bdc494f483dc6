package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/words"
)

func (c calendar) words() string {
	clock, perDay := c.clockWords()
	date := c.dateWords()
	if date == "" && perDay {
		date = "every day"
	}
	return strings.TrimSpace(clock + " " + date)
}

// mostTimes is how many times of day are told one by one.
const mostTimes = 4

// clockWords says the minutes and hours, and whether they are single times of a
// day rather than something that goes on all day.
func (c calendar) clockWords() (said string, perDay bool) {
	minutes, hours := c.minutes.count(), c.hours.count()
	if minutes*hours <= mostTimes {
		return "at " + words.Listed(c.times()), true
	}
	hour, lastHour := c.hours.ends()
	minute, _ := c.minutes.ends()
	everyNth := c.hours.every(0, 23)
	switch {
	case minutes == 1 && minute == 0 && hours == 24:
		return "every hour", false
	case minutes == 1 && minute == 0 && everyNth > 0:
		return fmt.Sprintf("every %d hours from 00:00", everyNth), false
	case minutes == 1 && hours < 24 && c.hours == span(hour, lastHour):
		return fmt.Sprintf("every hour from %02d:%02d to %02d:%02d", hour, minute, lastHour, minute), true
	}
	said = c.minuteWords()
	switch {
	case hours == 24 && strings.HasPrefix(said, "every"):
		return said, false
	case hours == 24:
		return said + " of every hour", false
	case everyNth > 0:
		return said + " of every " + ordinal(everyNth) + " hour", false
	}
	return said + " of " + plural("hour", hours) + " " + words.Listed(c.hours.runs(strconv.Itoa)), true
}

func (c calendar) minuteWords() string {
	switch n := c.minutes.every(0, 59); {
	case n == 1:
		return "every minute"
	case n > 0:
		return fmt.Sprintf("every %d minutes", n)
	}
	return "at " + plural("minute", c.minutes.count()) + " " + words.Listed(c.minutes.runs(strconv.Itoa))
}

// times returns all times of a day.
func (c calendar) times() []string {
	var times []string
	for hour := range c.hours.all {
		for minute := range c.minutes.all {
			times = append(times, fmt.Sprintf("%02d:%02d", hour, minute))
		}
	}
	return times
}

// dateWords says the days and months, or nothing when they are all days.
func (c calendar) dateWords() string {
	var months string
	if c.months != span(1, 12) {
		months = words.Listed(c.months.runs(func(n int) string { return time.Month(n).String() }))
	}
	everyDay, everyWeekday := c.days.month == span(1, 31), c.days.week == span(0, 6)
	switch {
	case everyDay && everyWeekday, !c.days.both && (everyDay || everyWeekday):
		if months == "" {
			return ""
		}
		return "every day in " + months
	case everyDay:
		return "on " + c.days.weekWords(months)
	case everyWeekday:
		return "on " + c.days.monthWords(months)
	case c.days.both:
		return "on " + c.days.monthWords(months) + " if it is " + c.days.weekWords("")
	}
	return "on " + c.days.monthWords(months) + " or on " + c.days.weekWords(months)
}

// monthWords says the days by their number in the given months, or in each.
func (d days) monthWords(months string) string {
	if months == "" {
		months = "the month"
	}
	var parts []string
	if n := d.month.every(1, 31); n > 1 {
		parts = append(parts, "every "+ordinal(n)+" day")
	} else if d.month != 0 {
		parts = append(parts, plural("day", d.month.count())+" "+words.Listed(d.month.runs(strconv.Itoa)))
	}
	for n := range d.nearest.all {
		parts = append(parts, fmt.Sprintf("the weekday nearest day %d", n))
	}
	if d.lastWeekday {
		parts = append(parts, "the last weekday")
	}
	if d.last {
		parts = append(parts, "the last day")
	}
	return words.Listed(parts) + " of " + months
}

// weekWords says the days by their weekday in the given months, or in each.
func (d days) weekWords(months string) string {
	parts := mondayFirst(d.week).runs(weekdayName)
	of := months
	if of == "" {
		of = "the month"
	}
	for n, weekdays := range d.nth {
		for weekday := range mondayFirst(weekdays).all {
			parts = append(parts, "the "+counted[n]+" "+weekdayName(weekday)+" of "+of)
		}
	}
	for weekday := range mondayFirst(d.lastOf).all {
		parts = append(parts, "the last "+weekdayName(weekday)+" of "+of)
	}
	said := words.Listed(parts)
	if months != "" && d.week != 0 {
		said += " in " + months
	}
	return said
}

var counted = [...]string{1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}

// mondayFirst makes Sunday the last day of a week, where people say it.
func mondayFirst(weekdays set) set {
	if weekdays.has(0) {
		weekdays |= 1 << 7
	}
	return weekdays &^ 1
}

func weekdayName(n int) string { return time.Weekday(n % 7).String() }

// runs tells the values in order, three or more in a row by their ends.
func (s set) runs(name func(int) string) []string {
	var parts []string
	for n, ok := s.from(0); ok; {
		last := n
		for s.has(last + 1) {
			last++
		}
		if last-n < 2 {
			last = n
			parts = append(parts, name(n))
		} else {
			parts = append(parts, name(n)+" to "+name(last))
		}
		n, ok = s.from(last + 1)
	}
	return parts
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func ordinal(n int) string {
	suffix := "th"
	if n/10 != 1 && n%10 >= 1 && n%10 <= 3 {
		suffix = [...]string{1: "st", 2: "nd", 3: "rd"}[n%10]
	}
	return strconv.Itoa(n) + suffix
}
