package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
)

func (a *app) queuesCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "queues",
		Aliases: []string{"queue"},
		Short:   "List queues, pause and resume them",
	},
		a.queuesListCommand(),
		a.queuesPauseCommand(),
		a.queuesResumeCommand(),
	)
}

func (a *app) queuesListCommand() *cobra.Command {
	return lists(a, &cobra.Command{
		Short: "List the queues with how many jobs are in each state",
		Long: `List shows the queues that have jobs and those that are paused. It counts every
job that there is, so on a long history it takes a while.`,
	}, (*database).Queues, a.listQueues)
}

func (a *app) listQueues(queues []stint.QueueInfo) {
	if len(queues) == 0 {
		a.note("no queues")
		return
	}
	head := []any{"queue"}
	var shown []stint.State
	for _, state := range stint.States {
		used := state != stint.Blocked
		for _, q := range queues {
			used = used || q.Counts[state] > 0
		}
		if used {
			head, shown = append(head, string(state)), append(shown, state)
		}
	}
	now := time.Now()
	t := newTable(a.out, append(head, "paused")...)
	for _, q := range queues {
		row := []any{words.Visible(q.Name)}
		for _, state := range shown {
			row = append(row, words.Count(q.Counts[state]))
		}
		t.AppendRow(append(row, pausedInWords(q.Paused, q.By, q.Why, now)))
	}
	t.Render()
}

const queuesPauseLong = `Pause keeps the jobs of queues from beginning, on every engine and at once. What
runs goes on. Jobs may be enqueued as ever; they wait until the queue is resumed.`

func (a *app) queuesPauseCommand() *cobra.Command {
	var why, by string
	cmd := a.does(&cobra.Command{
		Use:     "pause QUEUE...",
		Short:   "Let nothing of queues begin",
		Long:    queuesPauseLong,
		Example: `  stint queues pause mail --why "the mail server is down"`,
		Args:    arguments(1, "QUEUE..."),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		return a.eachQueue(ctx, args, func(db *database, queue string) (string, error) {
			changed, err := db.Pause(ctx, queue, by, why)
			if changed {
				return "is paused", err
			}
			return "was paused already", err
		})
	})
	reasonFlags(cmd, &why, &by, "the reason that is kept with the queue", "who pauses it")
	return cmd
}

func (a *app) queuesResumeCommand() *cobra.Command {
	return a.does(&cobra.Command{
		Use:   "resume QUEUE...",
		Short: "Let the jobs of paused queues begin again",
		Args:  arguments(1, "QUEUE..."),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		return a.eachQueue(ctx, args, func(db *database, queue string) (string, error) {
			changed, err := db.Resume(ctx, queue)
			if changed {
				return "is resumed", err
			}
			return "was not paused", err
		})
	})
}

// eachQueue does something to each queue and says what came of it.
func (a *app) eachQueue(ctx context.Context, names []string, do func(db *database, queue string) (string, error)) error {
	return a.eachName(ctx, names, stint.CheckQueue, func(db *database, queue string) error {
		came, err := do(db, queue)
		if err == nil {
			fmt.Fprintf(a.out, "queue %s %s\n", words.Visible(queue), came)
		}
		return err
	})
}
