package main

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/observe"
	"github.com/stint-go/stint/observe/prom"
	"github.com/stint-go/stint/observe/spans"
)

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
	w := &worker{engineFlags: f, app: a, mux: mux, level: successes, counted: prom.NewEvents(), until: f.wait.until(time.Now())}
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
func (w *worker) note(e stint.Event) {
	if e.Type == stint.EventJoined {
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
		debug.SetMemoryLimit(int64(f.memory) / 10 * 9)
	}
}

// onQuery is told what the database is asked, with --log-sql. Commands without a
// log write it as engines do.
func (a *app) onQuery() func(stint.Query) {
	if !a.db.logSQL.on {
		return nil
	}
	log := a.log
	if log == nil {
		log = newLogger(a.err, slog.LevelInfo, "text")
	}
	return observe.SQL(log, a.db.logSQL.slowerThan)
}
