package main

import (
	"fmt"
	"time"
)

// instantValue is a flag that reads a moment as people write it. What names no
// zone is local time.
type instantValue struct {
	time time.Time
	text string
}

var (
	localForms = []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"}
	clockForms = []string{"15:04", "15:04:05"}
)

func (v *instantValue) Set(text string) error {
	t, err := parseInstant(text, time.Now())
	v.time, v.text = t, text
	return err
}

// Form is how it is written in a file, which has dates of its own but not all of
// these.
func (v *instantValue) Form() string { return `a string: "2026-03-01T09:00:00+01:00"` }

func (v *instantValue) Type() string   { return "time" }
func (v *instantValue) String() string { return v.text }

// parseInstant reads RFC 3339, local dates with and without a time, and a time
// of day: the next moment after now when clocks show it.
func parseInstant(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, form := range localForms {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, form := range clockForms {
		t, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		for day := 0; ; day++ {
			next := time.Date(now.Year(), now.Month(), now.Day()+day, t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			if next.After(now) {
				return next, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf(`%q is no time; write 2026-03-01T09:00:00+01:00, "2026-03-01 09:00" or 09:00`, text)
}
