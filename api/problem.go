package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

// Problem is what a client is told of an error (RFC 9457). Its type says which of
// the language's errors it is, for those who tell them apart: see [Problem.Unwrap].
type Problem struct {
	huma.ErrorModel

	Job      stint.ID `json:"job,omitempty" doc:"The job that is in the way"`
	Key      string   `json:"key,omitempty" doc:"The idempotency key that stands for another job"`
	Schedule string   `json:"schedule,omitempty" doc:"The schedule whose job is in the way"`

	Question string        `json:"question,omitempty" doc:"The question that was answered"`
	Answer   *stint.Answer `json:"answer,omitempty" doc:"Its answer"`
}

// problemType begins the type of each problem that has one.
const problemType = "urn:stint:problem:"

// conditions are the errors of the language that a client may want to tell apart.
// Text is what it is told where the error's own is about this server.
var conditions = []struct {
	err    error
	name   string
	status int
	text   string
}{
	{stint.ErrNotFound, "no-such-job", http.StatusNotFound, ""},
	{stint.ErrEnded, "ended", http.StatusConflict, ""},
	{errNotEnded, "not-ended", http.StatusConflict, ""},
	{stint.ErrNoKey, "no-key", http.StatusConflict, ""},
	{stint.ErrNotAsked, "not-asked", http.StatusNotFound, ""},
	{stint.ErrNoAnswer, "no-answer", http.StatusConflict, ""},
	{stint.ErrNoSchedule, "no-such-schedule", http.StatusNotFound, ""},
	{ops.ErrNoQueue, "no-such-queue", http.StatusNotFound, ""},
	{ops.ErrNoLimit, "no-such-limit", http.StatusNotFound, ""},
	{ops.ErrFreeLease, "free-lease", http.StatusNotFound, ""},
	{ops.ErrNoErrors, "no-such-errors", http.StatusNotFound, ""},
	{store.ErrNoFilter, "no-such-filter", http.StatusNotFound, ""},
	{store.ErrFilterExists, "filter-exists", http.StatusConflict, ""},
	{store.ErrManyFilters, "many-filters", http.StatusConflict, ""},
	{store.ErrDenied, "no-right", http.StatusForbidden, "the login by which this server uses the database lacks the right to do this"},
	{store.ErrBuried, "no-such-engine", http.StatusNotFound, "there is no such engine in the roster"},
	{store.ErrBurialBlocked, "burial-blocked", http.StatusConflict, ""},
	{gateway.ErrElsewhere, "elsewhere", http.StatusNotFound, ""},
	{gateway.ErrLost, "lost", http.StatusGone, ""},
	{gateway.ErrClosed, "closed", http.StatusServiceUnavailable, ""},
	{gateway.ErrFull, "full", http.StatusServiceUnavailable, ""},
	{gateway.ErrUnanswered, "unanswered", http.StatusServiceUnavailable, "the database did not answer: ask again"},
	{gateway.ErrSuspended, "suspended", http.StatusConflict, ""},
	{stint.ErrFenced, "fenced", http.StatusGone, ""},
	{stint.ErrUnstorable, "unstorable", http.StatusUnprocessableEntity, ""},
	{stint.ErrCommitUnknown, "commit-unknown", http.StatusServiceUnavailable, // whatever broke the connection
		"the connection to the database broke while this was being committed: nobody knows whether it was; look, or ask again with an idempotency key"},
}

// The types of problems that tell more than that there is one.
const (
	invalidType  = problemType + "invalid"
	conflictType = problemType + "key-conflict"
	busyType     = problemType + "schedule-busy"
	answeredType = problemType + "answered"
)

// Unwrap is the error of the language that the problem stands for, so that
// [errors.Is] and [errors.As] find in it what they find in a store's; nil for others.
func (p *Problem) Unwrap() error {
	switch p.Type {
	case invalidType:
		if len(p.Errors) > 0 {
			return &stint.InvalidError{Field: strings.TrimSuffix(p.Detail, ": "+p.Errors[0].Message), Problem: p.Errors[0].Message}
		}
	case conflictType:
		return &stint.KeyConflictError{Key: p.Key, ID: p.Job}
	case busyType:
		return &store.ScheduleBusyError{Schedule: p.Schedule, Job: p.Job}
	}
	if p.Type == answeredType && p.Answer != nil {
		return &stint.AnsweredError{Question: p.Question, Answer: *p.Answer}
	}
	for _, c := range conditions {
		if p.Type == problemType+c.name {
			return c.err
		}
	}
	if p.Status == http.StatusUnprocessableEntity && len(p.Errors) > 0 { // what the document forbids
		return &stint.InvalidError{Field: p.Errors[0].Location, Problem: p.Errors[0].Message}
	}
	return nil
}

// newProblem is one with a type.
func newProblem(status int, kind, detail string, details ...*huma.ErrorDetail) *Problem {
	return &Problem{ErrorModel: huma.ErrorModel{Type: kind, Title: http.StatusText(status), Status: status, Detail: detail, Errors: details}}
}

// errUnexpected is all that a client is told of what nobody expected.
var errUnexpected = huma.Error500InternalServerError("something went wrong that the server's log tells of")

// errAway is what a client is told when the database cannot be reached.
var errAway = huma.Error503ServiceUnavailable("the database does not answer: ask again")

// errUnwritten is all that a client is told when a change could not be written down.
var errUnwritten = huma.Error503ServiceUnavailable("nothing was changed, since it could not be written down who changes what")

// problem says an error as a client is told of it; nil for what nobody expected.
func problem(err error) error {
	if status, ok := errors.AsType[huma.StatusError](err); ok {
		return status
	}
	if f, ok := errors.AsType[*ops.ForbiddenError](err); ok {
		if f.Kind == "" {
			return huma.Error403Forbidden(f.Error())
		}
		return huma.Error403Forbidden(f.Error(), &huma.ErrorDetail{Location: f.Place, Message: "it is restricted"})
	}
	if denied, ok := errors.AsType[*gateway.DeniedError](err); ok {
		return huma.Error403Forbidden(denied.Error())
	}
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok {
		return newProblem(http.StatusUnprocessableEntity, invalidType, invalid.Error(), &huma.ErrorDetail{Location: place(err, invalid.Field), Message: invalid.Problem})
	}
	if conflict, ok := errors.AsType[*stint.KeyConflictError](err); ok {
		p := newProblem(http.StatusConflict, conflictType, err.Error())
		p.Key, p.Job = conflict.Key, conflict.ID
		return p
	}
	if busy, ok := errors.AsType[*store.ScheduleBusyError](err); ok {
		p := newProblem(http.StatusConflict, busyType, err.Error())
		p.Schedule, p.Job = busy.Schedule, busy.Job
		return p
	}
	if answered, ok := errors.AsType[*stint.AnsweredError](err); ok {
		p := newProblem(http.StatusConflict, answeredType, err.Error())
		p.Question, p.Answer = answered.Question, &answered.Answer
		return p
	}
	for _, c := range conditions {
		if errors.Is(err, c.err) {
			text := c.text
			if text == "" {
				text = err.Error()
			}
			return newProblem(c.status, problemType+c.name, text)
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return huma.NewError(http.StatusGatewayTimeout, "the database did not answer in time")
	case errors.Is(err, context.Canceled): // who asked is gone, or the server stops
		return huma.Error503ServiceUnavailable("the request was given up")
	}
	return nil
}

// place is the path of a field: what the language calls "max losses" is
// max_losses here.
func place(err error, field string) string {
	prefix := "body"
	if e, ok := errors.AsType[*ops.InError](err); ok {
		prefix = e.Place
	}
	return prefix + "." + strings.ReplaceAll(field, " ", "_")
}

// withProblems answers with a problem where a mux knows no path, or not for the method.
func withProblems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r) // which also fills in the values of the path
			return
		}
		unserved := &headersOnly{header: w.Header(), status: http.StatusOK}
		h.ServeHTTP(unserved, r)
		p := newProblem(unserved.status, "", "the API has no "+r.URL.Path+": "+Prefix+"/openapi.json lists what there is")
		if allowed := w.Header().Get("Allow"); unserved.status == http.StatusMethodNotAllowed {
			p.Detail = r.Method + " is not for this path, which takes " + allowed
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(p.Status)
		_ = json.NewEncoder(w).Encode(p) // to a client that may be gone
	})
}

// headersOnly takes the headers and the status of an answer, and leaves out its body.
type headersOnly struct {
	header http.Header
	status int
}

func (h *headersOnly) Header() http.Header         { return h.header }
func (h *headersOnly) WriteHeader(status int)      { h.status = status }
func (h *headersOnly) Write(b []byte) (int, error) { return len(b), nil }
