package ops

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// ListQuestions lists the questions that jobs ask people.
var ListQuestions = declare(&Op[Page, QuestionPage]{
	Decl: Decl{
		Name: "questions list", Method: http.MethodGet, Path: "/questions", Summary: "List the open questions, those of the newest jobs first",
		Doc: "A question is open while it has no answer, there is time for one, and its job has not ended. A page has all questions of each of its jobs, so there may be more than `limit`. " +
			"What is left over is reached by `before` with the `next` of the answer.",
	},
	do: func(ctx context.Context, l *Local, in *Page) (QuestionPage, error) {
		limit := cmp.Or(in.Limit, 50)
		all, err := list(l.Store.Questions(ctx, store.QuestionFilter{Before: stint.ID(in.Before), Limit: limit}))
		p := QuestionPage{Questions: all}
		if len(all) >= limit {
			p.Next = all[len(all)-1].Job
		}
		l.seenQuestions(ctx, all)
		return p, err
	},
})

// QuestionPage is a page of a list of questions.
type QuestionPage struct {
	Questions []store.OpenQuestion `json:"items"`
	Next      stint.ID             `json:"next,omitempty" doc:"The before of the next page; absent on the last one"`
}

// NewAnswer is an answer to be given.
type NewAnswer struct {
	Question string `json:"question" minLength:"1" maxLength:"255" doc:"The name of the question"`
	Choice   string `json:"choice" minLength:"1" maxLength:"255" doc:"One of its choices"`
	Comment  string `json:"comment,omitempty" maxLength:"4096" doc:"What else is to be said, of at most 4 KiB"`
}

// details are without the comment, which belongs to the handler as arguments do.
func (n NewAnswer) details() any {
	return map[string]string{"question": n.Question, "choice": n.Choice}
}

// AnswerInput is an answer, and the job that asks.
type AnswerInput struct {
	JobName
	Body NewAnswer
}

// answer is the answer of somebody.
func (a AnswerInput) answer(who guard.Identity) stint.Answer {
	return stint.Answer{Choice: a.Body.Choice, By: cmp.Or(who.Name, who.Role.String()), Comment: a.Body.Comment}
}

func (a AnswerInput) check() error {
	given := a.answer(guard.Identity{Role: guard.Operator})
	return cmp.Or(checkNames("body", "question", a.Body.Question), inError("body", given.Check()))
}

// AnswerQuestion answers a question of a job. It is [stint.ErrNotFound] if there is no such job, an
// [*stint.AnsweredError] if somebody has answered, and what else [stint.Client.Answer] says.
var AnswerQuestion = declare(&Op[AnswerInput, None]{
	Decl: Decl{
		Name: "jobs answer", Method: http.MethodPost, Path: "/jobs/{id}/answer", Needs: guard.Operator, Summary: "Answer a question that a job asks",
		Doc: "The first answer counts, in the name of whoever asks this, and the job runs at once. A question that was answered gets no other: 409, with the answer that counts. " +
			"So does one whose time is over, or whose job has ended; a choice that the question does not give is 422, a question that the job has not asked 404.",
	},
	do: func(ctx context.Context, l *Local, in *AnswerInput) (None, error) {
		return None{}, l.Store.Answer(ctx, stint.Tx{}, stint.ID(in.ID), in.Body.Question, in.answer(l.who(ctx)))
	},
	said: func(in *AnswerInput, _ None) string {
		return fmt.Sprintf("the question %s of job %d is answered: %s", words.Visible(in.Body.Question), in.ID, words.Visible(in.Body.Choice))
	},
})
