package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
)

const errorsListHelp = `list|ls: List what went wrong, in groups

List groups the attempts that failed or were lost, the newest 10,000 that fit, by kind,
class of error, the function that panicked, and what their messages have in common: what
differs from one message to the next, such as numbers and ids, does not count. The
message that is shown is the newest of the group; --json has their pattern, too.

Groups that are resolved or muted are left out unless --state or --key asks for them.
One that was resolved has returned when such an attempt failed after that.

` + timesHelp + `

Examples:
  stint errors
  stint errors --kind send_invoice --since 1d
  stint errors --state all --json`

const errorsResolveHelp = `resolve KEY...: Hide groups of errors until such attempts fail again

Resolve hides groups of errors. When an attempt fails so after that, by the clock of the
database, stint errors shows the group again, as returned. Jobs are left as they are:
stint jobs retry retries them. A group that is older than the newest 10,000 errors is
found with its --kind.

Examples:
  stint errors resolve 0123456789abcdef --why "deployed 1.4.2"`

const errorsMuteHelp = `mute KEY...: Hide groups of errors, whatever fails, until they are reopened

Mute hides groups of errors. Their attempts are still counted: stint errors --state muted
shows them. A group that is older than the newest 10,000 errors is found with its --kind.

Examples:
  stint errors mute 0123456789abcdef --why "the partner's test system"`

func (a *app) errorsCommand() *cobra.Command {
	return a.noun(page("errors|error: List what went wrong in groups, resolve and mute groups"),
		a.errorsListCommand(),
		a.errorsMarkCommand(errorsResolveHelp, ops.ResolveErrors),
		a.errorsMarkCommand(errorsMuteHelp, ops.MuteErrors),
		eachName(a, page("reopen KEY...: Take back that groups of errors were resolved or muted"), ops.ReopenErrors,
			func(key string) ops.ErrorsKey { return ops.ErrorsKey{Key: key} }, nil),
	)
}

func (a *app) errorsListCommand() *cobra.Command {
	var (
		in    ops.ErrorsInput
		since timeBound
	)
	cmd := a.asks(page(errorsListHelp), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		now, err := db.now(ctx)
		if err != nil {
			return nil, nil, err
		}
		in := in
		in.Since = ops.At(since.at(now))
		found, err := ops.ListErrors.Call(ctx, db, in)
		return found, func(now time.Time) {
			a.showErrors(found, now)
			if hidden := found.Counts.Resolved + found.Counts.Muted; hidden > 0 && in.State == "" && in.Key == "" {
				a.note("--state all shows those that are resolved or muted, too: %s", words.Counted(hidden, "group"))
			}
		}, err
	}, func(*cobra.Command, []string) error {
		if in.Key == "" {
			return nil
		}
		return report.CheckErrorKey(in.Key)
	})
	flags := cmd.Flags()
	nameFlag(flags, &in.Kind, "kind", "only this kind")
	nameFlag(flags, &in.Queue, "queue", "only what ran in this queue")
	flags.Var(timeBounds.in(&since), "since", "only what ended at this time or later")
	states := []string{ops.AnyErrors}
	for _, s := range report.ErrorStates {
		states = append(states, string(s))
	}
	choiceFlag(flags, &in.State, "state", "", "only groups in this state (default open and returned)", states...)
	flags.StringVar(&in.Key, "key", "", "only the group with this key, in any state")
	return cmd
}

func (a *app) errorsMarkCommand(help string, op *ops.Op[ops.ErrorsMark, report.ErrorMark]) *cobra.Command {
	var kind, why, by string
	cmd := eachName(a, page(help), op, func(key string) ops.ErrorsMark {
		return ops.ErrorsMark{ErrorsKey: ops.ErrorsKey{Key: key}, Body: ops.ErrorsWhy{Kind: kind, Why: ops.Why{Why: why}}}
	}, nil)
	nameFlag(cmd.Flags(), &kind, "kind", "the kind of the groups")
	reasonFlags(cmd, &why, &by, "the reason that is kept with the group", "the person or program that decides it")
	return cmd
}

func (a *app) showErrors(r report.ErrorReport, now time.Time) {
	printTable(a, r.Groups, "no errors", row{"key", "state", "kind", "class", "attempts", "jobs", "first", "last", "newest message"}, func(g report.ErrorGroup) row {
		state, message := string(g.State), strings.Join(strings.Fields(g.Message), " ")
		if g.State == report.ErrorsReturned {
			state += ", was resolved"
		}
		if !g.At.IsZero() {
			state += " " + words.Ago(g.At, now) + reasonInWords(g.By, g.Why)
		}
		if g.Place != "" {
			message = g.Place + ": " + message
		}
		return row{g.Key, state, g.Kind, g.Class, g.Attempts, g.Jobs, words.Ago(g.First, now), words.Ago(g.Last, now), cut(message, 100)}
	})
	if r.CutOff {
		a.note("these are of the newest %s: there may be more", words.Counted(r.Attempts, "error"))
	}
}
