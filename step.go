package stint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-go/stint/internal/failure"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// Bounds of the steps of one job.
const (
	MaxSteps     = 10_000   // how many
	MaxStepBytes = 16 << 20 // their results as JSON together; 1 MiB each
)

// inPlace is how long a [Sleep] waits in its slot.
const inPlace = 5 * time.Second

// ErrStepChanged says that what was recorded of a step does not decode into the type that the program
// has now.
var ErrStepChanged = errors.New("stint: the recorded step is of another type")

// RecordedStep is what a step came to.
type RecordedStep struct {
	Name   string          `json:"name"`
	Began  time.Time       `json:"began" doc:"When it began, as the attempt saw it that recorded it"`
	Ended  time.Time       `json:"ended" doc:"When it was recorded"`
	Result json.RawMessage `json:"result" doc:"What it returned"`
}

// Step does a part of a handler's work once. What f returns is recorded with the job under the name of
// the step; when the job runs again, Step returns that and f is not called. So a handler whose process
// died, or that failed, goes on where it was:
//
//	ref, err := stint.Step(ctx, "charge", func(ctx context.Context) (string, error) {
//		return bank.Charge(ctx, order.Total)
//	})
//	if err != nil {
//		return err
//	}
//
// Only a success is recorded. After an error the job's retry policy decides as about any error, and the
// next run does the step again; a handler may also call Step again itself.
//
// If the process dies after f has returned and before that is recorded, f is called again: give what it
// calls an idempotency key, such as the job's id and the step's name. [StepTx] does what f writes to the
// database exactly once.
//
// A step is known by its name, not by its place: steps may be added, removed and moved between versions
// of a program while jobs are under way. One whose meaning changes needs a new name. In a loop each step
// needs a name of its own, such as fmt.Sprintf("page %d", n): the second success of a name in one run is
// an error. Steps of one run may be done at the same time, and in each other.
//
// R is encoded as JSON, and what Step returns has been through that also the first time. A result that
// does not decode into R is [ErrStepChanged], after which the job is not retried. A name has 1 to 255
// bytes, a result at most 1 MiB, and a job at most [MaxSteps] with [MaxStepBytes] together.
//
// ctx is that of a running handler, or derived from it; anything else is [ErrNoAttempt]. In a test that
// calls a handler with a [Run] of its own, steps are kept in that.
func Step[R any](ctx context.Context, name string, f func(ctx context.Context) (R, error)) (R, error) {
	return step(ctx, Tx{}, name, f)
}

// StepTx is [Step] for what f writes in a transaction: that and the record are stored together, or
// neither is, so f takes effect exactly once. StepTx commits the transaction. If the step was recorded
// by an earlier run the transaction is left as it is.
//
//	tx, err := pool.Begin(ctx)
//	if err != nil {
//		return err
//	}
//	defer tx.Rollback(ctx) // does nothing after the commit
//	id, err := stint.StepTx(ctx, postgres.Tx(tx), "book", func(ctx context.Context) (int, error) {
//		…
//	})
//
// After an error nothing of the transaction stays, unless it matches [ErrCommitUnknown]: then the next
// run finds out.
func StepTx[R any](ctx context.Context, tx Tx, name string, f func(ctx context.Context) (R, error)) (R, error) {
	if tx.Handle == nil {
		var none R
		return none, valid.Invalid("transaction", "there is none")
	}
	return step(ctx, tx, name, f)
}

// Sleep waits for a time, of which the job's run need not last: a long wait ends the run and leaves its
// slot and its limits to others, uncharged, and the job runs again when the time has come. So it can wait
// for months, over deployments and crashes.
//
//	if err := stint.Sleep(ctx, "trial period", 14*24*time.Hour); err != nil {
//		return err
//	}
//
// The error ends the run: return it at once. A handler that returns nil instead is run again all the same
// and the attempt says so; its other errors count as always. Until the time has come every
// Sleep and Step of the run is refused with that error.
//
// When it ends is fixed, as a step of that name, by the first run that comes to it: neither a retry nor
// another duration begins it anew. Up to five seconds are waited for in the run. It is at most
// [retry.MaxWait].
func Sleep(ctx context.Context, name string, d time.Duration) error {
	run, first := runFrom(ctx), false
	wake, err := Step(ctx, name, func(context.Context) (time.Time, error) {
		first = true
		return run.now().Add(min(max(0, d), retry.MaxWait)), nil
	})
	if err != nil {
		return err
	}
	wait := wake.Sub(run.now())
	if wait > inPlace {
		s := newSuspended(name, wake, wait)
		slept := false
		if !first {
			if slept, err = run.slept(ctx, s); err != nil {
				return err
			}
		}
		if !slept {
			kept := run.kept()
			if kept == nil {
				return ErrNoAttempt
			}
			return kept.suspend(s)
		}
		wait = 0
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// slept reports whether a run of the job ended with a sleep before: who runs it again before its
// time wakes it.
func (a *Run) slept(ctx context.Context, s *suspended) (bool, error) {
	if a.Reader == nil {
		return false, nil
	}
	job, err := a.Reader.Job(ctx, a.Job.ID)
	if err != nil {
		return false, fmt.Errorf("look whether the job slept: %w", err)
	}
	return slices.ContainsFunc(job.Attempts, func(x Attempt) bool {
		return x.Outcome == OutcomeSnoozed && x.Reason == s.as.Why
	}), nil
}

// suspended is the error that ends a run whose job waits.
type suspended struct {
	until time.Time
	as    failure.Snooze
}

func newSuspended(name string, until time.Time, wait time.Duration) *suspended {
	return &suspended{until, failure.Snooze{Wait: wait, Why: fmt.Sprintf("step %q sleeps until %s", name, until.UTC().Format(time.RFC3339))}}
}

func (s *suspended) Error() string {
	return "stint: " + s.as.Why + "; the handler must return this error"
}

// Unwrap is what the error means for the run.
func (s *suspended) Unwrap() error { return &s.as }

// steps are those of one run.
type steps struct {
	load sync.Mutex // held while they are read

	mu        sync.Mutex // guards what follows
	loaded    bool
	recorded  map[string]json.RawMessage
	bytes     int
	called    map[string]string // where each step was called that runs or succeeded in this run
	suspended *suspended
}

// kept are the steps of the run, which most runs do without; nil when the run is over.
func (a *Run) kept() *steps {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil
	}
	if a.steps == nil {
		a.steps = new(steps)
	}
	return a.steps
}

func (a *Run) now() time.Time {
	if a.Steps == nil {
		return time.Now()
	}
	return a.Steps.Now()
}

// suspend ends the run. Of several sleeps the first to be over counts.
func (s *steps) suspend(err *suspended) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended == nil || err.until.Before(s.suspended.until) {
		s.suspended = err
	}
	return s.suspended
}

// end is what counts of what a handler returned: one whose run was suspended has not completed.
func (s *steps) end(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.suspended == nil || err != nil && !errors.As(err, new(*suspended)):
		return err
	case err == nil:
		noted := *s.suspended
		noted.as.Why += "; its handler did not return the error that stint.Sleep gave it"
		s.suspended = &noted
	}
	return s.suspended
}

// read makes sure that what earlier runs recorded is known.
func (s *steps) read(ctx context.Context, a *Run) error {
	s.load.Lock()
	defer s.load.Unlock()
	if s.loaded {
		return nil
	}
	recorded, called := map[string]json.RawMessage{}, map[string]string{}
	bytes := 0
	if a.Steps != nil {
		all, err := a.Steps.Recorded(ctx)
		if err != nil {
			return fmt.Errorf("read the steps of the job: %w", err)
		}
		for _, r := range all {
			recorded[r.Name] = r.Result
			bytes += len(r.Result)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded, s.recorded, s.called, s.bytes = true, recorded, called, bytes
	return nil
}

// begin returns what was recorded of a step, or nil if it is to be done.
func (s *steps) begin(name, from string) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended != nil {
		return nil, s.suspended
	}
	if before, twice := s.called[name]; twice {
		return nil, NoRetry(fmt.Errorf("stint: the step %q is called at %s and at %s in one run: each needs a name of its own", name, before, from))
	}
	s.called[name] = from
	known := s.recorded[name]
	if known == nil && len(s.recorded) >= MaxSteps {
		return nil, NoRetry(fmt.Errorf("stint: the job has %d steps, and may have no more", MaxSteps))
	}
	return known, nil
}

// failed lets a step be called again in the run.
func (s *steps) failed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.called, name)
}

// reserve makes room for what a step came to, or takes it back.
func (s *steps) reserve(name string, bytes int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+bytes > MaxStepBytes {
		return NoRetry(fmt.Errorf("stint: with the step %q the results of the job's steps are more than %d bytes", name, MaxStepBytes))
	}
	s.bytes += bytes
	return nil
}

func step[R any](ctx context.Context, tx Tx, name string, f func(ctx context.Context) (R, error)) (result R, err error) {
	run := runFrom(ctx)
	if run == nil {
		return result, ErrNoAttempt
	}
	known, err := run.step(ctx, tx, name, func() (any, error) { v, err := f(ctx); return &v, err })
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(known, &result); err != nil {
		return result, NoRetry(fmt.Errorf("%w: step %q, recorded as %.200s: %w", ErrStepChanged, name, known, err))
	}
	return result, nil
}

// step returns what is recorded of a step, which it does if there is nothing.
func (a *Run) step(ctx context.Context, tx Tx, name string, f func() (any, error)) (result json.RawMessage, err error) {
	if err := valid.Name("step", name); err != nil {
		return nil, NoRetry(err)
	}
	s := a.kept()
	if s == nil {
		return nil, ErrNoAttempt
	}
	if err := s.read(ctx, a); err != nil {
		return nil, err
	}
	known, err := s.begin(name, caller())
	if err != nil || known != nil {
		return known, err
	}
	done := false
	defer func() {
		if !done {
			s.failed(name)
		}
	}()
	began := time.Now()
	value, err := f()
	if err != nil {
		return nil, err
	}
	if result, err = json.Marshal(value); err == nil {
		err = valid.JSON("result", result, maxStepResult)
	}
	if err != nil {
		// Another run would not make it encodable.
		return nil, NoRetry(fmt.Errorf("encode what step %q returned: %w", name, err))
	}
	if err := s.reserve(name, len(result)); err != nil {
		return nil, err
	}
	if a.Steps != nil {
		size := len(result)
		if result, err = a.Steps.Record(ctx, tx, name, began, result); err != nil {
			_ = s.reserve(name, -size)
			return nil, fmt.Errorf("record step %q: %w", name, err)
		}
	}
	s.note(name, result)
	done = true
	return result, nil
}

// note keeps what was recorded.
func (s *steps) note(name string, result json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded[name] = result
}

const maxStepResult = 1 << 20

// caller is where the program called Step, StepTx or Sleep.
func caller() string {
	pc := make([]uintptr, 8)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		f, more := frames.Next()
		if !more || !strings.HasPrefix(f.Function, "github.com/stint-go/stint.") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
	}
}
