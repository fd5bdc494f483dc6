package view

import (
	"context"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// Schedule is a schedule with its next times and its latest jobs.
type Schedule struct {
	Schedule *store.ScheduleInfo `json:"schedule"`
	Upcoming []time.Time         `json:"upcoming"`
	Jobs     []stint.JobInfo     `json:"jobs"`

	// Problem is why this program cannot say what comes next.
	Problem error `json:"-"`
}

const shown = 10 // times and jobs of a schedule

// ScheduleOf finds a schedule.
func ScheduleOf(ctx context.Context, st Store, name string) (Schedule, error) {
	info, err := st.Schedule(ctx, name)
	if err != nil {
		return Schedule{}, err
	}
	jobs, err := st.Jobs(ctx, store.Filter{Schedule: info.Name, Limit: shown})
	if err != nil {
		return Schedule{}, err
	}
	times, problem := store.NewPlanner(nil).Upcoming(info, shown)
	return Schedule{info, append([]time.Time{}, times...), append([]stint.JobInfo{}, jobs...), problem}, nil // [] rather than null
}

// WhenInWords says when a schedule fires, in its zone.
func WhenInWords(s *store.ScheduleInfo) string {
	if s.Problem != nil {
		return words.Visible(s.Stored.Recurrence)
	}
	text := s.Recurrence.Words()
	if _, isInterval := s.Recurrence.Interval(); s.Zone != "UTC" && !isInterval {
		text += " in " + s.Zone
	}
	return words.Visible(text)
}

// ResumeSchedule lets a schedule fire again, as [store.ScheduleKeeper] does, and finds
// when it does next, as far as this program can; engines find the others.
func ResumeSchedule(ctx context.Context, st interface {
	store.ScheduleKeeper
	store.Scheduler
}, name string) (bool, error) {
	changed, err := st.ResumeSchedule(ctx, name)
	if err != nil || !changed {
		return false, err
	}
	_, _ = st.FireSchedules(ctx, store.FireRequest{Limit: 1000, OnlyNew: true}, store.NewPlanner(nil).Plan)
	return true, nil
}
