package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
)

const enginesShowHelp = `show TOKEN|INSTANCE...: Show engines with the jobs that they hold

Show prints engines with the jobs that each holds: those that it runs, and those that it
took and has not begun. stint engines bury frees the jobs of an engine that is dead or
stuck, and they run again elsewhere; cancel those before that must not run again.`

const enginesMetricsHelp = `metrics [INSTANCE]: Show what engines counted

Metrics shows what engines have counted since they were started, as they stored it last:
every 15 seconds, or as often as --metrics-every says, and when they stop. The metrics of
an engine that has left are deleted after five days. With a name, it shows that engine
only. --json has all figures.`

const enginesDrainHelp = `drain TOKEN|INSTANCE...: Let engines end their jobs and leave

Drain asks engines to take no more jobs. They leave when the jobs that run have ended,
however long that takes. An engine learns of it with its next heartbeat.`

const enginesBuryHelp = `bury TOKEN|INSTANCE...: Free the jobs of engines, dead or alive

Bury removes engines from the roster now. The jobs that they held run again on other
engines. An engine without heartbeats is buried without this command, after its time to
live. An engine that is still alive cancels its handlers, records nothing more, and joins
again. Before that cancel jobs that must not run again: stint engines show lists them,
and stint jobs cancel ends them.`

func (a *app) enginesCommand() *cobra.Command {
	show := func(ctx context.Context, db *database, _ ops.EngineToken, _ string, shown ops.ShownEngine) error {
		if a.json {
			return a.printJSON(shown)
		}
		now, err := db.now(ctx)
		if err == nil {
			a.showEngine(shown, now)
		}
		return err
	}
	return a.group(page("engines|engine: List and show engines, drain and bury them"),
		lists(a, `List shows the engines that have joined and not left, dead ones until they are buried.
The column jobs counts the jobs that an engine has claimed and that have not ended;
stint engines show lists them.`, ops.ListEngines, a.listEngines),
		a.withJSON(onEngines(a, page(enginesShowHelp), looking, ops.ShowEngine, engineToken, show)),
		a.asks(page(enginesMetricsHelp), a.metricsOf),
		onEngines(a, page(enginesDrainHelp), changing, ops.DrainEngine, engineToken, nil),
		onEngines(a, page(enginesBuryHelp), changing, ops.BuryEngine, func(t ops.EngineToken) ops.EngineWhy { return ops.EngineWhy{EngineToken: t} }, nil),
	)
}

func (a *app) listEngines(engines []ops.Engine, now time.Time) {
	printTable(a, engines, "no engines", row{"token", "instance", "host", "pid", "slots", "jobs", "queues", "joined", "last beat", ""}, func(e ops.Engine) row {
		return row{e.Token, e.Instance, e.Host, e.PID, e.Slots, e.Holding, cmp.Or(strings.Join(e.Queues, ","), "*"), words.Ago(e.Joined, now), words.Ago(e.Beat, now), special(e.State)}
	})
}

// special says in which state an engine is; it is empty for one that works.
func special(c view.Condition) string {
	switch c {
	case view.Working:
		return ""
	case view.Gone:
		return "dead: its process is gone"
	case view.Stuck:
		return "stuck: its process lives and sends no heartbeat"
	case view.Silent:
		return "dead: it sends no heartbeat"
	default:
		return string(c)
	}
}

func (a *app) showEngine(e ops.ShownEngine, now time.Time) {
	fmt.Fprintf(a.out, "engine %s (%d)", words.Visible(e.Instance), e.Token)
	if state := special(e.State); state != "" {
		fmt.Fprint(a.out, " is ", state)
	}
	fmt.Fprint(a.out, "\n\n")
	d := a.newDetails(now)
	d.add("on", fmt.Sprintf("%s, pid %d", e.Host, e.PID))
	d.add("version", e.Version)
	d.add("queues", cmp.Or(strings.Join(e.Queues, ", "), "*"))
	d.add("kinds", e.Kinds)
	d.add("slots", e.Slots)
	d.add("joined", e.Joined)
	d.add("last beat", words.Ago(e.Beat, now)+", counts as dead after "+e.TimeToLive.String()+" without one")
	d.Render()
	if len(e.Holds) == 0 {
		fmt.Fprintln(a.out, "\nit holds no jobs")
		return
	}
	fmt.Fprintf(a.out, "\nit holds %s\n\n", words.Counted(len(e.Holds), "job"))
	printTable(a, e.Holds, "", row{"id", "kind", "queue", "attempt", "ready", ""}, func(j view.HeldJob) row {
		state := "taken"
		if j.Begun {
			state = "running"
		}
		return row{j.ID, j.Kind, j.Queue, j.Attempt, words.Ago(j.Ready, now), state}
	})
}

// metricsOf answers with what the engine of a name counted, or all without one.
func (a *app) metricsOf(ctx context.Context, db *database, names []string) (any, shower, error) {
	all, err := ops.Items(ops.ListEngineMetrics.Call(ctx, db, ops.None{}))
	if err == nil && len(names) > 0 {
		all = slices.DeleteFunc(all, func(m report.Metrics) bool { return m.Instance != names[0] })
		if len(all) == 0 {
			err = withHint(fmt.Errorf("no engine of the name %q has written its metrics", names[0]), "stint engines metrics shows all that have")
		}
	}
	return all, func(now time.Time) { a.listMetrics(all, now) }, err
}

func (a *app) listMetrics(all []report.Metrics, now time.Time) {
	head := row{"instance", "since", "written", "claimed", "claims", "running", "run", "succeeded", "failed", "cancelled", "returned", "working", "flushes", "retries"}
	printTable(a, all, "no engine has written its metrics", head, func(m report.Metrics) row {
		c, w := m.Claimer, m.Workers
		return row{m.Instance, words.Ago(m.Since, now), words.Ago(m.At, now), c.Claimed, c.Claims, words.Count(w.Running), w.Run,
			w.Succeeded, w.Failed, w.Cancelled, c.Returned, w.Working, m.Finisher.Flushes, m.Finisher.Retries}
	})
}

// onEngines makes a command that does an operation to each engine that is named by token
// or by instance, if all of them are there.
func onEngines[I, O any](a *app, cmd *cobra.Command, how access, op *ops.Op[I, O], input func(ops.EngineToken) I, show func(ctx context.Context, db *database, in I, said string, out O) error) *cobra.Command {
	return a.does(cmd, a.on(how, func(ctx context.Context, db *database, names []string) error {
		roster, err := db.Engines(ctx)
		if err != nil {
			return err
		}
		var chosen []I
		for _, name := range names {
			before := len(chosen)
			for _, e := range roster {
				if e.Instance == name || fmt.Sprint(e.Token) == name {
					chosen = append(chosen, input(ops.EngineToken{Token: int64(e.Token)}))
				}
			}
			if len(chosen) == before {
				return withHint(fmt.Errorf("there is no engine %q in the roster", name), "stint engines list shows the engines")
			}
		}
		return doEach(ctx, a, db, op, chosen, show)
	}))
}

func engineToken(t ops.EngineToken) ops.EngineToken { return t }
