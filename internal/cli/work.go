package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/words"
)

const workLong = `Work runs an engine: it takes jobs from the database and performs them until it
is told to stop.

The program itself can perform the built-in kinds sh, http and steps. On a local SQLite
file they are on. On a shared PostgreSQL database they are switched on by --kinds,
since whoever may enqueue there could then run commands here. Kinds of your own
are Go functions in a program of your own. The kinds of stint demo are performed
with --demo only: some of them are there to do harm.

Signals: TERM, INT and HUP take no new jobs, let those that run finish for up to
--grace, then cancel and return them; exit code 0, or 3 when handlers are still
running after that. Another TERM or INT, a second later or more, exits at once with
3; those that come together are one. QUIT prints every goroutine and dies.

With --health ADDR it answers over HTTP: /healthz with 200 unless it is stuck,
/readyz with 200 while it works, and with 503 and the reason when it does not (it
stops, or the database does not answer), /metrics with figures for Prometheus.
There is no password: say 127.0.0.1:9070, not :9070, where others may not look.

With --dashboard ADDR it serves the dashboard beside: see stint dashboard --help.

Where OTEL_EXPORTER_OTLP_ENDPOINT names a collector of OpenTelemetry, each attempt
is traced and exported there over HTTP: http://127.0.0.1:4318. The other variables
of OpenTelemetry hold as well, about headers, samples, names and batches.

With --memory-limit an engine that has grown too large leaves by itself, with code
4, to be started again by whoever started it; Go's own limit (GOMEMLIMIT) is set to
nine tenths of it, unless it is set already.

A PostgreSQL that cannot be reached at the start is tried again for
--wait-for-database, with a line in the log; then the exit code is 1. Later on an
engine waits for it as long as it takes.

Flags can stand in a file, and most in the environment: see stint config --help.

Log lines go to standard error. At the level info they tell of failures, trouble
and the engine's own life; debug adds a line for each job that starts or succeeds.`

const workExample = `  stint work --db postgres://app@db/shop --kinds sh --queues mail,default --slots 50
  stint work --slots mail=4,reports=1,*=20
  stint work --health 127.0.0.1:9070 --memory-limit 512MiB --wait-for-database forever
  STINT_DB=postgres://app@db/shop STINT_KINDS=http stint work --log-format json`

func (a *app) workCommand() *cobra.Command {
	var flags engineFlags
	cmd := a.onDatabase(&cobra.Command{
		Use:     "work",
		Short:   "Run an engine",
		Long:    workLong,
		Example: workExample,
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		return a.work(ctx, &flags, slog.LevelDebug, func(w *worker) {
			if w.board != nil {
				fmt.Fprintln(a.out, "dashboard:", w.board.link())
			}
		})
	})
	flags.add(cmd.Flags())
	return cmd
}

// leastMemory is about what an engine has that never ran a job: below it one would
// leave as soon as it came, each time that it is started again.
const leastMemory = 32 << 20

// check finds what is wrong with the settings of an engine while nothing has
// been created yet, and settles what they leave open.
func (a *app) check(f *engineFlags) (*stint.Mux, error) {
	_, named := a.origins["instance"]
	switch {
	case f.instance == "" && named:
		return nil, settingf("instance", "the name is empty")
	case f.instance == "" && f.strict:
		return nil, withHint(settingf("strict-instance", "it needs a name to be strict about"), "give the engine one by --instance")
	}
	if f.memory > 0 && f.memory < leastMemory {
		return nil, withHint(settingf("memory-limit", "%s is less than an engine uses that does nothing", sizes.format(f.memory)),
			"it is at least %s, and what the jobs take comes on top", sizes.format(leastMemory))
	}
	local := !a.db.isPostgres()
	if f.kinds == nil && local {
		f.kinds = builtin.names()
	}
	f.httpPrivate = f.httpPrivate || local
	mux, err := builtin.mux(f.kinds, kindOptions{private: f.httpPrivate})
	if err != nil {
		return nil, err
	}
	if f.demo {
		addDemoKinds(mux)
	}
	if !f.board.isOff() {
		if _, _, err := a.dashboardConfig(&f.board); err != nil {
			return nil, err
		}
	}
	_, err = engine.New(nil, mux, f.config(nil))
	var invalid *stint.InvalidError
	if errors.As(err, &invalid) {
		flag := strings.ReplaceAll(invalid.Field, " ", "-")
		return nil, settingf(flag, "%s", invalid.Problem)
	}
	return mux, err
}

// engineFlags are an engine's, in groups and in the order in which help lists
// them.
type engineFlags struct {
	taskFlags
	rosterFlags
	lookFlags
	leaseFlags
	processFlags
	logFlags
	board dashboardFlags
}

func (f *engineFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	f.taskFlags.add(flags)
	f.rosterFlags.add(flags)
	f.lookFlags.add(flags)
	f.leaseFlags.add(flags)
	f.processFlags.add(flags)
	f.logFlags.add(flags)
	f.board.add(flags)
}

// workTable is the table of a file for what is of work and of up.
const workTable = "work"

// taskFlags say what an engine performs, and how much at once.
type taskFlags struct {
	queues, kinds []string
	demo          bool
	httpPrivate   bool
	slots         slotsValue
}

func (f *taskFlags) add(flags *pflag.FlagSet) {
	flags.Var(nameList(&f.queues, "queues"), "queues", "the queues to work on, separated by commas (default all)")
	flags.Var(nameList(&f.kinds, "kinds"), "kinds", "the built-in kinds to perform: sh,http,steps (default all on an SQLite file, none on PostgreSQL)")
	flags.BoolVar(&f.demo, "demo", false, "perform the demo kinds as well: see stint demo")
	flags.BoolVar(&f.httpPrivate, "http-private", false, "let http jobs reach addresses that are not public (always on an SQLite file)")
	flags.Var(&f.slots, "slots", "how many jobs run at once: 50, or of each queue: mail=4,default=20; *=8 is for all queues that are not named (default 4 for each processor)")
	elsewhere(flags, workTable, "queues", "kinds", "slots")
	// Nobody lets in more by accident: these are not taken from the environment.
	orFile(flags, below(workTable, "demo"), "demo")
	orFile(flags, "kinds.http.private", "http-private")
}

// rosterFlags say who an engine is to the others, and when it is dead to them.
type rosterFlags struct {
	instance   string
	strict     bool
	timeToLive time.Duration
	grace      time.Duration
}

func (f *rosterFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.instance, "instance", "", "the engine's name (default host name and a random suffix)")
	flags.BoolVar(&f.strict, "strict-instance", false, "refuse to start while the roster has an engine of this name that holds jobs")
	durationFlag(flags, &f.timeToLive, "time-to-live", engine.DefaultTimeToLive, "after how long a silent engine counts as dead")
	durationFlag(flags, &f.grace, "grace", engine.DefaultGrace, "how long running jobs may go on after a stop")
	elsewhere(flags, workTable, "instance", "strict-instance", "time-to-live", "grace")
}

// lookFlags say how an engine asks for work, and at first for the database.
type lookFlags struct {
	poll pollRange
	wait time.Duration
}

func (f *lookFlags) add(flags *pflag.FlagSet) {
	flags.Var(polls.in(&f.poll), "poll", "how often to look for work when nothing was heard: 2s, or 20ms..5s for where nobody notifies, the longer the longer nothing came (default 1s with notifications, 20ms..500ms without)")
	f.wait = defaultWait
	flags.Var(waits.in(&f.wait), "wait-for-database", "for how long to try when PostgreSQL cannot be reached at the start: 30s, forever, or 0s for once")
	elsewhere(flags, workTable, "poll", "wait-for-database")
}

// leaseFlags are about what one engine does for all.
type leaseFlags struct {
	lease     time.Duration
	leaseWait pollRange
	retention retentionValue
}

func (f *leaseFlags) add(flags *pflag.FlagSet) {
	durationFlag(flags, &f.lease, "lease", engine.DefaultLeaseFor, "for how long the engine takes what one engine does for all; it is renewed at a third of it")
	flags.Var(polls.in(&f.leaseWait), "lease-wait", "how long to wait before asking again for a lease that another engine holds: 3s, or 3s..1m to wait twice as long each time (default a fifth of --lease)")
	flags.Var(&f.retention, "retention", "how long jobs are kept after they ended: 5d, or forever; failed=30d of a state, mail:1h or mail:completed=1h of a queue; separated by commas, or given again (default 5d)")
	elsewhere(flags, workTable, "lease", "lease-wait")
	elsewhere(flags, "", "retention") // a table of its own, since it is a table itself
}

// processFlags are about the process that the engine runs in, and what others see
// of it.
type processFlags struct {
	memory       int64
	health       string
	metricsEvery time.Duration
}

func (f *processFlags) add(flags *pflag.FlagSet) {
	flags.Var(sizes.in(&f.memory), "memory-limit", "take no more jobs when the process has grown beyond so much, let those that run end, and exit with code 4: 512MiB (default none)")
	flags.Var(addresses("9070").in(&f.health), "health", "serve /healthz, /readyz and /metrics at this address: 127.0.0.1:9070 for this machine alone, :9070 for all (default none)")
	f.metricsEvery = engine.DefaultMetricsEvery
	flags.Var(intervals.in(&f.metricsEvery), "metrics-every", "how often to keep what the engine counted: 1m, or off")
	elsewhere(flags, workTable, "memory-limit", "health", "metrics-every")
}

// logFlags are about the log.
type logFlags struct{ logLevel, logFormat string }

func (f *logFlags) add(flags *pflag.FlagSet) {
	choiceFlag(flags, &f.logLevel, "log-level", "info", "what to log", "debug", "info", "warn", "error")
	choiceFlag(flags, &f.logFormat, "log-format", "text", "how to log", "text", "json")
	elsewhere(flags, "", "log-level", "log-format")
}

// config is what the engine is told of them.
func (f *engineFlags) config(onEvent func(event.Event)) engine.Config {
	return engine.Config{
		Queues: f.queues, Slots: f.slots.all, QueueSlots: f.slots.each, Instance: f.instance, StrictInstance: f.strict,
		Grace:      max(f.grace, 1), // the engine takes 0 for its default, and here it was asked for
		TimeToLive: f.timeToLive, Poll: f.poll.every, PollFrom: f.poll.from, PollTo: f.poll.to,
		Retention: f.retention.Retention, MemoryLimit: f.memory, MetricsEvery: f.metricsEvery,
		LeaseFor: max(f.lease, 1), LeaseWait: cmp.Or(f.leaseWait.every, f.leaseWait.from), LeaseWaitMax: f.leaseWait.to,
		Version: version(), OnEvent: onEvent,
	}
}

const upLong = `Up is the quickest start: an engine on the local file stint.db, which it creates,
with the built-in kinds on and a log line for each job, and the dashboard at the link
that it prints. It takes the same flags as work, and stops in the same way: Ctrl-C
lets what runs finish.

On this machine everybody may look at the dashboard; whoever has the link may do
everything. See stint dashboard --help.`

const upExample = `  stint up
  stint up --demo                and in another terminal: stint demo
  stint up --db /var/lib/stint/jobs.db --slots 2`

const upNext = `
In a second terminal, in the same directory:

%[2]s  stint sh%[1]s -- echo hello
  stint jobs list%[1]s
  stint jobs show ID%[1]s

Ctrl-C stops it when what runs has finished.

`

const upLink = `
The dashboard is at

  %s
`

func (a *app) upCommand() *cobra.Command {
	var flags engineFlags
	cmd := a.onDatabase(&cobra.Command{
		Use:     "up",
		Short:   "Run an engine on a local file: the quickest start",
		Long:    upLong,
		Example: upExample,
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		created := a.db.absent()
		flags.board.byDefault()
		return a.work(ctx, &flags, slog.LevelInfo, func(w *worker) {
			verb := "Working on"
			if created {
				verb = "Created and working on"
			}
			kinds := w.kinds
			if w.demo {
				kinds = append(slices.Clone(kinds), "demo.*")
			}
			fmt.Fprintf(a.out, "%s %s, kinds %s.\n", verb, a.db.place(), words.Listed(kinds))
			if w.board != nil {
				fmt.Fprintf(a.out, upLink, w.board.link())
			}
			first := ""
			if w.demo {
				first = "  stint demo" + a.sameDatabase() + "\n"
			}
			fmt.Fprintf(a.out, upNext, a.sameDatabase(), first)
		})
	})
	flags.add(cmd.Flags())
	return cmd
}
