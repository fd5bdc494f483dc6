package stint

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/retry"
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
	j := s.Job
	text := jobText{
		Kind: j.Kind, Args: j.Args, Queue: j.Queue, Priority: j.Priority, MaxLosses: j.MaxLosses, Tags: j.Tags, URN: j.URN,
		Source: j.Source, Metadata: j.Metadata, Correlation: j.Correlation,
	}
	if j.Retry != retry.Default() {
		text.Retry = &j.Retry
	}
	text.Timeout, text.StartWithin = orEmpty(j.Timeout), orEmpty(j.StartWithin)
	var err error
	t.Job, err = json.Marshal(text)
	return t, err
}

// jobText is what a schedule makes, as JSON.
type jobText struct {
	Kind        string          `json:"kind"`
	Args        json.RawMessage `json:"args"`
	Queue       string          `json:"queue"`
	Priority    int             `json:"priority,omitempty"`
	Retry       *retry.Policy   `json:"retry,omitempty"`
	Timeout     string          `json:"timeout,omitempty"`
	StartWithin string          `json:"start_within,omitempty"`
	MaxLosses   *int            `json:"max_losses,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	URN         string          `json:"urn,omitempty"`
	Source      string          `json:"source,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Correlation string          `json:"correlation,omitempty"`
}

func orEmpty(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return retry.FormatDuration(d)
}

// Read takes over what a store keeps as texts. What this program cannot read is
// the schedule's problem and no error: others may be able to.
func (s *ScheduleInfo) Read(t ScheduleTexts) {
	s.Stored = t
	s.Problem = func() (err error) {
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
	}()
}

func readJob(text json.RawMessage) (NewJob, error) {
	var t jobText
	if err := json.Unmarshal(text, &t); err != nil {
		return NewJob{}, err
	}
	j := NewJob{
		Kind: t.Kind, Args: t.Args, Queue: t.Queue, Priority: t.Priority, MaxLosses: t.MaxLosses, Tags: t.Tags, URN: t.URN,
		Source: t.Source, Metadata: t.Metadata, Correlation: t.Correlation,
	}
	if t.Retry != nil {
		j.Retry = *t.Retry
	}
	for _, d := range []struct {
		text string
		into *time.Duration
	}{{t.Timeout, &j.Timeout}, {t.StartWithin, &j.StartWithin}} {
		if d.text == "" {
			continue
		}
		var err error
		if *d.into, err = retry.ParseDuration(d.text); err != nil {
			return NewJob{}, err
		}
	}
	j.fill()
	return j, j.Check(Limits{Args: 1 << 30, Metadata: 1 << 30})
}
