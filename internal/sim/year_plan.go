package sim

import (
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
)

// planned is a schedule of a long run, said in numbers: the judge walks through
// the calendar with them, and does not ask what the schedules ask.
type planned struct {
	name                       string
	zone                       string
	minute, hour, day, weekday int           // -1: each
	step                       int           // instead of a minute: every so many of the hour; 0: no
	every                      time.Duration // an interval instead of dates; 0: no
	asks                       bool          // the interval is a function's
	unique                     bool
	missed                     stint.Missed
}

// zones are those of the year 2000 that are odd: gaps of an hour, of half an hour,
// at midnight and a minute behind it, north and south, at odd offsets, and none.
var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Santiago", "Asia/Amman",
	"Asia/Beirut", "Asia/Kathmandu", "Asia/Tehran", "Australia/Lord_Howe", "Pacific/Chatham", "Africa/Cairo",
}

// minutely is the schedule of a minute.
var minutely = planned{name: "minutely", zone: "UTC", minute: -1, hour: -1, day: -1, weekday: -1, missed: stint.MissedAll(stint.MaxMissed)}

// plans draws n schedules. Of those that say a date most come once a day, and many
// at the times when clocks jump.
func plans(d dice, n int) (all []planned) {
	for i := range n {
		p := planned{
			name: fmt.Sprintf("plan-%04d", i), zone: zones[i%len(zones)], minute: d.IntN(60), hour: d.IntN(24), day: -1, weekday: -1,
			unique: d.chance(30), missed: stint.MissedAll(stint.MaxMissed),
		}
		if d.chance(40) {
			p.hour, p.minute = d.IntN(4), []int{0, 1, 15, 30, 59}[d.IntN(5)]
		}
		switch k := d.IntN(100); {
		case k < 2:
			p.hour = -1
		case k < 3:
			p.hour, p.step = -1, 30
		case k < 5:
			p.every = time.Duration(3+d.IntN(40)) * time.Hour
		case k < 7:
			p.every, p.asks = 36*time.Hour, true
		case k < 25:
			p.weekday = d.IntN(7)
		case k < 30:
			p.day = 1 + d.IntN(31)
		}
		if p.hour < 0 {
			p.unique = false // the job of one that died ends an hour later
		}
		if p.unique {
			p.missed = stint.MissedOne
		}
		if d.chance(20) {
			p.missed = []stint.Missed{stint.MissedOne, stint.MissedNone}[d.IntN(2)]
		}
		all = append(all, p)
	}
	return all
}

// yearFunc names the function that schedules ask, which only some engines have.
const yearFunc = "year"

func (p planned) recurrence() cron.Recurrence {
	number := func(n int) string {
		if n < 0 {
			return "*"
		}
		return fmt.Sprint(n)
	}
	switch {
	case p.asks:
		return cron.Function(yearFunc)
	case p.every > 0:
		return cron.Every(p.every)
	case p.step > 0:
		return cron.MustParse(fmt.Sprintf("*/%d * * * *", p.step))
	}
	return cron.MustParse(fmt.Sprintf("%s %s %s * %s", number(p.minute), number(p.hour), number(p.day), number(p.weekday)))
}

// schedule is what engines declare.
func (p planned) schedule(until time.Time) stint.Schedule {
	return stint.Schedule{
		Name: p.name, Recurrence: p.recurrence(), Zone: p.zone, Unique: p.unique, Missed: p.missed, NotAfter: until,
		Job: stint.NewJob{Kind: kinds[0]},
	}
}

// on tells whether it is meant for a date, the number of a day since 1970.
func (p planned) on(day int64) bool {
	if p.weekday >= 0 && int((day+4)%7) != p.weekday {
		return false
	}
	return p.day < 0 || time.Unix(day*86400, 0).UTC().Day() == p.day
}

// walk finds all occurrences of plans behind one instant and up to another, by
// looking at what the clock of each zone shows in each minute: in Unix seconds.
func walk(plans []planned, from, until time.Time) map[string][]int64 {
	all := map[string][]int64{}
	for _, zone := range zones {
		walkZone(all, plans, zone, from, until)
	}
	for _, p := range plans {
		for at := from.Add(p.every); p.every > 0 && !at.After(until); at = at.Add(p.every) {
			all[p.name] = append(all[p.name], at.Unix())
		}
	}
	return all
}

func walkZone(all map[string][]int64, plans []planned, name string, from, until time.Time) {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	var fixed [24 * 60][]planned // by what the clock shows
	var free [60][]planned
	for _, p := range plans {
		switch {
		case p.zone != name || p.every > 0:
		case p.hour >= 0:
			fixed[p.hour*60+p.minute] = append(fixed[p.hour*60+p.minute], p)
		default:
			for m := range 60 {
				if p.step > 0 && m%p.step == 0 || p.step == 0 && (p.minute < 0 || p.minute == m) {
					free[m] = append(free[m], p)
				}
			}
		}
	}
	shows := func(at time.Time) int64 { // in minutes
		_, offset := at.In(zone).Zone()
		return (at.Unix() + int64(offset)) / 60
	}
	add := func(p planned, day int64, at time.Time) {
		if list := all[p.name]; p.on(day) && (len(list) == 0 || list[len(list)-1] != at.Unix()) {
			all[p.name] = append(list, at.Unix())
		}
	}
	seen := shows(from) // the latest that the clock has shown
	for at := from.Truncate(time.Minute).Add(time.Minute); !at.After(until); at = at.Add(time.Minute) {
		now := shows(at)
		for ; seen < now; seen++ { // more than one where it jumps, none where it repeats
			for _, p := range fixed[(seen+1)%(24*60)] {
				add(p, (seen+1)/(24*60), at)
			}
		}
		for _, p := range free[now%60] {
			add(p, now/(24*60), at)
		}
	}
}
