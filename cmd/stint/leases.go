package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
)

func (a *app) leasesCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "leases",
		Aliases: []string{"lease"},
		Short:   "List who does what one engine does for all, and release it",
	},
		a.leasesListCommand(),
		a.leasesReleaseCommand(),
	)
}

func (a *app) leasesListCommand() *cobra.Command {
	return lists(a, &cobra.Command{
		Short: "List the leases and who holds them",
	}, (*database).Leases, a.listLeases)
}

func (a *app) listLeases(leases []stint.Lease) {
	if len(leases) == 0 {
		a.note("no leases: no engine has run yet")
		return
	}
	now := time.Now()
	t := newTable(a.out, "lease", "instance", "host", "token", "acquired", "renewed", "expires", "")
	for _, l := range leases {
		row := []any{words.Visible(l.Name), "-", "-", "-", "-", "-", "-"}
		if l.Engine != 0 {
			row = []any{words.Visible(l.Name), words.Visible(l.Instance), words.Visible(l.Host), l.Engine, words.Ago(l.Acquired, now), words.Ago(l.Renewed, now), words.Ago(l.Expires, now)}
		}
		t.AppendRow(append(row, deposedInWords(l.Deposed, now)))
	}
	t.Render()
}

// deposedInWords says who took a lease from whom, if anybody ever did.
func deposedInWords(d stint.Deposition, now time.Time) string {
	if d.Engine == 0 {
		return ""
	}
	return "taken from " + words.Visible(d.Instance) + " " + words.Ago(d.At, now) + reasonInWords(d.By, d.Why)
}

const leasesReleaseLong = `Release takes a lease from the engine that holds it, so that another engine takes
over what it is for. Whatever the former holder is still about to do under the
lease the database refuses. For as long as its lease was for, it does not get it again.`

func (a *app) leasesReleaseCommand() *cobra.Command {
	var why, by string
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "release LEASE",
		Short:   "Take a lease from the engine that holds it",
		Long:    leasesReleaseLong,
		Example: `  stint leases release retention --why "its host swaps"`,
		Args:    arguments(1, "LEASE"),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		if err := stint.CheckName("lease", args[0]); err != nil {
			return err
		}
		db, err := a.open(ctx, changing)
		if err != nil {
			return err
		}
		defer db.Close()
		d, had, err := db.Depose(ctx, args[0], by, why)
		switch {
		case err != nil:
			return err
		case !had:
			return withHint(fmt.Errorf("nobody holds the lease %q", args[0]), "stint leases list shows who holds which")
		case a.json:
			return a.printJSON(d)
		}
		fmt.Fprintf(a.out, "lease %s was taken from engine %s (%d); it may have it again %s\n", words.Visible(args[0]), words.Visible(d.Instance), d.Engine, words.Ago(d.Until, d.At))
		return nil
	}))
	reasonFlags(cmd, &why, &by, "the reason that is kept with the lease, and told to the engine", "who releases it")
	return cmd
}
