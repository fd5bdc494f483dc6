package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

const dashboardLong = `Dashboard serves pages that show all there is of a database, the JSON API below
/api/v1, figures for Prometheus at /metrics, and /healthz and /readyz, until it is
told to stop. It runs no engine: up and work serve the same beside theirs.

On this machine alone (127.0.0.1) everybody may look, and whoever opens the link that
it prints may do everything; there is another secret in it each time, unless
STINT_DASHBOARD_SECRET or the file of settings has one. Others reach it at another
address, or by names that --hosts gives it through a proxy, and then it starts only
when the file of settings says who may: tokens of programs, people with a password,
or a proxy that names people. Each has a role:

  viewer    sees everything, but arguments if they are hidden
  operator  does what is done every day: retry, cancel, pause, enqueue
  admin     also enqueues what does whatever its arguments say (sh, http, steps),
            releases leases and buries engines

stint config --help shows the file.`

const dashboardExample = `  stint dashboard
  stint dashboard --db postgres://app@db/shop --read-only
  stint dashboard --config /etc/stint.toml --address :7070 --hosts jobs.example.com`

func (a *app) dashboardCommand() *cobra.Command {
	var (
		flags dashboardFlags
		log   logFlags
	)
	cmd := a.onDatabase(&cobra.Command{
		Use:     "dashboard",
		Short:   "Serve the dashboard, or say who gets to it",
		Long:    dashboardLong,
		Example: dashboardExample,
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		return a.dashboard(ctx, &flags, log)
	})
	flags.addAs(cmd.Flags(), "serve at this address (default 127.0.0.1:7070 or the next port that is free)")
	log.add(cmd.Flags())
	cmd.AddCommand(a.dashboardTokenCommand(), a.dashboardPasswordCommand())
	return cmd
}

// dashboard serves one until a signal comes.
func (a *app) dashboard(ctx context.Context, f *dashboardFlags, l logFlags) error {
	if f.address == dashboardOff {
		return withHint(settingf(f.flag("address"), "the dashboard is off"), "this command does nothing else: name an address by --%s", f.flag("address"))
	}
	if err := a.db.check(); err != nil {
		return err
	}
	log, err := l.logger(a.err)
	if err != nil {
		return err
	}
	a.log = log
	f.byDefault()
	d, err := a.listenDashboard(f, newVitals(), log)
	if err != nil {
		return err
	}
	defer d.close()
	ctx, release := interrupted(ctx)
	defer release()
	how := changing
	if f.readOnly {
		how = looking
	}
	db, err := a.open(ctx, how)
	if err != nil {
		return err
	}
	defer db.Close()
	defer d.close()
	if err := d.open(db.roles, nil); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "The dashboard of %s is at\n\n  %s\n\n", a.db.place(), d.link())
	<-ctx.Done()
	return nil
}
