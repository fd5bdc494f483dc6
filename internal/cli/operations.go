package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

// lists makes a command that lists something, as a table or as JSON.
func lists[T any](a *app, long string, op *ops.Op[ops.None, ops.List[T]], show func([]T, time.Time)) *cobra.Command {
	return a.asks(page("list|ls: "+op.Summary+"\n\n"+long), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		all, err := ops.Items(op.Call(ctx, db, ops.None{}))
		return all, func(now time.Time) { show(all, now) }, err
	})
}

// question asks the database something. It returns the answer for --json, and what
// prints it for people.
type question func(ctx context.Context, db *database, args []string) (answer any, show shower, err error)

// shower prints an answer for people. How long ago something was is counted by the
// clock of the database, as pages do, and not by that of this machine.
type shower func(now time.Time)

// asks makes a command that asks a question and changes nothing. The checks find mistakes
// in its flags and arguments before the database is opened.
func (a *app) asks(cmd *cobra.Command, ask question, checks ...func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return a.withJSON(a.does(cmd, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		for _, check := range checks {
			if err := check(cmd, args); err != nil {
				return err
			}
		}
		return a.on(looking, func(ctx context.Context, db *database, args []string) error {
			answer, show, err := ask(ctx, db, args)
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(answer)
			}
			now, err := db.now(ctx)
			if err == nil {
				show(now)
			}
			return err
		})(ctx, cmd, args)
	}))
}

// whoMark is on flags that name the user, which a server knows by the token.
const whoMark = "stint_who"

// reasonFlags add --why and --by, which are kept with the change.
func reasonFlags(cmd *cobra.Command, why, by *string, forWhy, forBy string) {
	cmd.Flags().StringVar(why, "why", "", forWhy)
	cmd.Flags().StringVar(by, "by", whoami(), forBy)
	_ = cmd.Flags().SetAnnotation("by", whoMark, []string{"true"})
}

func whoami() string {
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// reasonInWords says by whom something was done and why.
func reasonInWords(by, why string) string {
	text := ""
	if by != "" {
		text += " by " + words.Visible(by)
	}
	if why != "" {
		text += ": " + words.Visible(why)
	}
	return text
}

// pausedInWords says since when something is paused, by whom and why. It is empty if it is
// not paused.
func pausedInWords(since time.Time, by, why string, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return "paused " + words.Ago(since, now) + reasonInWords(by, why)
}

// by names the user of the command.
func (a *app) by() string {
	if a.cmd != nil {
		if by := a.cmd.Flags().Lookup("by"); marked(by, whoMark) != "" {
			return by.Value.String()
		}
	}
	return whoami()
}

// eachName makes a command that does an operation to each thing that its arguments name.
// It checks all names first. Show prints the result; nil prints the sentence of the
// operation.
func eachName[I, O any](a *app, cmd *cobra.Command, op *ops.Op[I, O], input func(name string) I, show func(ctx context.Context, db *database, in I, said string, out O) error) *cobra.Command {
	if cmd.Long == "" {
		cmd.Long = op.Summary + "."
	}
	return a.does(cmd, func(ctx context.Context, cmd *cobra.Command, names []string) error {
		var inputs []I
		for _, name := range names {
			in := input(name)
			if err := ops.Check(&in); err != nil {
				return hintName(err)
			}
			inputs = append(inputs, in)
		}
		return a.on(changing, func(ctx context.Context, db *database, _ []string) error {
			return doEach(ctx, a, db, op, inputs, show)
		})(ctx, cmd, names)
	})
}

// doEach does an operation with each input, and prints what came of it.
func doEach[I, O any](ctx context.Context, a *app, db *database, op *ops.Op[I, O], inputs []I, show func(ctx context.Context, db *database, in I, said string, out O) error) error {
	for _, in := range inputs {
		out, err := op.Call(ctx, db, in)
		if err != nil {
			return hintName(err)
		}
		said := op.Said(&in, &out)
		if show == nil {
			fmt.Fprintln(a.out, said)
		} else if err := show(ctx, db, in, said, out); err != nil {
			return err
		}
	}
	return nil
}

func hintName(err error) error {
	busy, _ := errors.AsType[*store.ScheduleBusyError](err)
	switch {
	case busy != nil:
		return withHint(err, "stint jobs show %d says what it waits for", busy.Job)
	case errors.Is(err, stint.ErrNoSchedule):
		return withHint(err, "stint schedules list shows those that there are")
	case errors.Is(err, ops.ErrNoLimit):
		return withHint(err, "stint limits shows those that there are")
	case errors.Is(err, ops.ErrNoErrors):
		return withHint(err, "stint errors --state all shows the groups that there are; --kind looks further back")
	case errors.Is(err, ops.ErrFreeLease):
		return withHint(err, "stint leases list shows who holds which")
	case errors.Is(err, store.ErrBurialBlocked):
		return withHint(err, "a write of the engine is under way; try again")
	}
	return err
}
