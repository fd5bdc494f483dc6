package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/observe"
	"github.com/stint-go/stint/observe/prom"
	"github.com/stint-go/stint/observe/spans"
	"github.com/stint-go/stint/retry"
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
		Args:    arguments(0),
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
		return nil, withHint(settingf("memory-limit", "%s is less than an engine uses that does nothing", sizes.write(f.memory)),
			"it is at least %s, and what the jobs take comes on top", sizes.write(leastMemory))
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

// worker is an engine on its way from flags to work. What can be wrong with the
// flags is found first, then what others hold (addresses), and only then the
// database is asked for.
type worker struct {
	*engineFlags
	app     *app
	mux     *stint.Mux
	log     *slog.Logger
	level   slog.Level // of lines about successes
	counted *prom.Events
	vitals  *vitals
	board   *dashboardServer // nil without --dashboard
	tracer  *spans.Tracer    // nil where traces go nowhere
	joined  atomic.Bool
	until   time.Time // when not to try any longer to reach the database
}

// work runs an engine until a signal comes. Successes are logged at the level
// given; opened is called when the database is there.
func (a *app) work(ctx context.Context, f *engineFlags, successes slog.Level, opened func(*worker)) error {
	mux, err := a.check(f)
	if err != nil {
		return err
	}
	if err := a.db.check(); err != nil {
		return err
	}
	if f.kinds == nil && !f.demo {
		return withHint(usagef("there is no kind to perform"), "on a shared database the built-in kinds are switched on: --kinds sh,http,steps")
	}
	w := &worker{engineFlags: f, app: a, mux: mux, level: successes, counted: prom.NewEvents(), until: time.Now().Add(f.wait)}
	w.vitals = newVitals(w.counted)
	if w.log, err = f.logger(a.err); err != nil {
		return err
	}
	a.log = w.log
	health, err := a.serveHealth(f.health, w.log, w.vitals)
	if err != nil {
		return err
	}
	defer endServer(health, healthStop)
	if w.board, err = a.listenDashboard(&f.board, w.vitals, w.log); err != nil {
		return err
	}
	defer w.board.close()
	endTraces, err := w.trace(ctx)
	if err != nil {
		return err
	}
	defer endTraces()
	f.limitGo()

	ctx, release := a.untilSignal(ctx, w.log, f.grace)
	defer release()
	var db *database
	err = w.keepTrying(ctx, func() (err error) {
		db, err = a.open(ctx, creating)
		return err
	})
	switch {
	case ctx.Err() != nil && db == nil:
		return nil
	case err != nil:
		return err
	}
	defer db.Close()
	err = w.keepTrying(ctx, func() error { return a.declareSchedules(ctx, db, mux) })
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	defer w.board.close() // before the database
	if err := w.board.open(db.roles, w.vitals); err != nil {
		return err
	}
	opened(w)
	return w.run(ctx, db)
}

// run works. An engine that never came into the roster, because the database went
// away in between, is tried again as long as opening it would have been.
func (w *worker) run(ctx context.Context, db *database) error {
	config := w.config(observe.Fan(w.note, w.counted.On, observe.Log(w.log, observe.LogConfig{Successes: w.level})))
	if w.tracer != nil {
		config.Client = stint.NewClient(db.roles).Use(w.tracer.Enqueue)
	}
	e, err := engine.New(db.roles, w.mux, config)
	if err != nil {
		return err
	}
	if err := w.vitals.count(e); err != nil {
		return err
	}
	return w.keepTrying(ctx, func() error {
		w.vitals.watch(e)
		err := e.Run(ctx)
		if err != nil && !w.joined.Load() {
			w.vitals.watch(nil)
		}
		return err
	})
}

// note remembers that the engine came into the roster.
func (w *worker) note(e event.Event) {
	if e.Type == event.EventJoined {
		w.joined.Store(true)
	}
}

// logger makes the logger of the flags.
func (f *logFlags) logger(out io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cmp.Or(f.logLevel, "info"))); err != nil {
		return nil, settingf("log-level", "%w", err)
	}
	return newLogger(out, level, f.logFormat), nil
}

func newLogger(w io.Writer, level slog.Level, format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// limitGo has the garbage collector work harder before the process reaches its
// limit, of which a part is not Go's. Whoever set a limit of Go's own knows better.
func (f *engineFlags) limitGo() {
	if f.memory > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(f.memory / 10 * 9)
	}
}

// onQuery is told what the database is asked, with --log-sql. Commands without a
// log write it as engines do.
func (a *app) onQuery() func(event.Query) {
	if !a.db.logSQL.on {
		return nil
	}
	log := a.log
	if log == nil {
		log = newLogger(a.err, slog.LevelInfo, "text")
	}
	return observe.SQL(log, a.db.logSQL.slowerThan)
}

// impatience is how long after the first signal another one means that somebody
// does not want to wait. Those that come together are one: GNU timeout sends its
// signal to the process and again to its group.
const impatience = time.Second

// untilSignal returns a context that ends at the first TERM, INT or HUP. Another
// TERM or INT exits at once, unless it came together with the first. A HUP never
// counts as impatience: terminals that go away send several, and supervisors one
// together with a TERM, in whichever order they arrive.
func (a *app) untilSignal(ctx context.Context, log *slog.Logger, grace time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 4)
	notify(signals)
	var over atomic.Bool
	go func() {
		var asked time.Time // when by a TERM or INT for the first time
		for s := range signals {
			again := s != syscall.SIGHUP && !asked.IsZero() && time.Since(asked) >= impatience
			if s != syscall.SIGHUP && asked.IsZero() {
				asked = time.Now()
			}
			switch {
			case over.Load():
			case ctx.Err() == nil:
				log.Info("stopping: no new jobs; those that run may finish", "signal", s.String(), "grace", retry.FormatDuration(grace))
				cancel()
			case again:
				log.Warn("exiting at once, without waiting for what runs", "signal", s.String())
				a.exit(exitStillRunning)
			}
		}
	}()
	return ctx, func() {
		over.Store(true)
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// interrupted returns a context that ends at TERM or INT, for commands that
// have something to tidy up or to say.
func interrupted(ctx context.Context) (context.Context, func()) {
	return signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
}

// notify leaves a HUP alone that the parent chose to ignore, as nohup does.
func notify(signals chan<- os.Signal) {
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
}
