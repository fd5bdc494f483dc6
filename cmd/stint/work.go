package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

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
var leastMemory = sizeValue(32 << 20)

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
		return nil, withHint(settingf("memory-limit", "%s is less than an engine uses that does nothing", f.memory.String()),
			"it is at least %s, and what the jobs take comes on top", leastMemory.String())
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
