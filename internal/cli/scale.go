package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
)

const scaleHelp = `scale: Say how many engines would keep up with the work

Scale says how many engines keep up with what arrives, and clear what waits within the
target. It leaves out what more engines could not run: jobs of paused queues, jobs beyond
what limits let run, of kinds that no engine performs, and retries of a kind most of whose
attempts fail. It says so below the figures. It comes from the database alone, so it is
there before the first engine is. With --json it is for programs that start engines; the
JSON API has the same at /api/v1/scale, and durations are nanoseconds.

Examples:
  stint scale
  stint scale --queues mail --target 10s --max 20
  stint scale --queues mail --json`

func (a *app) scaleCommand() *cobra.Command {
	var f report.ScaleFilter
	cmd := a.asks(page(scaleHelp), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		s, err := ops.ScaleEngines.Call(ctx, db, ops.ScaleInput{
			Queues: f.Queues, Target: retry.FormatDuration(f.Target), Startup: retry.FormatDuration(f.Startup), Slots: f.Slots, Min: f.Min, Max: f.Max,
		})
		return s, func(now time.Time) { a.showScale(s, now) }, err
	}, func(*cobra.Command, []string) error {
		if err := f.Check(); err != nil {
			return usagef("%v", err)
		}
		return nil
	})
	flags := cmd.Flags()
	flags.Var(nameList(&f.Queues, "queues"), "queues", "the queues that the engines work on, separated by commas (default all)")
	durationFlag(flags, &f.Target, "target", report.ScaleTarget, "how long a job may wait, and in what time a backlog is cleared")
	durationFlag(flags, &f.Startup, "startup", report.ScaleStartup, "how long it takes until a new engine works: what becomes due meanwhile counts")
	for _, n := range []struct {
		into        *int
		name, usage string
	}{
		{&f.Slots, "slots-per-engine", "how many slots an engine has (default as those that run)"},
		{&f.Min, "min", "say at least so many"},
		{&f.Max, "max", "say at most so many"},
	} {
		countFlag(flags, n.into, n.name, 0, n.usage, "")
		flags.Lookup(n.name).DefValue = ""
	}
	return cmd
}

func (a *app) showScale(s report.Scaling, now time.Time) {
	head := row{"engines", "running", "slots", "of each", "backlog", "oldest", "blocked", "due", "arrive", "cleared in"}
	printTable(a, []report.Scaling{s}, "", head, func(s report.Scaling) row {
		oldest, clear := "-", "never"
		if !s.Oldest.IsZero() {
			oldest = words.Ago(s.Oldest, now)
		}
		if s.ClearsIn != nil {
			clear = report.Roughly(*s.ClearsIn).String()
		}
		return row{s.Engines, s.Running, s.Slots, s.PerEngine, s.Backlog, oldest, s.Blocked, s.Due, fmt.Sprintf("%.3g/s", s.RateIn), clear}
	})
	for i, why := range s.Why {
		if i == 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintln(a.out, words.Visible(why))
	}
}
