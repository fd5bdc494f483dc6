package store

import (
	"encoding/json"
	"fmt"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
)

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
