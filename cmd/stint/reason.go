package main

import (
	"context"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/words"
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

// eachName does something to each of what arguments name, once it is known that
// all of them can be names.
func (a *app) eachName(ctx context.Context, names []string, check func(name string) error, do func(db *database, name string) error) error {
	for _, name := range names {
		if err := check(name); err != nil {
			return err
		}
	}
	db, err := a.open(ctx, changing)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, name := range names {
		if err := do(db, name); err != nil {
			return err
		}
	}
	return nil
}
