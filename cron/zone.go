package cron

import (
	"sync"
	"time"
)

// zones are those that were asked for, by name. The time package reads a file
// each time.
var zones sync.Map // of *time.Location by string

// Zone returns the time zone of a name in the IANA database, such as
// Europe/Berlin; none is UTC. "Local" is refused, for it is another zone on
// another machine. An error wraps [ErrInvalid]: the name is wrong, or this machine
// has no such database and the program does not import time/tzdata.
func Zone(name string) (*time.Location, error) {
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	if name == "Local" {
		return nil, invalid("the time zone Local is another one on each machine; name one, such as Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, invalidf("the time zone %q is not in this machine's database; write for example Europe/Berlin or UTC", name)
	}
	zones.Store(name, zone) // as many as there are zones, at most
	return zone, nil
}

// period is a time during which a zone's clock runs evenly. All its numbers are
// seconds: from and until count since 1970, from inclusive, until exclusive, and
// the clock shows offset more.
type period struct {
	from, until int64
	offset      int64
}

// endless is where the last period of a zone ends.
const endless = 1<<62 - 1

// periodAt returns the period from a second on. It begins there, though the clock
// may have run evenly before, and where it ends it may go on evenly.
func periodAt(second int64, zone *time.Location) period {
	t := time.Unix(second, 0).In(zone)
	_, offset := t.Zone()
	p := period{from: second, until: endless, offset: int64(offset)}
	if _, end := t.ZoneBounds(); !end.IsZero() {
		p.until = end.Unix()
	}
	if p.until <= second {
		// Where a zone goes on by a rule, ZoneBounds also ends a period after 365
		// days of a year. On the last day of a leap year that is in the past.
		p.until += secondsPerDay
	}
	return p
}

// following returns the period that comes after p, which is not the last.
func (p period) following(zone *time.Location) period { return periodAt(p.until, zone) }

// first and end are what the clock shows at either end of the period.
func (p period) first() int64 { return p.from + p.offset }
func (p period) end() int64   { return p.until + p.offset }
