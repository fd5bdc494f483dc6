package observe

import (
	"cmp"
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

// Keys of the attributes of log lines. Searches and alerts are built on them,
// so they stay what they are.
const (
	KeyInstance  = "instance"    // the engine's name
	KeyJob       = "job"         // the job's id
	KeyKind      = "kind"        // the job's kind
	KeyQueue     = "queue"       // the job's queue
	KeyAttempt   = "attempt"     // which attempt, from 1
	KeySlot      = "slot"        // which of the engine's slots worked on it, from 1
	KeySlots     = "slots"       // how many of them it has, if it finds that by itself
	KeyOutcome   = "outcome"     // how the attempt ended
	KeyTook      = "took"        // how long an attempt or a statement took
	KeyReason    = "reason"      // why the job ended
	KeyClass     = "error_class" // the class of the error
	KeyError     = "error"       // its message
	KeyNext      = "next"        // how long until the next attempt
	KeyUndecided = "undecided"   // the retry function that is to decide about it
	KeyCount     = "count"       // how many jobs
	KeyBegun     = "known_begun" // how many of these were known to have begun
	KeyBuried    = "buried"      // the name of the engine that died
	KeyLease     = "lease"       // the name of a lease
	KeyLimit     = "limit"       // the name of a limit that is paused, or of one of its keys
	KeyWait      = "wait"        // for how long
	KeyMissing   = "suppressed"  // how many lines about trouble were left out before it: of its kind, and of others for which there was no room
	KeySQL       = "sql"         // the text of a statement
	KeyRows      = "rows"        // how many rows it returned or changed
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

// Log returns a listener for engine.Config.OnEvent that writes a line for each
// event:
//
//	error  a job failed for good, here or with an engine that died; the engine lost its place in the roster
//	warn   an attempt failed and is tried again, trouble, an engine that died, one that leaves by itself or loses a lease
//	info   the engine joined, was asked to leave, left, handed jobs back, got or gave back a lease, deleted old jobs; attempts that went well
//	debug  an attempt began, the engine changed how many slots it has
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
	l.Repeat = cmp.Or(l.Repeat, 10*time.Second)
	return l.on
}

type eventLog struct {
	LogConfig
	logger  *slog.Logger
	trouble repeats
}

func (l *eventLog) on(e event.Event) {
	unsaid := 0
	if e.Type == event.EventTrouble {
		say := false
		if say, unsaid = l.trouble.due(e.Doing, e.Time, l.Repeat); !say {
			return
		}
	}
	level, message := l.verdict(e)
	if message != "" {
		write(l.logger, level, message, func() []slog.Attr {
			return append(attributes(e, unsaid), slog.String(KeyInstance, e.Instance))
		})
	}
}

// write writes a line to a logger, or to the default one. Attributes that no handler sees are not made.
func write(logger *slog.Logger, level slog.Level, message string, attrs func() []slog.Attr) {
	if logger = cmp.Or(logger, slog.Default()); logger.Enabled(context.Background(), level) {
		logger.LogAttrs(context.Background(), level, message, attrs()...)
	}
}

// verdict returns the level and the message of an event; no message if it has no line.
func (l *eventLog) verdict(e event.Event) (slog.Level, string) {
	switch e.Type {
	case event.EventJoined:
		return slog.LevelInfo, "engine joined the roster"
	case event.EventDraining:
		const message = "engine takes no more jobs, and leaves when those that run have ended"
		if e.Err != nil {
			return slog.LevelWarn, message
		}
		return slog.LevelInfo, message
	case event.EventLeft:
		return slog.LevelInfo, "engine left the roster"
	case event.EventBuried:
		if e.Err != nil {
			return slog.LevelInfo, "engine was let go by its program, and stands in the roster until it leaves or is buried"
		}
		return slog.LevelError, "engine lost its place in the roster and joins again; what it ran may run elsewhere"
	case event.EventReturned:
		return slog.LevelInfo, "returned jobs that had not begun"
	case event.EventBurial:
		return slog.LevelWarn, "took over the jobs of an engine that died"
	case event.EventSettled:
		return slog.LevelWarn, "recorded what became of the jobs that it held when it lost its place"
	case event.EventStarted:
		return slog.LevelDebug, "attempt started"
	case event.EventEnded:
		return l.ended(e.Attempt)
	case event.EventFailed:
		if e.Attempt.Slot == 0 { // of an attempt that ended here there was a line
			return slog.LevelError, "job failed"
		}
	case event.EventLeaseAcquired:
		return slog.LevelInfo, "engine acquired a lease"
	case event.EventLeaseLost:
		const message = "engine does not hold a lease any more"
		if errors.Is(e.Err, stint.ErrStopping) {
			return slog.LevelInfo, message
		}
		return slog.LevelWarn, message
	case event.EventRetained:
		return slog.LevelInfo, "deleted jobs that ended long ago"
	case event.EventSlots:
		return slog.LevelDebug, "changed how many slots it has"
	case event.EventPaused:
		return slog.LevelWarn, "paused a limit"
	case event.EventTrouble:
		if e.Job != nil {
			return slog.LevelWarn, "cannot " + e.Doing
		}
		return slog.LevelWarn, "cannot " + e.Doing + ", trying again"
	}
	return 0, ""
}

// ended returns the level and the message for an attempt that ended.
func (l *eventLog) ended(x *store.Completion) (slog.Level, string) {
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

// attributes returns those of an event. Unsaid is how many lines about trouble were left out before.
func attributes(e event.Event, unsaid int) (attrs []slog.Attr) {
	switch e.Type {
	case event.EventDraining:
		if e.Err != nil {
			attrs = append(attrs, slog.String(KeyReason, oneLine(e.Err.Error())))
		}
	case event.EventReturned, event.EventRetained:
		attrs = append(attrs, slog.Int(KeyCount, e.Count))
	case event.EventSlots:
		attrs = append(attrs, slog.Int(KeySlots, e.Count), slog.String(KeyReason, e.Why))
	case event.EventBurial, event.EventSettled:
		attrs = append(attrs, slog.Int(KeyCount, e.Count), slog.Int(KeyBegun, e.Begun))
		if e.Other != nil {
			attrs = append(attrs, slog.String(KeyBuried, e.Other.Instance))
		}
	case event.EventStarted:
		attrs = append(attempt(e.Job, e.Job.Attempt), slog.Int(KeySlot, e.Slot))
	case event.EventEnded, event.EventFailed:
		attrs = ended(e)
	case event.EventLeaseAcquired:
		attrs = append(attrs, slog.String(KeyLease, e.Lease))
	case event.EventLeaseLost:
		attrs = append(attrs, slog.String(KeyLease, e.Lease), slog.String(KeyReason, oneLine(fmt.Sprint(e.Err))))
	case event.EventPaused:
		attrs = append(attrs, slog.String(KeyLimit, e.Limit), slog.Duration(KeyWait, e.Wait.Round(time.Millisecond)), slog.String(KeyReason, oneLine(e.Why)))
	case event.EventTrouble:
		attrs = append(attrs, slog.String(KeyError, oneLine(fmt.Sprint(e.Err))))
		if unsaid > 0 {
			attrs = append(attrs, slog.Int(KeyMissing, unsaid))
		}
		if e.Job != nil {
			attrs = append(attrs, slog.Int64(KeyJob, int64(e.Job.ID)), slog.String(KeyKind, e.Job.Kind))
		}
	}
	return attrs
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

// SQL returns a function for the field OnQuery of a store's configuration. It logs each statement
// that took slowerThan or longer, or failed: its text, duration, error, and how many rows it
// returned or changed. Zero logs all. The level is info, and warn for failures. Arguments are never
// logged. A nil logger is [slog.Default] at the time of each statement.
func SQL(logger *slog.Logger, slowerThan time.Duration) func(event.Query) {
	return func(q event.Query) {
		if q.Took < slowerThan && q.Err == nil {
			return
		}
		level := slog.LevelInfo
		if q.Err != nil {
			level = slog.LevelWarn
		}
		write(logger, level, "statement", func() []slog.Attr {
			attrs := []slog.Attr{inUnits(KeyTook, q.Took.Round(time.Microsecond)), slog.Int64(KeyRows, q.Rows)}
			if q.Err != nil {
				attrs = append(attrs, slog.String(KeyError, oneLine(q.Err.Error())))
			}
			return append(attrs, slog.String(KeySQL, strings.Join(strings.Fields(q.Text), " ")))
		})
	}
}

// inUnits writes a duration as text, such as "1.5s": slog's JSON handler writes bare nanoseconds.
func inUnits(key string, d time.Duration) slog.Attr { return slog.String(key, d.String()) }

// oneLine makes a message one line; some drivers' messages have several.
func oneLine(message string) string {
	return strings.Join(strings.FieldsFunc(message, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " ")
}
