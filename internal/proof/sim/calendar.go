package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
)

// calendar are the schedules of a seed, and what people did to them.
type calendar struct {
	names []string
	dawn  time.Time // when it all began
	jump  *jump     // of a clock meanwhile; nil for none

	mu       sync.Mutex
	declared []span // calls that declare
	resumed  []span // calls that resume
	told     map[string]int
	ids      []stint.ID // what people were told that they had run

	// gone are those that were not there when they were to be paused in the end:
	// who joins later declares them again.
	gone map[string]bool
}

// span is the time that a call takes in the store.
type span struct{ from, to time.Time }

// jump is a moment at which a clock jumps, and a time of that night.
type jump struct {
	at   string
	zone string
	text string // what comes once in spite of it
}

// jumps are forward and back, by an hour and by half of one, and at odd times.
var jumps = []jump{
	{"2000-03-26T01:00:00Z", "Europe/Berlin", "30 2 * * *"},
	{"2000-10-29T01:00:00Z", "Europe/Berlin", "0 2 * * *"},
	{"2000-04-02T07:00:00Z", "America/New_York", "15 2 * * *"},
	{"2000-08-26T15:30:00Z", "Australia/Lord_Howe", "15 2 * * *"},
	{"2000-04-02T03:31:00Z", "America/St_Johns", "30 0 * * *"},
	{"2000-10-08T03:00:00Z", "America/Sao_Paulo", "0 0 * * *"},
}

// zones are those of the year 2000 that are odd: gaps of an hour, of half an
// hour, at midnight and a minute after it, north and south, at odd offsets, and
// none.
var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Santiago", "Asia/Amman",
	"Asia/Beirut", "Asia/Kathmandu", "Asia/Tehran", "Australia/Lord_Howe", "Pacific/Chatham", "Africa/Cairo",
}

// calendars is in how many of 100 seeds there are schedules: they nearly double
// what a seed costs.
const calendars = 12

func newCalendar(seed Seed) *calendar {
	d := roll(seed.N, "calendar", 0)
	if seed.Age >= Single || !d.chance(calendars) {
		return nil
	}
	c := &calendar{told: map[string]int{}, dawn: time.Now()}
	for i := range 3 + d.IntN(3) {
		c.names = append(c.names, fmt.Sprintf("s%d", i))
	}
	if d.chance(50) {
		c.jump = &jumps[d.IntN(len(jumps))]
	}
	return c
}

// daybreak is when a seed begins: often just before a clock jumps.
func daybreak(seed Seed) time.Time {
	c := newCalendar(seed)
	if c == nil || c.jump == nil {
		return time.Now()
	}
	at, err := time.Parse(time.RFC3339, c.jump.at)
	if err != nil {
		panic(err)
	}
	return at.Add(-roll(seed.N, "daybreak", 0).between(0, troubled*3/4))
}

const (
	// tickPrefix begins the keys of the jobs of schedules.
	tickPrefix = "~"

	// beat is a recurrence function, which only some engines have.
	beat     = "beat"
	beatStep = 6 * time.Second
)

// ticks tells whether a schedule made the job, or one that does it again.
func (t *told) ticks() bool { return strings.HasPrefix(t.Key, tickPrefix) }

func beats(after time.Time, _ *time.Location) (time.Time, bool) { return after.Add(beatStep), true }

// schedule is one of them, in one of the ways in which it can be declared: number
// 0 is what engines say, the others are what people make of it.
func (c *calendar) schedule(seed uint64, i, number int) stint.Schedule {
	fixed, d := roll(seed, "schedule", i), roll(seed, c.names[i], number)
	// Those of the function fire late, while the few engines that have it are away.
	job, a := drawPlain(fixed, tickPrefix+c.names[i])
	a.Kill, a.Naps, job.Delay, job.Timeout = 0, 0, 0, 0
	a.Work = min(a.Work, 4*time.Second)
	job.Args, _ = json.Marshal(a)
	s := stint.Schedule{Name: c.names[i], Job: job, Unique: fixed.chance(40), Missed: missing(fixed)}
	s.Recurrence, s.Zone = cron.Every(fixed.between(10*time.Second, 40*time.Second).Truncate(time.Millisecond)), "UTC"
	switch k := fixed.IntN(5); {
	case i == 0:
		s.Recurrence, s.Zone = cron.MustParse("* * * * *"), zones[fixed.IntN(len(zones))]
	case i == 1 && c.jump != nil:
		s.Recurrence, s.Zone = cron.MustParse(c.jump.text), c.jump.zone
	case i == 2 || k == 0:
		s.Recurrence = cron.Function(beat)
	}
	if number > 0 {
		switch d.IntN(4) {
		case 0:
			s.Unique = !s.Unique
		case 1:
			s.Missed = missing(d)
		case 2:
			s.Recurrence = cron.Every(d.between(5*time.Second, 30*time.Second).Truncate(time.Millisecond))
		default:
			s.Zone = zones[d.IntN(len(zones))]
		}
	}
	return s
}

func missing(d dice) stint.Missed {
	return []stint.Missed{stint.MissedOne, stint.MissedNone, stint.MissedOne, stint.MissedAll(2)}[d.IntN(4)]
}

// declare has the engines of a machine declare all of them.
func (m *machine) declare(mux *stint.Mux) {
	c := m.w.calendar
	if c == nil {
		return
	}
	var all []stint.Schedule
	for i := range c.names {
		all = append(all, c.schedule(m.w.seed.N, i, 0))
	}
	mux.Schedule(all...)
	if m.number == 0 || roll(m.w.seed.N, "machine beats", m.number).chance(15) {
		mux.Recurrence(beat, beats)
	}
}

// during notes a call, until the function is called that it returns.
func (c *calendar) during(list *[]span) (ended func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, from := len(*list), time.Now()
	*list = append(*list, span{from, from.Add(limit)})
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		(*list)[i].to = time.Now()
	}
}

// tells notes what somebody was told that was done.
func (c *calendar) tells(what, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told[what+" "+name]++
}

// lack notes that a schedule was not there to be paused.
func (c *calendar) lack(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		c.gone = map[string]bool{}
	}
	c.gone[name] = true
}
