package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
)

// Questioner keeps the questions that jobs ask people (see [stint.Ask]) as steps: [StepKeeper.RecordSteps]
// records one, and an answer, or the end of the time to answer, is its result, whichever comes first. A job
// that waits for an answer ([Next].Awaits) becomes due at once when it is given, in whatever order the two
// commit; [Promoter.Promote] moves it. A job that is recovered takes its open questions along.
//
// A question with a Job is no question to people: the end of that job answers it, with a [stint.CalledJob] (see
// [stint.Kind.Call]), in whatever order the two commit. It is not listed, and Answer finds none. Cancelling a job cancels what it has
// called so and has not ended; a job that is recovered takes along only what completed of it, or has not ended.
type Questioner interface {
	// Answer answers a question by an answer that has passed [stint.Answer.Check], and wakes engines; in a
	// caller's transaction both happen when that commits, and until then others who answer wait. At is set by the
	// store's clock. The error is what [CheckAnswer] says. On PostgreSQL it aborts a caller's transaction.
	Answer(ctx context.Context, tx stint.Tx, job stint.ID, question string, a stint.Answer) error

	QuestionReader
}

// QuestionReader shows which questions are open: those that have no answer, while there is time and their
// job has not ended.
type QuestionReader interface {
	// Questions lists open questions: of the newest jobs first, and of a job by name.
	Questions(ctx context.Context, f QuestionFilter) ([]OpenQuestion, error)
}

// QuestionFilter chooses open questions.
type QuestionFilter struct {
	Before stint.ID // only of jobs with a lower id; 0 for all
	Limit  int      // how many; it is exceeded by those of the last job. 0 for all
}

// OpenQuestion is a question of a job that has no answer.
type OpenQuestion struct {
	Job   stint.ID  `json:"job" doc:"The job that asks"`
	Kind  string    `json:"kind" doc:"Its kind"`
	Queue string    `json:"queue" doc:"Its queue"`
	Name  string    `json:"name" doc:"The name of the question in the job"`
	Asked time.Time `json:"asked" doc:"When it was asked"`
	stint.Question
}

// QuestionText is the JSON of text and choices of a question, or of the job that was called.
func QuestionText(q *stint.Question) string {
	text, _ := json.Marshal(asked{q.Text, q.Choices, q.Job}) // strings can be encoded
	return string(text)
}

// ReadQuestion reads what [QuestionText] wrote.
func ReadQuestion(text string, until time.Time) (*stint.Question, error) {
	var q asked
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return nil, fmt.Errorf("read a question: %w", err)
	}
	return &stint.Question{Text: q.Text, Choices: q.Choices, Until: until, Job: q.Job}, nil
}

type asked struct {
	Text    string   `json:"text,omitempty"`
	Choices []string `json:"choices,omitempty"`
	Job     stint.ID `json:"job,omitempty"`
}

// CheckAnswer returns why a question gets no answer at an instant, or nil if it does. The state is that of the job,
// empty if there is none; the step is what is recorded under the question's name, nil for nothing.
func CheckAnswer(state stint.State, step *stint.RecordedStep, name string, a stint.Answer, now time.Time) error {
	var came struct {
		stint.Answer
		Timeout bool `json:"timeout"`
	}
	if step != nil && step.Question != nil && step.Question.Job != 0 {
		step = nil // its end is the answer
	}
	switch {
	case state == "":
		return stint.ErrNotFound
	case step != nil && step.Question != nil && step.Result != nil:
		if err := json.Unmarshal(step.Result, &came); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		} else if !came.Timeout {
			return &stint.AnsweredError{Question: name, Answer: came.Answer}
		}
		return stint.ErrNoAnswer
	case state.Final():
		return stint.ErrEnded
	case step == nil || step.Question == nil:
		return stint.ErrNotAsked
	case !step.Question.Until.After(now):
		return stint.ErrNoAnswer
	case !slices.Contains(step.Question.Choices, a.Choice):
		return NoChoice(step.Question.Choices)
	}
	return nil
}

// NoChoice is the error of an answer that is none of the choices.
func NoChoice(choices []string) error {
	quoted := make([]string, len(choices))
	for i, c := range choices {
		quoted[i] = fmt.Sprintf("%q", c)
	}
	return valid.Invalid("choice", "it is none of %s", strings.Join(quoted, ", "))
}
