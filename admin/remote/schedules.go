package remote

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/api"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/cron"
)

// Schedules implements [stint.ScheduleKeeper]. What is not told is zero: the instant
// After, and the Revision.
func (s *Store) Schedules(ctx context.Context) ([]stint.ScheduleInfo, error) {
	told, err := ask[[]api.Schedule](ctx, s, request{method: "GET", path: path("schedules")})
	if err != nil {
		return nil, err
	}
	var all []stint.ScheduleInfo
	for _, t := range told {
		all = append(all, *scheduleOf(t))
	}
	return all, nil
}

// Schedule implements [stint.ScheduleKeeper], as [Store.Schedules] does.
func (s *Store) Schedule(ctx context.Context, name string) (*stint.ScheduleInfo, error) {
	shown, err := s.ShowSchedule(ctx, name)
	return shown.Schedule, err
}

// ShowSchedule finds a schedule with what comes next of it by the server's
// reckoning, and what it made last.
func (s *Store) ShowSchedule(ctx context.Context, name string) (view.Schedule, error) {
	t, err := askSchedule[struct {
		Schedule api.Schedule    `json:"schedule"`
		Upcoming []time.Time     `json:"upcoming"`
		Jobs     []stint.JobInfo `json:"jobs"`
		Problem  string          `json:"problem"`
	}](ctx, s, request{method: "GET"}, name)
	if err != nil {
		return view.Schedule{}, err
	}
	shown := view.Schedule{Schedule: scheduleOf(t.Schedule), Upcoming: t.Upcoming, Jobs: t.Jobs}
	switch function := shown.Schedule.Stored.Function; {
	case function != "" && strings.Contains(t.Problem, cron.ErrUnknownFunc.Error()):
		shown.Problem = &cron.UnknownFuncError{Name: function}
	case t.Problem != "":
		shown.Problem = errors.New(t.Problem)
	}
	return shown, nil
}

// scheduleOf is a schedule as the language has it.
func scheduleOf(t api.Schedule) *stint.ScheduleInfo {
	info := &stint.ScheduleInfo{
		Schedule: stint.Schedule{Name: t.Name, Zone: t.Zone, Unique: t.Unique, NotBefore: t.NotBefore, NotAfter: t.NotAfter},
		Created:  t.Created, Declared: t.Declared, By: t.By, Next: t.Next, Ended: t.Ended,
		Paused: t.Paused, PausedBy: t.PausedBy, PausedWhy: t.PausedWhy,
		Fired: t.Fired, Skipped: t.Skipped, Passed: t.Passed, LastOccurrence: t.LastOccurrence, LastJob: t.LastJob,
	}
	info.Read(stint.ScheduleTexts{Recurrence: t.Recurrence, Missed: t.Missed, Job: t.Job})
	info.Stored.Function, _ = info.Recurrence.Func()
	return info
}

// Declare declares a schedule as [stint.Client.Schedule] does, but that the server
// keeps who asks by the token.
func (s *Store) Declare(ctx context.Context, _ string, schedule stint.Schedule) error {
	ready, err := stint.ReadySchedules([]stint.Schedule{schedule}, stint.Limits{})
	if err != nil {
		return err
	}
	d := ready[0]
	_, err = askSchedule[api.Schedule](ctx, s, request{method: "PUT", body: api.NewSchedule{
		Recurrence: d.Recurrence.String(), Zone: d.Zone, Job: newJob(d.Job), Unique: d.Unique, Missed: d.Missed.String(),
		NotBefore: d.NotBefore, NotAfter: d.NotAfter, Force: true, Exact: true,
	}}, d.Name)
	return err
}

// PauseSchedule implements [stint.ScheduleKeeper], but that the server keeps who asks by
// the token.
func (s *Store) PauseSchedule(ctx context.Context, name, _, why string) (bool, error) {
	c, err := askSchedule[api.Changed](ctx, s, request{method: "POST", body: api.Why{Why: why}}, name, "pause")
	return c.Changed, err
}

// ResumeSchedule implements [stint.ScheduleKeeper]. The server finds when the schedule
// fires next, if it can.
func (s *Store) ResumeSchedule(ctx context.Context, name string) (bool, error) {
	c, err := askSchedule[api.Changed](ctx, s, request{method: "POST"}, name, "resume")
	return c.Changed, err
}

// RemoveSchedule implements [stint.ScheduleKeeper].
func (s *Store) RemoveSchedule(ctx context.Context, name, why string) ([]stint.ID, error) {
	q := url.Values{}
	set(q, "why", why)
	return askSchedule[[]stint.ID](ctx, s, request{method: "DELETE", query: q}, name)
}

// RunSchedule implements [stint.ScheduleKeeper].
func (s *Store) RunSchedule(ctx context.Context, name string) (stint.ID, error) {
	r, err := askSchedule[stint.Receipt](ctx, s, request{method: "POST"}, name, "run")
	return r.ID, err
}

// askSchedule asks about a schedule. There is none of what cannot be a name.
func askSchedule[T any](ctx context.Context, s *Store, r request, name string, then ...string) (T, error) {
	if stint.CheckName("schedule", name) != nil {
		var none T
		return none, fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	}
	r.path = path(append([]string{"schedules", name}, then...)...)
	return ask[T](ctx, s, r)
}
