package main

import (
	"time"

	"github.com/stint-go/stint/retry"
)

// everyStatement is what --log-sql means without a value.
const everyStatement = "all"

// logSQLValue is a flag that reads which statements are logged: all, or those
// that took as long as a duration.
type logSQLValue struct {
	on         bool
	slowerThan time.Duration
}

func (l *logSQLValue) Set(text string) error {
	*l = logSQLValue{on: true}
	if text == everyStatement {
		return nil
	}
	var err error
	l.slowerThan, err = retry.ParseDuration(text)
	return err
}

func (l *logSQLValue) Type() string { return "time" }

func (l *logSQLValue) String() string {
	switch {
	case !l.on:
		return ""
	case l.slowerThan == 0:
		return everyStatement
	}
	return retry.FormatDuration(l.slowerThan)
}
