package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/cron"
)

func (a *api) schedules() {
	register(a, operation{
		method: http.MethodGet, path: "/schedules", id: "list-schedules", tag: "schedules", summary: "List the schedules with when they fire next",
	}, a.listSchedules)
	register(a, operation{
		method: http.MethodGet, path: "/schedules/{schedule}", id: "show-schedule", tag: "schedules", summary: "Show a schedule with what comes next and what it made",
	}, a.showSchedule)
	register(a, operation{
		method: http.MethodPut, path: "/schedules/{schedule}", id: "declare-schedule", needs: guard.Operator, tag: "schedules", summary: "Declare a schedule",
		description: "One that is there is changed, and keeps its counters, its pause and its next occurrence, unless it recurs otherwise.",
	}, a.declareSchedule)
	register(a, operation{
		method: http.MethodDelete, path: "/schedules/{schedule}", id: "remove-schedule", needs: guard.Operator, tag: "schedules", summary: "Forget a schedule, and cancel what has not begun of it",
		description: "The answer are the jobs that were cancelled. What runs goes on.",
	}, a.removeSchedule)
	register(a, operation{
		method: http.MethodPost, path: "/schedules/{schedule}/pause", id: "pause-schedule", needs: guard.Operator, tag: "schedules", summary: "Let nothing of a schedule be fired",
	}, a.pauseSchedule)
	register(a, operation{
		method: http.MethodPost, path: "/schedules/{schedule}/resume", id: "resume-schedule", needs: guard.Operator, tag: "schedules", summary: "Let a paused schedule fire again, from now on",
	}, a.resumeSchedule)
	register(a, operation{
		method: http.MethodPost, path: "/schedules/{schedule}/run", id: "run-schedule", needs: guard.Operator, tag: "schedules", summary: "Make a job of a schedule now, out of turn", status: http.StatusCreated,
	}, a.runSchedule)
}

// ScheduleName is where a schedule's name stands.
type ScheduleName struct {
	Schedule string `path:"schedule" maxLength:"255"`
}

func (a *api) listSchedules(ctx context.Context, _ *struct{}) (*answer[[]stint.ScheduleInfo], error) {
	all, err := a.store.Schedules(ctx)
	return list(a.seenSchedules(ctx, all), err)
}

// ShownSchedule is a schedule with what comes next of it, and what it made last.
type ShownSchedule struct {
	view.Schedule
	Problem string `json:"problem,omitempty" doc:"Why nobody here can tell what comes next"`
}

func (a *api) showSchedule(ctx context.Context, in *ScheduleName) (*answer[ShownSchedule], error) {
	s, err := view.ScheduleOf(ctx, a.store, in.Schedule)
	if err != nil {
		return nil, err
	}
	shown := ShownSchedule{Schedule: s}
	shown.Schedule.Schedule, shown.Jobs = &a.seenSchedules(ctx, []stint.ScheduleInfo{*s.Schedule})[0], a.seen(ctx, s.Jobs)
	if s.Problem != nil {
		shown.Problem = s.Problem.Error()
	}
	return &answer[ShownSchedule]{shown}, nil
}

// NewSchedule is a schedule to be declared.
type NewSchedule struct {
	Recurrence string    `json:"recurrence" doc:"When: 30 2 * * MON-FRI, @daily, every 5m, function:name" minLength:"1"`
	Zone       string    `json:"zone,omitempty" doc:"The time zone whose clock that is about, such as Europe/Berlin; UTC unless given"`
	Job        NewJob    `json:"job" doc:"What is made. It has no time and no key of its own"`
	Unique     bool      `json:"unique,omitempty" doc:"Skip an occurrence while the job of the one before has not ended"`
	Missed     string    `json:"missed,omitempty" doc:"What runs of the occurrences that were missed: one, all:100, none"`
	NotBefore  time.Time `json:"not_before,omitzero"`
	NotAfter   time.Time `json:"not_after,omitzero"`
	Force      bool      `json:"force,omitempty" doc:"Also of a kind that no engine ever declared"`
	Exact      bool      `json:"exact,omitempty" doc:"What the job does not say is the default, whatever its kind's declaration says"`
}

func (n *NewSchedule) schedule(name string, job stint.NewJob) (stint.Schedule, error) {
	s := stint.Schedule{Name: name, Zone: n.Zone, Job: job, Unique: n.Unique, NotBefore: n.NotBefore, NotAfter: n.NotAfter}
	var err error
	if s.Recurrence, err = cron.Parse(n.Recurrence); err != nil {
		return s, stint.Invalid("recurrence", "%s", strings.TrimPrefix(err.Error(), "cron: "))
	}
	if n.Missed != "" {
		if s.Missed, err = stint.ParseMissed(n.Missed); err != nil {
			return s, stint.Invalid("missed", "%v", err)
		}
	}
	return s, s.Check(stint.Limits{})
}

func (a *api) declareSchedule(ctx context.Context, in *struct {
	ScheduleName
	Body NewSchedule
}) (*answer[*stint.ScheduleInfo], error) {
	if err := stint.CheckName("schedule", in.Schedule); err != nil {
		return nil, &at{"path", err}
	}
	declare, err := a.declarations(ctx, in.Body.Force, in.Body.Exact)
	if err != nil {
		return nil, err
	}
	job, err := declare(&in.Body.Job, "body.job")
	if err != nil {
		return nil, err
	}
	s, err := in.Body.schedule(in.Schedule, job)
	if err != nil {
		return nil, err
	}
	if err := a.client.Schedule(ctx, by(ctx)+"@api", s); err != nil { // with an @, as people do: programs do without
		return nil, err
	}
	info, err := a.store.Schedule(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	return &answer[*stint.ScheduleInfo]{info}, nil
}

func (a *api) removeSchedule(ctx context.Context, in *struct {
	ScheduleName
	Why string `query:"why" maxLength:"1000" doc:"The reason that is kept with the jobs"`
}) (*answer[[]stint.ID], error) {
	return list(a.store.RemoveSchedule(ctx, in.Schedule, in.Why))
}

func (a *api) pauseSchedule(ctx context.Context, in *struct {
	ScheduleName
	Body Why
}) (*answer[Changed], error) {
	return changed(a.store.PauseSchedule(ctx, in.Schedule, by(ctx), in.Body.Why))
}

func (a *api) resumeSchedule(ctx context.Context, in *ScheduleName) (*answer[Changed], error) {
	return changed(view.ResumeSchedule(ctx, a.store, in.Schedule))
}

func (a *api) runSchedule(ctx context.Context, in *ScheduleName) (*answer[stint.Receipt], error) {
	id, err := a.store.RunSchedule(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	return &answer[stint.Receipt]{stint.Receipt{ID: id}}, nil
}

// Schedule is how a [stint.ScheduleInfo] is written.
type Schedule struct {
	Name           string          `json:"name"`
	Recurrence     string          `json:"recurrence" doc:"When, as it was declared: 30 2 * * *, every 5m, function:name"`
	Words          string          `json:"words,omitempty" doc:"The same in words"`
	Zone           string          `json:"zone"`
	Job            json.RawMessage `json:"job" doc:"What is made, without what is the default"`
	Unique         bool            `json:"unique,omitempty"`
	Missed         string          `json:"missed"`
	NotBefore      time.Time       `json:"not_before,omitzero"`
	NotAfter       time.Time       `json:"not_after,omitzero"`
	State          string          `json:"state" enum:"active,paused,ended"`
	Next           time.Time       `json:"next,omitzero" doc:"When it fires next; absent when that is not known yet, or never"`
	Ended          time.Time       `json:"ended,omitzero"`
	Paused         time.Time       `json:"paused,omitzero" doc:"Since when"`
	PausedBy       string          `json:"paused_by,omitempty"`
	PausedWhy      string          `json:"paused_why,omitempty"`
	Fired          int64           `json:"fired" doc:"How many jobs it has made"`
	Skipped        int64           `json:"skipped" doc:"How many occurrences were not fired since it is unique"`
	Passed         int64           `json:"missed_occurrences" doc:"How many occurrences were missed and not made up for"`
	LastOccurrence time.Time       `json:"last_occurrence,omitzero"`
	LastJob        stint.ID        `json:"last_job,omitempty"`
	Created        time.Time       `json:"created"`
	Declared       time.Time       `json:"declared"`
	By             string          `json:"by,omitempty" doc:"Who declared it last"`
	Problem        string          `json:"problem,omitempty" doc:"What this program cannot read of it"`
}
