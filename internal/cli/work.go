package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
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

const workHelp = `work: Run an engine

Work runs an engine: it takes jobs from the database and performs them until a
signal stops it.

The program itself can perform the built-in kinds sh, http and steps. On a local SQLite
file they are on. On a shared PostgreSQL database --kinds switches them on, since every
user who may enqueue there can then run commands here. Kinds of your own are Go
functions in a program of your own. It performs the kinds of stint demo only with
--demo: some of them do harm on purpose.

Signals: after TERM, INT or HUP it takes no new jobs, lets those that run finish for up
to --grace, then cancels and returns them. The exit code is 0, or 3 if handlers are
still running after that. Another TERM or INT, a second later or more, exits at once
with 3. QUIT prints every goroutine and exits.

With --health ADDR it answers over HTTP: /healthz with 200 unless it is stuck,
/readyz with 200 while it works, and with 503 and the reason when it does not (it
stops, or the database does not answer), and /metrics for Prometheus. There is no
password: use 127.0.0.1:9070, and not :9070, if others must not see it.

With --gateway ADDR it serves workers in other languages, which take jobs over HTTP; with
--dashboard they are served there, too. Each is a row of the roster. See docs/workers.md.

With --faktory ADDR it serves workers and producers that speak the Faktory work protocol,
with the password in STINT_FAKTORY_PASSWORD. See docs/faktory.md.

With --dashboard ADDR it serves the dashboard, too: see stint dashboard --help.

If OTEL_EXPORTER_OTLP_ENDPOINT names a collector of OpenTelemetry, such as
http://127.0.0.1:4318, each attempt is traced and exported there over HTTP. The other
variables of OpenTelemetry work as well, for headers, samples, names and batches.

With --memory-limit an engine that has grown too large stops by itself with code 4, for
a supervisor to start it again. Go's own limit (GOMEMLIMIT) is set to nine tenths of it,
unless it is set already.

If PostgreSQL cannot be reached at the start, the engine tries again for
--wait-for-database, with a line in the log; then the exit code is 1. Later on an
engine waits for it as long as it takes.

A file can set the flags, and the environment most of them: see stint config --help.

Log lines go to standard error. At the level info they are about failures, trouble and
the engine's own life; debug adds a line for each job that starts or succeeds.

Examples:
  stint work --db postgres://app@db/shop --kinds sh --queues mail,default --slots 50
  stint work --slots mail=4,reports=1,*=20
  stint work --kinds http --slots auto:8..200
  stint work --db postgres://app@db/shop --gateway 127.0.0.1:7072
  stint work --health 127.0.0.1:9070 --memory-limit 512MiB --wait-for-database forever
  STINT_DB=postgres://app@db/shop STINT_KINDS=http stint work --log-format json`

func (a *app) workCommand() *cobra.Command {
	var flags engineFlags
	cmd := a.onDatabase(page(workHelp), func(ctx context.Context, _ *cobra.Command, _ []string) error {
		return a.work(ctx, &flags, slog.LevelDebug, func(w *worker) {
			if w.board != nil {
				a.tellLink(flags.logFlags, "dashboard", w.board.link(), "dashboard: "+w.board.link()+"\n")
			}
			if w.gateway != nil {
				a.tellLink(flags.logFlags, "gateway", w.gateway.link(), "gateway: "+w.gateway.link()+"\n")
			}
			if w.faktory != nil {
				a.tellLink(flags.logFlags, "faktory", w.faktory.url, "faktory: "+w.faktory.url+"\n")
			}
		})
	})
	flags.add(cmd.Flags())
	return cmd
}

// leastMemory is about what an engine uses that never ran a job. With less it would stop
// as soon as it was started, again and again.
const leastMemory = 32 << 20

// check finds mistakes in the settings of an engine before anything is created, and sets
// those that depend on others.
func (a *app) check(f *engineFlags) (*stint.Mux, error) {
	_, named := a.origins["instance"]
	switch {
	case f.instance == "" && named:
		return nil, settingf("instance", "the name is empty")
	case f.instance == "" && f.strict:
		return nil, withHint(settingf("strict-instance", "it needs a name to be strict about"), "give the engine one by --instance")
	}
	if f.memory > 0 && f.memory < leastMemory {
		return nil, withHint(settingf("memory-limit", "%s is less than an idle engine uses", sizes.format(f.memory)),
			"at least %s are needed, and the memory of the jobs in addition", sizes.format(leastMemory))
	}
	local := !a.db.isPostgres()
	if f.kinds == nil && local {
		f.kinds = builtin.names()
	}
	f.httpPrivate = f.httpPrivate || local
	requests, err := a.httpConfig(f)
	if err != nil {
		return nil, err
	}
	mux, err := builtin.mux(f.kinds, kindOptions{http: requests})
	if err != nil {
		return nil, err
	}
	if f.demo {
		addDemoKinds(mux)
	}
	a.declareLimits(mux)
	gateway := f.forWorkers()
	for _, served := range []*dashboardFlags{&f.board, &gateway} {
		if served.isOff() {
			continue
		}
		if _, _, err := a.dashboardConfig(served); err != nil {
			return nil, err
		}
	}
	if _, err := a.faktoryPassword(f); err != nil {
		return nil, err
	}
	_, err = engine.New(nil, mux, f.config(nil))
	var invalid *stint.InvalidError
	if errors.As(err, &invalid) {
		flag := strings.ReplaceAll(invalid.Field, " ", "-")
		return nil, settingf(flag, "%s", invalid.Problem)
	}
	return mux, err
}

// workTable is the table of a file with the settings of work and up.
const workTable = "work"

// engineFlags are the settings of an engine, in the order in which help lists them.
type engineFlags struct {
	queues, kinds []string
	demo          bool
	httpPrivate   bool
	httpCallback  string
	slots         slotsValue

	instance   string
	strict     bool
	timeToLive time.Duration
	maxOutage  time.Duration
	grace      time.Duration

	poll      pollRange
	wait      time.Duration // for the database at the start
	lease     time.Duration
	leaseWait pollRange
	retention retentionValue

	memory       int64
	health       string
	gateway      string
	faktory      string
	metricsEvery time.Duration

	logFlags
	board dashboardFlags
}

func (f *engineFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.Var(nameList(&f.queues, "queues"), "queues", "the queues to work on, separated by commas (default all)")
	flags.Var(nameList(&f.kinds, "kinds"), "kinds", "the built-in kinds to perform: sh,http,steps (default all on an SQLite file, none on PostgreSQL)")
	flags.BoolVar(&f.demo, "demo", false, "perform the demo kinds as well: see stint demo")
	flags.BoolVar(&f.httpPrivate, "http-private", false, "let http jobs reach addresses that are not public (always on an SQLite file)")
	flags.StringVar(&f.httpCallback, "http-callback", "", "the URL of a dashboard, with its path, as the receivers of http jobs reach it: there they say later what came of a request that they accepted (default none)")
	flags.Var(&f.slots, "slots", "how many jobs run at once: 50; or of each queue: mail=4,default=20, where *=8 is for all queues that are not named; or auto, auto:8..200: as many as they do better with (default 4 for each processor)")

	flags.StringVar(&f.instance, "instance", "", "the engine's name (default host name and a random suffix)")
	flags.BoolVar(&f.strict, "strict-instance", false, "refuse to start while the roster has an engine of this name that holds jobs")
	durationFlag(flags, &f.timeToLive, "time-to-live", engine.DefaultTimeToLive, "after how long without a heartbeat an engine counts as dead")
	durationFlag(flags, &f.maxOutage, "max-outage", engine.DefaultMaxOutage, "how long PostgreSQL may be away before what runs is cancelled; 0s: three quarters of --time-to-live")
	durationFlag(flags, &f.grace, "grace", engine.DefaultGrace, "how long running jobs may go on after a stop")

	flags.Var(polls.in(&f.poll), "poll", "how often to look for work without a notification: 2s, or 20ms..5s to wait longer each time that there is none (default 1s with notifications, 20ms..500ms without)")
	f.wait = defaultWait
	flags.Var(waits.in(&f.wait), "wait-for-database", "for how long to try when PostgreSQL cannot be reached at the start: 30s, forever, or 0s for once")
	durationFlag(flags, &f.lease, "lease", engine.DefaultLeaseFor, "for how long the engine takes a lease of a task that one engine does for all; it renews it after a third")
	flags.Var(polls.in(&f.leaseWait), "lease-wait", "how long to wait before asking again for a lease that another engine holds: 3s, or 3s..1m to wait twice as long each time (default a fifth of --lease)")
	flags.Var(&f.retention, "retention", "how long jobs are kept after they ended: 5d, or forever; failed=30d of a state, mail:1h or mail:completed=1h of a queue; separated by commas, or given again (default 5d)")

	flags.Var(sizes.in(&f.memory), "memory-limit", "when the process is larger than this, take no more jobs, let those that run end, and exit with code 4: 512MiB (default none)")
	flags.Var(addresses("9070").in(&f.health), "health", "serve /healthz, /readyz and /metrics at this address: 127.0.0.1:9070 for this machine alone, :9070 for all (default none)")
	flags.Var(addresses("7072").in(&f.gateway), "gateway", "serve workers in other languages at this address: 127.0.0.1:7072; the settings of the dashboard hold for it too (default with the dashboard only)")
	flags.Var(addresses(faktoryPort).in(&f.faktory), "faktory", "serve workers and producers that speak the Faktory work protocol at this address: 127.0.0.1:7419; the certificates of the dashboard hold for it too (default none)")
	f.metricsEvery = engine.DefaultMetricsEvery
	flags.Var(intervals.in(&f.metricsEvery), "metrics-every", "how often to store what the engine counted: 1m, or off")

	elsewhere(flags, workTable, "queues", "kinds", "slots", "instance", "strict-instance", "time-to-live", "max-outage", "grace", "poll", "wait-for-database",
		"lease", "lease-wait", "memory-limit", "health", "gateway", "faktory", "metrics-every")
	elsewhere(flags, "", "retention") // a table of its own, since it is a table itself
	// The environment does not set these: a variable that is left over must not permit more.
	orFile(flags, below(workTable, "demo"), "demo")
	orFile(flags, "kinds.http.private", "http-private")
	orEnv(flags, variableOf("http-callback"), "http-callback")
	orFile(flags, "kinds.http.callback", "http-callback")
	f.logFlags.add(flags)
	f.board.add(flags)
}

// forWorkers are the settings of the gateway: those of the dashboard at another address.
func (f *engineFlags) forWorkers() dashboardFlags {
	g := f.board
	g.address, g.anyPort, g.gateway, g.readOnly = f.gateway, false, true, false
	return g
}

// forFaktory are the settings of the listener for clients of Faktory: the certificates of the dashboard at another
// address.
func (f *engineFlags) forFaktory() dashboardFlags {
	g := f.board
	g.address, g.anyPort, g.hosts = f.faktory, false, nil
	return g
}

type logFlags struct{ logLevel, logFormat string }

func (f *logFlags) add(flags *pflag.FlagSet) {
	choiceFlag(flags, &f.logLevel, "log-level", "info", "what to log", "debug", "info", "warn", "error")
	choiceFlag(flags, &f.logFormat, "log-format", "text", "how to log", "text", "json")
	elsewhere(flags, "", "log-level", "log-format")
}

// tellLink prints the text with a link to what is served; a program whose log lines are JSON prints no text, and logs the link.
func (a *app) tellLink(l logFlags, what, link, text string) {
	if l.logFormat == "json" {
		a.log.Info("it is served", "what", what, "link", link)
		return
	}
	fmt.Fprint(a.out, text)
}

func (f *engineFlags) config(onEvent func(event.Event)) engine.Config {
	return engine.Config{
		Queues: f.queues, Slots: f.slots.all, MaxSlots: f.slots.most, QueueSlots: f.slots.each, Instance: f.instance, StrictInstance: f.strict,
		Grace:      max(f.grace, 1), // to the engine 0 means its default
		TimeToLive: f.timeToLive, MaxOutage: cmp.Or(f.maxOutage, -1), Poll: f.poll.every, PollFrom: f.poll.from, PollTo: f.poll.to,
		Retention: f.retention.Retention, MemoryLimit: f.memory, MetricsEvery: f.metricsEvery,
		LeaseFor: max(f.lease, 1), LeaseWait: cmp.Or(f.leaseWait.every, f.leaseWait.from), LeaseWaitMax: f.leaseWait.to,
		Version: version(), OnEvent: onEvent,
	}
}

const upHelp = `up: Run an engine on a local file: the quickest start

Up is the quickest start: an engine on the local file stint.db, which it creates,
with the built-in kinds on and a log line for each job, and the dashboard at the link
that it prints. It takes the same flags as work, and stops in the same way: Ctrl-C
lets what runs finish.

All users of this machine may look at the dashboard; the link permits everything. See
stint dashboard --help.

Examples:
  stint up
  stint up --demo                and in another terminal: stint demo
  stint up --db /var/lib/stint/jobs.db --slots 2`

const upNext = `
In a second terminal, in the same directory:

%[2]s  %[3]s sh%[1]s -- echo hello
  %[3]s jobs list%[1]s
  %[3]s jobs show ID%[1]s

Ctrl-C stops it after what runs has finished.

`

const upLink = `
The dashboard is at

  %s
`

const upFaktory = `
For clients of Faktory: FAKTORY_URL=%s
`

// thisProgram is what to type to run this program again: its name, if a shell finds it by that, or else the
// path of it. That of go run is a file for as long as this process lives, so then it is go run.
func thisProgram() string {
	const name = "stint"
	path, err := os.Executable()
	if err != nil {
		return name
	}
	found, err := exec.LookPath(name)
	switch {
	case err == nil && sameFile(found, path):
		return name
	case madeByGoRun(path):
		return "go run ./cmd/stint"
	}
	return shellQuote(path)
}

// madeByGoRun reports whether a program is in a folder of go run, or in the cache of it.
func madeByGoRun(path string) bool {
	return strings.Contains(path, string(os.PathSeparator)+"go-build")
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

func (a *app) upCommand() *cobra.Command {
	var flags engineFlags
	cmd := a.onDatabase(page(upHelp), func(ctx context.Context, _ *cobra.Command, _ []string) error {
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
			json := flags.logFormat == "json"
			if !json {
				fmt.Fprintf(a.out, "%s %s, kinds %s.\n", verb, a.db.place(), words.Listed(kinds))
			}
			if w.board != nil {
				a.tellLink(flags.logFlags, "dashboard", w.board.link(), fmt.Sprintf(upLink, w.board.link()))
			}
			if w.faktory != nil {
				a.tellLink(flags.logFlags, "faktory", w.faktory.url, fmt.Sprintf(upFaktory, w.faktory.url))
			}
			if json {
				return
			}
			first, program := "", thisProgram()
			if w.demo {
				first = "  " + program + " demo" + a.sameDatabase() + "\n"
			}
			fmt.Fprintf(a.out, upNext, a.sameDatabase(), first, program)
		})
	})
	flags.add(cmd.Flags())
	return cmd
}
