package main

import (
	"strings"

	"github.com/spf13/cobra"
)

const rootLong = `stint runs background jobs durably on the database that you have already:
PostgreSQL, shared by any number of machines, or a single SQLite file.

Begin with

  stint up                       an engine on the file stint.db
  stint sh -- echo hello         in a second terminal: enqueue a command
  stint jobs list                see what became of it

The database is chosen by --db or STINT_DB: a path is an SQLite file,
postgres://user@host/name or "host=… dbname=…" is PostgreSQL. Flags win over
the environment, and that wins over the file of --config or STINT_CONFIG, if one is
given; stint config explains it. Durations are a number and a unit: 250ms, 90s, 1h30m, 2d.
In what --json prints they are nanoseconds, and instants are as in RFC 3339.

With --server or STINT_SERVER a command asks a stint server, over its API, in place of
a database. Who asks is who the token stands for that is in STINT_TOKEN, or in the file
of --token-file. All that people do with jobs, queues, schedules and engines is done so;
up, work, migrate, bench and config work on a database itself.

Exit codes: 0 ok, 1 failed, 2 wrong usage or input that can never be right,
3 stopped while handlers were still running, 4 stopped because of --memory-limit:
to be started again.`

// Commands are listed in the order in which they are met. Cobra has that for the
// whole process.
func init() { cobra.EnableCommandSorting = false }

// rootCommand wires the whole command line.
func (a *app) rootCommand() *cobra.Command {
	root := a.group(&cobra.Command{
		Use:           "stint",
		Short:         "A durable job engine on PostgreSQL or SQLite",
		Long:          rootLong,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	},
		a.upCommand(),
		a.workCommand(),
		a.dashboardCommand(),
		a.enqueueCommand(),
		a.shCommand(),
		a.httpCommand(),
		a.jobsCommand(),
		a.queuesCommand(),
		a.schedulesCommand(),
		a.kindsCommand(),
		a.enginesCommand(),
		a.leasesCommand(),
		a.analyticsCommand(),
		a.statsCommand(),
		a.changesCommand(),
		a.migrateCommand(),
		a.doctorCommand(),
		a.configCommand(),
		a.benchCommand(),
		a.demoCommand(),
		a.versionCommand(),
	)
	// A command that only holds others can be run, to find misspelt names, but
	// that is no use of it.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", `{{if and .Runnable (not (index .Annotations "`+groupMark+`"))}}`, 1))
	root.SetVersionTemplate("stint {{.Version}}\n")
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	flags := root.PersistentFlags()
	flags.SortFlags = false
	a.db.add(flags)
	a.server.add(flags)
	flags.StringVar(&a.config, "config", "", "a TOML file with settings: see stint config")
	orEnv(flags, "STINT_CONFIG", "config")
	_ = root.MarkPersistentFlagFilename("config", "toml")
	return root
}
