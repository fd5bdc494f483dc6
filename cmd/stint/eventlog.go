package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/stint-go/stint"
)

// Keys of the attributes of log lines. Searches and alerts are built on them.
const (
	keyInstance  = "instance"
	keyJob       = "job"
	keyKind      = "kind"
	keyQueue     = "queue"
	keyAttempt   = "attempt"
	keySlot      = "slot"
	keyOutcome   = "outcome"
	keyTook      = "took"
	keyReason    = "reason"
	keyClass     = "error_class"
	keyError     = "error"
	keyNext      = "next"
	keyUndecided = "undecided"
	keyCount     = "count"
	keyBegun     = "begun"
	keyBuried    = "buried"
	keyMissing   = "suppressed"
	keyLease     = "lease"
)

// troubleEvery bounds lines about one kind of trouble: a database that is down
// is worth a line, not one for each attempt to reach it.
const troubleEvery = 10 * time.Second

func newLogger(w io.Writer, level slog.Level, format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// eventLog turns an engine's events into log lines:
//
//	error  a job failed for good, here or with an engine that died; the engine lost its place in the roster
//	warn   an attempt failed and is tried again, trouble
//	info   the engine joined, left, handed jobs back, got or lost a lease, deleted old jobs
//	debug  an attempt began; one succeeded, unless that was asked for at info
type eventLog struct {
	log       *slog.Logger
	successes slog.Level

	mu      sync.Mutex // guards the rest
	trouble map[string]*repeated
}

// repeated counts what was not said.
type repeated struct {
	said   time.Time
	unsaid int
}

func newEventLog(log *slog.Logger, successes slog.Level) *eventLog {
	return &eventLog{log: log, successes: successes, trouble: map[string]*repeated{}}
}

// on is an engine's OnEvent.
func (l *eventLog) on(e stint.Event) {
	log := func(level slog.Level, message string, attrs ...slog.Attr) {
		l.log.LogAttrs(context.Background(), level, message, append(attrs, slog.String(keyInstance, e.Instance))...)
	}
	switch e.Type {
	case stint.EventJoined:
		log(slog.LevelInfo, "engine joined the roster")
	case stint.EventLeft:
		log(slog.LevelInfo, "engine left the roster")
	case stint.EventBuried:
		log(slog.LevelError, "engine lost its place in the roster and joins anew; what it ran may run elsewhere")
	case stint.EventReturned:
		log(slog.LevelInfo, "returned jobs that had not begun", slog.Int(keyCount, e.Count))
	case stint.EventBurial:
		attrs := []slog.Attr{slog.Int(keyCount, e.Count), slog.Int(keyBegun, e.Begun)}
		if e.Other != nil {
			attrs = append(attrs, slog.String(keyBuried, e.Other.Instance))
		}
		log(slog.LevelWarn, "took over the jobs of an engine that died", attrs...)
	case stint.EventStarted:
		if l.log.Enabled(context.Background(), slog.LevelDebug) {
			log(slog.LevelDebug, "attempt started", slog.Int64(keyJob, int64(e.Job.ID)), slog.String(keyKind, e.Job.Kind),
				slog.String(keyQueue, e.Job.Queue), slog.Int(keyAttempt, e.Job.Attempt))
		}
	case stint.EventEnded:
		level, message := l.verdict(e.Execution)
		if l.log.Enabled(context.Background(), level) {
			log(level, message, ended(e)...)
		}
	case stint.EventFailed:
		// An attempt that ended here was told of by that.
		if e.Execution.Slot == 0 {
			log(slog.LevelError, "job failed", ended(e)...)
		}
	case stint.EventLeaseAcquired:
		log(slog.LevelInfo, "engine acquired a lease", slog.String(keyLease, e.Lease))
	case stint.EventLeaseLost:
		level := slog.LevelWarn
		if errors.Is(e.Err, stint.ErrStopping) {
			level = slog.LevelInfo
		}
		log(level, "engine does not hold a lease any more", slog.String(keyLease, e.Lease), slog.String(keyReason, oneLine(fmt.Sprint(e.Err))))
	case stint.EventRetained:
		log(slog.LevelInfo, "deleted jobs that ended long ago", slog.Int(keyCount, e.Count))
	case stint.EventTrouble:
		if say, unsaid := l.due(e.Doing, e.Time); say {
			attrs := []slog.Attr{slog.String(keyError, oneLine(fmt.Sprint(e.Err)))}
			if unsaid > 0 {
				attrs = append(attrs, slog.Int(keyMissing, unsaid))
			}
			message := "cannot " + e.Doing
			if e.Job != nil {
				attrs = append(attrs, slog.Int64(keyJob, int64(e.Job.ID)), slog.String(keyKind, e.Job.Kind))
			} else {
				message += ", trying again"
			}
			log(slog.LevelWarn, message, attrs...)
		}
	}
}

// verdict chooses the level and the words for an attempt that ended.
func (l *eventLog) verdict(x *stint.Execution) (slog.Level, string) {
	switch x.Outcome {
	case stint.OutcomeCompleted:
		return l.successes, "job completed"
	case stint.OutcomeSnoozed:
		return l.successes, "job snoozed"
	case stint.OutcomeReturned:
		return slog.LevelInfo, "job returned to its queue"
	case stint.OutcomeCancelled:
		return slog.LevelInfo, "job cancelled"
	}
	if x.Final {
		return slog.LevelError, "job failed"
	}
	return slog.LevelWarn, "attempt failed"
}

// ended tells what is known of an attempt. Parts that say nothing are left out.
func ended(e stint.Event) []slog.Attr {
	x := e.Execution
	attrs := []slog.Attr{
		slog.Int64(keyJob, int64(e.Job.ID)), slog.String(keyKind, e.Job.Kind), slog.String(keyQueue, e.Job.Queue),
		slog.Int(keyAttempt, x.Attempt), slog.Int(keySlot, x.Slot), slog.String(keyOutcome, x.Outcome.String()),
	}
	if !x.Started.IsZero() {
		attrs = append(attrs, slog.Duration(keyTook, x.Ended.Sub(x.Started).Round(time.Microsecond)))
	}
	if x.Reason != "" {
		attrs = append(attrs, slog.String(keyReason, x.Reason))
	}
	if x.Error != nil {
		attrs = append(attrs, slog.String(keyClass, x.Error.Class), slog.String(keyError, x.Error.Message))
	}
	switch {
	case x.Next == nil || !x.Next.Wait:
	case x.Next.Func != "":
		attrs = append(attrs, slog.String(keyUndecided, x.Next.Func))
	default:
		attrs = append(attrs, slog.Duration(keyNext, x.Next.Delay.Round(time.Millisecond)))
	}
	return attrs
}

// due reports whether trouble is to be said now, and how often it was not.
func (l *eventLog) due(doing string, now time.Time) (bool, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.trouble[doing]
	if r == nil {
		r = &repeated{}
		l.trouble[doing] = r
	}
	if !r.said.IsZero() && now.Sub(r.said) < troubleEvery {
		r.unsaid++
		return false, 0
	}
	unsaid := r.unsaid
	r.said, r.unsaid = now, 0
	return true, unsaid
}
