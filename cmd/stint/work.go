package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
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
running after that. A second TERM or INT exits at once with 3. QUIT prints every
goroutine and dies.

With --health ADDR it answers over HTTP: /healthz with 200 unless it is stuck,
/readyz with 200 while it works, and with 503 and the reason when it does not (it
stops, or the database does not answer), /metrics with figures for Prometheus.
There is no password: say 127.0.0.1:9070, not :9070, where others may not look.

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

// engineFlags are an engine's.
type engineFlags struct {
	queues, kinds []string
	demo          bool
	slots         slotsValue
	instance      string
	strict        bool
	grace         time.Duration
	timeToLive    time.Duration
	poll          pollValue
	lease         time.Duration
	leaseWait     pollValue
	retention     retentionValue
	httpPrivate   bool
	health        healthValue
	memory        sizeValue
	wait          waitValue
	metricsEvery  everyValue
	logLevel      string
	logFormat     string
}

func (f *engineFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.Var(listValue{&f.queues, "queues"}, "queues", "the queues to work on, separated by commas (default all)")
	flags.Var(listValue{&f.kinds, "kinds"}, "kinds", "the built-in kinds to perform: sh,http,steps (default all on an SQLite file, none on PostgreSQL)")
	flags.BoolVar(&f.demo, "demo", false, "perform the demo kinds as well: see stint demo")
	flags.Var(&f.slots, "slots", "how many jobs run at once: 50, or of each queue: mail=4,default=20; *=8 is for all queues that are not named (default 4 for each processor)")
	flags.StringVar(&f.instance, "instance", "", "the engine's name (default host name and a random suffix)")
	flags.BoolVar(&f.strict, "strict-instance", false, "refuse to start while the roster has an engine of this name that holds jobs")
	durationFlag(flags, &f.grace, "grace", engine.DefaultGrace, "how long running jobs may go on after a stop")
	durationFlag(flags, &f.timeToLive, "time-to-live", engine.DefaultTimeToLive, "after how long a silent engine counts as dead")
	flags.Var(&f.poll, "poll", "how often to look for work when nothing was heard: 2s, or 20ms..5s for where nobody notifies, the longer the longer nothing came (default 1s with notifications, 20ms..500ms without)")
	flags.Var(&f.retention, "retention", "how long jobs are kept after they ended: 5d, or forever; failed=30d of a state, mail:1h or mail:completed=1h of a queue; separated by commas, or given again (default 5d)")
	durationFlag(flags, &f.lease, "lease", engine.DefaultLeaseFor, "for how long the engine takes what one engine does for all; it is renewed at a third of it")
	flags.Var(&f.leaseWait, "lease-wait", "how long to wait before asking again for a lease that another engine holds: 3s, or 3s..1m to wait twice as long each time (default a fifth of --lease)")
	f.metricsEvery.every = engine.DefaultMetricsEvery
	flags.Var(&f.metricsEvery, "metrics-every", "how often to keep what the engine counted: 1m, or off")
	flags.BoolVar(&f.httpPrivate, "http-private", false, "let http jobs reach addresses that are not public (always on an SQLite file)")
	flags.Var(&f.health, "health", "serve /healthz, /readyz and /metrics at this address: 127.0.0.1:9070 for this machine alone, :9070 for all")
	flags.Var(&f.memory, "memory-limit", "take no more jobs when the process has grown beyond so much, let those that run end, and exit with code 4: 512MiB (default none)")
	f.wait = defaultWait
	flags.Var(&f.wait, "wait-for-database", "for how long to try when PostgreSQL cannot be reached at the start: 30s, forever, or 0s for once")
	choiceFlag(flags, &f.logLevel, "log-level", "info", "what to log", "debug", "info", "warn", "error")
	choiceFlag(flags, &f.logFormat, "log-format", "text", "how to log", "text", "json")
	for _, name := range []string{"queues", "kinds", "slots", "instance", "strict-instance", "grace", "time-to-live", "poll",
		"lease", "lease-wait", "retention", "health", "memory-limit", "wait-for-database", "metrics-every"} {
		orEnv(flags, variableOf(name), name)
		orFile(flags, "work."+name, name)
	}
	orFile(flags, "retention", "retention")
	for _, name := range []string{"log-level", "log-format"} {
		orEnv(flags, variableOf(name), name)
		orFile(flags, name, name)
	}
	orFile(flags, "work.demo", "demo")
	orFile(flags, "kinds.http.private", "http-private")
}

func (a *app) workCommand() *cobra.Command {
	var flags engineFlags
	cmd := a.does(&cobra.Command{
		Use:     "work",
		Short:   "Run an engine",
		Long:    workLong,
		Example: workExample,
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		return a.work(ctx, &flags, slog.LevelDebug, func(*worker) {})
	})
	flags.add(cmd.Flags())
	return cmd
}

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
	_, err = engine.New(nil, mux, f.config(nil))
	var invalid *stint.InvalidError
	if errors.As(err, &invalid) {
		flag := strings.ReplaceAll(invalid.Field, " ", "-")
		return nil, settingf(flag, "%s", invalid.Problem)
	}
	return mux, err
}

func (f *engineFlags) config(onEvent func(stint.Event)) engine.Config {
	return engine.Config{
		Queues: f.queues, Slots: f.slots.all, QueueSlots: f.slots.each, Instance: f.instance, StrictInstance: f.strict,
		Grace:      max(f.grace, 1), // the engine takes 0 for its default, and here it was asked for
		TimeToLive: f.timeToLive, Poll: f.poll.every, PollFrom: f.poll.from, PollTo: f.poll.to,
		Retention: f.retention.Retention, MemoryLimit: int64(f.memory), MetricsEvery: f.metricsEvery.every,
		LeaseFor: max(f.lease, 1), LeaseWait: cmp.Or(f.leaseWait.every, f.leaseWait.from), LeaseWaitMax: f.leaseWait.to,
		Version: version(), OnEvent: onEvent,
	}
}
