package cli

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/retry"
)

func (a *app) kindsCommand() *cobra.Command {
	return a.noun(&cobra.Command{
		Use:     "kinds",
		Aliases: []string{"kind"},
		Short:   "List the kinds of jobs that engines know",
	},
		a.kindsListCommand(),
	)
}

func (a *app) kindsListCommand() *cobra.Command {
	return lists(a, &cobra.Command{
		Long: `List shows the kinds that engines declared when they joined, whether they run now
or not, with what their jobs get when nothing else is said.`,
	}, ops.ListKinds, a.listKinds)
}

func (a *app) listKinds(kinds []stint.KindInfo) {
	if len(kinds) == 0 {
		a.note("no engine ever declared a kind")
		return
	}
	now := time.Now()
	t := newTable(a.out, "kind", "queue", "priority", "retry", "timeout", "tags", "declared")
	t.SuppressEmptyColumns() // a list of kinds with few defaults fits 80 columns
	for _, k := range kinds {
		priority, timeout := "", ""
		if k.Priority != 0 {
			priority = strconv.Itoa(k.Priority)
		}
		if k.Timeout > 0 {
			timeout = retry.FormatDuration(k.Timeout)
		}
		t.AppendRow([]any{words.Visible(k.Name), words.Visible(cmp.Or(k.Queue, stint.DefaultQueue)), priority, k.Retry, timeout, words.Visible(strings.Join(k.Tags, " ")), words.Ago(k.Declared, now)})
	}
	t.Render()
}
