package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
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

// ErrNoQueue says that there is no queue of a name.
var ErrNoQueue = errors.New("no job, kind, schedule or engine names the queue")

// ShowQueue shows one, or is [ErrNoQueue].
var ShowQueue = declare(&Op[QueueName, store.QueueInfo]{
	Decl: Decl{
		Name: "queues show", Method: http.MethodGet, Path: "/queues/{queue}", Summary: "Show a queue with how many jobs are in each state",
		Doc: "As the list does. A queue that is named somewhere and has no jobs has no counts. Every job is counted.", Within: changeTime,
	},
	do: func(ctx context.Context, l *Local, in *QueueName) (store.QueueInfo, error) {
		all, err := l.Store.Queues(ctx)
		if err != nil {
			return store.QueueInfo{}, err
		}
		if i := slices.IndexFunc(all, func(q store.QueueInfo) bool { return q.Name == in.Queue }); i >= 0 {
			return all[i], nil
		}
		if l.unknownQueue(ctx, in.Queue) {
			return store.QueueInfo{}, fmt.Errorf("%w %q", ErrNoQueue, in.Queue)
		}
		return store.QueueInfo{Name: in.Queue, Counts: map[stint.State]int64{}}, nil
	},
})

// ListPausedQueues lists the names of the paused queues.
var ListPausedQueues = lists(Decl{
	Name: "queues list-paused", Path: "/paused-queues", Summary: "List the names of the paused queues", Doc: "Which costs next to nothing.",
}, Store.Paused)

// QueuePaused says what came of pausing a queue.
type QueuePaused struct {
	Changed bool `json:"changed"`
	Unknown bool `json:"unknown,omitempty" doc:"No job, kind, schedule or engine names the queue: its name may be mistyped"`
}

// PauseQueue lets nothing of a queue begin.
var PauseQueue = declare(&Op[QueueWhy, QueuePaused]{
	Decl: Decl{
		Name: "queues pause", Method: http.MethodPost, Path: "/queues/{queue}/pause", Needs: guard.Operator, Summary: "Let nothing of a queue begin",
		Doc: "What runs goes on. A queue that was paused before stays as it was: `changed` is false. One that nothing names is paused as well: `unknown` is true.",
	},
	do: func(ctx context.Context, l *Local, in *QueueWhy) (p QueuePaused, err error) {
		p.Changed, err = l.Store.Pause(ctx, in.Queue, l.who(ctx).Name, in.Body.Why)
		p.Unknown = err == nil && l.unknownQueue(ctx, in.Queue)
		return p, err
	},
	said: func(in *QueueWhy, p QueuePaused) string {
		said := in.said(Changed{p.Changed}, "is paused", "was paused already")
		if p.Unknown {
			said += "; no job, kind, schedule or engine names it"
		}
		return said
	},
})

// unknownQueue reports whether nothing names a queue. To find no job may be to go
// through all of them, so what is not known within a second is not said.
func (l *Local) unknownQueue(ctx context.Context, queue string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	kinds, err := l.Store.Kinds(ctx)
	if err != nil || queue == stint.DefaultQueue || slices.ContainsFunc(kinds, func(k stint.KindInfo) bool { return k.Queue == queue }) {
		return false
	}
	schedules, err := l.Store.Schedules(ctx)
	if err != nil || slices.ContainsFunc(schedules, func(s store.ScheduleInfo) bool { return s.Job.Queue == queue }) {
		return false
	}
	engines, err := l.Store.Engines(ctx)
	if err != nil || slices.ContainsFunc(engines, func(e store.EngineInfo) bool { return slices.Contains(e.Queues, queue) }) {
		return false
	}
	jobs, err := l.Store.Find(ctx, store.Filter{Queue: queue, Limit: 1})
	return err == nil && len(jobs) == 0
}

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
