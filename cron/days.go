package cron

import (
	"strings"
	"time"
)

// days says which dates match: those of the month and those of the week, each
// also as counted within a month.
type days struct {
	month set // 1 to 31

	last        bool // L
	lastWeekday bool // LW
	nearest     set  // 15W: 1 to 31

	week   set    // 0 to 6, Sunday first
	nth    [6]set // 2#3: weekdays by their number, 1 to 5
	lastOf set    // 5L: weekdays

	// Whether both have to match rather than either.
	both bool
}

func parseDays(monthText, weekText string) (d days, err error) {
	month, err := dayField.parse(monthText, d.specialDay)
	if err != nil {
		return d, err
	}
	week, err := weekdayField.parse(weekText, d.specialWeekday)
	if err != nil {
		return d, err
	}
	d.month, d.week = month.values, (week.values|week.values>>7)&span(0, 6)
	d.both = month.star || week.star
	return d, nil
}

func (d *days) specialDay(item string) (known bool, err error) {
	number, isNearest := strings.CutSuffix(item, "W")
	switch {
	case item == "L":
		d.last = true
	case item == "LW":
		d.lastWeekday = true
	case isNearest:
		n, err := dayField.value(number)
		if err != nil {
			return true, err
		}
		d.nearest |= 1 << n
	case item != "" && item[0] == 'L':
		return true, dayField.wrong(" %q is not known; there are L, the last day, and LW, the last from Monday to Friday", item)
	default:
		return false, nil
	}
	return true, nil
}

func (d *days) specialWeekday(item string) (known bool, err error) {
	name, isLast := strings.CutSuffix(item, "L")
	name, number, isNth := strings.Cut(name, "#")
	switch {
	case item == "L":
		return true, weekdayField.wrong(": L needs a day: 5L or FRIL is the last Friday of the month")
	case isLast && isNth:
		return true, weekdayField.wrong(" %q is not known; write 5L or 5#3", item)
	case !isLast && !isNth:
		return false, nil
	}
	weekday, err := weekdayField.value(name)
	if err != nil {
		return true, err
	}
	weekday %= 7
	if isLast {
		d.lastOf |= 1 << weekday
		return true, nil
	}
	if len(number) != 1 || number < "1" || number > "5" {
		return true, weekdayField.wrong(" %s: a month has from 1 to 5 of a weekday, not %q", item, number)
	}
	d.nth[number[0]-'0'] |= 1 << weekday
	return true, nil
}

// in returns the days of a month that match.
func (d days) in(year int, month time.Month) set {
	length := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	first := int(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Weekday())
	inMonth, inWeek := d.ofMonth(length, first), d.ofWeek(length, first)
	if d.both {
		return inMonth & inWeek
	}
	return inMonth | inWeek
}

// ofMonth returns the days by their number, in a month of some length whose
// first is that weekday.
func (d days) ofMonth(length, first int) set {
	s := d.month & span(1, length)
	if d.last {
		s |= 1 << length
	}
	if d.lastWeekday {
		s |= 1 << nearestWeekday(length, length, first)
	}
	for n, ok := d.nearest.from(1); ok && n <= length; n, ok = d.nearest.from(n + 1) {
		s |= 1 << nearestWeekday(n, length, first)
	}
	return s
}

// nearestWeekday is the day from Monday to Friday that is nearest to day n and in
// the same month.
func nearestWeekday(n, length, first int) int {
	switch weekday := (first + n - 1) % 7; {
	case weekday == 6 && n > 1:
		return n - 1
	case weekday == 6:
		return n + 2
	case weekday == 0 && n < length:
		return n + 1
	case weekday == 0:
		return n - 2
	}
	return n
}

// ofWeek returns the days by their weekday.
func (d days) ofWeek(length, first int) set {
	if d.week == span(0, 6) {
		return span(1, length)
	}
	var s set
	for weekday := range 7 {
		offset := (weekday - first + 7) % 7
		all := every7th << offset & span(1, length)
		if d.week.has(weekday) {
			s |= all
		}
		for n := 1; n < len(d.nth); n++ {
			if d.nth[n].has(weekday) {
				s |= all & span(7*n-6, 7*n)
			}
		}
		if d.lastOf.has(weekday) {
			s |= all & span(length-6, length)
		}
	}
	return s
}

// every7th is the 1st, 8th, … of a month.
const every7th set = 1<<1 | 1<<8 | 1<<15 | 1<<22 | 1<<29
