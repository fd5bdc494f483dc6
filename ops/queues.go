package ops

import (
	"context"
	"net/http"

	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
)

// QueueName is where a queue's name stands.
type QueueName struct {
	Queue string `path:"queue" maxLength:"255"`
}

func (q QueueName) check() error { return inError("path", valid.Queue(q.Queue)) }

// said says what came of pausing and resuming it.
func (q QueueName) said(c Changed, is, was string) string {
	return "queue " + words.Visible(q.Queue) + " " + c.either(is, was)
}

// QueueWhy is a queue, and why something is done to it.
type QueueWhy struct {
	QueueName
	Body Why
}

// ListQueues lists the queues and counts their jobs.
var ListQueues = lists(Decl{
	Name: "queues list", Path: "/queues", Summary: "List the queues with how many jobs are in each state",
	Doc: "Those that have jobs, ended ones included, and those that are paused. Every job is counted.", Within: changeTime,
}, Store.Queues)

// ListPausedQueues lists the names of the paused queues.
var ListPausedQueues = lists(Decl{
	Name: "queues list-paused", Path: "/paused-queues", Summary: "List the names of the paused queues", Doc: "Which costs next to nothing.",
}, Store.Paused)

// PauseQueue lets nothing of a queue begin.
var PauseQueue = declare(&Op[QueueWhy, Changed]{
	Decl: Decl{
		Name: "queues pause", Method: http.MethodPost, Path: "/queues/{queue}/pause", Needs: guard.Operator, Summary: "Let nothing of a queue begin",
		Doc: "What runs goes on. A queue that was paused before stays as it was: `changed` is false.",
	},
	do: func(ctx context.Context, l *Local, in *QueueWhy) (Changed, error) {
		return changed(l.Store.Pause(ctx, in.Queue, l.who(ctx).Name, in.Body.Why))
	},
	said: func(in *QueueWhy, c Changed) string { return in.said(c, "is paused", "was paused already") },
})

// ResumeQueue lets the jobs of a paused queue begin again.
var ResumeQueue = declare(&Op[QueueName, Changed]{
	Decl: Decl{
		Name: "queues resume", Method: http.MethodPost, Path: "/queues/{queue}/resume", Needs: guard.Operator, Summary: "Let the jobs of a paused queue begin again",
	},
	do: func(ctx context.Context, l *Local, in *QueueName) (Changed, error) {
		return changed(l.Store.Resume(ctx, in.Queue))
	},
	said: func(in *QueueName, c Changed) string { return in.said(c, "is resumed", "was not paused") },
})
