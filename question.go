package stint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// ErrNoAnswer says that the time of a question ([Ask]) was over before it was answered.
var ErrNoAnswer = errors.New("stint: the question was not answered in time")

// ErrNotAsked says that a job has asked no question of that name.
var ErrNotAsked = errors.New("stint: the job has not asked this question")

// AnsweredError says that a question was answered before: the first answer counts.
type AnsweredError struct {
	Question string // its name
	Answer   Answer // the one that counts
}

// Error says by whom, and how.
func (e *AnsweredError) Error() string {
	return fmt.Sprintf("stint: the question %q was answered by %s: %s", e.Question, e.Answer.By, e.Answer.Choice)
}

// Bounds of a question and its answer.
const (
	maxChoices  = 20
	maxQuestion = 4 << 10 // bytes of its text, and of the comment of an answer
)

// Question is what a handler asks people: see [Ask].
type Question struct {
	Text    string    `json:"text,omitempty" doc:"What is asked; absent if it is hidden"`
	Choices []string  `json:"choices,omitempty" doc:"The answers that it takes; absent if they are hidden"`
	Until   time.Time `json:"until" doc:"When the time to answer is over"`
	Job     ID        `json:"job,omitempty" doc:"Of a step that called a job, that job: its end is the answer"` // see [Kind.Call]
}

// Answer is what somebody answered to a question.
type Answer struct {
	Choice  string    `json:"choice" doc:"One of those that the question gave"`
	By      string    `json:"by" doc:"Who answered"`                      // 1 to 255 bytes
	Comment string    `json:"comment,omitempty" doc:"What else was said"` // at most 4 KiB; empty for none
	At      time.Time `json:"at" doc:"When it was answered"`              // by the store's clock, which sets it
}

// Ask asks people a question, and returns the first answer. It gives them two or more choices; one of them is
// taken by the page of the job, the page of all open questions, a signed link, the command line, the API or
// [Client.Answer]. The wait for it is like that of [Await]: it leaves slot and limits to others, uncharged,
// and can last for months.
//
//	a, err := stint.Ask(ctx, "approve", "Pay 900 EUR to ACME?", 72*time.Hour, "pay", "refuse")
//	if errors.Is(err, stint.ErrNoAnswer) {
//		return remind(ctx, order) // nobody answered
//	} else if err != nil {
//		return err
//	}
//	if a.Choice == "pay" { … } // a.By says who
//
// The first run that comes to it asks: text, choices and the end of its time are kept then, once, and neither
// a crash nor a retry asks again, nor does another text. The answer is recorded as the step of that name, and
// returned by later runs. When the time is over without one, [ErrNoAnswer] is recorded in the same way, and
// who answers later is refused. An answer that was accepted is the one that the handler gets, unless the job
// ends before. The time is at most [retry.MaxWait].
//
// Any other error ends the run: return it at once. What [Sleep] says of that, and of waits at the same time,
// holds here too: a job that asks several questions runs when the first of them is answered.
//
// The name has 1 to 255 bytes, as that of any step, the text 1 to 4,096, and there are 1 to 20 different
// choices of 1 to 255 bytes each. A [Run] that has no Steps can ask nobody, and the error matches
// [errors.ErrUnsupported].
func Ask(ctx context.Context, name, text string, d time.Duration, choices ...string) (Answer, error) {
	run := runFrom(ctx)
	if run == nil {
		return Answer{}, ErrNoAttempt
	}
	recorded, err := run.ask(ctx, name, Question{Text: text, Choices: choices}, d)
	if err != nil {
		return Answer{}, err
	}
	var came struct {
		Answer
		Timeout bool `json:"timeout"`
	}
	err = json.Unmarshal(recorded, &came)
	switch {
	case err == nil && came.Timeout:
		return Answer{}, fmt.Errorf("%w: %q", ErrNoAnswer, name)
	case err != nil || came.Choice == "":
		return Answer{}, NoRetry(errors.Join(fmt.Errorf("%w: step %q is no answer: %.200s", ErrStepChanged, name, recorded), err))
	}
	return came.Answer, nil
}

// lookAgain is after how long a job whose time to wait for an answer is over runs again, if an answer is just
// being given in a transaction. Its commit wakes the job at once.
const lookAgain = 10 * time.Second

// ask returns what is recorded of a question.
func (a *Run) ask(ctx context.Context, name string, q Question, d time.Duration) (json.RawMessage, error) {
	if err := q.Check(); err != nil {
		return nil, NoRetry(err)
	}
	if a.Steps == nil {
		return nil, fmt.Errorf("stint: Ask needs the run of an engine, which keeps the question: %w", errors.ErrUnsupported)
	}
	return a.step(ctx, true, Tx{}, name, func(s *steps) (json.RawMessage, error) {
		if err := s.awaiting(name); err != nil {
			return nil, err // the next run has the answer, which wakes it
		}
		q.Until = a.now().Add(min(max(0, d), retry.MaxWait))
		if err := s.reserveQuestion(name, &q); err != nil {
			return nil, err
		}
		r, err := a.Steps.Ask(ctx, name, q)
		switch {
		case err != nil:
			return nil, fmt.Errorf("ask the question %q: %w", name, err)
		case r.Question != nil && r.Question.Job != 0:
			return nil, NoRetry(fmt.Errorf("%w: %q has called job %d", ErrStepChanged, name, r.Question.Job))
		case r.Result == nil && r.Question != nil:
			until, now := r.Question.Until, a.now()
			if !until.After(now) {
				until = now.Add(lookAgain)
			}
			return nil, s.suspend(newAwaiting(map[string]string{name: ""}, nil, until, until.Sub(now)))
		}
		s.add(compactLen(r.Result))
		return r.Result, nil
	})
}

// size is how much of [MaxStepBytes] a question takes.
func (q *Question) size() int {
	n := len(q.Text)
	for _, c := range q.Choices {
		n += len(c)
	}
	return n
}

// reserveQuestion makes room for a question that has not been asked yet.
func (s *steps) reserveQuestion(name string, q *Question) error {
	s.mu.Lock()
	_, known := s.asked[name]
	s.mu.Unlock()
	if known {
		return nil
	}
	if err := s.reserve(name, q.size()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[name] = q.Job
	return nil
}

// noQuestion says that a step has the name of a question that is open.
func (s *steps) noQuestion(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if job, asked := s.asked[name]; asked {
		what := "a question that has no answer yet"
		if job != 0 {
			what = fmt.Sprintf("the call of job %d", job)
		}
		return NoRetry(fmt.Errorf("%w: %q is %s", ErrStepChanged, name, what))
	}
	return nil
}

// Check says what is wrong with a question. The error matches [ErrInvalid].
func (q *Question) Check() error {
	if err := checkText("question", q.Text); err != nil {
		return err
	}
	if q.Text == "" {
		return valid.Invalid("question", "its text is empty")
	}
	if n := len(q.Choices); n < 1 || n > maxChoices {
		return valid.Invalid("choices", "there are %d, not 1 to %d", n, maxChoices)
	}
	for i, c := range q.Choices {
		if err := valid.Name("choice", c); err != nil {
			return err
		}
		if slices.Contains(q.Choices[:i], c) {
			return valid.Invalid("choices", "%q is there twice", c)
		}
	}
	return nil
}

// Check says what is wrong with an answer, whatever it answers. The error matches [ErrInvalid].
func (a *Answer) Check() error {
	if err := valid.Name("choice", a.Choice); err != nil {
		return err
	}
	if err := valid.Name("by", a.By); err != nil {
		return err
	}
	return checkText("comment", a.Comment)
}

func checkText(field, text string) error {
	switch {
	case len(text) > maxQuestion:
		return valid.Invalid(field, "%d bytes are more than the limit of %d", len(text), maxQuestion)
	case !utf8.ValidString(text):
		return valid.Invalid(field, "it is not UTF-8")
	case strings.ContainsRune(text, 0):
		return valid.Invalid(field, "it holds the NUL character")
	}
	return nil
}

// Answer answers a question that a job asks ([Ask]): the job runs at once. The first answer counts. It is
// recorded with the choice, who answered and the comment; its At is ignored.
//
// In a transaction of the caller's ([Client.With]) it is given if and when that commits, and others who answer
// wait until then. The error is an [*AnsweredError] if the question was answered, [ErrNoAnswer] if its time is
// over, [ErrNotAsked] if the job has asked no such question, [ErrNotFound] if there is no such job, and
// [ErrEnded] if that has ended. It matches [ErrInvalid] if the choice is none of the question's, or the answer
// breaks its bounds, and [errors.ErrUnsupported] if the store keeps no questions. After an error that leaves a
// commit unknown, answer again: an [*AnsweredError] says whose answer counts.
func (c *Client) Answer(ctx context.Context, job ID, question string, a Answer) error {
	if c == nil {
		return ErrNoAttempt
	}
	store, ok := c.store.(interface {
		Answer(ctx context.Context, tx Tx, job ID, question string, a Answer) error
	})
	if !ok {
		return fmt.Errorf("stint: the store %T keeps no questions: %w", c.store, errors.ErrUnsupported)
	}
	if err := valid.Name("question", question); err != nil {
		return err
	}
	if err := a.Check(); err != nil {
		return err
	}
	return store.Answer(ctx, c.tx, job, question, a)
}
