package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

const leasesReleaseHelp = `release LEASE: Take a lease from the engine that holds it

Release takes a lease from the engine that holds it, so that another engine takes over
the task. The database refuses what the former holder still tries to do under the lease.
That engine cannot get the lease again for as long as the lease lasts.

Examples:
  stint leases release retention --why "its host swaps"`

func (a *app) leasesCommand() *cobra.Command {
	var why, by string
	release := a.withJSON(eachName(a, page(leasesReleaseHelp), ops.ReleaseLease, func(name string) ops.LeaseWhy {
		return ops.LeaseWhy{Lease: name, Body: ops.Why{Why: why}}
	}, func(_ context.Context, _ *database, _ ops.LeaseWhy, said string, d store.Revocation) error {
		if a.json {
			return a.printJSON(d)
		}
		fmt.Fprintln(a.out, said)
		return nil
	}))
	reasonFlags(release, &why, &by, "the reason that is kept with the lease, and that the engine logs", "the person or program that releases it")
	return a.noun(page("leases|lease: List and release leases: tasks that one engine does for all"),
		lists(a, "", ops.ListLeases, a.listLeases), release)
}

func (a *app) listLeases(leases []store.Lease, now time.Time) {
	printTable(a, leases, "no leases: no engine has run yet", row{"lease", "instance", "host", "token", "acquired", "renewed", "expires", ""}, func(l store.Lease) row {
		taken := ""
		if d := l.Deposed; d.Engine != 0 {
			taken = "taken from " + words.Visible(d.Instance) + " " + words.Ago(d.At, now) + reasonInWords(d.By, d.Why)
		}
		if l.Engine == 0 {
			return row{l.Name, "-", "-", "-", "-", "-", "-", taken}
		}
		return row{l.Name, l.Instance, l.Host, l.Engine, words.Ago(l.Acquired, now), words.Ago(l.Renewed, now), words.Ago(l.Expires, now), taken}
	})
}
