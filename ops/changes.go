package ops

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/store"
)

// ListChanges lists who changed what.
var ListChanges = declare(&Op[ChangesInput, ChangePage]{
	Decl: Decl{
		Name: "changes list", Method: http.MethodGet, Path: "/changes", Needs: guard.Operator, Summary: "List who changed what, the newest first",
		Doc: "Every request that changes something is written down before that is done, and afterwards what came of it; `unknown` is a change that is being made, or whose server died. " +
			"Of jobs that are enqueued those are written down that a person enqueues by a page, and those whose kind is restricted; others are not. " +
			"Details say what was named and chosen, and never the arguments of jobs. Changes are kept for 90 days.",
	},
	do: func(ctx context.Context, l *Local, in *ChangesInput) (ChangePage, error) {
		limit := cmp.Or(in.Limit, 50)
		all, err := list(l.Store.Changes(ctx, store.ChangeFilter{
			By: in.By, Operation: in.Operation, Subject: in.Subject, At: store.TimeRange{From: in.Since, To: in.Until}, Before: in.Before, Limit: limit,
		}))
		p := ChangePage{Changes: all}
		if err == nil && len(all) == limit {
			p.Next = all[limit-1].ID
		}
		return p, err
	},
})

// ChangesInput chooses changes.
type ChangesInput struct {
	By        string    `query:"by" maxLength:"255" doc:"Who"`
	Operation string    `query:"operation" maxLength:"255" doc:"What was done: queues pause"`
	Subject   string    `query:"subject" maxLength:"255" doc:"What it was done to: a queue, a schedule, the id of a job that was named alone"`
	Since     time.Time `query:"since" doc:"At this instant or later"`
	Until     time.Time `query:"until" doc:"Before this instant"`
	Before    int64     `query:"before" minimum:"1" doc:"Only changes with a lower number: the next of the page before"`
	Limit     int       `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many at most"`
}

// ChangePage is a page of a list of changes.
type ChangePage struct {
	Changes []store.Change `json:"changes"`
	Next    int64          `json:"next,omitempty" doc:"The before of the next page; absent on the last one"`
}
