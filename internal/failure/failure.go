// Package failure is what an error means for the attempt that it ended: whether
// it asks for another ending than failure, and its text.
package failure

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// As finds an error of a type in another one, which runs methods of that: a nil
// pointer in an error, say, has them, and they panic. Then nothing is found.
func As[E error](err error) (found E, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return errors.AsType[E](err)
}

// Message is the text of an error, also of one whose method panics.
func Message(err error) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("(the error cannot be shown: its method Error panicked: %v)", v)
		}
	}()
	return err.Error()
}

// NoRetry is an error after which the job is not tried again.
type NoRetry struct{ Err error }

func (e *NoRetry) Error() string { return e.Err.Error() }

// Unwrap is the error itself.
func (e *NoRetry) Unwrap() error { return e.Err }

// Snooze asks for the job to be run again later, and for a limit to be paused so long, unless that is
// empty.
type Snooze struct {
	Wait  time.Duration
	Limit string
	Why   string // for people; empty for nothing to say

	Awaits map[string]string // by step the signals that have it run earlier, or nothing for the answer to the question that the step asks, or the end of the job that it called; nil for none
}

func (e *Snooze) Error() string { return "stint: run again in " + e.Wait.String() }

// Cancel asks for the job to be cancelled.
type Cancel struct{ Why string }

func (e *Cancel) Error() string { return "stint: cancelled: " + e.Why }

// Return asks for the job to go back to the front of its queue, uncharged.
type Return struct{ Why string }

func (e *Return) Error() string { return "stint: returned: " + e.Why }

// Foreign is an error of a program in another language.
type Foreign struct{ Class, Message, Stack string }

func (e *Foreign) Error() string { return e.Message }

// ErrorClass names what it is, as that program calls it.
func (e *Foreign) ErrorClass() string { return e.Class }

// Awaited tells the signals of [Snooze.Awaits] from the questions: each once, in order.
func Awaited(awaits map[string]string) (signals, questions []string) {
	for step, signal := range awaits {
		if signal == "" {
			questions = append(questions, step)
		} else {
			signals = append(signals, signal)
		}
	}
	slices.Sort(signals)
	slices.Sort(questions)
	return slices.Compact(signals), questions
}
