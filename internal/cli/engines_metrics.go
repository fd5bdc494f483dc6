package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
)

const enginesMetricsLong = `Metrics shows what engines have counted since they were started, as they last wrote
it: every 15 seconds, if --metrics-every does not say otherwise, and when they stop.
What is kept of an engine that is gone goes after five days. --json has all of it.`

func (a *app) enginesMetricsCommand() *cobra.Command {
	cmd := lists(a, &cobra.Command{
		Long: enginesMetricsLong,
	}, ops.ListEngineMetrics, a.listMetrics)
	cmd.Use, cmd.Aliases, cmd.Short = "metrics", nil, "Show what engines counted"
	return cmd
}

func (a *app) listMetrics(all []report.Metrics) {
	if len(all) == 0 {
		a.note("no engine has written its metrics")
		return
	}
	now := time.Now()
	t := newTable(a.out, "instance", "since", "written", "claimed", "claims", "running", "run", "succeeded", "failed", "cancelled", "returned", "working", "flushes", "retries")
	for _, m := range all {
		t.AppendRow([]any{
			words.Visible(m.Instance), words.Ago(m.Since, now), words.Ago(m.At, now), words.Count(m.Claimer.Claimed), words.Count(m.Claimer.Claims), words.Count(m.Workers.Running), words.Count(m.Workers.Run),
			words.Count(m.Workers.Succeeded), words.Count(m.Workers.Failed), words.Count(m.Workers.Cancelled), words.Count(m.Claimer.Returned),
			words.Took(m.Workers.Working), words.Count(m.Finisher.Flushes), words.Count(m.Finisher.Retries),
		})
	}
	t.Render()
}
