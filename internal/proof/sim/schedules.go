package sim

import (
	"context"
	"errors"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// DeclareSchedules implements [store.Scheduler].
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

// Schedules implements [store.ScheduleKeeper].
func (p *process) Schedules(ctx context.Context) ([]store.ScheduleInfo, error) {
	list, _, err := call(ctx, p, opFind, p.store.Schedules)
	return list, err
}

// Schedule implements [store.ScheduleKeeper].
func (p *process) Schedule(ctx context.Context, name string) (*store.ScheduleInfo, error) {
	info, _, err := call(ctx, p, opFind, func(ctx context.Context) (*store.ScheduleInfo, error) { return p.store.Schedule(ctx, name) })
	return info, err
}

// PauseSchedule implements [store.ScheduleKeeper].
func (p *process) PauseSchedule(ctx context.Context, name, by, why string) (bool, error) {
	news, _, err := call(ctx, p, opKeep, func(ctx context.Context) (bool, error) {
		news, err := p.store.PauseSchedule(ctx, name, by, why)
		p.w.note(p.name, nil, "pause the schedule %s: %v, %v", name, news, err)
		if news {
			p.w.calendar.tells("paused", name)
		}
		return news, err
	})
	return news, err
}

// ResumeSchedule implements [store.ScheduleKeeper].
func (p *process) ResumeSchedule(ctx context.Context, name string) (bool, error) {
	news, _, err := call(ctx, p, opKeep, func(ctx context.Context) (bool, error) {
		defer p.w.calendar.during(&p.w.calendar.resumed)()
		news, err := p.store.ResumeSchedule(ctx, name)
		p.w.note(p.name, nil, "resume the schedule %s: %v, %v", name, news, err)
		if news {
			p.w.calendar.tells("resumed", name)
		}
		return news, err
	})
	return news, err
}

// RemoveSchedule implements [store.ScheduleKeeper].
func (p *process) RemoveSchedule(ctx context.Context, name, why string) ([]stint.ID, error) {
	ids, _, err := call(ctx, p, opKeep, func(ctx context.Context) ([]stint.ID, error) {
		ids, err := p.store.RemoveSchedule(ctx, name, why)
		p.w.cancels.removed(ids)
		p.w.note(p.name, numbers(ids), "remove the schedule %s: %v, %v", name, ids, err)
		if err == nil {
			p.w.calendar.tells("removed", name)
		}
		return ids, err
	})
	return ids, err
}

// RunSchedule implements [store.ScheduleKeeper].
func (p *process) RunSchedule(ctx context.Context, name string) (stint.ID, error) {
	id, _, err := call(ctx, p, opRun, func(ctx context.Context) (stint.ID, error) {
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
	return id, err
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
