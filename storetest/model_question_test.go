package storetest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// ask records a question unless it is there, and ends its time.
func (d *database) ask(engine store.EngineID, s store.StepRecord) (stint.RecordedStep, error) {
	key := d.stepOf(s.Job, s.Name)
	kept, there := d.steps[key]
	switch {
	case there && d.is("asks again") && kept.Result == nil:
		delete(d.steps, key)
	case there && kept.Result != nil:
		kept.Question = nil
		return kept, nil
	}
	s.Result = nil
	fresh, err := d.recordStep(engine, s)
	if err != nil {
		return stint.RecordedStep{}, err
	}
	if fresh {
		q := *s.Question
		if d.is("forgets choices") {
			q.Choices = q.Choices[:1]
		}
		kept = d.steps[key]
		kept.Question, kept.Ended = &q, time.Time{}
		d.steps[key] = kept
	} else if !there || !d.mayAsk(engine, s) {
		return stint.RecordedStep{}, nil
	}
	kept = d.steps[key]
	inHand := d.answering(nil, s.Job, s.Name) != nil && !d.is("lets the time win over an answer that is being given")
	if !kept.Question.Until.After(time.Now()) && !inHand && !d.is("waits for an answer for ever") {
		kept.Result, kept.Ended = []byte(`{"timeout":true}`), time.Now()
		d.steps[key] = kept
		kept.Question = nil
	}
	return kept, nil
}

// mayAsk reports whether an attempt could record a step.
func (d *database) mayAsk(engine store.EngineID, s store.StepRecord) bool {
	_, over := d.done[s.Pos]
	return d.mayRecord(engine, []store.ClaimRef{s.Claim}) == nil && !over || d.is("asks for attempts that have ended")
}

// answering is an answer that another transaction has given and not committed; nil for none.
func (d *database) answering(in *modelTx, job stint.ID, name string) *row {
	for _, r := range d.rows {
		if r.answer != nil && r.tx != nil && r.tx != in && r.to == job && r.answers == name {
			return r
		}
	}
	return nil
}

func (m *model) Answer(ctx context.Context, tx stint.Tx, job stint.ID, question string, a stint.Answer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	in, _ := tx.Handle.(*modelTx)
	if tx.Handle != nil && in == nil {
		return errors.New("not a transaction of the model")
	}
	for m.answering(in, job, question) != nil && !m.is("answers beside another") {
		m.mu.Unlock()
		time.Sleep(time.Millisecond)
		m.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	a.At = time.Now()
	if err := m.mayAnswer(in, job, question, a); err != nil {
		return err
	}
	if m.is("answers before the commit") {
		in = nil
	}
	m.rows = append(m.rows, &row{tx: in, num: m.draw(), answer: &a, answers: question, to: job})
	if in == nil {
		m.settle()
		if !m.is("does not ring for answers") {
			m.ring()
		}
	}
	return nil
}

// mayAnswer is why a question gets no answer.
func (d *database) mayAnswer(in *modelTx, job stint.ID, name string, a stint.Answer) error {
	state := stint.State("")
	if r := d.jobs[job]; r != nil && (r.tx == nil || r.tx == in) {
		state = d.stateIn(in, job)
	}
	var step *stint.RecordedStep
	if kept, there := d.steps[d.stepOf(job, name)]; there {
		step = &kept
		for _, r := range d.rows { // its own
			if r.answer != nil && r.tx == in && r.to == job && r.answers == name {
				step.Result, _ = json.Marshal(r.answer)
			}
		}
	}
	if state.Final() && d.is("answers for the ended") {
		state = stint.Running
	}
	err := store.CheckAnswer(state, step, name, a, a.At)
	_, answered := errors.AsType[*stint.AnsweredError](err)
	switch {
	case step == nil || step.Question == nil:
	case answered && d.is("takes the last answer"):
		return nil
	case errors.Is(err, stint.ErrInvalid) && d.is("takes any choice"):
		return nil
	case errors.Is(err, stint.ErrNoAnswer) && step.Result == nil && d.is("answers after the time"):
		return nil
	}
	return err
}

// settle records the answers that were committed.
func (d *database) settle() {
	d.rows = slices.DeleteFunc(d.rows, func(r *row) bool {
		if r.answer == nil || r.tx != nil {
			return false
		}
		key := d.stepOf(r.to, r.answers)
		kept := d.steps[key]
		if d.is("forgets who answered") {
			r.answer.By = ""
		}
		kept.Result, _ = json.Marshal(r.answer) // strings can be encoded
		kept.Ended = r.answer.At
		d.steps[key] = kept
		return true
	})
}

// wakesFor reports whether the answer to a question is there, or its time is over.
func (d *database) wakesFor(job stint.ID, name string) bool {
	kept, there := d.steps[d.stepOf(job, name)]
	return there && (kept.Result != nil || d.is("wakes who asks at once")) && !d.is("does not wake for answers")
}

func (m *model) Questions(_ context.Context, f store.QuestionFilter) ([]store.OpenQuestion, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.OpenQuestion
	for key, s := range m.steps {
		job := m.jobs[key.job]
		switch {
		case s.Question == nil || job == nil || f.Before > 0 && key.job >= f.Before,
			s.Result != nil && !m.is("lists questions that were answered"),
			s.Question.Job != 0 && !m.is("lists calls as questions"),
			m.stateIn(nil, key.job).Final() && !m.is("lists questions of the ended"),
			!s.Question.Until.After(time.Now()) && !m.is("lists questions whose time is over"):
			continue
		}
		all = append(all, store.OpenQuestion{Job: key.job, Kind: job.job.Kind, Queue: job.job.Queue, Name: key.name, Asked: s.Began, Question: *s.Question})
	}
	slices.SortFunc(all, func(a, b store.OpenQuestion) int {
		if m.is("lists the oldest questions first") {
			a, b = b, a
		}
		return cmp.Or(-cmp.Compare(a.Job, b.Job), cmp.Compare(a.Name, b.Name))
	})
	if n := f.Limit; n > 0 && n < len(all) {
		for !m.is("cuts the questions of a job in two") && n < len(all) && all[n].Job == all[n-1].Job {
			n++
		}
		all = all[:n]
	}
	return all, nil
}
