package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/observe"
	"github.com/stint-go/stint/observe/prom"
	"github.com/stint-go/stint/observe/spans"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// worker is an engine with what is around it. Its start finds mistakes in the flags first,
// then listens at addresses, and opens the database last.
type worker struct {
	*engineFlags
	app     *app
	mux     *stint.Mux
	log     *slog.Logger
	level   slog.Level // of lines about successes
	counted *prom.Events
	vitals  *vitals
	board   *dashboardServer // nil without --dashboard
	gateway *dashboardServer // nil without --gateway
	faktory *faktoryServer   // nil without --faktory
	tracer  *spans.Tracer    // nil where traces go nowhere
	joined  atomic.Bool
	until   time.Time // when to give up reaching the database
}

// work runs an engine until a signal comes. It logs successes at the given level, and calls
// opened when the database is open.
func (a *app) work(ctx context.Context, f *engineFlags, successes slog.Level, opened func(*worker)) error {
	mux, err := a.check(f)
	if err != nil {
		return err
	}
	if err := a.db.check(); err != nil {
		return err
	}
	if f.kinds == nil && !f.demo && f.gateway == "" && f.faktory == "" {
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
	forWorkers := f.forWorkers()
	if w.gateway, err = a.listenDashboard(&forWorkers, w.vitals, w.log); err != nil {
		return err
	}
	defer w.gateway.close()
	if w.faktory, err = a.listenFaktory(f, w.log); err != nil {
		return err
	}
	defer w.faktory.close()
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
	defer w.gateway.close()
	config := w.engineConfig(db)
	e, err := engine.New(db.roles, w.mux, config)
	if err != nil {
		return err
	}
	workers := gateway.New(db.roles, gateway.Config{Host: e, Client: config.Client, OnEvent: config.OnEvent})
	defer workers.Close()
	defer context.AfterFunc(ctx, workers.Close)() // they go to another gateway, or wait for the next program
	if err := w.board.open(db.roles, w.vitals, workers); err != nil {
		return err
	}
	if err := w.gateway.open(db.roles, w.vitals, workers); err != nil {
		return err
	}
	defer w.faktory.serve(ctx, db.roles, e, config)()
	opened(w)
	return w.run(ctx, e)
}

// engineConfig is how the engine works on a database.
func (w *worker) engineConfig(db *database) engine.Config {
	config := w.config(observe.Fan(w.note, w.counted.On, observe.Log(w.log, observe.LogConfig{Successes: w.level})))
	config.ClaimsNothing = w.kinds == nil && !w.demo
	if w.tracer != nil {
		config.Client = stint.NewClient(db.roles).Use(w.tracer.Enqueue)
	}
	return config
}

// run runs the engine. If it never joined the roster, because the database went away in
// between, it tries again for as long as it would have tried to open the database.
func (w *worker) run(ctx context.Context, e *engine.Engine) error {
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

// note remembers that the engine joined the roster.
func (w *worker) note(e event.Event) {
	if e.Type == event.EventJoined {
		w.joined.Store(true)
	}
}

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

// limitGo makes the garbage collector work harder before the process reaches its limit, of
// which a part is not Go's. A limit of Go's own that is set stays.
func (f *engineFlags) limitGo() {
	if f.memory > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(f.memory / 10 * 9)
	}
}

// onQuery logs statements, with --log-sql. Commands without a log write them as engines
// do.
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

// impatience is how long after the first signal another one means that the user does not
// want to wait. Those that come together are one: GNU timeout sends its signal to the
// process and again to its group.
const impatience = time.Second

// untilSignal returns a context that ends at the first TERM, INT or HUP. Another TERM or
// INT exits at once, unless it came together with the first. A HUP never counts as
// impatience: terminals that go away send several, and supervisors send one together with
// a TERM, in any order.
func (a *app) untilSignal(ctx context.Context, log *slog.Logger, grace time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 4)
	notify(signals)
	var over atomic.Bool
	go func() {
		var asked time.Time // of the first TERM or INT
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

// interrupted returns a context that ends at TERM or INT, for commands that do something
// at their end.
func interrupted(ctx context.Context) (context.Context, func()) {
	return signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
}

// notify does not listen to a HUP that the parent ignores, as nohup does.
func notify(signals chan<- os.Signal) {
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
}

// defaultWait suits supervisors: it is longer than the restart of a server, and does not
// hide a mistake for ever.
const defaultWait = time.Minute

// The first time between two tries to reach the database, and the longest.
const (
	firstTry   = 250 * time.Millisecond
	longestTry = 5 * time.Second
	sayAgain   = 30 * time.Second
)

// keepTrying tries until it succeeds, fails in a way that time does not fix, or the time is
// over. An engine that has joined waits for the database by itself.
func (w *worker) keepTrying(ctx context.Context, try func() error) error {
	var said time.Time
	for wait := firstTry; ; wait = min(2*wait, longestTry) {
		err := try()
		if err == nil || ctx.Err() != nil || w.joined.Load() || !w.app.unreachable(err) || time.Until(w.until) < wait {
			return err
		}
		if time.Since(said) > sayAgain {
			said = time.Now()
			w.log.Warn("cannot reach the database, trying again", "error", oneLine(w.app.explain(err).Error()), "until", waits.format(w.wait))
		}
		select {
		case <-ctx.Done():
			return nil // stopped before it began
		case <-time.After(wait):
		}
	}
}

// unreachable reports whether an error is about the connection to a PostgreSQL server, or
// about a server that starts, stops or is full: all of that passes. Other refusals of a
// server stay, and so do errors of a file.
func (a *app) unreachable(err error) bool {
	if !a.db.isPostgres() || errors.Is(err, store.ErrSchema) || errors.Is(err, stint.ErrInvalid) {
		return false
	}
	return errors.Is(err, store.ErrAway) || errors.Is(err, context.DeadlineExceeded)
}
