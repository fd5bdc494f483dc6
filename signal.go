package stint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint/internal/failure"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

// ErrNoSignal says that the time of an [Await] was over before the signal came.
var ErrNoSignal = errors.New("stint: the signal did not come in time")

// Signal is what somebody tells a job: see [Client.Signal].
type Signal struct {
	Name  string          // 1 to 255 bytes
	Value json.RawMessage // at most 1 MiB
	Key   string          // of several signals of a job with the same key, the first one counts; empty for none
}

// SentSignal is a signal that was sent to a job.
type SentSignal struct {
	N     int64           `json:"n" doc:"Its number: signals that are sent later have higher ones"`
	Name  string          `json:"name"`
	Sent  time.Time       `json:"sent" doc:"When"`
	Key   string          `json:"key,omitempty" doc:"Of several with the same key the first one counts"`
	Step  string          `json:"step,omitempty" doc:"The step of the job that took it; absent while none has"`
	Value json.RawMessage `json:"value,omitempty" doc:"What was sent with it; absent if it is hidden"`
}

// Await waits for a signal that is sent to the handler's job under a name ([Client.Signal]), and returns
// what was sent with it. The job's run need not last as long: as in a [Sleep], the wait leaves slot and
// limits to others, uncharged, and can last for months.
//
//	d, err := stint.Await[Decision](ctx, "approved", 72*time.Hour)
//	if errors.Is(err, stint.ErrNoSignal) {
//		return remind(ctx, order) // nobody decided
//	} else if err != nil {
//		return err
//	}
//
// A signal may come before the handler waits for it: it is kept for the job. Each is taken once, by one step, in the
// order of their numbers. That is recorded as a step of the signal's name, and returned by later runs.
// When the time is over and no signal is there, [ErrNoSignal] is recorded in the same way, so a signal that
// comes later changes nothing. The time counts from the first run that comes to the wait, which records when
// it ends as the step "NAME until"; zero looks whether the signal is there. It is at most [retry.MaxWait].
//
// Any other error ends the run: return it at once. What [Sleep] says of that, and of waits at the same
// time, holds here too: a job that waits for several signals runs when the first of them has come.
//
// What was sent and does not decode into T is [ErrStepChanged], and the job is not retried. The name has 1 to
// 240 bytes. A [Run] that has no Steps knows of no signals, and the error matches [errors.ErrUnsupported].
func Await[T any](ctx context.Context, name string, d time.Duration) (T, error) {
	return AwaitAs[T](ctx, name, name, d)
}

// AwaitAs is [Await] with a name for the step that takes the signal, such as fmt.Sprintf("page %d", n) for
// the nth of several signals of one name. The step's name has 1 to 240 bytes, the signal's 1 to 255.
func AwaitAs[T any](ctx context.Context, step, signal string, d time.Duration) (value T, err error) {
	run := runFrom(ctx)
	if run == nil {
		return value, ErrNoAttempt
	}
	recorded, err := run.await(ctx, step, signal, d)
	if err != nil {
		return value, err
	}
	var taken struct {
		Value   json.RawMessage `json:"value"`
		Timeout bool            `json:"timeout"`
	}
	err = json.Unmarshal(recorded, &taken)
	switch {
	case err == nil && taken.Timeout:
		return value, fmt.Errorf("%w: %q, by the step %q", ErrNoSignal, signal, step)
	case err == nil:
		err = json.Unmarshal(taken.Value, &value)
	}
	if err != nil {
		err = NoRetry(fmt.Errorf("%w: step %q took the signal %.200s: %w", ErrStepChanged, step, recorded, err))
	}
	return value, err
}

// maxAwait is how long the name of a step that awaits something may be, which that of its end adds to.
const maxAwait = 240

// await returns what is recorded of a wait for a signal.
func (a *Run) await(ctx context.Context, name, signal string, d time.Duration) (json.RawMessage, error) {
	if err := valid.Name("signal", signal); err != nil {
		return nil, NoRetry(err)
	}
	if len(name) > maxAwait {
		return nil, NoRetry(valid.Invalid("step", "its name has more than %d bytes", maxAwait))
	}
	if a.Steps == nil {
		return nil, fmt.Errorf("stint: Await needs the run of an engine, which has the signals: %w", errors.ErrUnsupported)
	}
	return a.step(ctx, true, Tx{}, name, func(s *steps) (json.RawMessage, error) {
		if err := s.awaiting(name); err != nil {
			return nil, err // the next run takes it, which its signal wakes
		}
		if err := s.noQuestion(name); err != nil {
			return nil, err
		}
		ends := name + awaitEnds
		defer s.failed(ends) // it belongs to this one, which may be called again
		until, err := step(ctx, true, Tx{}, ends, func(context.Context) (time.Time, error) {
			return a.now().Add(min(max(0, d), retry.MaxWait)), nil
		})
		if err != nil {
			return nil, err
		}
		taken, err := a.Steps.Take(ctx, name, signal, until)
		switch {
		case err != nil:
			return nil, fmt.Errorf("take the signal %q as step %q: %w", signal, name, err)
		case taken == nil:
			return nil, s.suspend(newAwaiting(map[string]string{name: signal}, nil, until, until.Sub(a.now())))
		}
		s.add(compactLen(taken))
		return taken, nil
	})
}

// awaitEnds is what the step of an await that says until when it waits has behind its name.
const awaitEnds = " until"

// newAwaiting is what ends a run whose job waits for signals, by the steps that wait for them, for answers, or for jobs that
// steps have called.
func newAwaiting(awaits map[string]string, asked map[string]ID, until time.Time, wait time.Duration) *suspended {
	signals, open := failure.Awaited(awaits)
	var questions []string
	var jobs []int64
	for _, name := range open {
		if job := asked[name]; job != 0 {
			jobs = append(jobs, int64(job))
		} else {
			questions = append(questions, name)
		}
	}
	why := words.Awaits(signals, questions, jobs...)
	if len(jobs) < len(awaits) {
		why += " until " + until.UTC().Format(time.RFC3339)
	}
	return &suspended{until, failure.Snooze{Wait: max(0, wait), Why: why, Awaits: awaits}}
}

// ErrEnded says that a job has ended, or was cancelled, so that a signal or an answer would come too late.
var ErrEnded = errors.New("stint: the job has ended")

// Signal sends a signal to a job, whose handler takes it by [Await]: before it runs, while it waits or between
// two attempts. The value is encoded as JSON and has at most 1 MiB. Signals of one name are taken in the order
// of their numbers, which they get when they are sent; one that is committed late can be taken late.
//
// In a transaction of the caller's ([Client.With]) it is sent if and when that commits. The error is
// [ErrNotFound] if there is no such job, [ErrEnded] if it comes too late; it matches
// [ErrInvalid] if the job has got 10,000 signals or 16 MiB of them, and [errors.ErrUnsupported] if the store keeps no signals. After an error that leaves a commit unknown it may
// have been sent: [Client.SignalOnce] can be repeated.
func (c *Client) Signal(ctx context.Context, job ID, name string, value any) error {
	return c.signal(ctx, job, Signal{Name: name}, value)
}

// SignalOnce is [Client.Signal] with a key of 1 to 255 bytes: of several signals of a job with that key the
// first one counts, and the others do nothing.
func (c *Client) SignalOnce(ctx context.Context, job ID, key, name string, value any) error {
	if err := valid.Name("key", key); err != nil {
		return err
	}
	return c.signal(ctx, job, Signal{Name: name, Key: key}, value)
}

func (c *Client) signal(ctx context.Context, job ID, s Signal, value any) (err error) {
	if c == nil {
		return ErrNoAttempt
	}
	store, ok := c.store.(interface {
		Signal(ctx context.Context, tx Tx, job ID, s Signal) error
	})
	if !ok {
		return fmt.Errorf("stint: the store %T keeps no signals: %w", c.store, errors.ErrUnsupported)
	}
	if s.Value, err = json.Marshal(value); err != nil {
		return fmt.Errorf("encode the value of the signal: %w", err)
	}
	if err := s.Check(); err != nil {
		return err
	}
	return store.Signal(ctx, c.tx, job, s)
}

// Check says what is wrong with a signal. The error matches [ErrInvalid].
func (s *Signal) Check() error {
	err := cmp.Or(valid.Name("signal", s.Name), valid.JSON("value", s.Value, maxStepResult))
	if err == nil && s.Key != "" {
		err = valid.Name("key", s.Key)
	}
	return err
}
