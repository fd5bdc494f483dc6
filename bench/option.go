package main

import (
	"fmt"
	"strconv"
	"time"
)

// option is a flag, and what it may be at least and at most.
type option struct {
	name        string
	target      any // *int, *float64, *bool or *time.Duration
	least, most float64
	usage       string
}

// Set implements flag.Value.
func (o option) Set(text string) (err error) {
	var v float64
	switch t := o.target.(type) {
	case *int:
		*t, err = strconv.Atoi(text)
		v = float64(*t)
	case *float64:
		*t, err = strconv.ParseFloat(text, 64)
		v = *t
	case *bool:
		*t, err = strconv.ParseBool(text)
	case *time.Duration:
		*t, err = time.ParseDuration(text)
		v = t.Seconds()
	}
	if _, ok := o.target.(*bool); err == nil && !ok && !(v >= o.least && v <= o.most) {
		if _, ok := o.target.(*time.Duration); ok {
			return fmt.Errorf("it is not between %v and %v", seconds(o.least), seconds(o.most))
		}
		return fmt.Errorf("it is not between %.10g and %.10g", o.least, o.most)
	}
	return err
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// String implements flag.Value.
func (o option) String() string {
	switch t := o.target.(type) {
	case *int:
		return strconv.Itoa(*t)
	case *float64:
		return strconv.FormatFloat(*t, 'g', -1, 64)
	case *bool:
		return strconv.FormatBool(*t)
	case *time.Duration:
		return t.String()
	}
	return ""
}

// IsBoolFlag lets a flag that says yes stand without a value.
func (o option) IsBoolFlag() bool { _, ok := o.target.(*bool); return ok }
