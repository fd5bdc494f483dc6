package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/internal/wire"
)

// ScheduleKeeper is what people do to schedules. It answers with
// [stint.ErrNoSchedule] when there is none of the name.
type ScheduleKeeper interface {
	// Schedules lists them by name.
	Schedules(ctx context.Context) ([]ScheduleInfo, error)

	// Schedule shows one.
	Schedule(ctx context.Context, name string) (*ScheduleInfo, error)

	// PauseSchedule lets nothing of it be fired, and wakes engines. By and why are
	// kept. It reports false when it was paused before: then that stands.
	PauseSchedule(ctx context.Context, name, by, why string) (bool, error)

	// ResumeSchedule lets it fire again, from now on: what came while it was
	// paused is not made up for. It wakes engines, and reports false when it was
	// not paused.
	ResumeSchedule(ctx context.Context, name string) (bool, error)

	// RemoveSchedule forgets it with its counters, and cancels those of its jobs
	// that have not begun, as [Canceller] does; it returns them. What runs goes on.
	RemoveSchedule(ctx context.Context, name, why string) ([]stint.ID, error)

	// RunSchedule makes a job of it now, out of turn, also when it is paused or
	// has ended, and wakes engines. The job counts and has a number as any other
	// of the schedule, but is of no occurrence, and the next one stays. When the
	// schedule is unique and its last job has not ended, it is a
	// [ScheduleBusyError].
	RunSchedule(ctx context.Context, name string) (stint.ID, error)
}

// ScheduleBusyError says that a unique schedule has a job that has not ended.
type ScheduleBusyError struct {
	Schedule string
	Job      stint.ID
}

// Error names the job.
func (e *ScheduleBusyError) Error() string {
	return "stint: the schedule " + e.Schedule + " is unique, and its job " + e.Job.String() + " has not ended"
}

// ScheduleInfo is a schedule as people see it. Times are the store's.
type ScheduleInfo struct {
	stint.Schedule

	Created  time.Time // when it was first declared
	Declared time.Time // when it was last declared
	By       string    // who did that

	// After is the instant up to which all occurrences are dealt with.
	After time.Time

	// Next is when it fires next; zero when that is not known yet, or never. While
	// it is paused it tells when it would.
	Next time.Time

	Ended time.Time // when it was found that it never fires again

	Paused    time.Time // since when; zero when it is not
	PausedBy  string
	PausedWhy string

	Fired   int64 // how many jobs it has made
	Skipped int64 // how many occurrences were not fired since it is unique
	Passed  int64 // how many occurrences were missed and not made up for

	PassedAt time.Time // when that was found of the last of these

	LastOccurrence time.Time // of the last job that has one
	LastJob        stint.ID  // the last job, 0 for none

	// Revision is another one after every change.
	Revision int64

	// Problem is what this program cannot read of it: a newer one may have
	// declared it. Stored are the texts.
	Problem error
	Stored  ScheduleTexts
}

// State is in a word what becomes of the schedule: active, paused or ended.
func (s *ScheduleInfo) State() string {
	switch {
	case !s.Ended.IsZero():
		return "ended"
	case !s.Paused.IsZero():
		return "paused"
	}
	return "active"
}

// scheduleInfoJSON is how it is written.
type scheduleInfoJSON struct {
	wire.Schedule
	State          string    `json:"state"`
	Next           time.Time `json:"next,omitzero"`
	Ended          time.Time `json:"ended,omitzero"`
	Paused         time.Time `json:"paused_since,omitzero"`
	PausedBy       string    `json:"paused_by,omitempty"`
	PausedWhy      string    `json:"paused_why,omitempty"`
	Fired          int64     `json:"fired"`
	Skipped        int64     `json:"skipped"`
	Passed         int64     `json:"missed_occurrences"`
	PassedAt       time.Time `json:"missed_at,omitzero"`
	LastOccurrence time.Time `json:"last_occurrence,omitzero"`
	LastJob        stint.ID  `json:"last_job,omitempty"`
	Created        time.Time `json:"created"`
	Declared       time.Time `json:"declared"`
	By             string    `json:"by,omitempty"`
	Problem        string    `json:"problem,omitempty"`
}

// MarshalJSON shows the schedule for people and programs in other languages.
func (s ScheduleInfo) MarshalJSON() ([]byte, error) {
	problem, words := "", ""
	if s.Problem != nil {
		problem = s.Problem.Error()
	} else {
		words = s.Recurrence.Words()
	}
	return json.Marshal(scheduleInfoJSON{
		Schedule: wire.Schedule{
			Name: s.Name, Recurrence: s.Stored.Recurrence, Words: words, Zone: s.Zone, Job: s.Stored.Job,
			Unique: s.Unique, Missed: s.Stored.Missed, NotBefore: s.NotBefore, NotAfter: s.NotAfter,
		},
		State: s.State(), Next: s.Next, Ended: s.Ended, Paused: s.Paused, PausedBy: s.PausedBy, PausedWhy: s.PausedWhy,
		Fired: s.Fired, Skipped: s.Skipped, Passed: s.Passed, PassedAt: s.PassedAt, LastOccurrence: s.LastOccurrence, LastJob: s.LastJob,
		Created: s.Created, Declared: s.Declared, By: s.By, Problem: problem,
	})
}

// UnmarshalJSON reads what MarshalJSON writes. After and Revision are not in it.
func (s *ScheduleInfo) UnmarshalJSON(text []byte) error {
	var t scheduleInfoJSON
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	*s = ScheduleInfo{
		Schedule: stint.Schedule{Name: t.Name, Zone: t.Zone, Unique: t.Unique, NotBefore: t.NotBefore, NotAfter: t.NotAfter},
		Created:  t.Created, Declared: t.Declared, By: t.By, Next: t.Next, Ended: t.Ended,
		Paused: t.Paused, PausedBy: t.PausedBy, PausedWhy: t.PausedWhy,
		Fired: t.Fired, Skipped: t.Skipped, Passed: t.Passed, PassedAt: t.PassedAt, LastOccurrence: t.LastOccurrence, LastJob: t.LastJob,
	}
	s.Read(ScheduleTexts{Recurrence: t.Recurrence, Missed: t.Missed, Job: t.Job})
	s.Stored.Function, _ = s.Recurrence.Func()
	return nil
}

// Read takes over what a store keeps as texts. What this program cannot read is
// the schedule's problem and no error: others may be able to.
func (s *ScheduleInfo) Read(t ScheduleTexts) {
	s.Stored = t
	s.Problem = t.readInto(&s.Schedule)
}

// ScheduleTexts are the parts of a schedule that stores keep as texts.
type ScheduleTexts struct {
	Recurrence string
	Function   string // the recurrence function to ask, if it is one
	Missed     string
	Job        json.RawMessage // what it makes, without what is the default
}

// TextsOf returns the parts of a schedule as a store keeps them.
func TextsOf(s stint.Schedule) (ScheduleTexts, error) {
	t := ScheduleTexts{Recurrence: s.Recurrence.String(), Missed: s.Missed.String()}
	t.Function, _ = s.Recurrence.Func()
	var err error
	t.Job, err = json.Marshal(s.Job)
	return t, err
}

// readInto takes over what a store keeps as texts. After an error s is half read.
func (t ScheduleTexts) readInto(s *stint.Schedule) (err error) {
	if s.Recurrence, err = cron.Parse(t.Recurrence); err != nil {
		return fmt.Errorf("its recurrence %q cannot be read: %w", t.Recurrence, err)
	}
	if err = s.Missed.UnmarshalText([]byte(t.Missed)); err != nil {
		return err
	}
	s.Job = stint.NewJob{}
	if err = json.Unmarshal(t.Job, &s.Job); err == nil {
		s.Job.Fill()
		err = s.Job.Check(stint.Limits{Args: 1 << 30, Metadata: 1 << 30})
	}
	if err != nil {
		return fmt.Errorf("its job cannot be read: %w", err)
	}
	return nil
}
