package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
)

const enginesMetricsLong = `Metrics shows what engines have counted since they were started, as they last wrote
it: every 15 seconds, if --metrics-every does not say otherwise, and when they stop.
What is kept of an engine that is gone goes after five days. --json has all of it.`

func (a *app) enginesMetricsCommand() *cobra.Command {
	cmd := lists(a, &cobra.Command{
		Short: "Show what engines counted",
		Long:  enginesMetricsLong,
	}, (*database).EngineMetrics, a.listMetrics)
	cmd.Use, cmd.Aliases = "metrics", nil
	return cmd
}

func (a *app) listMetrics(all []stint.Metrics) {
	if len(all) == 0 {
		a.note("no engine has written its metrics")
		return
	}
	now := time.Now()
	t := newTable(a.out, "instance", "since", "written", "claimed", "claims", "running", "run", "succeeded", "failed", "cancelled", "returned", "working", "flushes", "retries")
	for _, m := range all {
		t.AppendRow([]any{
			visible(m.Instance), ago(m.Since, now), ago(m.At, now), count(m.Claimer.Claimed), count(m.Claimer.Claims), count(m.Workers.Running), count(m.Workers.Run),
			count(m.Workers.Succeeded), count(m.Workers.Failed), count(m.Workers.Cancelled), count(m.Claimer.Returned),
			took(m.Workers.Working), count(m.Finisher.Flushes), count(m.Finisher.Retries),
		})
	}
	t.Render()
}
