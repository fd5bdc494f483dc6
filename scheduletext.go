package stint

import (
	"encoding/json"
	"fmt"

	"github.com/stint-go/stint/cron"
)

// ScheduleTexts are the parts of a schedule that stores keep as texts.
type ScheduleTexts struct {
	Recurrence string
	Function   string // the recurrence function to ask, if it is one
	Missed     string
	Job        json.RawMessage // what it makes, without what is the default
}

// Texts are the parts of the schedule as a store keeps them.
func (s Schedule) Texts() (ScheduleTexts, error) {
	t := ScheduleTexts{Recurrence: s.Recurrence.String(), Missed: s.Missed.String()}
	t.Function, _ = s.Recurrence.Func()
	var err error
	t.Job, err = json.Marshal(s.Job)
	return t, err
}

// Read takes over what a store keeps as texts. After an error it is half read.
func (s *Schedule) Read(t ScheduleTexts) (err error) {
	if s.Recurrence, err = cron.Parse(t.Recurrence); err != nil {
		return fmt.Errorf("its recurrence %q cannot be read: %w", t.Recurrence, err)
	}
	if s.Missed, err = ParseMissed(t.Missed); err != nil {
		return err
	}
	if s.Job, err = readJob(t.Job); err != nil {
		return fmt.Errorf("its job cannot be read: %w", err)
	}
	return nil
}

func readJob(text json.RawMessage) (j NewJob, err error) {
	if err := json.Unmarshal(text, &j); err != nil {
		return j, err
	}
	j.fill()
	return j, j.Check(Limits{Args: 1 << 30, Metadata: 1 << 30})
}
