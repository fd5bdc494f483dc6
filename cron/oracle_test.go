package cron_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The oracle is the rule of the package comment taken literally. It reads the
// local clock at every real minute and asks of each reading whether it matches;
// it finds gaps by comparing a reading with the one before, and repeats by
// remembering what was shown. It is slow, and shares no code with the package:
// neither the parser, nor the calendar, nor the walk along a zone's changes.

// walk is what a clock showed at every step of some real time.
type walk struct {
	zone        *time.Location
	start, step int64          // seconds since 1970, and 60 or 1 of them
	shown       []int64        // the local time at each step, in seconds as if it were UTC
	dates       map[int64]date // by the local day
}

type date struct {
	year       int
	month, day int
	weekday    int
}

// walkFrom reads the clock of a zone at every step from one instant to another.
func walkFrom(zone *time.Location, from, to time.Time, step time.Duration) *walk {
	w := &walk{zone: zone, start: from.Unix(), step: int64(step / time.Second), dates: map[int64]date{}}
	w.shown = make([]int64, 0, (to.Unix()-w.start)/w.step)
	for at := w.start; at < to.Unix(); at += w.step {
		local := time.Unix(at, 0).In(zone)
		year, month, day := local.Date()
		hour, minute, second := local.Clock()
		midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()
		if _, known := w.dates[midnight]; !known {
			w.dates[midnight] = date{year, int(month), day, int(local.Weekday())}
		}
		w.shown = append(w.shown, midnight+int64(hour*3600+minute*60+second))
	}
	return w
}

// occurrences are the instants at which an expression happens between two.
func (w *walk) occurrences(e expression, from, to time.Time) []int64 {
	var times []int64
	matching := e.prepare(w)
	first, last := (from.Unix()-w.start+w.step-1)/w.step, (to.Unix()-w.start+w.step-1)/w.step
	for i := int(first); i < int(last); i++ {
		due := matching.at(w.shown[i])
		if e.fixed {
			due = due && !w.shownBefore(i) || w.jumpedOverMatch(i, matching)
		}
		if due {
			times = append(times, w.start+int64(i)*w.step)
		}
	}
	return times
}

// shownBefore tells whether the clock showed what it shows at a step before. It
// looks two days back, for a clock repeats a day at most.
func (w *walk) shownBefore(i int) bool {
	back := i - int(2*24*3600/w.step)
	if w.shown[i]-w.shown[back] == int64(i-back)*w.step {
		return false // it has run evenly, which only saves time to know
	}
	return slices.Contains(w.shown[back:i], w.shown[i])
}

// jumpedOverMatch tells whether the clock, in coming to step i, jumped over a time
// that matches and that it never shows.
func (w *walk) jumpedOverMatch(i int, m *matching) bool {
	for missed := w.shown[i-1] + 1; missed < w.shown[i]; missed++ {
		if m.at(missed) && !slices.Contains(w.shown, missed) {
			return true
		}
		if w.shown[i]-w.shown[i-1] == w.step {
			return false // it has not jumped
		}
	}
	return false
}

// expression is one row of the table: what is written and what kind it is.
type expression struct {
	text  string
	fixed bool
}

// matching answers whether a local time matches. It computes each date once.
type matching struct {
	minutes [60]bool
	hours   [24]bool
	dates   map[int64]bool
	fields  []string

	lastDay      int64
	lastDayMatch bool
}

func (e expression) prepare(w *walk) *matching {
	m := &matching{fields: strings.Fields(e.text), dates: map[int64]bool{}, lastDay: 1}
	for n := range m.minutes {
		m.minutes[n] = holds(m.fields[0], n, 0, 59)
	}
	for n := range m.hours {
		m.hours[n] = holds(m.fields[1], n, 0, 23)
	}
	for midnight, d := range w.dates {
		m.dates[midnight] = m.onDate(d)
	}
	return m
}

func (m *matching) at(local int64) bool {
	second := (local%86400 + 86400) % 86400 // of the day, before 1970 too
	if second%60 != 0 || !m.minutes[second/60%60] || !m.hours[second/3600] {
		return false
	}
	midnight := local - second
	if midnight != m.lastDay {
		match, known := m.dates[midnight]
		if !known { // a day that never was
			d := time.Unix(midnight, 0).UTC()
			match = m.onDate(date{d.Year(), int(d.Month()), d.Day(), int(d.Weekday())})
			m.dates[midnight] = match
		}
		m.lastDay, m.lastDayMatch = midnight, match
	}
	return m.lastDayMatch
}

func (m *matching) onDate(d date) bool {
	dayOfMonth, month, dayOfWeek := m.fields[2], m.fields[3], m.fields[4]
	if !holds(month, d.month, 1, 12) {
		return false
	}
	byMonth, byWeek := holds(dayOfMonth, d.day, 1, 31), holds(dayOfWeek, d.weekday, 0, 6)
	if d.weekday == 0 {
		byWeek = byWeek || holds(dayOfWeek, 7, 0, 6)
	}
	for item := range strings.SplitSeq(dayOfMonth, ",") {
		byMonth = byMonth || countedInMonth(item, d)
	}
	for item := range strings.SplitSeq(dayOfWeek, ",") {
		byWeek = byWeek || countedInWeeks(item, d)
	}
	if dayOfMonth[0] == '*' || dayOfWeek[0] == '*' {
		return byMonth && byWeek
	}
	return byMonth || byWeek
}

// countedInMonth knows L, LW and 15W.
func countedInMonth(item string, d date) bool {
	length := time.Date(d.year, time.Month(d.month)+1, 0, 12, 0, 0, 0, time.UTC).Day()
	weekend := func(day int) bool {
		weekday := time.Date(d.year, time.Month(d.month), day, 12, 0, 0, 0, time.UTC).Weekday()
		return weekday == time.Saturday || weekday == time.Sunday
	}
	switch {
	case item == "L":
		return d.day == length
	case item == "LW":
		last := length
		for weekend(last) {
			last--
		}
		return d.day == last
	case strings.HasSuffix(item, "W"):
		wanted := number(strings.TrimSuffix(item, "W"))
		if wanted > length {
			return false
		}
		for distance := range 3 {
			for _, day := range []int{wanted - distance, wanted + distance} {
				if day >= 1 && day <= length && !weekend(day) {
					return d.day == day
				}
			}
		}
	}
	return false
}

// countedInWeeks knows 5L and 2#3.
func countedInWeeks(item string, d date) bool {
	if weekday, ok := strings.CutSuffix(item, "L"); ok {
		next := time.Date(d.year, time.Month(d.month), d.day+7, 12, 0, 0, 0, time.UTC)
		return number(weekday)%7 == d.weekday && int(next.Month()) != d.month
	}
	weekday, nth, ok := strings.Cut(item, "#")
	if !ok || number(weekday)%7 != d.weekday {
		return false
	}
	before := 0
	for day := d.day - 7; day >= 1; day -= 7 {
		before++
	}
	return before+1 == number(nth)
}

// holds tells whether a list of plain items has a value.
func holds(list string, n, low, high int) bool {
	for item := range strings.SplitSeq(list, ",") {
		body, step, stepped := strings.Cut(item, "/")
		if strings.ContainsAny(item, "#") || item != "*" && strings.HasSuffix(body, "L") || strings.HasSuffix(body, "W") {
			continue
		}
		first, last := low, high
		if body != "*" {
			a, b, ranged := strings.Cut(body, "-")
			first = number(a)
			switch {
			case ranged:
				last = number(b)
			case !stepped:
				last = first
			}
		}
		every := 1
		if stepped {
			every = number(step)
		}
		if n >= first && n <= last && (n-first)%every == 0 {
			return true
		}
	}
	return false
}

var named = strings.Fields("SUN MON TUE WED THU FRI SAT")

func number(text string) int {
	if i := slices.Index(named, text); i >= 0 {
		return i
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("the oracle cannot read %q", text))
	}
	return n
}

// The oracle itself is tried on dates that anybody can look up.
func TestTheOracleKnowsWhatIsKnown(t *testing.T) {
	for _, tt := range []struct {
		zone string
		from string
		e    expression
		want string
	}{
		{"Europe/Berlin", "2024-03-30", expression{"30 2 * * *", true}, "30T02:30+01:00 31T03:00+02:00 01T02:30+02:00"},
		{"Europe/Berlin", "2024-03-31", expression{"15 2,3 * * *", true}, "31T03:00+02:00 31T03:15+02:00 01T02:15+02:00 01T03:15+02:00 02T02:15+02:00 02T03:15+02:00"},
		{"Europe/Berlin", "2024-10-26", expression{"30 2 * * *", true}, "26T02:30+02:00 27T02:30+02:00 28T02:30+01:00"},
		{"Europe/Berlin", "2024-10-26", expression{"*/30 2 * * *", false},
			"26T02:00+02:00 26T02:30+02:00 27T02:00+02:00 27T02:30+02:00 27T02:00+01:00 27T02:30+01:00 28T02:00+01:00 28T02:30+01:00"},
		{"Pacific/Apia", "2011-12-29", expression{"0 12 * * *", true}, "29T12:00-10:00 31T00:00+14:00 31T12:00+14:00 01T12:00+14:00"},
		{"Pacific/Apia", "2011-12-29", expression{"0 */12 * * *", false}, "29T00:00-10:00 29T12:00-10:00 31T00:00+14:00 31T12:00+14:00 01T00:00+14:00 01T12:00+14:00"},
		{"Australia/Lord_Howe", "2024-10-05", expression{"15 2 * * *", true}, "05T02:15+10:30 06T02:30+11:00 07T02:15+11:00"},
		{"America/Sao_Paulo", "2017-10-14", expression{"0 0 * * *", true}, "14T00:00-03:00 15T01:00-02:00 16T00:00-02:00 17T00:00-02:00"},
	} {
		zone := mustZone(t, tt.zone)
		from, err := time.ParseInLocation(time.DateOnly, tt.from, zone)
		if err != nil {
			t.Fatal(err)
		}
		to := from.Add(3 * 24 * time.Hour)
		w := walkFrom(zone, from.Add(-margin), to.Add(margin), time.Minute)
		var got []string
		for _, at := range w.occurrences(tt.e, from, to) {
			got = append(got, time.Unix(at, 0).In(zone).Format("02T15:04Z07:00"))
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s, %s: the oracle says\n%s, want\n%s", tt.zone, tt.e.text, got, tt.want)
		}
	}
}
