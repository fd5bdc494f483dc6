package cron

import "time"

// next finds the next time by the rule of the package comment. It walks through
// the periods in which the zone's clock runs evenly, with the first match of the
// floating calendar that is still to come.
//
// In a period the clock shows all times from its first to its end, so a match
// among them is there. A match before the first lies in the gap that the clock
// has just jumped over.
func (c calendar) next(after time.Time, zone *time.Location) (time.Time, bool) {
	if after.Before(time.Time{}) {
		after = time.Time{} // the year 1: nothing earlier can be stored either
	}
	if after.Year() > maxYear {
		return time.Time{}, false
	}
	p := periodAt(after.Unix()+1, zone)
	from := p.first()
	if !c.wildcard {
		from = shown(after.Unix(), zone)
	}
	match, ok := c.match(from)
	// A wildcard may always fall into a gap, as "* 2 * 3 SUN#2" does in New York,
	// and a zone's rule for its gaps has no end.
	for limit := from + horizon*secondsPerYear; ok && match < limit; {
		if match < p.end() {
			return time.Unix(max(match-p.offset, p.from), 0).In(zone), true
		}
		p = p.following(zone)
		// A clock that was set back shows again what it has shown: a wildcard
		// happens again, and what is fixed does not. One that was set forward
		// over a match is past it: a wildcard has missed it, and what is fixed
		// is due now.
		if c.wildcard && (p.first() < from || p.first() > match) {
			match, ok = c.match(p.first())
		}
		from = p.first()
	}
	return time.Time{}, false
}

// resume is next: dates do not depend on when the last one was.
func (c calendar) resume(last, now time.Time, zone *time.Location) (time.Time, bool) {
	if last.After(now) {
		now = last
	}
	return c.next(now, zone)
}

// farthest is by how much no clock was ever set back, in seconds. The most was a
// day, where the date line was moved.
const farthest = 2 * secondsPerDay

// shown returns the first time that a zone's clock has never shown up to and
// including a second: usually the one after what it shows, and later while it
// repeats what it has shown before.
func shown(second int64, zone *time.Location) int64 {
	var latest int64
	p := periodAt(second-farthest, zone)
	for latest = p.first(); p.until <= second; {
		latest = max(latest, p.end())
		p = p.following(zone)
	}
	return max(latest, second+p.offset+1)
}
