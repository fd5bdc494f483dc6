package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stint-go/stint/retry"
)

// durationValue is a flag that reads a number with a unit.
type durationValue time.Duration

// durationFlag defines a flag for a duration; 0 is shown as no default.
func durationFlag(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	flags.Var((*durationValue)(p), name, usage)
}

func (d *durationValue) Set(text string) error {
	v, err := retry.ParseDuration(text)
	*d = durationValue(v)
	return err
}

func (d *durationValue) Type() string { return "duration" }

func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return retry.FormatDuration(time.Duration(*d))
}

// everyValue is a flag that reads how often something happens, or that it never
// does.
type everyValue struct{ every time.Duration }

func (e *everyValue) Set(text string) error {
	if text == "off" {
		e.every = -1
		return nil
	}
	d, err := retry.ParseDuration(text)
	if err == nil && d < time.Second {
		err = fmt.Errorf("%q is shorter than a second", text)
	}
	e.every = d
	return err
}

func (e *everyValue) Type() string { return "duration" }

func (e *everyValue) String() string {
	switch {
	case e.every < 0:
		return "off"
	case e.every == 0:
		return ""
	}
	return retry.FormatDuration(e.every)
}

// pollValue is a flag that reads a time, or two with dots between them.
type pollValue struct{ every, from, to time.Duration }

func (p *pollValue) Set(text string) (err error) {
	*p = pollValue{}
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		p.every, err = parsePoll(text)
		return err
	}
	if p.from, err = parsePoll(first); err != nil {
		return err
	}
	if p.to, err = parsePoll(last); err != nil {
		return err
	}
	if p.from > p.to {
		return fmt.Errorf("%q ends before it begins", text)
	}
	return nil
}

func parsePoll(text string) (time.Duration, error) {
	d, err := retry.ParseDuration(text)
	if err == nil && d < time.Millisecond {
		err = fmt.Errorf("%q is shorter than a millisecond", text)
	}
	return d, err
}

func (p *pollValue) Type() string { return "time" }

func (p *pollValue) String() string {
	switch {
	case p.every > 0:
		return retry.FormatDuration(p.every)
	case p.to > 0:
		return retry.FormatDuration(p.from) + ".." + retry.FormatDuration(p.to)
	}
	return ""
}
