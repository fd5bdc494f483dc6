package main

import (
	"cmp"
	"time"

	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
)

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
	flags.Var(listValue{&f.queues, "queues"}, "queues", "the queues to work on, separated by commas (default all)")
	flags.Var(listValue{&f.kinds, "kinds"}, "kinds", "the built-in kinds to perform: sh,http,steps (default all on an SQLite file, none on PostgreSQL)")
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
	poll pollValue
	wait waitValue
}

func (f *lookFlags) add(flags *pflag.FlagSet) {
	flags.Var(&f.poll, "poll", "how often to look for work when nothing was heard: 2s, or 20ms..5s for where nobody notifies, the longer the longer nothing came (default 1s with notifications, 20ms..500ms without)")
	f.wait = defaultWait
	flags.Var(&f.wait, "wait-for-database", "for how long to try when PostgreSQL cannot be reached at the start: 30s, forever, or 0s for once")
	elsewhere(flags, workTable, "poll", "wait-for-database")
}

// leaseFlags are about what one engine does for all.
type leaseFlags struct {
	lease     time.Duration
	leaseWait pollValue
	retention retentionValue
}

func (f *leaseFlags) add(flags *pflag.FlagSet) {
	durationFlag(flags, &f.lease, "lease", engine.DefaultLeaseFor, "for how long the engine takes what one engine does for all; it is renewed at a third of it")
	flags.Var(&f.leaseWait, "lease-wait", "how long to wait before asking again for a lease that another engine holds: 3s, or 3s..1m to wait twice as long each time (default a fifth of --lease)")
	flags.Var(&f.retention, "retention", "how long jobs are kept after they ended: 5d, or forever; failed=30d of a state, mail:1h or mail:completed=1h of a queue; separated by commas, or given again (default 5d)")
	elsewhere(flags, workTable, "lease", "lease-wait")
	elsewhere(flags, "", "retention") // a table of its own, since it is a table itself
}

// processFlags are about the process that the engine runs in, and what others see
// of it.
type processFlags struct {
	memory       sizeValue
	health       healthValue
	metricsEvery everyValue
}

func (f *processFlags) add(flags *pflag.FlagSet) {
	flags.Var(&f.memory, "memory-limit", "take no more jobs when the process has grown beyond so much, let those that run end, and exit with code 4: 512MiB (default none)")
	flags.Var(&f.health, "health", "serve /healthz, /readyz and /metrics at this address: 127.0.0.1:9070 for this machine alone, :9070 for all (default none)")
	f.metricsEvery.every = engine.DefaultMetricsEvery
	flags.Var(&f.metricsEvery, "metrics-every", "how often to keep what the engine counted: 1m, or off")
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
