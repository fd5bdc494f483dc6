package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/internal/words"
)

const benchLong = `Bench measures this machine and database. It works in a schema of its own, or for
SQLite in a file of its own in the same directory, and removes it afterwards; the
jobs of the database are not touched, though its server is kept busy.

Producers, engines and, on the same machine, the server share the processors: what
is measured is all of them together.`

func (a *app) benchCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "bench",
		Short: "Measure throughput and latency",
		Long:  benchLong,
	},
		a.benchBurnCommand(),
		a.benchSteadyCommand(),
		a.benchLatencyCommand(),
		a.benchSingleCommand(),
		a.benchMixCommand(),
		a.benchLimitCommand(),
		a.benchPagesCommand(),
	)
}

// ground is where a measurement takes place.
type ground struct {
	*database
	app    *app
	flags  databaseFlags
	remove func() error
}

// clearGround opens an empty store for a measurement.
func (a *app) clearGround(ctx context.Context) (*ground, error) {
	if err := a.db.check(); err != nil {
		return nil, err
	}
	var b [4]byte
	rand.Read(b[:])
	name := "stint_bench_" + hex.EncodeToString(b[:])
	g := &ground{app: a, flags: a.db}
	if a.db.isPostgres() {
		g.flags.schema = name
		g.remove = func() error { return g.roles.Uninstall(context.WithoutCancel(ctx)) }
	} else {
		// A directory, since SQLite keeps files beside the database. It must
		// be on the disk that is asked about.
		dir := filepath.Join(filepath.Dir(a.db.url), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		g.flags.url = filepath.Join(dir, defaultFile)
		g.remove = func() error { return os.RemoveAll(dir) }
	}
	// A signal must not cut the installation short: what it had committed
	// would stay.
	db, err := a.openSchema(context.WithoutCancel(ctx), creating, g.flags)
	if err != nil {
		if !a.db.isPostgres() {
			err = errors.Join(err, g.remove())
		}
		return nil, err
	}
	g.database = db
	return g, nil
}

// leave removes everything, whatever happened.
func (g *ground) leave() error {
	if g.app.db.isPostgres() {
		defer g.Close()
		return g.remove()
	}
	g.Close()
	return g.remove()
}

// opener opens the store once more, for another engine.
func (g *ground) opener(ctx context.Context) (stint.Store, func(), error) {
	db, err := g.app.openSchema(ctx, creating, g.flags)
	if err != nil {
		return nil, nil, err
	}
	return db.roles, db.Close, nil
}

// measure runs a workload on a ground of its own and returns what it reports. A
// signal ends it early, and the ground is cleared all the same. Print nothing
// before it returned: a reader that closes its pipe, as head does, ends the
// process there and then.
func measure[R any](ctx context.Context, a *app, work func(ctx context.Context, g *ground) (R, error)) (report R, err error) {
	ctx, release := interrupted(ctx)
	defer release()
	g, err := a.clearGround(ctx)
	if err != nil {
		return report, err
	}
	if err = ctx.Err(); err == nil {
		report, err = work(ctx, g)
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted; nothing was left behind")
	}
	if left := g.leave(); left != nil {
		err = fmt.Errorf("remove what was measured on: %w", errors.Join(left, err))
	}
	return report, err
}

// showProgress shows how far a workload of so many jobs is.
func (a *app) showProgress(m *load.Meter, of int) (stop func()) {
	return a.showLine(func() string {
		return fmt.Sprintf("enqueued %s, started %s of %s", words.Count(m.Enqueued.Load()), words.Count(m.Started.Load()), words.Count(of))
	})
}

// showLine writes over one line while people look on, until it is stopped.
func (a *app) showLine(line func() string) (stop func()) {
	if !a.errTerminal {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for wait(ctx, 200*time.Millisecond) {
			fmt.Fprint(a.err, "\r\x1b[K", line())
		}
		fmt.Fprint(a.err, "\r\x1b[K")
	}()
	return func() {
		cancel()
		<-ended
	}
}

// least is a number of a flag, and the least that it may be.
type least struct {
	name  string
	value int
	least int
}

// atLeast refuses the first number that is too small.
func atLeast(numbers ...least) error {
	for _, n := range numbers {
		if n.value < n.least {
			return usagef("--%s: %d is less than %d", n.name, n.value, n.least)
		}
	}
	return nil
}
