package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

// LogConfig says which events become log lines, and at which level. The zero value suits most
// programs.
type LogConfig struct {
	// Successes is the level of lines about attempts that succeeded: by default info. Set debug to
	// hide them.
	Successes slog.Level

	// Repeat is how long trouble of one kind is not logged again, so that a database that is down
	// does not log every attempt to reach it. The default is 10 seconds. Trouble of all kinds
	// together is logged in at most 30 lines in any minute, for all engines that share the
	// listener. The next line says how many were left out. A negative value logs everything.
	Repeat time.Duration
}

const defaultRepeat = 10 * time.Second

// Log returns a listener for engine.Config.OnEvent that writes a line for each
// event:
//
//	error  a job failed for good, here or with an engine that died; the engine lost its place in the roster
//	warn   an attempt failed and is tried again, trouble, an engine that died, one that leaves by itself or loses a lease
//	info   the engine joined, was asked to leave, left, handed jobs back, got or gave back a lease, deleted old jobs; attempts that went well
//	debug  an attempt began
//
// Lines carry what is known of instance, slot, job, kind, queue, attempt,
// outcome and duration under the keys of this package. Lines about trouble are
// bounded ([LogConfig]), all others are as many as the events. A nil logger is
// [slog.Default] at the time of each event. The listener may be shared by engines.
func Log(logger *slog.Logger, config ...LogConfig) func(event.Event) {
	l := &eventLog{logger: logger}
	if len(config) > 0 {
		l.LogConfig = config[0]
	}
	if l.Repeat == 0 {
		l.Repeat = defaultRepeat
	}
	return l.on
}

type eventLog struct {
	LogConfig
	logger  *slog.Logger
	trouble repeats
}

// line is a log line that is about to be written.
type line struct {
	to    *slog.Logger
	event *event.Event
}

func (l line) enabled(level slog.Level) bool { return l.to.Enabled(context.Background(), level) }

func (l line) write(level slog.Level, message string, attrs ...slog.Attr) {
	l.to.LogAttrs(context.Background(), level, message, append(attrs, slog.String(KeyInstance, l.event.Instance))...)
}

// inUnits writes a duration as text, such as "1.5s": slog's JSON handler writes bare nanoseconds.
func inUnits(key string, d time.Duration) slog.Attr { return slog.String(key, d.String()) }

func loggerOr(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.Default()
	}
	return logger
}

func (l *eventLog) on(e event.Event) {
	out := line{loggerOr(l.logger), &e}
	switch e.Type {
	case event.EventJoined:
		out.write(slog.LevelInfo, "engine joined the roster")
	case event.EventDraining:
		out.draining()
	case event.EventLeft:
		out.write(slog.LevelInfo, "engine left the roster")
	case event.EventBuried:
		out.write(slog.LevelError, "engine lost its place in the roster and joins again; what it ran may run elsewhere")
	case event.EventReturned:
		out.write(slog.LevelInfo, "returned jobs that had not begun", slog.Int(KeyCount, e.Count))
	case event.EventBurial:
		out.burial()
	case event.EventStarted:
		if out.enabled(slog.LevelDebug) {
			out.write(slog.LevelDebug, "attempt started", append(attempt(e.Job, e.Job.Attempt), slog.Int(KeySlot, e.Slot))...)
		}
	case event.EventEnded:
		level, message := l.verdict(e.Attempt)
		if out.enabled(level) {
			out.write(level, message, ended(e)...)
		}
	case event.EventFailed:
		// An attempt that ended here was told of by that.
		if e.Attempt.Slot == 0 {
			out.write(slog.LevelError, "job failed", ended(e)...)
		}
	case event.EventLeaseAcquired:
		out.write(slog.LevelInfo, "engine acquired a lease", slog.String(KeyLease, e.Lease))
	case event.EventLeaseLost:
		out.leaseLost()
	case event.EventRetained:
		out.write(slog.LevelInfo, "deleted jobs that ended long ago", slog.Int(KeyCount, e.Count))
	case event.EventTrouble:
		if say, unsaid := l.trouble.due(e.Doing, e.Time, l.Repeat); say {
			out.trouble(unsaid)
		}
	}
}

func (l line) draining() {
	const message = "engine takes no more jobs, and leaves when those that run have ended"
	if l.event.Err == nil {
		l.write(slog.LevelInfo, message)
		return
	}
	l.write(slog.LevelWarn, message, slog.String(KeyReason, oneLine(l.event.Err.Error())))
}

func (l line) leaseLost() {
	level := slog.LevelWarn
	if errors.Is(l.event.Err, stint.ErrStopping) {
		level = slog.LevelInfo
	}
	l.write(level, "engine does not hold a lease any more", slog.String(KeyLease, l.event.Lease), slog.String(KeyReason, oneLine(fmt.Sprint(l.event.Err))))
}

func (l line) burial() {
	attrs := []slog.Attr{slog.Int(KeyCount, l.event.Count), slog.Int(KeyBegun, l.event.Begun)}
	if l.event.Other != nil {
		attrs = append(attrs, slog.String(KeyBuried, l.event.Other.Instance))
	}
	l.write(slog.LevelWarn, "took over the jobs of an engine that died", attrs...)
}

func (l line) trouble(unsaid int) {
	attrs := []slog.Attr{slog.String(KeyError, oneLine(fmt.Sprint(l.event.Err)))}
	if unsaid > 0 {
		attrs = append(attrs, slog.Int(KeyMissing, unsaid))
	}
	message := "cannot " + l.event.Doing
	if job := l.event.Job; job != nil {
		attrs = append(attrs, slog.Int64(KeyJob, int64(job.ID)), slog.String(KeyKind, job.Kind))
	} else {
		message += ", trying again"
	}
	l.write(slog.LevelWarn, message, attrs...)
}

// verdict returns the level and the message for an attempt that ended.
func (l *eventLog) verdict(x *store.Completion) (slog.Level, string) {
	switch x.Outcome {
	case stint.OutcomeCompleted:
		return l.Successes, "job completed"
	case stint.OutcomeSnoozed:
		return l.Successes, "job snoozed"
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

func attempt(job *stint.Job, number int) []slog.Attr {
	return []slog.Attr{
		slog.Int64(KeyJob, int64(job.ID)), slog.String(KeyKind, job.Kind), slog.String(KeyQueue, job.Queue), slog.Int(KeyAttempt, number),
	}
}

// ended returns the attributes of an attempt. Empty ones are left out.
func ended(e event.Event) []slog.Attr {
	x := e.Attempt
	attrs := append(attempt(e.Job, x.Attempt), slog.Int(KeySlot, x.Slot), slog.String(KeyOutcome, x.Outcome.String()))
	if !x.Started.IsZero() {
		attrs = append(attrs, inUnits(KeyTook, x.Ended.Sub(x.Started).Round(time.Microsecond)))
	}
	if x.Reason != "" {
		attrs = append(attrs, slog.String(KeyReason, x.Reason))
	}
	if x.Error != nil {
		attrs = append(attrs, slog.String(KeyClass, x.Error.Class), slog.String(KeyError, x.Error.Message))
	}
	switch {
	case x.Next == nil || !x.Next.Wait:
	case x.Next.Func != "":
		attrs = append(attrs, slog.String(KeyUndecided, x.Next.Func))
	default:
		attrs = append(attrs, inUnits(KeyNext, x.Next.Delay.Round(time.Millisecond)))
	}
	return attrs
}

// oneLine makes a message one line; some drivers' messages have several.
func oneLine(message string) string {
	return strings.Join(strings.FieldsFunc(message, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " ")
}
