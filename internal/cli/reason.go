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

// whoMark is on flags that say who does something, which a server knows better.
const whoMark = "stint_who"

// reasonFlags add --why and --by, which are kept with what is done.
func reasonFlags(cmd *cobra.Command, why, by *string, forWhy, forBy string) {
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(why, "why", "", forWhy)
	cmd.Flags().StringVar(by, "by", whoami(), forBy)
	_ = cmd.Flags().SetAnnotation("by", whoMark, []string{"true"})
}

// whoami is user@host, as far as the system tells.
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

// reasonInWords says by whom something was done and why, as far as that is known.
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

// pausedInWords says since when something is paused, by whom and why; nothing
// when it is not.
func pausedInWords(since time.Time, by, why string, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return "paused " + words.Ago(since, now) + reasonInWords(by, why)
}

// by is who does what a command does.
func (a *app) by() string {
	if a.cmd != nil {
		if by := a.cmd.Flags().Lookup("by"); marked(by, whoMark) != "" {
			return by.Value.String()
		}
	}
	return whoami()
}

// eachName makes a command one that has an operation done to each of what its arguments
// name, once it is known that all of them can be names, and says what came of each. Show
// says it in another way; nil prints the sentence of the operation.
func eachName[I, O any](a *app, cmd *cobra.Command, op *ops.Op[I, O], input func(name string) I, show func(ctx context.Context, db *database, name, said string, out O) error) *cobra.Command {
	if cmd.Long == "" {
		cmd.Long = op.Summary + "."
	}
	return a.does(cmd, func(ctx context.Context, _ *cobra.Command, names []string) error {
		for _, name := range names {
			in := input(name)
			if err := ops.Check(&in); err != nil {
				return hintName(err)
			}
		}
		db, err := a.open(ctx, changing)
		if err != nil {
			return err
		}
		defer db.Close()
		for _, name := range names {
			in := input(name)
			out, err := op.Call(ctx, db, in)
			if err != nil {
				return hintName(err)
			}
			said := op.Said(&in, &out)
			if show == nil {
				fmt.Fprintln(a.out, said)
			} else if err := show(ctx, db, name, said, out); err != nil {
				return err
			}
		}
		return nil
	})
}

// hintName adds advice to what is wrong with what a command names.
func hintName(err error) error {
	busy, _ := errors.AsType[*store.ScheduleBusyError](err)
	switch {
	case busy != nil:
		return withHint(err, "stint jobs show %d tells what it waits for", busy.Job)
	case errors.Is(err, stint.ErrNoSchedule):
		return withHint(err, "stint schedules list shows those that there are")
	case errors.Is(err, ops.ErrFreeLease):
		return withHint(err, "stint leases list shows who holds which")
	case errors.Is(err, store.ErrBurialBlocked):
		return withHint(err, "a write of the engine is under way; try again")
	}
	return err
}
