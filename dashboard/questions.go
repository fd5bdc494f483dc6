package dashboard

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

// questionsPage lists the questions that people can answer.
type questionsPage struct {
	Questions []store.OpenQuestion
	Next      stint.ID // where the next page goes on; 0 on the last one
}

// questions lists the open questions. The API hides what the role may not see.
func (b *Dashboard) questions(r *http.Request) (any, error) {
	before, _ := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	p, err := ops.ListQuestions.Call(r.Context(), b.api, ops.Page{Before: max(0, before)})
	if err != nil {
		return nil, err
	}
	return questionsPage{p.Questions, p.Next}, nil
}

// question is an open one as its buttons need it.
type question struct {
	Job  stint.ID
	Name string
	*stint.Question
	Back string // where the browser goes after an answer
}

// questionsOf takes the open questions, and calls, out of the steps of a job, and returns the questions. Of one that has ended none is left to be
// answered.
func questionsOf(j *view.Job) (open []question) {
	j.Steps = slices.DeleteFunc(j.Steps, func(s view.Step) bool {
		if s.IsOpen() && !s.IsCall() && !j.State.Final() {
			open = append(open, question{j.ID, s.Name, s.Question, "/jobs/" + j.ID.String()})
		}
		return s.IsOpen()
	})
	return open
}

// Of is a question of the list with what its buttons need.
func (questionsPage) Of(q store.OpenQuestion) question {
	return question{q.Job, q.Name, &q.Question, "/questions"}
}

// mostCounted is up to how many open questions the overview counts.
const mostCounted = 100
