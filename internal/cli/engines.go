package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
)

func (a *app) enginesCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "engines",
		Aliases: []string{"engine"},
		Short:   "List and show engines, drain and bury them",
	},
		a.enginesListCommand(),
		a.enginesShowCommand(),
		a.enginesMetricsCommand(),
		a.enginesDrainCommand(),
		a.enginesBuryCommand(),
	)
}

func (a *app) enginesListCommand() *cobra.Command {
	return lists(a, &cobra.Command{
		Long: `List shows the engines that have joined and not left. Dead ones are listed until they
are buried. The column jobs counts the jobs that an engine has claimed and that have not
ended; stint engines show lists them.`,
	}, ops.ListEngines, a.listEngines)
}

func (a *app) listEngines(engines []ops.Engine) {
	if len(engines) == 0 {
		a.note("no engines")
		return
	}
	now := time.Now()
	t := newTable(a.out, "token", "instance", "host", "pid", "slots", "jobs", "queues", "joined", "last beat", "")
	for _, e := range engines {
		queues := strings.Join(e.Queues, ",")
		if queues == "" {
			queues = "*"
		}
		t.AppendRow([]any{e.Token, words.Visible(e.Instance), words.Visible(e.Host), e.PID, e.Slots, e.Holding, words.Visible(queues),
			words.Ago(e.Joined, now), words.Ago(e.Beat, now), special(e.State)})
	}
	t.Render()
}

// special says what is special about an engine; nothing is when it works.
func special(c view.Condition) string {
	switch c {
	case view.Working:
		return ""
	case view.Gone:
		return "dead: its process is gone"
	case view.Stuck:
		return "stuck: its process lives and does not beat"
	case view.Silent:
		return "dead: it does not beat"
	default:
		return string(c)
	}
}

const enginesDrainLong = `Drain asks engines to take no more jobs. They leave when the jobs that run have ended,
however long that takes. An engine learns of it with its next beat.`

func (a *app) enginesDrainCommand() *cobra.Command {
	return a.does(&cobra.Command{
		Use:   "drain TOKEN|INSTANCE...",
		Short: "Have engines end their jobs and leave",
		Long:  enginesDrainLong,
		Args:  arguments(1, "TOKEN|INSTANCE..."),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		return onEngines(ctx, a, changing, args, ops.DrainEngine, func(t ops.EngineToken) ops.EngineToken { return t }, nil)
	})
}

const enginesBuryLong = `Bury removes engines from the roster now. The jobs that they held run again on other
engines. An engine that stops beating is buried without this command, after its time to
live. An engine that is alive after all cancels its handlers, records nothing more, and
joins again. Cancel jobs that must not run again before: stint engines show lists them,
and stint jobs cancel ends them.`

func (a *app) enginesBuryCommand() *cobra.Command {
	return a.does(&cobra.Command{
		Use:   "bury TOKEN|INSTANCE...",
		Short: "Free what engines hold, whether they live or not",
		Long:  enginesBuryLong,
		Args:  arguments(1, "TOKEN|INSTANCE..."),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		return onEngines(ctx, a, changing, args, ops.BuryEngine, func(t ops.EngineToken) ops.EngineWhy { return ops.EngineWhy{EngineToken: t} }, nil)
	})
}

// onEngines has an operation done to each engine that is named by token or by instance,
// once it is known that all of them are there, and says what came of it.
func onEngines[I, O any](ctx context.Context, a *app, how access, names []string, op *ops.Op[I, O], input func(ops.EngineToken) I, show func(ctx context.Context, db *database, out O) error) error {
	db, err := a.open(ctx, how)
	if err != nil {
		return err
	}
	defer db.Close()
	roster, err := db.Engines(ctx)
	if err != nil {
		return err
	}
	var chosen []ops.EngineToken
	for _, name := range names {
		found := false
		for _, e := range roster {
			if e.Instance == name || strconv.FormatInt(int64(e.Token), 10) == name {
				chosen, found = append(chosen, ops.EngineToken{Token: int64(e.Token)}), true
			}
		}
		if !found {
			return withHint(fmt.Errorf("there is no engine %q in the roster", name), "stint engines list shows the engines")
		}
	}
	for _, token := range chosen {
		in := input(token)
		out, err := op.Call(ctx, db, in)
		switch {
		case err != nil:
			return hintName(err)
		case show == nil:
			fmt.Fprintln(a.out, op.Said(&in, &out))
		default:
			if err := show(ctx, db, out); err != nil {
				return err
			}
		}
	}
	return nil
}
