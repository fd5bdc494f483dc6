package stint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// RecordedStep is what a step came to, or a question that has no answer yet.
type RecordedStep struct {
	Name     string
	Began    time.Time       // when it began, as the attempt saw it that recorded it, or was asked
	Ended    time.Time       // when it was recorded; the zero time while a question is open
	Result   json.RawMessage // what it returned; nil while a question is open
	Question *Question       // what it asked people, or which job it called; nil for other steps
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
// an error. Steps of one run may be done at the same time, and in each other, but not in a [StepTx].
//
// R is encoded as JSON, and what Step returns has been through that also the first time. A result that
// does not come back is an error, and one of an earlier run that does not decode into R is
// [ErrStepChanged]: the job is not retried after either. A name has 1 to 255 bytes, a result at most
// 1 MiB, and a job at most [MaxSteps] with [MaxStepBytes] together.
//
// Once ctx or the run's own has ended, Step waits at most three seconds more for its record; whether that
// was made is then unknown, and the next run finds out. It is made on a connection of its own: on SQLite
// it waits for every transaction that writes, so do not call it while the handler holds one.
//
// ctx is that of a running handler, or derived from it; anything else is [ErrNoAttempt]. In a test that
// calls a handler with a [Run] of its own, steps are kept in that.
func Step[R any](ctx context.Context, name string, f func(ctx context.Context) (R, error)) (R, error) {
	return step(ctx, false, Tx{}, name, f)
}

// StepTx is [Step] for what f writes in a transaction: that and the record are stored together, or
// neither is, so f takes effect exactly once. StepTx commits the transaction. If the step was recorded
// by an earlier run it rolls it back, so that its connection is free for what follows.
//
//	tx, err := pool.Begin(ctx)
//	if err != nil {
//		return err
//	}
//	defer tx.Rollback(ctx) // after an error; does nothing after StepTx
//	id, err := stint.StepTx(ctx, postgres.Tx(tx), "book", func(ctx context.Context) (int, error) {
//		…
//	})
//
// After an error nothing of the transaction stays, unless it matches [ErrCommitUnknown]: then the next
// run finds out. The record waits for as long as ctx lasts. f calls no other step and no sleep: they would
// wait for this transaction. A [Run] that has no Steps cannot commit, so that StepTx does nothing there and
// its error matches [errors.ErrUnsupported].
func StepTx[R any](ctx context.Context, tx Tx, name string, f func(ctx context.Context) (R, error)) (R, error) {
	if tx.Handle == nil {
		var none R
		return none, valid.Invalid("transaction", "there is none")
	}
	return step(ctx, false, tx, name, f)
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
// and the attempt says so; its other errors count as always, also those joined with this one, but for what
// wraps the two together, of which [NoRetry] alone counts. Until the time has come every Step of the run is
// refused with that error, also one of another goroutine: of sleeps at the same time the first to be over
// has the job run again, and what follows waits for them all.
//
// When it ends is fixed, as a step of that name, by the first run that comes to it: neither a retry nor
// another duration begins it anew. Up to five seconds are waited for in the run, unless another sleep ends
// that. It is at most [retry.MaxWait]. A job with an instant to begin by ([StartBy]) must begin again by
// then, too.
func Sleep(ctx context.Context, name string, d time.Duration) (err error) {
	run, first := runFrom(ctx), false
	wake, err := step(ctx, true, Tx{}, name, func(context.Context) (time.Time, error) {
		first = true
		return run.now().Add(min(max(0, d), retry.MaxWait)), nil
	})
	if err != nil {
		return err
	}
	kept, err := run.kept()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && !onlySleeps(err) {
			kept.failed(name)
		}
	}()
	wait := wake.Sub(run.now())
	s := newSuspended(name, wake, wait)
	if wait > inPlace {
		if first || !run.slept(ctx, s) {
			return kept.suspend(s)
		}
		wait = 0
	}
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-kept.suspends():
	case <-ctx.Done():
		if err := context.Cause(ctx); !onlySleeps(err) {
			return err
		}
	}
	return kept.suspend(s) // beside one that has ended the run
}

// slept reports whether a run of the job ended with a sleep before, so that to run it again before its
// time wakes it. If that cannot be read it has not: it sleeps on.
func (a *Run) slept(ctx context.Context, s *suspended) bool {
	if a.Reader == nil {
		return false
	}
	job, err := a.Reader.Job(ctx, a.Job.ID)
	return err == nil && slices.ContainsFunc(job.Attempts, func(x Attempt) bool {
		return x.Outcome == OutcomeSnoozed && strings.HasPrefix(x.Reason, s.as.Why)
	})
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

// onlySleeps reports whether an error says no more than that the run sleeps.
func onlySleeps(err error) bool { return err != nil && len(withoutSleeps(err)) == 0 }

// withoutSleeps returns what an error says beside that the run sleeps.
func withoutSleeps(err error) (rest []error) {
	if err == nil {
		return nil
	}
	if _, sleeps := failure.As[*suspended](err); !sleeps {
		return []error{err}
	}
	switch e := err.(type) {
	case *suspended:
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			rest = append(rest, withoutSleeps(one)...)
		}
	case interface{ Unwrap() error }:
		rest = withoutSleeps(e.Unwrap())
	}
	return rest
}

// steps are those of one run.
type steps struct {
	load sync.Mutex // held while they are read

	mu        sync.Mutex // guards what follows
	loaded    bool
	recorded  map[string]json.RawMessage
	bytes     int               // of their results, and of those that are being recorded
	running   int               // steps that are not recorded yet
	called    map[string]string // where each step was called in this run; empty once it may be called again
	suspended *suspended
	awaits    map[string]string // the signals that it waits for, by step; empty for the answer to a question
	asked     map[string]ID     // the questions that are kept, or are being, and the jobs that were called
	sleeps    chan struct{}     // closed when suspended is set; nil until somebody waits for that
	dropped   bool              // the handler did not return the error of the sleep
}

// kept are the steps of the run, which most runs do without, while one of them may begin.
func (a *Run) kept() (*steps, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil, ErrNoAttempt
	}
	if a.Steps != nil {
		if err := a.Steps.Err(); err != nil {
			return nil, err
		}
	}
	if a.steps == nil {
		a.steps = new(steps)
	}
	return a.steps, nil
}

// Sleeping is the error of a [Sleep] that has ended the run: it has not completed, whatever its handler
// returns. Nil if there is none.
func (a *Run) Sleeping() error {
	a.mu.Lock()
	s := a.steps
	a.mu.Unlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended == nil {
		return nil
	}
	return s.suspended
}

func (a *Run) now() time.Time {
	if a.Steps == nil {
		return time.Now()
	}
	return a.Steps.Now()
}

// suspend ends the run. Of several waits the first to be over counts, and what they await all together.
func (s *steps) suspend(err *suspended) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended == nil && s.sleeps != nil {
		close(s.sleeps)
	}
	if s.suspended == nil || err.until.Before(s.suspended.until) {
		s.suspended = err
	}
	if len(err.as.Awaits) > 0 {
		if s.awaits == nil {
			s.awaits = map[string]string{}
		}
		maps.Copy(s.awaits, err.as.Awaits)
	}
	return s.suspended
}

// awaiting returns the error that has ended the run, if that is what the step of this name has it wait for.
func (s *steps) awaiting(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, waits := s.awaits[name]; !waits {
		return nil
	}
	return s.suspended
}

// suspends returns a channel that is closed when a sleep ends the run.
func (s *steps) suspends() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sleeps == nil {
		if s.sleeps = make(chan struct{}); s.suspended != nil {
			close(s.sleeps)
		}
	}
	return s.sleeps
}

// end is what counts of the error that a handler returned, or that was set instead, at a time: one whose
// run was suspended has not completed.
func (s *steps) end(returned, err error, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended == nil {
		return err
	}
	s.dropped = s.dropped || returned == nil
	if rest := withoutSleeps(err); len(rest) > 0 {
		if _, final := failure.As[*failure.NoRetry](err); final {
			return NoRetry(errors.Join(rest...))
		}
		return errors.Join(rest...)
	}
	until, wait := s.suspended.until, max(0, s.suspended.until.Sub(now))
	end := &suspended{until, failure.Snooze{Wait: wait, Why: s.suspended.as.Why}}
	gave := "stint.Sleep"
	if len(s.awaits) > 0 {
		end, gave = newAwaiting(maps.Clone(s.awaits), s.asked, until, wait), "stint.Await"
		for name, signal := range s.awaits {
			switch {
			case s.asked[name] != 0:
				gave = "a Call"
			case signal == "":
				gave = "stint.Ask"
			}
		}
	}
	if s.dropped {
		end.as.Why += "; its handler did not return the error that " + gave + " gave it"
	}
	return end
}

// read makes sure that what earlier runs recorded is known.
func (s *steps) read(ctx context.Context, a *Run) error {
	s.load.Lock()
	defer s.load.Unlock()
	if s.loaded {
		return nil
	}
	recorded, called, asked, size := map[string]json.RawMessage{}, map[string]string{}, map[string]ID{}, 0
	if a.Steps != nil {
		all, err := a.Steps.Recorded(ctx)
		if err != nil {
			return fmt.Errorf("read the steps of the job: %w", err)
		}
		for _, r := range all {
			recorded[r.Name] = r.Result
			size += compactLen(r.Result)
			if r.Question != nil {
				asked[r.Name] = r.Question.Job
				size += r.Question.size()
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded, s.recorded, s.called, s.asked, s.bytes = true, recorded, called, asked, size
	return nil
}

// compactLen is how many bytes a result has without the spaces that a database puts in.
func compactLen(result json.RawMessage) int {
	var b bytes.Buffer
	if json.Compact(&b, result) != nil {
		return len(result)
	}
	return b.Len()
}

// begin returns what was recorded of a step, or nil if it is to be done. One that only waits may also begin
// when the run is suspended.
func (s *steps) begin(name, from string, waits bool) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.called[name]
	twice := before != ""
	if s.suspended != nil && (twice || !waits) {
		return nil, s.suspended
	}
	if twice {
		return nil, NoRetry(fmt.Errorf("stint: the step %q is called at %s and at %s in one run: each needs a name of its own", name, before, from))
	}
	known := s.recorded[name]
	if known == nil {
		if len(s.recorded)+s.running >= MaxSteps {
			return nil, NoRetry(fmt.Errorf("stint: the job has %d steps, and may have no more", MaxSteps))
		}
		s.running++
	}
	s.called[name] = from
	return known, nil
}

// failed lets a step be called again in the run.
func (s *steps) failed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called[name] = ""
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

// inStepTx is what the context of what a StepTx does holds under its own type.
type inStepTx struct {
	run  *Run
	name string
}

func step[R any](ctx context.Context, waits bool, tx Tx, name string, f func(ctx context.Context) (R, error)) (result R, err error) {
	run := runFrom(ctx)
	if run == nil {
		return result, ErrNoAttempt
	}
	known, err := run.step(ctx, waits, tx, name, func(s *steps) (json.RawMessage, error) {
		return run.record(ctx, tx, name, s, func() (json.RawMessage, error) {
			if tx.Handle != nil {
				ctx = context.WithValue(ctx, inStepTx{}, inStepTx{run, name})
			}
			value, err := f(ctx)
			if err != nil {
				return nil, err
			}
			return encodeStep(name, &value, new(R))
		})
	})
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(known, &result); err != nil && run.isSealed() {
		return result, NoRetry(fmt.Errorf("%w: step %q", ErrStepChanged, name))
	} else if err != nil {
		return result, NoRetry(fmt.Errorf("%w: step %q, recorded as %.200s: %w", ErrStepChanged, name, known, err))
	}
	return result, nil
}

// encodeStep encodes what a step came to, if that can be decoded again. If it cannot, another run would
// not change that.
func encodeStep(name string, value, again any) (json.RawMessage, error) {
	result, err := json.Marshal(value)
	if err == nil {
		err = valid.JSON("result", result, maxStepResult)
	}
	if err != nil {
		return nil, NoRetry(fmt.Errorf("encode what step %q returned: %w", name, err))
	}
	if err := json.Unmarshal(result, again); err != nil {
		return nil, NoRetry(fmt.Errorf("decode what step %q returned, which is recorded as JSON: %w", name, err))
	}
	return result, nil
}

// step returns what is recorded of a step, which it does and records if there is nothing.
func (a *Run) step(ctx context.Context, waits bool, tx Tx, name string, do func(s *steps) (json.RawMessage, error)) (result json.RawMessage, err error) {
	if err := valid.Name("step", name); err != nil {
		return nil, NoRetry(err)
	}
	if outer, _ := ctx.Value(inStepTx{}).(inStepTx); outer.run == a {
		return nil, NoRetry(fmt.Errorf("stint: the step %q is called in the StepTx %q, for whose transaction it would wait", name, outer.name))
	}
	if tx.Handle != nil && a.Steps == nil {
		return nil, fmt.Errorf("stint: StepTx needs the run of an engine, which commits: %w", errors.ErrUnsupported)
	}
	s, err := a.kept()
	if err != nil {
		return nil, err
	}
	if err := s.read(ctx, a); err != nil {
		return nil, err
	}
	known, err := s.begin(name, caller(), waits)
	if known != nil {
		tx.rollBack(ctx)
	}
	if err != nil || known != nil {
		return known, err
	}
	defer func() { s.ended(name, result) }()
	return do(s)
}

// rollBack ends a transaction that nothing needs, if there is one.
func (tx Tx) rollBack(ctx context.Context) {
	switch h := tx.Handle.(type) {
	case interface{ Rollback(context.Context) error }: // of pgx
		_ = h.Rollback(ctx)
	case interface{ Rollback() error }: // of database/sql
		_ = h.Rollback()
	}
}

// record records what a step comes to.
func (a *Run) record(ctx context.Context, tx Tx, name string, s *steps, f func() (json.RawMessage, error)) (result json.RawMessage, err error) {
	if err := s.noQuestion(name); err != nil {
		return nil, err
	}
	began := time.Now()
	value, err := f()
	if err != nil {
		return nil, err
	}
	if err := s.reserve(name, len(value)); err != nil {
		return nil, err
	}
	if a.Steps == nil {
		return value, nil
	}
	if result, err = a.Steps.Record(ctx, tx, name, began, value); err != nil {
		_ = s.reserve(name, -len(value))
		if err = fmt.Errorf("record step %q: %w", name, err); tx.Handle == nil && errors.Is(err, ErrUnstorable) {
			err = NoRetry(err)
		}
		return nil, err
	}
	return result, nil
}

// add counts what was recorded without a reservation.
func (s *steps) add(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += bytes
}

// ended keeps what was recorded of a step; if that is nothing it may be called again in the run.
func (s *steps) ended(name string, result json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running--; result == nil {
		s.called[name] = ""
		return
	}
	s.recorded[name] = result
}

// StepNames are the names of the steps that the run has called, and of those that earlier runs of the job
// recorded and this one has not come to, each in their order. Of a run that completed the latter say that the
// program has no such step any more, took another way, or that it is part of another step: if it was renamed,
// what it did was done again. Both are nil while the run has called none.
func (a *Run) StepNames() (called, missed []string) {
	a.mu.Lock()
	s := a.steps
	a.mu.Unlock()
	if s == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.recorded {
		_, came := s.called[name]
		if _, awaited := s.called[strings.TrimSuffix(name, awaitEnds)]; !came && !awaited {
			missed = append(missed, name)
		}
	}
	slices.Sort(missed)
	return slices.Sorted(maps.Keys(s.called)), missed
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
