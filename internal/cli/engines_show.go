package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/retry"
)

const enginesShowLong = `Show prints what is known of engines, with the jobs that each holds: those that it
runs, and those that it took and has not begun. What an engine that is dead or stuck
holds is freed by stint engines bury, and runs again elsewhere; stint jobs cancel
before that ends it.`

func (a *app) enginesShowCommand() *cobra.Command {
	return a.withJSON(a.does(&cobra.Command{
		Use:   "show TOKEN|INSTANCE...",
		Short: "Show engines with the jobs that they hold",
		Long:  enginesShowLong,
		Args:  arguments(1, "TOKEN|INSTANCE..."),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		return onEngines(ctx, a, looking, args, ops.ShowEngine, func(t ops.EngineToken) ops.EngineToken { return t }, func(ctx context.Context, db *database, shown ops.ShownEngine) error {
			if a.json {
				return a.printJSON(shown)
			}
			now, err := db.now(ctx)
			if err == nil {
				a.showEngine(shown, now)
			}
			return err
		})
	}))
}

func (a *app) showEngine(e ops.ShownEngine, now time.Time) {
	fmt.Fprintf(a.out, "engine %s (%d)", words.Visible(e.Instance), e.Token)
	if state := special(e.State); state != "" {
		fmt.Fprint(a.out, " is ", state)
	}
	fmt.Fprint(a.out, "\n\n")
	t := newTable(a.out)
	queues := words.Visible(strings.Join(e.Queues, ", "))
	if queues == "" {
		queues = "*"
	}
	for _, row := range [][2]string{
		{"on", fmt.Sprintf("%s, pid %d", words.Visible(e.Host), e.PID)}, {"version", words.Visible(e.Version)},
		{"queues", queues}, {"kinds", words.Visible(strings.Join(e.Kinds, ", "))}, {"slots", fmt.Sprint(e.Slots)},
		{"joined", moment(e.Joined) + " (" + words.Ago(e.Joined, now) + ")"},
		{"last beat", words.Ago(e.Beat, now) + ", buried after " + retry.FormatDuration(e.TimeToLive) + " without one"},
	} {
		t.AppendRow([]any{"  " + row[0], row[1]})
	}
	t.Render()
	if len(e.Holds) == 0 {
		fmt.Fprintln(a.out, "\nit holds no jobs")
		return
	}
	fmt.Fprintf(a.out, "\nit holds %s\n\n", words.Counted(len(e.Holds), "job"))
	t = newTable(a.out, "id", "kind", "queue", "attempt", "ready", "")
	for _, j := range e.Holds {
		state := "taken"
		if j.Begun {
			state = "running"
		}
		t.AppendRow([]any{j.ID, words.Visible(j.Kind), words.Visible(j.Queue), j.Attempt, words.Ago(j.Ready, now), state})
	}
	t.Render()
}
