package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Bounds of one call that records steps.
const (
	maxStepBatch = 500
	maxStepBytes = 8 << 20
)

// steps is an attempt as its steps see it: what they came to is in the store.
type steps attempt

// Recorded reads what earlier runs of the job recorded. It waits out an outage of the database as long as
// the engine would.
func (a *steps) Recorded(ctx context.Context) ([]stint.RecordedStep, error) {
	k, ok := a.s.store.(store.StepKeeper)
	if !ok {
		return nil, fmt.Errorf("the store keeps no steps: %w", errors.ErrUnsupported)
	}
	ctx, stop := a.lasting(ctx)
	defer stop()
	limit, cancel := context.WithTimeout(ctx, max(a.s.config.MaxOutage, a.s.config.TimeToLive))
	defer cancel()
	for wait := new(backoff); ; {
		recorded, err := k.Steps(limit, a.task.entry.ID)
		if err == nil {
			return recorded, nil
		}
		if errors.Is(err, store.ErrSchema) || errors.Is(err, errors.ErrUnsupported) {
			return nil, err
		}
		a.s.trouble(ctx, "read steps", err)
		if a.s.fenced() || !wait.sleep(limit) {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

// Record records a step of the attempt, also one that was told to end meanwhile. It keeps the attempt
// from ending.
func (a *steps) Record(ctx context.Context, tx stint.Tx, name string, began time.Time, result json.RawMessage) (json.RawMessage, error) {
	return a.record(ctx, tx, store.StepRecord{Name: name, Began: began, Result: result})
}

// Take records the step that takes a signal in the same way.
func (a *steps) Take(ctx context.Context, name, signal string, until time.Time) (json.RawMessage, error) {
	if _, ok := a.s.store.(store.Signaler); !ok {
		return nil, fmt.Errorf("the store keeps no signals: %w", errors.ErrUnsupported)
	}
	return a.record(ctx, stint.Tx{}, store.StepRecord{Name: name, Began: time.Now(), Signal: signal, Until: until})
}

// Ask records a question in the same way.
func (a *steps) Ask(ctx context.Context, name string, q stint.Question) (stint.RecordedStep, error) {
	if _, ok := a.s.store.(store.Questioner); !ok {
		return stint.RecordedStep{}, fmt.Errorf("the store keeps no questions: %w", errors.ErrUnsupported)
	}
	return a.recordStep(ctx, stint.Tx{}, store.StepRecord{Name: name, Began: time.Now(), Question: &q})
}

func (a *steps) record(ctx context.Context, tx stint.Tx, step store.StepRecord) (json.RawMessage, error) {
	r, err := a.recordStep(ctx, tx, step)
	return r.Result, err
}

func (a *steps) recordStep(ctx context.Context, tx stint.Tx, step store.StepRecord) (recorded stint.RecordedStep, err error) {
	(*attempt)(a).passes(step.Name, false, tx.Handle != nil)
	defer func() {
		if err == nil {
			(*attempt)(a).passes(step.Name, true, false)
		}
	}()
	t := a.task
	step.Claim, step.Pos, step.Job, step.Ended = t.claim.ref, t.entry.Pos, t.entry.ID, time.Now()
	r := &stepRequest{step: step}
	a.mu.Lock()
	if a.runContext.closed.Load() {
		a.mu.Unlock()
		return recorded, stint.ErrNoAttempt
	}
	a.recording.Add(1)
	a.mu.Unlock()
	defer a.recording.Done()
	if tx.Handle != nil {
		recorded.Result = step.Result
		return recorded, a.s.recordStepTx(ctx, tx, step)
	}
	r.done = make(chan struct{})
	ctx, stop := a.lasting(ctx)
	defer stop()
	select {
	case a.s.stepRequests <- r:
	case <-a.s.stepsOver:
		return recorded, stint.ErrFenced
	case <-ctx.Done():
		return recorded, errors.Join(context.Cause(ctx), errStepUnknown)
	}
	select {
	case <-r.done:
		return r.recorded, r.err
	case <-ctx.Done(): // the claim decides whether it is recorded yet
		return recorded, errors.Join(context.Cause(ctx), errStepUnknown)
	}
}

// recordAfter is for how long a run that was told to end goes on to wait for what is recorded of its steps:
// less than a stop leaves it.
const recordAfter = 3 * time.Second

var errStepUnknown = errors.New("stint: the record of the step was not answered in time")

// lasting returns a context that ends some time after that of a call, its run, or the session's work has.
func (a *steps) lasting(ctx context.Context) (_ context.Context, stop func()) {
	lasts, end := context.WithCancelCause(context.WithoutCancel(ctx))
	var unhook []func() bool
	for _, of := range []context.Context{ctx, &a.runContext, a.s.work} {
		unhook = append(unhook, context.AfterFunc(of, func() { sleep(lasts, recordAfter); end(context.Cause(of)) }))
	}
	return lasts, func() {
		for _, forget := range unhook {
			forget()
		}
		end(nil)
	}
}

// Err says that no step begins once the engine was fenced off: its record would be refused.
func (a *steps) Err() error {
	if a.s.fenced() {
		return stint.ErrFenced
	}
	return nil
}

// Now is the time by the store's clock.
func (a *steps) Now() time.Time { return a.s.clock.at(time.Now()) }

// stepRequest is a step that is to be recorded.
type stepRequest struct {
	step     store.StepRecord
	recorded stint.RecordedStep
	err      error
	done     chan struct{} // closed when recorded and err are final
}

func (r *stepRequest) answer(recorded stint.RecordedStep, err error) {
	r.recorded, r.err = recorded, err
	close(r.done)
}

// recordSteps records what handlers ask for. Requests gather while those before are recorded.
func (s *session) recordSteps(ctx context.Context) {
	defer close(s.stepsOver)
	var batch []*stepRequest
	for {
		select {
		case r := <-s.stepRequests:
			batch = s.gatherSteps(append(batch[:0], r))
			s.recordBatch(ctx, batch)
			clear(batch)
		case <-ctx.Done():
			return
		}
	}
}

// gatherSteps adds the requests that have arrived meanwhile.
func (s *session) gatherSteps(batch []*stepRequest) []*stepRequest {
	for bytes := len(batch[0].step.Result); len(batch) < maxStepBatch && bytes < maxStepBytes; {
		select {
		case r := <-s.stepRequests:
			batch, bytes = append(batch, r), bytes+len(r.step.Result)
		default:
			return batch
		}
	}
	return batch
}

// recordBatch records steps, and tries again until they are recorded, the session has lost its place, or
// ctx ends. Whether a lost answer was a commit need not be known: the first record counts.
func (s *session) recordBatch(ctx context.Context, batch []*stepRequest) {
	steps := make([]store.StepRecord, len(batch))
	for i, r := range batch {
		steps[i] = r.step
	}
	wait := new(backoff)
	for {
		recorded, err := s.callSteps(ctx, steps)
		switch {
		case err == nil:
			for i, r := range batch {
				if recorded[i].Name == "" {
					r.answer(stint.RecordedStep{}, store.ErrStepRefused)
					continue
				}
				r.answer(recorded[i], nil)
			}
			return
		case errors.Is(err, stint.ErrUnstorable) && len(batch) > 1:
			s.recordBatch(ctx, batch[:len(batch)/2])
			s.recordBatch(ctx, batch[len(batch)/2:])
			return
		case errors.Is(err, store.ErrBuried):
			s.fence()
		}
		if s.fenced() || ctx.Err() != nil || errors.Is(err, store.ErrBuried) || errors.Is(err, stint.ErrUnstorable) {
			for _, r := range batch {
				r.answer(stint.RecordedStep{}, err)
			}
			return
		}
		s.trouble(s.work, "record steps", fmt.Errorf("%d of them: %w", len(batch), err))
		wait.sleep(ctx)
	}
}

func (s *session) callSteps(signals context.Context, steps []store.StepRecord) ([]stint.RecordedStep, error) {
	ctx, cancel := s.untilFenced()
	defer cancel()
	defer context.AfterFunc(signals, cancel)()
	moves := s.moves.Load()
	recorded, err := s.store.(store.StepKeeper).RecordSteps(ctx, s.token, steps)
	if err == nil && s.movedSince(moves) {
		err = store.ErrBuried
	}
	return recorded, err
}

// recordStepTx records a step in the handler's transaction.
func (s *session) recordStepTx(ctx context.Context, tx stint.Tx, step store.StepRecord) error {
	if s.fenced() {
		return store.ErrBuried
	}
	moves := s.moves.Load()
	err := s.store.(store.StepKeeper).RecordStepTx(ctx, tx, s.token, step)
	if err == nil && s.movedSince(moves) {
		err = stint.ErrCommitUnknown
	}
	return err
}
