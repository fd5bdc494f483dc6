package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// stepOf names a step.
type stepOf struct {
	job  stint.ID
	name string
}

func (d *database) stepOf(job stint.ID, name string) stepOf {
	if d.is("takes steps for those of every job") {
		job = 0
	}
	return stepOf{job, name}
}

func (m *model) RecordSteps(ctx context.Context, engine store.EngineID, steps []store.StepRecord) ([]stint.RecordedStep, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.engine(engine) == nil && !m.is("records steps for the buried") {
		return nil, store.ErrBuried
	}
	recorded := make([]stint.RecordedStep, len(steps))
	for _, i := range m.stepOrder(steps) {
		s := steps[i]
		if s.Question != nil {
			r, err := m.ask(engine, s)
			if err != nil {
				return nil, err
			}
			recorded[i] = r
			continue
		}
		if s.Signal != "" {
			r, err := m.takeSignal(engine, s)
			if err != nil {
				return nil, err
			}
			recorded[i] = r
			continue
		}
		if _, err := m.recordStep(engine, s); err != nil {
			return nil, err
		}
		if recorded[i] = m.steps[m.stepOf(s.Job, s.Name)]; recorded[i].Result == nil && recorded[i].Question != nil && !m.is("takes an open question for a step") {
			recorded[i] = stint.RecordedStep{}
		}
		recorded[i].Question = nil
		if m.is("answers with what it was given") && recorded[i].Result != nil {
			recorded[i].Result = s.Result
		}
	}
	return recorded, nil
}

// recordStep records a step unless it is there, or its attempt cannot, and reports whether it did.
func (d *database) recordStep(engine store.EngineID, s store.StepRecord) (bool, error) {
	key := d.stepOf(s.Job, s.Name)
	_, there := d.steps[key]
	_, over := d.done[s.Pos]
	switch {
	case there && !d.is("takes the last record of a step"),
		over && !d.is("records a step of an attempt that has ended"),
		d.deleted[s.Pos] && !d.is("brings back the steps of the deleted"):
		return false, nil
	}
	err := d.mayRecord(engine, []store.ClaimRef{s.Claim})
	switch {
	case errors.Is(err, store.ErrClaimGone) && !d.is("records a step under any claim"):
		return false, nil
	case errors.Is(err, store.ErrBuried) && !d.is("records steps for the buried"):
		return false, err
	}
	now := time.Now()
	began, ended := now.Add(-time.Since(s.Began)), now.Add(-time.Since(s.Ended))
	if d.is("takes steps for as long as their flush") {
		began, ended = now, now
	}
	d.steps[key] = stint.RecordedStep{Name: s.Name, Began: began, Ended: ended, Result: slices.Clone(s.Result)}
	return true, nil
}

func (m *model) RecordStepTx(_ context.Context, tx stint.Tx, engine store.EngineID, step store.StepRecord) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	in, ok := tx.Handle.(*modelTx)
	if !ok {
		return errors.New("not a transaction of the model")
	}
	if in.ended && !m.is("records a step without its transaction") {
		return errEnded
	}
	var err error
	if m.engine(engine) == nil && !m.is("records steps for the buried") {
		err = store.ErrBuried
	} else if fresh, wrong := m.recordStep(engine, step); wrong != nil || !fresh && !m.is("takes a step that is there for its own") {
		err = cmp.Or(wrong, store.ErrStepRefused)
	}
	if err != nil {
		if !m.is("keeps what a refused step wrote") {
			in.back(0)
			in.ended = true
		}
		return err
	}
	if !m.is("records a step and leaves the rest open") {
		in.commit()
	}
	return nil
}

func (m *model) Steps(_ context.Context, job stint.ID) ([]stint.RecordedStep, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []stint.RecordedStep
	for key, s := range m.steps {
		if key == m.stepOf(job, key.name) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b stint.RecordedStep) int {
		byName := cmp.Compare(a.Name, b.Name)
		if m.is("lists steps by name") {
			return byName
		}
		at := func(r stint.RecordedStep) time.Time {
			if r.Ended.IsZero() {
				return r.Began // an open question
			}
			return r.Ended
		}
		return cmp.Or(at(a).Compare(at(b)), byName)
	})
	return all, nil
}

// takeSteps has a job that is recovered go on where the one before it was, unless that completed.
func (d *database) takeSteps(old, anew stint.ID) {
	for _, x := range d.done {
		if x.Job == old && x.Final && x.Outcome == stint.OutcomeCompleted && !d.is("goes on where the completed were") {
			return
		}
	}
	for key, s := range d.steps {
		if key.job != old || d.is("begins the recovered anew") || s.Result == nil && d.is("forgets open questions when it recovers") {
			continue
		}
		if s.Question != nil && s.Question.Job != 0 && s.Result != nil && !completed(s.Result) && !d.is("takes along a call that failed") {
			continue
		}
		d.steps[d.stepOf(anew, key.name)] = s
		if d.is("takes steps away from the recovered") {
			delete(d.steps, key)
		}
	}
}

// eraseSteps deletes the steps of a job.
func (d *database) eraseSteps(job stint.ID) {
	if d.is("keeps the steps of the deleted") {
		return
	}
	for key := range d.steps {
		if key.job == job {
			delete(d.steps, key)
		}
	}
}
