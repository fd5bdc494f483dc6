package ops

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/store"
)

// ListChanges lists who changed what.
var ListChanges = declare(&Op[ChangesInput, ChangePage]{
	Decl: Decl{
		Name: "changes list", Method: http.MethodGet, Path: "/changes", Needs: guard.Operator, Summary: "List who changed what, the newest first",
		Doc: "Every request that changes something is written down before that is done, and afterwards what came of it; `unknown` is a change that is being made, or whose server died. " +
			"Of jobs that are enqueued those are written down that a person enqueues by a page, and those whose kind is restricted; others are not. " +
			"Details say what was named and chosen, and never the arguments of jobs or the values of signals. Changes are kept for 90 days.",
	},
	do: func(ctx context.Context, l *Local, in *ChangesInput) (ChangePage, error) {
		limit := cmp.Or(in.Limit, 50)
		f := store.ChangeFilter{By: in.By, Operation: in.Operation, Subject: in.Subject, Before: in.Before, Limit: limit}
		if err := l.read(ctx, "query", moment{"since", in.Since, &f.At.From}, moment{"until", in.Until, &f.At.To}); err != nil {
			return ChangePage{}, err
		}
		all, err := list(l.Store.Changes(ctx, f))
		p := ChangePage{Changes: all}
		if err == nil && len(all) == limit {
			p.Next = all[limit-1].ID
		}
		return p, err
	},
})

// ChangesInput chooses changes.
type ChangesInput struct {
	By        string `query:"by" maxLength:"255" doc:"Who"`
	Operation string `query:"operation" maxLength:"255" doc:"What was done: queues pause"`
	Subject   string `query:"subject" maxLength:"255" doc:"What it was done to: a queue, a schedule, the id of a job that was named alone"`
	Since     When   `query:"since" doc:"At this instant or later"`
	Until     When   `query:"until" doc:"Before this instant"`
	Before    int64  `query:"before" minimum:"1" doc:"Only changes with a lower number: the next of the page before"`
	Limit     int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many at most"`
}

// ChangePage is a page of a list of changes.
type ChangePage struct {
	Changes []store.Change `json:"items"`
	Next    int64          `json:"next,omitempty" doc:"The before of the next page; absent on the last one"`
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
func (l *Local) routine(ctx context.Context, r Request) bool {
	e, ok := r.Body.(interface{ enqueued() []NewJob })
	return ok && ctx.Value(byHandKey{}) == nil && !slices.ContainsFunc(e.enqueued(), l.restricted)
}

// endChangeTime bounds how long an answer waits until what came of a change is
// written down.
const endChangeTime = 5 * time.Second

// record writes down that somebody is about to change something. Where that fails
// nothing is to be changed. The function that it returns writes down what came of it.
func (l *Local) record(ctx context.Context, operation string, in any) (end func(error), err error) {
	r := newRequest(in)
	if r.changesNothing() || l.routine(ctx, r) {
		return func(error) {}, nil
	}
	details, err := r.details()
	if err != nil {
		return nil, err
	}
	who := l.who(ctx)
	c := store.NewChange{By: who.Name, Way: l.Way, Operation: operation, Subject: r.subject(), Details: details}
	if l.As == nil {
		c.Role = who.Role.String() // which is no news of who has the database itself
	}
	n, err := l.Store.BeginChange(ctx, c)
	if err != nil {
		return nil, unwritten(err)
	}
	return func(err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endChangeTime)
		defer cancel()
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if err := l.Store.EndChange(ctx, n, problem); err != nil && l.Failed != nil {
			l.Failed(ctx, operation, err)
		}
	}, nil
}

// UnwrittenError says that nothing was changed, since it could not be written down who
// changes what.
type UnwrittenError struct{ Err error }

// Error says so, and why.
func (e *UnwrittenError) Error() string { return "nothing was changed: " + e.Err.Error() }

// Unwrap is why.
func (e *UnwrittenError) Unwrap() error { return e.Err }

// unwritten is what becomes of an error of the log. What is wrong with the request
// itself is told as ever.
func unwritten(err error) error {
	if errors.Is(err, stint.ErrInvalid) || errors.Is(err, stint.ErrUnstorable) {
		return err
	}
	return &UnwrittenError{err}
}

// Of a body it may be known that it changes nothing, the one thing that it is about, and
// what is kept of it instead of all that it says.
type (
	dryRun   interface{ dryRun() bool }
	subject  interface{ subject() string }
	detailed interface{ details() any }
)

// changesNothing reports whether a request is only tried.
func (r Request) changesNothing() bool {
	d, ok := r.Body.(dryRun)
	return ok && d.dryRun()
}

// subject is what the path names, or else the body if that is one thing.
func (r Request) subject() string {
	if s, ok := r.Body.(subject); ok && len(r.names) == 0 {
		return s.subject()
	}
	return strings.Join(r.names, " ")
}

// details are those of the change.
func (r Request) details() (json.RawMessage, error) {
	body := r.Body
	if d, ok := body.(detailed); ok {
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
	if maps.Copy(said, r.said); len(said) == 0 {
		return nil, nil
	}
	text, err = json.Marshal(said)
	if err == nil && len(text) > store.MaxDetails {
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
