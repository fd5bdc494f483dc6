package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
)

func (a *api) changes() {
	register(a, operation{
		method: http.MethodGet, path: "/changes", id: "list-changes", needs: guard.Operator, tag: "changes", summary: "List who changed what, the newest first",
		description: "Every request that changes something is written down before that is done, and what came of it behind that; `unknown` is a change that is being made, or whose server died. " +
			"Of jobs that are enqueued those are written down that a person enqueues by a page, and those whose kind is restricted; others are not. " +
			"Details say what was named and chosen, and never the arguments of jobs. Changes are kept for 90 days.",
	}, a.listChanges)
}

// ChangePage is a page of a list of changes.
type ChangePage struct {
	Changes []stint.Change `json:"changes"`
	Next    int64          `json:"next,omitempty" doc:"The before of the next page; absent on the last one"`
}

func (a *api) listChanges(ctx context.Context, in *struct {
	By        string    `query:"by" maxLength:"255" doc:"Who"`
	Operation string    `query:"operation" maxLength:"255" doc:"What was done: pause-queue"`
	Subject   string    `query:"subject" maxLength:"255" doc:"What it was done to: a queue, a schedule, the id of a job that was named alone"`
	Since     time.Time `query:"since" doc:"At this instant or later"`
	Until     time.Time `query:"until" doc:"Before this instant"`
	Before    int64     `query:"before" minimum:"1" doc:"Only changes with a lower number: the next of the page before"`
	Limit     int       `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many at most"`
}) (*answer[ChangePage], error) {
	all, err := a.store.Changes(ctx, stint.ChangeFilter{
		By: in.By, Operation: in.Operation, Subject: in.Subject, At: stint.Span{From: in.Since, To: in.Until}, Before: in.Before, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	p := ChangePage{Changes: append([]stint.Change{}, all...)}
	if len(all) == in.Limit {
		p.Next = all[len(all)-1].ID
	}
	return &answer[ChangePage]{p}, nil
}

type byHandKey struct{}

// ByHand returns a context for a request that a page sends for a person. Jobs that it
// enqueues are written down as any other change is. Those of programs are not: there
// may be thousands a second.
func ByHand(ctx context.Context) context.Context {
	return context.WithValue(ctx, byHandKey{}, true)
}

// routine reports whether a change is not worth the two writes that a line in the log
// takes: jobs that a program enqueues, and that can do only what their kinds do.
func (a *api) routine(ctx context.Context, r request) bool {
	jobs, ok := r.body.(NewJobs)
	return ok && ctx.Value(byHandKey{}) == nil && !slices.ContainsFunc(jobs.Jobs, a.restricted)
}

// endChangeTime bounds how long an answer waits until what came of a change is
// written down.
const endChangeTime = 5 * time.Second

// change writes down that a request is about to change something. Where that fails
// nothing is to be changed. The function that it returns writes down what came of it.
func (a *api) change(ctx context.Context, operation string, in any) (end func(told error), err error) {
	r := requestOf(in)
	if r.dry || a.routine(ctx, r) {
		return func(error) {}, nil
	}
	details, err := r.told()
	if err != nil {
		return nil, err
	}
	who := guard.Of(ctx)
	n, err := a.store.BeginChange(ctx, stint.NewChange{
		By: who.Name, Role: who.Role.String(), Way: stint.WayAPI, Operation: operation, Subject: r.subject(), Details: details,
	})
	if err != nil {
		return nil, unwritten(err)
	}
	return func(told error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endChangeTime)
		defer cancel()
		problem := ""
		if told != nil {
			problem = told.Error()
		}
		if err := a.store.EndChange(ctx, n, problem); err != nil && a.OnError != nil {
			a.OnError(ctx, operation, err)
		}
	}, nil
}

// unwrittenError says that nothing was changed, since it could not be written down.
type unwrittenError struct{ err error }

func (e *unwrittenError) Error() string { return e.err.Error() }
func (e *unwrittenError) Unwrap() error { return e.err }

// unwritten is what becomes of an error of the log. What is wrong with the request
// itself is told as ever.
func unwritten(err error) error {
	if errors.Is(err, stint.ErrInvalid) || errors.Is(err, stint.ErrUnstorable) {
		return err
	}
	return &unwrittenError{err}
}

// errUnwritten is all that a client is told of it.
var errUnwritten = huma.Error503ServiceUnavailable("nothing was changed, since it could not be written down who changes what")

// request is what a request says of a change. Its body is an object, or none.
type request struct {
	names []string       // of the path
	query map[string]any // what was said there
	body  any            // nil for none
	dry   bool           // it changes nothing
}

// A body may say of itself that it changes nothing, the one thing that it is about,
// and what is kept of it instead of all that it says.
type (
	dryRun  interface{ dryRun() bool }
	subject interface{ subject() string }
	details interface{ details() any }
)

// requestOf reads what huma has filled in.
func requestOf(in any) request {
	r := request{query: map[string]any{}}
	r.read(reflect.ValueOf(in).Elem())
	if d, ok := r.body.(dryRun); ok {
		r.dry = d.dryRun()
	}
	return r
}

func (r *request) read(v reflect.Value) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		switch name := field.Tag.Get("query"); {
		case field.Name == "Body":
			r.body = value.Interface()
		case field.Tag.Get("path") != "":
			r.names = append(r.names, fmt.Sprint(value.Interface()))
		case name != "" && !value.IsZero():
			r.query[name] = value.Interface()
		case field.Anonymous:
			r.read(value)
		}
	}
}

// subject is what the path names, or else the body if that is one thing.
func (r *request) subject() string {
	if s, ok := r.body.(subject); ok && len(r.names) == 0 {
		return s.subject()
	}
	return strings.Join(r.names, " ")
}

// told are the details of the change.
func (r *request) told() (json.RawMessage, error) {
	body := r.body
	if d, ok := body.(details); ok {
		body = d.details()
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	var value any
	read := json.NewDecoder(bytes.NewReader(text))
	read.UseNumber()
	if err := read.Decode(&value); err != nil {
		return nil, err
	}
	bare(value)
	said, is := value.(map[string]any)
	if !is {
		said = map[string]any{}
	}
	if maps.Copy(said, r.query); len(said) == 0 {
		return nil, nil
	}
	text, err = json.Marshal(said)
	if err == nil && len(text) > stint.MaxDetails {
		return json.Marshal(map[string]int{"bytes_left_out": len(text)})
	}
	return text, err
}

// bare takes out what belongs to producers and handlers, wherever it stands.
func bare(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "args")
		delete(v, "metadata")
		for _, inner := range v {
			bare(inner)
		}
	case []any:
		for _, inner := range v {
			bare(inner)
		}
	}
}
