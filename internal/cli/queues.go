package cli

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

const queuesPauseHelp = `pause QUEUE...: Start no more jobs of queues

Pause starts no more jobs of queues, on all engines and at once. Jobs that run go on.
Jobs can still be enqueued; they wait until the queue is resumed.

Examples:
  stint queues pause mail --why "the mail server is down"`

func (a *app) queuesCommand() *cobra.Command {
	var why, by string
	pause := eachName(a, page(queuesPauseHelp), ops.PauseQueue, func(name string) ops.QueueWhy {
		return ops.QueueWhy{QueueName: ops.QueueName{Queue: name}, Body: ops.Why{Why: why}}
	}, nil)
	reasonFlags(pause, &why, &by, "the reason that is kept with the queue", "the person or program that pauses it")
	return a.noun(page("queues|queue: List queues, pause and resume them"),
		lists(a, `List shows the queues that have jobs and those that are paused. It counts every
job that there is, so on a long history it takes a while.`, ops.ListQueues, a.listQueues),
		pause,
		eachName(a, page("resume QUEUE...: Start the jobs of paused queues again"), ops.ResumeQueue,
			func(name string) ops.QueueName { return ops.QueueName{Queue: name} }, nil),
	)
}

func (a *app) listQueues(queues []store.QueueInfo, now time.Time) {
	head := row{"queue"}
	var shown []stint.State
	for _, state := range store.States {
		if state != stint.Blocked || slices.ContainsFunc(queues, func(q store.QueueInfo) bool { return q.Counts[state] > 0 }) {
			head, shown = append(head, string(state)), append(shown, state)
		}
	}
	printTable(a, queues, "no queues", append(head, "paused"), func(q store.QueueInfo) row {
		cells := row{q.Name}
		for _, state := range shown {
			cells = append(cells, q.Counts[state])
		}
		return append(cells, pausedInWords(q.Paused, q.By, q.Why, now))
	})
}
