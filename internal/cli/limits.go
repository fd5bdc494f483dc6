package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

const limitsListHelp = `List shows each limit with its rule, and the permits to start its jobs: held is how many
engines have, and asked is how many more they wait for. Permits that engines hold count,
though an engine may keep some for a moment that it does not use. A limit with keys has
its rule for each of them: keys is how many are in use, and the other columns count all of
them together. Engines is how many hold permits or wait for some.`

const limitsShowHelp = `show LIMIT: Show what a limit allows, and which engines hold it

Show prints the rule of a limit, who set it and why, and the engines that hold permits to
start its jobs (held), or wait for some (asked). Of a limit with keys it prints the keys
that most is asked for; stint keys lists them all.`

const limitsSetHelp = `set LIMIT RULE: Set what a limit allows, on all engines and at once

Set gives a limit a rule that counts in place of the one that programs declare, until it
is reset. Jobs that run go on, also if they are more than the limit allows now. A limit
that no program declares can be set as well.

A rule says how many jobs run at once over all engines (10, 0 for none, or any), how many
start in a time (100/1m), or both. It counts for each key of a limit with keys; one key
can have a rule of its own. queue=mail is all jobs of the queue mail. After a comma may
follow:
  burst=5         so many of the starts may come at once
  in-order        with 1 at once: a job that fails and is retried holds up those after it
  in-order,halt   and so does one that has failed for good
  trip=5/30s      after 5 failures in a row the limit is paused for 30 seconds, and then
                  one job is tried alone
  trip=50%/30s    the same when half of the last 20 attempts failed
  weight=3        engines take three jobs of the key where they take one of others

Examples:
  stint limits set smtp 20 --why "the new server"
  stint limits set smtp 10,100/1m,burst=5
  stint limits set tenant=acme 5,weight=3
  stint limits set queue=mail 20
  stint limits set smtp 0
  stint limits set account 1,in-order
  stint limits set smtp any`

const limitsPauseHelp = `pause LIMIT TIME: Start no job of a limit for a time

Pause lets no job of a limit, or of one of its keys, start for a time of up to a day, on
all engines. Jobs that run go on. A pause that lasts longer already stays.

Examples:
  stint limits pause smtp 10m --why "their maintenance"
  stint limits pause tenant=acme 1h`

const limitsResetHelp = `reset LIMIT...: Take back what was set, so that what programs declare counts again

Reset takes back what stint limits set did. A limit that no program declares allows all
then; for a key (tenant=acme) the rule of its limit counts.`

const limitsUnblockHelp = `unblock LIMIT...: Let jobs go on that stand still since one of their order failed

Unblock has the jobs of a limit whose rule says halt go on without the one that failed. Of
a limit with keys it takes one of these: account=7. To have the failed job done first, use
stint jobs retry instead.

Examples:
  stint limits unblock account=7`

const keysHelp = `keys LIMIT: List the keys of a limit that are in use

Keys lists the keys of a limit of which engines hold permits to start jobs, or wait for
some, and those whose next start has to wait: those that most is asked for first. Held is
how many permits engines have, and asked how many more they wait for.

Examples:
  stint keys tenant
  stint keys tenant --most 1000 --json`

func (a *app) limitsCommand() *cobra.Command {
	return a.noun(page("limits|limit: List and show limits, set, reset, pause and resume them"),
		lists(a, limitsListHelp, ops.ListLimits, a.listLimits),
		a.limitsShowCommand(), a.limitsSetCommand(),
		a.withJSON(eachName(a, page(limitsResetHelp), ops.ResetLimit, limitName, func(_ context.Context, _ *database, _ ops.LimitName, said string, c ops.LimitChanged) error {
			return a.limitChanged(said, c)
		})),
		a.limitsPauseCommand(),
		eachName(a, page("resume LIMIT...: Start the jobs of paused limits again"), ops.ResumeLimit, limitName, nil),
		a.withJSON(eachName(a, page(limitsUnblockHelp), ops.UnblockLimit, limitName, func(_ context.Context, _ *database, _ ops.LimitName, said string, u ops.Unblocked) error {
			if a.json {
				return a.printJSON(u)
			}
			fmt.Fprintln(a.out, said)
			return nil
		})),
	)
}

func limitName(name string) ops.LimitName { return ops.LimitName{Limit: name} }

func (a *app) listLimits(limits []store.LimitInfo, now time.Time) {
	printTable(a, limits, "no limits", row{"limit", "rule", "held", "asked", "keys", "engines", ""}, func(l store.LimitInfo) row {
		return row{l.Name, l.Rule, l.Held, l.Asked, l.Gates, l.Engines, originOfRule(l, now)}
	})
}

// originOfRule says that a limit is paused, or where its rule comes from, if that is not what
// programs declare.
func originOfRule(l store.LimitInfo, now time.Time) string {
	switch {
	case l.Paused != nil:
		return view.PauseInWords(*l.Paused, now)
	case l.Set != "" && l.Declared != "":
		return "set " + words.Ago(l.SetAt, now) + reasonInWords(l.By, l.Why) + "; declared: " + l.Declared
	case l.Set != "":
		return "set " + words.Ago(l.SetAt, now) + reasonInWords(l.By, l.Why)
	case l.Declared == "" && l.Rule == stint.LimitRule{}.String():
		return "no rule: it allows all"
	}
	return ""
}

// most is how many keys to list.
func mostFlag(cmd *cobra.Command, to *int, otherwise int) {
	countFlag(cmd.Flags(), to, "most", otherwise, "how many keys at most", "")
}

func (a *app) limitsShowCommand() *cobra.Command {
	in := new(ops.LimitMost)
	cmd := a.asks(page(limitsShowHelp), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		shown, err := ops.ShowLimit.Call(ctx, db, *in)
		return shown, func(now time.Time) { a.showLimit(shown, now) }, hintName(err)
	}, namesLimit(in))
	mostFlag(cmd, &in.Most, 20)
	return cmd
}

// namesLimit takes the name of a limit from the first argument, and checks it.
func namesLimit(in *ops.LimitMost) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		in.Limit = args[0]
		return ops.Check(in)
	}
}

func (a *app) showLimit(l ops.ShownLimit, now time.Time) {
	fmt.Fprintf(a.out, "limit %s\n\n", words.Visible(l.Name))
	d := a.newDetails(now)
	d.add("rule", l.Rule)
	d.add("declared", cmp.Or(l.Declared, "by no program"))
	if l.Set != "" {
		d.add("set", words.Ago(l.SetAt, now)+reasonInWords(l.By, l.Why))
	}
	if l.Paused != nil {
		d.add("paused", view.PauseInWords(*l.Paused, now))
	}
	d.add("held", words.Counted(l.Held, "permit")+" by "+words.Counted(l.Engines, "engine"))
	d.add("asked", words.Count(l.Asked))
	d.Render()
	a.listGates(l.InUse, l.LimitInfo, now)
}

// listGates prints who holds the gates of a limit: for a limit without keys its engines, and
// else its keys.
func (a *app) listGates(gates []store.GateInfo, l store.LimitInfo, now time.Time) {
	for _, g := range gates {
		if g.Gate == l.Name {
			fmt.Fprintln(a.out)
			if said := heldUpInWords(g, now); said != "" {
				fmt.Fprintln(a.out, said)
			}
			printTable(a, g.Holds, "", row{"engine", "instance", "held", "asked", "since"}, func(h store.GateHolding) row {
				return row{h.Engine, h.Instance, h.Held, h.Asked, words.Ago(h.Since, now)}
			})
		}
	}
	if keys := keysOf(gates, l.Name); len(keys) > 0 {
		fmt.Fprintln(a.out)
		a.listKeys(keys, now)
		if more := l.More(gates); more > 0 {
			a.note("%s more: stint keys %s", words.Counted(more, "key"), shellQuote(l.Name))
		}
	}
}

func keysOf(gates []store.GateInfo, limit string) (keys []store.GateInfo) {
	for _, g := range gates {
		if g.Gate != limit {
			keys = append(keys, g)
		}
	}
	return keys
}

// gatePause is empty for a gate that is not paused.
func gatePause(g store.GateInfo, now time.Time) string {
	if g.Paused == nil {
		return ""
	}
	return view.PauseInWords(*g.Paused, now)
}

func (a *app) listKeys(gates []store.GateInfo, now time.Time) {
	printTable(a, gates, "no key is in use", row{"key", "rule", "held", "asked", "engines", ""}, func(g store.GateInfo) row {
		return row{cmp.Or(g.Key, "-"), g.Rule, g.Held, g.Asked, len(g.Holds), cmp.Or(gatePause(g, now), heldUpInWords(g, now), view.HoldersInWords(g))}
	})
}

// heldUpInWords says what holds up the jobs of a gate.
func heldUpInWords(g store.GateInfo, now time.Time) string {
	switch {
	case g.Halted():
		return fmt.Sprintf("halted since job %d failed", g.Failed)
	case g.Again != 0:
		return fmt.Sprintf("waits for job %d", g.Again)
	case g.Next.Sub(now) > time.Second:
		return "the next start is due " + words.Ago(g.Next, now)
	}
	return ""
}

func (a *app) limitsSetCommand() *cobra.Command {
	var why, by string
	cmd := a.withJSON(a.does(page(limitsSetHelp), func(ctx context.Context, cmd *cobra.Command, args []string) error {
		in := ops.NewLimitRule{LimitName: limitName(args[0]), Body: ops.LimitRule{Rule: args[1], Why: ops.Why{Why: why}}}
		if err := ops.Check(&in); err != nil {
			return err
		}
		return a.on(changing, func(ctx context.Context, db *database, _ []string) error {
			return doEach(ctx, a, db, ops.SetLimit, []ops.NewLimitRule{in}, func(_ context.Context, _ *database, _ ops.NewLimitRule, said string, c ops.LimitChanged) error {
				return a.limitChanged(said, c)
			})
		})(ctx, cmd, args)
	}))
	reasonFlags(cmd, &why, &by, "the reason that is kept with the limit", "the person or program that sets it")
	return cmd
}

func (a *app) limitsPauseCommand() *cobra.Command {
	var why, by string
	cmd := a.does(page(limitsPauseHelp), func(ctx context.Context, cmd *cobra.Command, args []string) error {
		in := ops.PausedLimit{LimitName: limitName(args[0]), Body: ops.LimitPause{For: args[1], Why: ops.Why{Why: why}}}
		if err := ops.Check(&in); err != nil {
			return err
		}
		return a.on(changing, func(ctx context.Context, db *database, _ []string) error {
			return doEach(ctx, a, db, ops.PauseLimit, []ops.PausedLimit{in}, nil)
		})(ctx, cmd, args)
	})
	reasonFlags(cmd, &why, &by, "the reason that is kept with the pause", "the person or program that pauses it")
	return cmd
}

func (a *app) limitChanged(said string, c ops.LimitChanged) error {
	if a.json {
		return a.printJSON(c)
	}
	fmt.Fprintln(a.out, said)
	return nil
}

func (a *app) keysCommand() *cobra.Command {
	in := new(ops.LimitMost)
	cmd := a.asks(page(keysHelp), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		gates, err := ops.Items(ops.ListKeys.Call(ctx, db, *in))
		return gates, func(now time.Time) { a.listKeys(gates, now) }, hintName(err)
	}, namesLimit(in))
	mostFlag(cmd, &in.Most, 100)
	return cmd
}

// limitsKey is the table of a file in which each key is a limit.
const limitsKey = "limits"

// fileLimit is a limit of a file.
type fileLimit struct {
	name  string
	rule  stint.LimitRule
	place string // file and line
}

func readLimits(e entry) ([]fileLimit, error) {
	parts, err := e.parts()
	var all []fileLimit
	for _, one := range parts {
		l, err := readLimit(one)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, err
}

// readLimit reads a limit whose rule is a string, or a number of jobs at once.
func readLimit(e entry) (fileLimit, error) {
	var text string
	switch v := e.value.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	default:
		return fileLimit{}, e.isNot(`a number, or a string: "10,100/1m"`)
	}
	l := fileLimit{name: e.name, place: fmt.Sprintf("%s:%d", e.file.path, e.line)}
	err := stint.CheckGate(e.name)
	if err == nil {
		l.rule, err = stint.ParseLimitRule(text)
	}
	if err == nil {
		err = l.rule.CheckFor(e.name)
	}
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok {
		err = errors.New(invalid.Problem)
	}
	return l, e.refuse(err)
}

// declareLimits adds the limits of the file to those that the engine of a mux declares.
func (a *app) declareLimits(mux *stint.Mux) {
	for _, l := range a.limits {
		mux.Limit(l.name, l.rule)
	}
}

// shown is the limit as stint config shows it.
func (l fileLimit) shown() shownSetting {
	return shownSetting{below(limitsKey, l.name), l.rule.String(), l.place}
}
