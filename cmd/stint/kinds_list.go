package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

func (a *app) kindsCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "kinds",
		Aliases: []string{"kind"},
		Short:   "List the kinds of jobs that engines know",
	},
		a.kindsListCommand(),
	)
}

func (a *app) kindsListCommand() *cobra.Command {
	return lists(a, &cobra.Command{
		Short: "List the kinds that engines declared, with the defaults of their jobs",
		Long: `List shows the kinds that engines declared when they joined, whether they run now
or not, with what their jobs get when nothing else is said.`,
	}, (*database).Kinds, a.listKinds)
}

func (a *app) listKinds(kinds []stint.Declaration) {
	if len(kinds) == 0 {
		a.note("no engine ever declared a kind")
		return
	}
	now := time.Now()
	t := newTable(a.out, "kind", "queue", "priority", "retry", "timeout", "tags", "declared")
	for _, k := range kinds {
		queue, timeout := k.Queue, ""
		if queue == "" {
			queue = stint.DefaultQueue
		}
		if k.Timeout > 0 {
			timeout = retry.FormatDuration(k.Timeout)
		}
		t.AppendRow([]any{words.Visible(k.Name), words.Visible(queue), k.Priority, k.Retry, timeout, words.Visible(strings.Join(k.Tags, " ")), words.Ago(k.Declared, now)})
	}
	t.Render()
}
