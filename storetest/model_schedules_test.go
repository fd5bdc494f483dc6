package storetest_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

func micros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func (m *model) DeclareSchedules(ctx context.Context, by string, schedules []stint.Schedule) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := micros(time.Now())
	for _, s := range schedules {
		if m.is("forgets the bounds of schedules") {
			s.NotBefore, s.NotAfter = time.Time{}, time.Time{}
		}
		text, err := store.TextsOf(s)
		if err != nil {
			return err
		}
		old, there := m.schedules[s.Name]
		if !there || m.is("declares anew") {
			old = &store.ScheduleInfo{Created: now, After: now, Revision: rand.Int64()}
			if m.is("counts anew") {
				old.Revision = 1
			}
		}
		info := *old
		info.Schedule, info.Declared, info.By = s, now, by
		sameTimes := old.Stored.Recurrence == text.Recurrence && old.Zone == s.Zone && old.NotBefore.Equal(s.NotBefore) && old.NotAfter.Equal(s.NotAfter)
		if m.is("looks at the recurrence only") {
			sameTimes = old.Stored.Recurrence == text.Recurrence
		}
		if there && (!sameTimes || m.is("forgets what comes next")) {
			info.Next, info.Ended, info.After = time.Time{}, time.Time{}, laterOf(old.After, now)
		}
		if there && (!sameTimes || string(old.Stored.Job) != string(text.Job) || old.Unique != s.Unique || old.Missed != s.Missed) || m.is("counts each declaration") {
			info.Revision++
		}
		if m.is("resumes what is declared") {
			info.Paused = time.Time{}
		}
		info.Read(text)
		m.schedules[s.Name] = &info
	}
	if !m.is("does not ring for declarations") {
		m.ring()
	}
	return nil
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (m *model) FireSchedules(ctx context.Context, f store.FireRequest, plan store.PlanFunc) (store.FireResult, error) {
	fired := store.FireResult{Next: -1}
	if err := ctx.Err(); err != nil && !m.is("fires without a context") {
		return fired, err
	}
	now, due := m.due(f)
	if len(due) == 0 {
		return fired, nil
	}
	if wait := due[0].Next.Sub(now); !f.OnlyNew && !due[0].Next.IsZero() && wait > 0 {
		fired.Next = wait
		return fired, nil
	}
	turn := store.NewFireBatch(due, now, plan)
	fired.Next, fired.Problems = 0, turn.Problems
	if m.is("keeps quiet about problems") {
		fired.Problems = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range turn.Plans {
		if moved, jobs, _ := m.move(p, true); moved {
			fired.Moved++
			fired.Jobs = append(fired.Jobs, jobs...)
		}
	}
	if len(fired.Jobs) > 0 && !m.is("does not ring for occurrences") {
		m.ring()
	}
	return fired, nil
}

// due lists copies of what is to be looked at next.
func (m *model) due(f store.FireRequest) (time.Time, []store.ScheduleInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var due []store.ScheduleInfo
	for _, s := range m.schedules {
		switch name, isFunc := s.Recurrence.Func(); {
		case !s.Paused.IsZero() && !m.is("fires what is paused"), !s.Ended.IsZero() && !m.is("fires what has ended"):
		case f.OnlyNew && !s.Next.IsZero() && !m.is("plans what is old"):
		case isFunc && !slices.Contains(f.Functions, name) && !m.is("asks for any function"):
		case slices.Contains(f.Except, s.Name) && !m.is("passes over nothing"):
		default:
			due = append(due, *s)
		}
	}
	slices.SortFunc(due, func(a, b store.ScheduleInfo) int {
		return cmp.Or(a.Next.Compare(b.Next), cmp.Compare(a.Name, b.Name))
	})
	now := micros(time.Now())
	if m.is("fires early") {
		now = now.Add(time.Hour)
	}
	return now, due[:min(len(due), f.Limit)]
}

// move carries a plan out.
func (d *database) move(p store.FirePlan, skips bool) (moved bool, jobs []store.FiredJob, busy bool) {
	s := d.schedules[p.Schedule.Name]
	if s == nil || s.Revision != p.Schedule.Revision && !d.is("believes what it read") {
		return false, nil, false
	}
	busy = s.Unique && !d.is("lets all overlap") && d.notEnded(s.LastJob)
	for _, at := range p.Occurrences {
		switch {
		case busy && skips:
			s.Skipped++
		case busy:
		case d.occurred(s.Name, at) && !d.is("doubles occurrences"):
		default:
			jobs = append(jobs, d.makeJob(s, at))
		}
	}
	s.Revision++
	s.After, s.Next = p.After, p.Next
	if p.Ended && s.Ended.IsZero() {
		s.Ended = micros(time.Now())
	}
	if s.Passed += int64(p.Passed); p.Passed > 0 || d.is("tells each firing for one that missed") {
		s.PassedAt = micros(time.Now())
	}
	s.Skipped += int64(p.Skipped)
	return true, jobs, busy
}

// notEnded tells whether a job has not ended.
func (d *database) notEnded(id stint.ID) bool {
	for _, j := range d.all() {
		if j.ID == id {
			return !j.State.Final() && !(d.is("lets retries overlap") && j.State == stint.Retrying)
		}
	}
	return false
}

func (d *database) occurred(schedule string, at time.Time) bool {
	return !at.IsZero() && slices.ContainsFunc(d.rows, func(r *row) bool {
		return r.job != nil && r.origin.Schedule == schedule && r.origin.Occurrence.Equal(at)
	})
}

func (d *database) makeJob(s *store.ScheduleInfo, at time.Time) store.FiredJob {
	now, num := time.Now(), d.draw()
	job := s.Job
	due := at
	if at.IsZero() || d.is("makes jobs that are due now") {
		due = micros(now)
	}
	job.StartBy, job.StartWithin = d.startBy(&job, now, due), 0
	s.Fired++
	s.LastJob = stint.ID(num)
	if !at.IsZero() {
		s.LastOccurrence = at
	}
	r := &row{num: num, job: &job, id: stint.ID(num), made: now, due: due, origin: stint.Origin{Schedule: s.Name, Nth: s.Fired, Occurrence: at}}
	if d.is("forgets the number") {
		r.origin.Nth = 0
	}
	d.addJob(r)
	d.append(nil, r, num, now, store.Next{Kind: job.Kind, Queue: job.Queue, Priority: job.Priority, Attempt: 1, Part: store.PartNormal})
	return store.FiredJob{Schedule: s.Name, Occurrence: at, ID: stint.ID(num)}
}

func (m *model) Schedules(context.Context) ([]store.ScheduleInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []store.ScheduleInfo
	for _, name := range slices.Sorted(maps.Keys(m.schedules)) {
		list = append(list, *m.schedules[name])
	}
	return list, nil
}

func (m *model) Schedule(_ context.Context, name string) (*store.ScheduleInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.named(name)
}

func (d *database) named(name string) (*store.ScheduleInfo, error) {
	s := d.schedules[name]
	if s == nil {
		return nil, fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	}
	copied := *s
	return &copied, nil
}

func (m *model) PauseSchedule(_ context.Context, name, by, why string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.named(name); err != nil {
		return false, err
	}
	s := m.schedules[name]
	if !s.Paused.IsZero() && !m.is("pauses schedules anew") {
		return false, nil
	}
	s.Paused, s.PausedBy, s.PausedWhy = micros(time.Now()), valid.CleanText(by, 255), valid.CleanText(why, 1<<10)
	s.Revision++
	m.ring()
	return true, nil
}

func (m *model) ResumeSchedule(_ context.Context, name string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.named(name); err != nil {
		return false, err
	}
	s := m.schedules[name]
	if s.Paused.IsZero() {
		return false, nil
	}
	s.Paused, s.PausedBy, s.PausedWhy = time.Time{}, "", ""
	if !m.is("makes up for the pause") {
		s.Next, s.After = time.Time{}, laterOf(s.After, micros(time.Now()))
	}
	s.Revision++
	m.ring()
	return true, nil
}

func (m *model) RemoveSchedule(ctx context.Context, name, why string) ([]stint.ID, error) {
	m.mu.Lock()
	if _, err := m.named(name); err != nil {
		m.mu.Unlock()
		return nil, err
	}
	delete(m.schedules, name)
	var pending []stint.ID
	for _, j := range m.all() {
		begun := j.State == stint.Running && !m.is("cancels what runs with its schedule")
		if j.Origin.Schedule == name && !j.State.Final() && !begun && !m.is("leaves jobs of what is removed") {
			pending = append(pending, j.ID)
		}
	}
	m.ring()
	m.mu.Unlock()
	slices.Sort(pending)
	_, err := m.Cancel(ctx, pending, why)
	return pending, err
}

func (m *model) RunSchedule(ctx context.Context, name string) (stint.ID, error) {
	get := func() (*store.ScheduleInfo, error) { return m.Schedule(ctx, name) }
	return store.RunSchedule(ctx, get, func(turn store.FireBatch) (moved bool, id stint.ID, busy bool, err error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		p := turn.Plans[0]
		if m.is("runs the next occurrence out of turn") {
			p.Occurrences = []time.Time{p.Next}
		}
		moved, jobs, busy := m.move(p, m.is("counts who is busy"))
		if len(jobs) > 0 {
			id = jobs[0].ID
			m.ring()
		}
		return moved, id, busy, nil
	})
}
