package store

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// Pauser pauses queues, for people. Nothing of a paused queue is begun: its
// jobs become available and stay so, also for engines that work on every
// queue. What runs goes on, and what an engine has taken and not begun goes
// back uncharged. Jobs may be enqueued, cancelled and deleted as ever.
type Pauser interface {
	// Pause pauses a queue, whether it has jobs or not, and wakes engines so
	// that they see it at once. By and why are kept for those who wonder. It
	// reports false when the queue was paused before: then that stands.
	Pause(ctx context.Context, queue, by, why string) (bool, error)

	// Resume lets the jobs of a queue begin again, and wakes engines. It
	// reports false when the queue was not paused.
	Resume(ctx context.Context, queue string) (bool, error)

	// Paused lists the names of the paused queues, sorted. It costs next to
	// nothing: engines ask often.
	Paused(ctx context.Context) ([]string, error)

	// Queues lists by name the queues that have jobs, ended ones included,
	// and those that are paused. It counts every job that there is.
	Queues(ctx context.Context) ([]QueueInfo, error)
}

// PauseTeller tells why queues are paused, for pages that may not count every job
// for that.
type PauseTeller interface {
	// Pauses lists the paused queues by name, without counts. It costs as little
	// as [Pauser.Paused].
	Pauses(ctx context.Context) ([]QueueInfo, error)
}

// QueueInfo is a queue as people see it.
type QueueInfo struct {
	Name   string                `json:"name"`
	Paused time.Time             `json:"paused_since,omitzero"` // since when; zero when it is not
	By     string                `json:"paused_by,omitempty"`   // who paused it
	Why    string                `json:"paused_why,omitempty"`
	Counts map[stint.State]int64 `json:"counts"`
}
