package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// ScheduleName is where a schedule's name stands.
type ScheduleName struct {
	Schedule string `path:"schedule" maxLength:"255"`
}

// check finds what can be no name: there is no such schedule.
func (s ScheduleName) check() error {
	if valid.Name("schedule", s.Schedule) != nil {
		return fmt.Errorf("%w: %q", stint.ErrNoSchedule, s.Schedule)
	}
	return nil
}

// said says what came of pausing and resuming it.
func (s ScheduleName) said(c Changed, is, was string) string {
	return "schedule " + words.Visible(s.Schedule) + " " + c.either(is, was)
}

// ScheduleWhy is a schedule, and why something is done to it.
type ScheduleWhy struct {
	ScheduleName
	Body Why
}

// ListSchedules lists the schedules.
var ListSchedules = declare(&Op[None, List[store.ScheduleInfo]]{
	Decl: Decl{Name: "schedules list", Method: http.MethodGet, Path: "/schedules", Summary: "List the schedules with when they fire next"},
	do: func(ctx context.Context, l *Local, _ *None) (List[store.ScheduleInfo], error) {
		all, err := l.Store.Schedules(ctx)
		return listed(l.seenSchedules(ctx, all), err)
	},
})

// ShownSchedule is a schedule with what comes next of it, and what it made last.
type ShownSchedule struct {
	view.Schedule
	Problem string `json:"problem,omitempty" doc:"Why nobody here can tell what comes next"`
}

// Shown is the schedule as it was shown, with an error of package cron where that is
// the problem.
func (s ShownSchedule) Shown() view.Schedule {
	shown := s.Schedule
	switch function := shown.Schedule.Stored.Function; {
	case function != "" && strings.Contains(s.Problem, cron.ErrUnknownFunc.Error()):
		shown.Problem = &cron.UnknownFuncError{Name: function}
	case s.Problem != "":
		shown.Problem = errors.New(s.Problem)
	}
	return shown
}

// ShowSchedule shows one, or is [stint.ErrNoSchedule].
var ShowSchedule = declare(&Op[ScheduleName, ShownSchedule]{
	Decl: Decl{Name: "schedules show", Method: http.MethodGet, Path: "/schedules/{schedule}", Summary: "Show a schedule with what comes next and what it made"},
	do: func(ctx context.Context, l *Local, in *ScheduleName) (ShownSchedule, error) {
		s, err := view.ScheduleOf(ctx, l.Store, in.Schedule)
		if err != nil {
			return ShownSchedule{}, err
		}
		shown := ShownSchedule{Schedule: s}
		shown.Schedule.Schedule, shown.Jobs = &l.seenSchedules(ctx, []store.ScheduleInfo{*s.Schedule})[0], l.seen(ctx, s.Jobs)
		if s.Problem != nil {
			shown.Problem = s.Problem.Error()
		}
		return shown, nil
	},
})

// NewSchedule is a schedule to be declared.
type NewSchedule struct {
	Recurrence string    `json:"recurrence" doc:"When: 30 2 * * MON-FRI, @daily, every 5m, function:name" minLength:"1"`
	Zone       string    `json:"zone,omitempty" doc:"The time zone whose clock that is about, such as Europe/Berlin; UTC unless given"`
	Job        NewJob    `json:"job" doc:"What is made. It has no time and no key of its own"`
	Unique     bool      `json:"unique,omitempty" doc:"Skip an occurrence while the job of the one before has not ended"`
	Missed     string    `json:"missed,omitempty" doc:"What runs of the occurrences that were missed: one, all:100, none"`
	NotBefore  time.Time `json:"not_before,omitzero"`
	NotAfter   time.Time `json:"not_after,omitzero"`
	Force      bool      `json:"force,omitempty" doc:"Also of a kind that no engine ever declared, and with arguments that its handler refuses"`
	Exact      bool      `json:"exact,omitempty" doc:"What the job does not say is the default, whatever its kind's declaration says"`
	ScheduleStatus
}

// details are those of the declaration.
func (n NewSchedule) details() any {
	n.ScheduleStatus = ScheduleStatus{}
	return n
}

func (n *NewSchedule) schedule(name string, job stint.NewJob) (stint.Schedule, error) {
	s := stint.Schedule{Name: name, Zone: n.Zone, Job: job, Unique: n.Unique, NotBefore: n.NotBefore, NotAfter: n.NotAfter}
	var err error
	if s.Recurrence, err = cron.Parse(n.Recurrence); err != nil {
		return s, valid.Invalid("recurrence", "%s", strings.TrimPrefix(err.Error(), "cron: "))
	}
	if n.Missed != "" {
		if err = s.Missed.UnmarshalText([]byte(n.Missed)); err != nil {
			return s, valid.Invalid("missed", "%v", err)
		}
	}
	return s, s.Check(stint.Limits{})
}

// ScheduleInput is a schedule to be declared, and its name.
type ScheduleInput struct {
	ScheduleName
	Body NewSchedule
}

// ExactSchedule is a schedule as a request has it that declares it exactly so, or what is
// wrong with it.
func ExactSchedule(s stint.Schedule) (ScheduleInput, error) {
	d, err := s.Ready(stint.Limits{})
	if err != nil {
		return ScheduleInput{}, err
	}
	job, err := ExactJob(d.Job)
	return ScheduleInput{ScheduleName{d.Name}, NewSchedule{
		Recurrence: d.Recurrence.String(), Zone: d.Zone, Job: job, Unique: d.Unique, Missed: d.Missed.String(),
		NotBefore: d.NotBefore, NotAfter: d.NotAfter, Force: true, Exact: true,
	}}, err
}

func (s ScheduleInput) check() error { return inError("path", valid.Name("schedule", s.Schedule)) }

// DeclareSchedule declares a schedule.
var DeclareSchedule = declare(&Op[ScheduleInput, *store.ScheduleInfo]{
	Decl: Decl{
		Name: "schedules add", Method: http.MethodPut, Path: "/schedules/{schedule}", Needs: guard.Operator, Summary: "Declare a schedule",
		Doc: "One that is there is changed, and keeps its counters, its pause and its next occurrence, unless it recurs otherwise. A program that declares the same name puts its own back when one of its engines starts.",
	},
	do: func(ctx context.Context, l *Local, in *ScheduleInput) (*store.ScheduleInfo, error) {
		declare, err := l.declarations(ctx, in.Body.Force, in.Body.Exact, nil)
		if err != nil {
			return nil, err
		}
		job, err := declare(&in.Body.Job, "body.job")
		if err != nil {
			return nil, err
		}
		own := in.Body.Job // what the kind says of uniqueness is for producers
		exact, err := own.job(stint.KindInfo{})
		if err != nil {
			return nil, err
		}
		job.Unique = exact.Unique
		s, err := in.Body.schedule(in.Schedule, job)
		if err != nil {
			return nil, err
		}
		by := l.who(ctx).Name
		if l.Way == store.WayAPI {
			by += "@api" // with an @, as people do: programs do without
		}
		if err := stint.NewClient(inClear(l.Store)).Limit(l.Limits).Schedule(ctx, by, s); err != nil {
			return nil, err
		}
		return l.Store.Schedule(ctx, s.Name)
	},
})

// RemovedSchedule names a schedule that is to be removed.
type RemovedSchedule struct {
	ScheduleName
	Why string `query:"why" maxLength:"1000" doc:"The reason that is kept with the jobs"`
}

// CancelledJobs are the jobs that were cancelled with a schedule.
type CancelledJobs struct {
	Cancelled []stint.ID `json:"cancelled"`
}

// RemoveSchedule forgets a schedule, and answers with the jobs that it cancelled.
var RemoveSchedule = declare(&Op[RemovedSchedule, CancelledJobs]{
	Decl: Decl{
		Name: "schedules remove", Method: http.MethodDelete, Path: "/schedules/{schedule}", Needs: guard.Operator, Summary: "Forget a schedule, and cancel what has not begun of it",
		Doc: "The answer are the jobs that were cancelled. What runs goes on.", Confirm: true,
	},
	do: func(ctx context.Context, l *Local, in *RemovedSchedule) (CancelledJobs, error) {
		ids, err := list(l.Store.RemoveSchedule(ctx, in.Schedule, in.Why))
		return CancelledJobs{ids}, err
	},
	said: func(in *RemovedSchedule, c CancelledJobs) string {
		said := "schedule " + words.Visible(in.Schedule) + " is removed"
		if len(c.Cancelled) == 0 {
			return said + "; no job of it was pending"
		}
		var all []string
		for _, id := range c.Cancelled {
			all = append(all, id.String())
		}
		return fmt.Sprintf("%s, and cancelled %s: %s", said, words.Counted(len(all), "pending job"), strings.Join(all, " "))
	},
})

// PauseSchedule lets nothing of a schedule be fired.
var PauseSchedule = declare(&Op[ScheduleWhy, Changed]{
	Decl: Decl{Name: "schedules pause", Method: http.MethodPost, Path: "/schedules/{schedule}/pause", Needs: guard.Operator, Summary: "Let nothing of a schedule be fired"},
	do: func(ctx context.Context, l *Local, in *ScheduleWhy) (Changed, error) {
		return changed(l.Store.PauseSchedule(ctx, in.Schedule, l.who(ctx).Name, in.Body.Why))
	},
	said: func(in *ScheduleWhy, c Changed) string { return in.said(c, "is paused", "was paused already") },
})

// ResumeSchedule lets a paused schedule fire again, and finds when it does next.
var ResumeSchedule = declare(&Op[ScheduleName, Changed]{
	Decl: Decl{Name: "schedules resume", Method: http.MethodPost, Path: "/schedules/{schedule}/resume", Needs: guard.Operator, Summary: "Let a paused schedule fire again, from now on"},
	do: func(ctx context.Context, l *Local, in *ScheduleName) (Changed, error) {
		return changed(view.ResumeSchedule(ctx, l.Store, in.Schedule))
	},
	said: func(in *ScheduleName, c Changed) string { return in.said(c, "is resumed", "was not paused") },
})

// RunSchedule makes a job of a schedule now.
var RunSchedule = declare(&Op[ScheduleName, stint.Receipt]{
	Decl: Decl{
		Name: "schedules run-now", Method: http.MethodPost, Path: "/schedules/{schedule}/run-now", Needs: guard.Operator, Summary: "Make a job of a schedule now, out of turn", Status: http.StatusCreated,
	},
	do: func(ctx context.Context, l *Local, in *ScheduleName) (stint.Receipt, error) {
		id, err := l.Store.RunSchedule(ctx, in.Schedule)
		return stint.Receipt{ID: id}, err
	},
	said: func(in *ScheduleName, made stint.Receipt) string {
		return fmt.Sprintf("schedule %s made job %d", words.Visible(in.Schedule), made.ID)
	},
})

// Schedule is how a [store.ScheduleInfo] is written.
type Schedule struct {
	Recurrence string          `json:"recurrence" doc:"When, as it was declared: 30 2 * * *, every 5m, function:name"`
	Zone       string          `json:"zone"`
	Job        json.RawMessage `json:"job" doc:"What is made, without what is the default"`
	Unique     bool            `json:"unique,omitempty"`
	Missed     string          `json:"missed"`
	NotBefore  time.Time       `json:"not_before,omitzero"`
	NotAfter   time.Time       `json:"not_after,omitzero"`
	ScheduleStatus
}

// ScheduleStatus is what is shown of a schedule and not declared. So that a schedule can
// be declared as it was shown, a declaration may have it, too, and it changes nothing.
type ScheduleStatus struct {
	Name           string    `json:"name,omitempty" readOnly:"true"`
	Words          string    `json:"words,omitempty" readOnly:"true" doc:"The recurrence in words"`
	State          string    `json:"state,omitempty" enum:"active,paused,ended" readOnly:"true"`
	Next           time.Time `json:"next,omitzero" readOnly:"true" doc:"When it fires next; absent when that is not known yet, or never"`
	Ended          time.Time `json:"ended,omitzero" readOnly:"true"`
	Paused         time.Time `json:"paused_since,omitzero" readOnly:"true"`
	PausedBy       string    `json:"paused_by,omitempty" readOnly:"true"`
	PausedWhy      string    `json:"paused_why,omitempty" readOnly:"true"`
	Fired          int64     `json:"fired,omitempty" readOnly:"true" doc:"How many jobs it has made"`
	Skipped        int64     `json:"skipped,omitempty" readOnly:"true" doc:"How many occurrences were not fired since it is unique"`
	Passed         int64     `json:"missed_occurrences,omitempty" readOnly:"true" doc:"How many occurrences were missed and not made up for"`
	PassedAt       time.Time `json:"missed_at,omitzero" readOnly:"true" doc:"When that was found of the last of these"`
	LastOccurrence time.Time `json:"last_occurrence,omitzero" readOnly:"true"`
	LastJob        stint.ID  `json:"last_job,omitempty" readOnly:"true"`
	Created        time.Time `json:"created,omitzero" readOnly:"true"`
	Declared       time.Time `json:"declared,omitzero" readOnly:"true"`
	By             string    `json:"by,omitempty" readOnly:"true" doc:"Who declared it last"`
	Problem        string    `json:"problem,omitempty" readOnly:"true" doc:"What this program cannot read of it"`
}
