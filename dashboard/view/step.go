package view

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Step is a recorded step of a job, a question that it asks, or a job that it calls.
type Step struct {
	Name     string          `json:"name"`
	Began    time.Time       `json:"began" doc:"When it began, as the attempt saw it that recorded it; when a question was asked"`
	Ended    time.Time       `json:"ended,omitzero" doc:"When it was recorded; absent while a question has no answer"`
	Result   json.RawMessage `json:"result,omitempty" doc:"What it returned, or the answer to its question; absent while there is none, if it is hidden, or too large to be shown with the job"`
	Bytes    int64           `json:"bytes,omitempty" doc:"How large the result is that is left out for its size"`
	Question *stint.Question `json:"question,omitempty" doc:"What it asks people, or which job it called; absent for other steps"`
}

// IsOpen reports whether it is a question that has no answer yet, or a call of a job that has not ended.
func (s Step) IsOpen() bool { return s.Question != nil && s.Ended.IsZero() }

// IsCall reports whether it called a job.
func (s Step) IsCall() bool { return s.Question != nil && s.Question.Job != 0 }

// AnswerInWords says what came of a question; empty for other steps, and if it is not known.
func (s Step) AnswerInWords() string {
	var came struct {
		stint.Answer
		Timeout bool `json:"timeout"`
	}
	switch {
	case s.Question == nil || s.IsCall() || s.Result == nil || json.Unmarshal(s.Result, &came) != nil:
		return ""
	case came.Timeout:
		return "not answered in time"
	case came.Comment != "":
		return came.Choice + ", by " + came.By + ": " + came.Comment
	}
	return came.Choice + ", by " + came.By
}

// Took is how long it took.
func (s Step) Took() time.Duration { return max(0, s.Ended.Sub(s.Began)) }

// MostResult is up to how many bytes the result of a step is shown with its job.
const MostResult = 16 << 10

// StepsOf reads the steps of a job, with their whole results.
func StepsOf(ctx context.Context, st store.StepReader, id stint.ID) ([]Step, error) {
	recorded, err := st.Steps(ctx, id)
	if err != nil || len(recorded) == 0 {
		return nil, err
	}
	all := make([]Step, len(recorded))
	for i, r := range recorded {
		all[i] = Step{Name: r.Name, Began: r.Began, Ended: r.Ended, Result: r.Result, Question: r.Question}
	}
	return all, nil
}

// shortStepsOf reads the steps of a job, without results that are large.
func shortStepsOf(ctx context.Context, st store.StepReader, id stint.ID) ([]Step, error) {
	all, err := StepsOf(ctx, st, id)
	for i := range all {
		if n := len(all[i].Result); n > MostResult {
			all[i].Result, all[i].Bytes = nil, int64(n)
		}
	}
	return all, err
}
