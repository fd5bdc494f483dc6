package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/store"
)

func (p *process) DeclareSchedules(ctx context.Context, by string, schedules []stint.Schedule) error {
	_, _, err := call(ctx, p, opDeclare, func(ctx context.Context) (none, error) {
		defer p.w.calendar.during(&p.w.calendar.declared)()
		err := p.store.DeclareSchedules(ctx, by, schedules)
		p.w.note(p.name, nil, "declare %d schedules, %q the first: %v", len(schedules), schedules[0].Recurrence, err)
		return none{}, err
	})
	return err
}

// FireSchedules implements [store.Scheduler]. What was read may be out of date when
// it is planned, or what is planned when it is carried out.
func (p *process) FireSchedules(ctx context.Context, f store.FireRequest, plan store.PlanFunc) (store.FireResult, error) {
	fired, _, err := callWith(ctx, p, opFire, func(ctx context.Context, how fate) (store.FireResult, error) {
		d, slow := roll(p.w.seed.N, p.name+"plan", how.n), !p.w.over.Load()
		fired, err := p.store.FireSchedules(ctx, f, func(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			if slow && d.chance(15) {
				time.Sleep(d.between(0, 2*time.Second)) // nothing is locked
			}
			slow = false
			return plan(s, now)
		})
		if fired.Moved > 0 || err != nil {
			p.w.note(p.name, nil, "fire schedules: %+v, %v", fired, err)
		}
		return fired, err
	})
	return fired, err
}

func (p *process) Schedules(ctx context.Context) ([]store.ScheduleInfo, error) {
	return ask(ctx, p, opFind, p.store.Schedules)
}

func (p *process) Schedule(ctx context.Context, name string) (*store.ScheduleInfo, error) {
	return ask(ctx, p, opFind, func(ctx context.Context) (*store.ScheduleInfo, error) { return p.store.Schedule(ctx, name) })
}

func (p *process) PauseSchedule(ctx context.Context, name, by, why string) (bool, error) {
	return ask(ctx, p, opKeep, func(ctx context.Context) (bool, error) {
		news, err := p.store.PauseSchedule(ctx, name, by, why)
		p.w.note(p.name, nil, "pause the schedule %s: %v, %v", name, news, err)
		if news {
			p.w.calendar.tells("paused", name)
		}
		return news, err
	})
}

func (p *process) ResumeSchedule(ctx context.Context, name string) (bool, error) {
	return ask(ctx, p, opKeep, func(ctx context.Context) (bool, error) {
		defer p.w.calendar.during(&p.w.calendar.resumed)()
		news, err := p.store.ResumeSchedule(ctx, name)
		p.w.note(p.name, nil, "resume the schedule %s: %v, %v", name, news, err)
		if news {
			p.w.calendar.tells("resumed", name)
		}
		return news, err
	})
}

func (p *process) RemoveSchedule(ctx context.Context, name, why string) ([]stint.ID, error) {
	return ask(ctx, p, opKeep, func(ctx context.Context) ([]stint.ID, error) {
		ids, err := p.store.RemoveSchedule(ctx, name, why)
		p.w.cancels.removed(ids)
		p.w.note(p.name, numbers(ids), "remove the schedule %s: %v, %v", name, ids, err)
		if err == nil {
			p.w.calendar.tells("removed", name)
		}
		return ids, err
	})
}

func (p *process) RunSchedule(ctx context.Context, name string) (stint.ID, error) {
	return ask(ctx, p, opRun, func(ctx context.Context) (stint.ID, error) {
		id, err := p.store.RunSchedule(ctx, name)
		p.w.note(p.name, []int64{int64(id)}, "run the schedule %s: %v", name, err)
		if err == nil {
			c := p.w.calendar
			c.mu.Lock()
			c.ids = append(c.ids, id)
			c.mu.Unlock()
		}
		return id, err
	})
}

// keepTime has somebody pause schedules, resume, remove and run them, and declare
// them with other settings.
func (p *process) keepTime(d dice) {
	c := p.w.calendar
	for n := 1; p.w.rest(d.between(0, 20*time.Second)); n++ {
		i, what := d.IntN(len(c.names)), d.IntN(10)
		name := c.names[i]
		p.insist(d, func(ctx context.Context) (bool, error) {
			var err error
			switch {
			case what < 2:
				_, err = p.PauseSchedule(ctx, name, p.name, "")
			case what < 5:
				_, err = p.ResumeSchedule(ctx, name)
			case what < 6:
				_, err = p.RemoveSchedule(ctx, name, "")
			case what < 8:
				_, err = p.RunSchedule(ctx, name)
				return true, err
			default:
				err = p.DeclareSchedules(ctx, p.name, ready(c.schedule(p.w.seed.N, i, n)))
			}
			return true, err
		})
		if what < 2 && p.w.rest(d.between(0, 10*time.Second)) {
			p.insist(d, func(ctx context.Context) (bool, error) {
				_, err := p.ResumeSchedule(ctx, name)
				return true, err
			})
		}
	}
}

func ready(s stint.Schedule) []stint.Schedule {
	s, err := s.Ready(stint.Limits{})
	if err != nil {
		panic(err)
	}
	return []stint.Schedule{s}
}

// settled is how long after the trouble the schedules must have caught up.
const settled = 30 * time.Second

// settle waits until all that is due was fired, as it must be before long, and then
// pauses the schedules, so that there is an end to their jobs.
func (p *process) settle(ctx context.Context) {
	if p == nil {
		return
	}
	for until := time.Now().Add(settled); ; time.Sleep(500 * time.Millisecond) {
		list, err := p.w.real.Schedules(ctx)
		behind := ""
		for i := range list {
			if s := &list[i]; s.State() == "active" && (s.Next.IsZero() || time.Since(s.Next) > time.Second) {
				behind = s.Name
			}
		}
		if err == nil && behind == "" {
			break
		}
		if time.Now().After(until) {
			p.w.wrong("schedule %s: %v after the trouble nobody has fired what is due: %v", behind, settled, err)
			break
		}
	}
	for _, name := range p.w.calendar.names {
		_, err := p.PauseSchedule(ctx, name, p.name, "the end")
		if err != nil {
			p.w.note(p.name, nil, "pause the schedule %s: %v", name, err)
		}
		if errors.Is(err, stint.ErrNoSchedule) {
			p.w.calendar.lack(name)
		}
	}
}

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
