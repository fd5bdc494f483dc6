package api

import (
	"context"
	"net/http"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
)

func (a *api) queues() {
	register(a, operation{
		method: http.MethodGet, path: "/queues", id: "list-queues", tag: "queues", summary: "List the queues with how many jobs are in each state",
		description: "Those that have jobs, ended ones included, and those that are paused. Every job is counted.", within: changeTime,
	}, a.listQueues)
	register(a, operation{
		method: http.MethodGet, path: "/paused-queues", id: "list-paused-queues", tag: "queues", summary: "List the names of the paused queues",
		description: "Which costs next to nothing.",
	}, a.listPaused)
	register(a, operation{
		method: http.MethodPost, path: "/queues/{queue}/pause", id: "pause-queue", needs: guard.Operator, tag: "queues", summary: "Let nothing of a queue begin",
		description: "What runs goes on. A queue that was paused before stays as it was: `changed` is false.",
	}, a.pauseQueue)
	register(a, operation{
		method: http.MethodPost, path: "/queues/{queue}/resume", id: "resume-queue", needs: guard.Operator, tag: "queues", summary: "Let the jobs of a paused queue begin again",
	}, a.resumeQueue)
}

func (a *api) listQueues(ctx context.Context, _ *struct{}) (*answer[[]stint.QueueInfo], error) {
	return list(a.store.Queues(ctx))
}

func (a *api) listPaused(ctx context.Context, _ *struct{}) (*answer[[]string], error) {
	return list(a.store.Paused(ctx))
}

func (a *api) pauseQueue(ctx context.Context, in *struct {
	Queue string `path:"queue" maxLength:"255"`
	Body  Why
}) (*answer[Changed], error) {
	if err := stint.CheckQueue(in.Queue); err != nil {
		return nil, &at{"path", err}
	}
	return changed(a.store.Pause(ctx, in.Queue, by(ctx), in.Body.Why))
}

func (a *api) resumeQueue(ctx context.Context, in *struct {
	Queue string `path:"queue" maxLength:"255"`
}) (*answer[Changed], error) {
	if err := stint.CheckQueue(in.Queue); err != nil {
		return nil, &at{"path", err}
	}
	return changed(a.store.Resume(ctx, in.Queue))
}
