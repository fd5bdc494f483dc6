package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

const enginesShowHelp = `show TOKEN|INSTANCE...: Show engines with the jobs that they hold

Show prints engines with the jobs that each holds: those that it runs, and those that it
took and has not begun. stint engines bury frees the jobs of an engine that is dead or
stuck, and they run again elsewhere; cancel those before that must not run again.

Of an engine that is gone it prints why, and the attempts that were lost with it, with
what became of their jobs.`

const enginesGoneHelp = `gone: List engines that are gone, the last first

Gone lists the engines that stopped and those that were buried: when, why, by which
engine, how many jobs that they held were taken over, and how many of these were known to
have begun, and so are lost. stint engines show lists those. An engine is forgotten when
the jobs that it ran are.

` + timesHelp

const enginesMetricsHelp = `metrics [INSTANCE]: Show what engines counted

Metrics shows what engines have counted since they were started, as they stored it last:
every 15 seconds, or as often as --metrics-every says, and when they stop. The metrics of
an engine that has left are deleted after five days; until then it is listed as gone. With
a name, it shows that engine only. --json has all figures.`

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
	var why, by string
	withWhy := func(t ops.EngineToken) ops.EngineWhy { return ops.EngineWhy{EngineToken: t, Body: ops.Why{Why: why}} }
	drain := onEngines(a, page(enginesDrainHelp), changing, ops.DrainEngine, withWhy, nil)
	reasonFlags(drain, &why, &by, "the reason that is kept in the log of changes", "the person or program that drains them")
	bury := onEngines(a, page(enginesBuryHelp), changing, ops.BuryEngine, withWhy, nil)
	reasonFlags(bury, &why, &by, "the reason that is kept with the engine, and that it logs", "the person or program that buries them")
	return a.noun(page("engines|engine: List and show engines, drain and bury them"),
		lists(a, `List shows the engines that have joined and not left, dead ones until they are buried.
The column jobs counts the jobs that an engine has claimed and that have not ended;
stint engines show lists them.`, ops.ListEngines, a.listEngines),
		a.withJSON(onEngines(a, page(enginesShowHelp), looking, ops.ShowEngine, engineToken, show, formerEngine)),
		a.enginesGoneCommand(),
		a.asks(page(enginesMetricsHelp), a.metricsOf),
		drain,
		bury,
	)
}

func (a *app) enginesGoneCommand() *cobra.Command {
	var (
		filter store.FormerFilter
		since  timeBound
	)
	cmd := a.asks(page(enginesGoneHelp), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		now, err := db.now(ctx)
		if err != nil {
			return nil, nil, err
		}
		in := ops.FormerQuery{Instance: filter.Instance, Since: ops.At(since.at(now)), Limit: filter.Limit}
		all, err := ops.Items(ops.ListFormerEngines.Call(ctx, db, in))
		return all, func(now time.Time) { a.listFormer(all, now) }, err
	})
	flags := cmd.Flags()
	flags.StringVar(&filter.Instance, "instance", "", "only engines of this name")
	flags.Var(timeBounds.in(&since), "since", "only those that went at this time or later")
	countFlag(flags, &filter.Limit, "limit", 100, "how many at most", "")
	return cmd
}

func (a *app) listFormer(engines []ops.Engine, now time.Time) {
	printTable(a, engines, "no engine is gone", row{"token", "instance", "host", "pid", "joined", "went", "why", "buried by", "taken over", "lost"}, func(e ops.Engine) row {
		end := e.Former().EngineEnd
		return row{e.Token, e.Instance, e.Host, e.PID, words.Ago(e.Joined, now), words.Ago(end.At, now), view.EndInWords(end), buriedBy(end), end.Freed, end.Lost}
	})
}

// buriedBy is the engine that buried one, by its name if that is known.
func buriedBy(e store.EngineEnd) string {
	if e.By != 0 && e.ByInstance == "" {
		return fmt.Sprint(e.By)
	}
	return e.ByInstance
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
	case view.Left, view.Buried:
		return "gone"
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
	if e.Ended != nil {
		a.showFormer(e, d, now)
		return
	}
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
		if !j.Started.IsZero() {
			state += ", begun " + words.Ago(j.Started, now)
		}
		return row{j.ID, j.Kind, j.Queue, j.Attempt, words.Ago(j.Ready, now), state}
	})
}

// showFormer shows the rest of an engine that is gone.
func (a *app) showFormer(e ops.ShownEngine, d details, now time.Time) {
	d.add("last beat", words.Ago(e.Beat, now)+", counted as dead after "+e.TimeToLive.String()+" without one")
	d.add("went", e.Ended.At)
	d.add("why", view.EndInWords(*e.Ended))
	if by := buriedBy(*e.Ended); by != "" {
		d.add("buried by", by)
	}
	d.Render()
	fmt.Fprintf(a.out, "\n%s that it held %s taken over; %s lost\n", words.Counted(e.Ended.Freed, "job"), wereOf(e.Ended.Freed), words.Counted(e.Ended.Lost, "attempt")+" "+wereOf(e.Ended.Lost))
	if len(e.Lost) > 0 {
		fmt.Fprintln(a.out)
		printTable(a, e.Lost, "", row{"id", "kind", "queue", "attempt", "state"}, func(l store.LostAttempt) row {
			return row{l.Job, l.Kind, l.Queue, l.Attempt, l.State}
		})
	}
}

func wereOf(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
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
	if err != nil || a.json {
		return all, nil, err
	}
	roster, err := db.Engines(ctx)
	return all, func(now time.Time) { a.listMetrics(all, roster, now) }, err
}

// listMetrics marks engines that do not work, as listEngines does.
func (a *app) listMetrics(all []report.Metrics, roster []store.EngineInfo, now time.Time) {
	states := map[store.EngineID]view.Condition{}
	for _, e := range roster {
		states[e.Token] = view.ConditionOf(e, now)
	}

	head := row{"instance", "since", "written", "claimed", "claims", "slots", "running", "run", "succeeded", "failed", "cancelled", "returned", "working", "flushes", "retries", ""}
	printTable(a, all, "no engine has written its metrics", head, func(m report.Metrics) row {
		c, w := m.Claimer, m.Workers
		return row{m.Instance, words.Ago(m.Since, now), words.Ago(m.At, now), c.Claimed, c.Claims, w.Slots, words.Count(w.Running), w.Run,
			w.Succeeded, w.Failed, w.Cancelled, c.Returned, w.Working, m.Finisher.Flushes, m.Finisher.Retries, special(cmp.Or(states[m.Engine], view.Left))}
	})
}

// onEngines makes a command that does an operation to each engine that is named by token
// or by instance, if all of them are there. Those that are not in the roster are looked for elsewhere.
func onEngines[I, O any](a *app, cmd *cobra.Command, how access, op *ops.Op[I, O], input func(ops.EngineToken) I, show func(ctx context.Context, db *database, in I, said string, out O) error,
	elsewhere ...func(ctx context.Context, db *database, name string) ([]store.FormerEngine, error)) *cobra.Command {
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
			for _, find := range elsewhere {
				if len(chosen) > before {
					break
				}
				found, err := find(ctx, db, name)
				if err != nil {
					return err
				}
				for _, e := range found {
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

// formerEngine finds an engine that is gone by its token, or the last one of a name.
func formerEngine(ctx context.Context, db *database, name string) ([]store.FormerEngine, error) {
	found, err := db.FormerEngines(ctx, store.FormerFilter{Instance: name, Limit: 1})
	token, bad := strconv.ParseInt(name, 10, 64)
	if err != nil || len(found) > 0 || bad != nil || token < 1 {
		return found, err
	}
	return db.FormerEngines(ctx, store.FormerFilter{Engines: []store.EngineID{store.EngineID(token)}, Limit: 1})
}
