package main

import (
	"context"
	"errors"

	"github.com/ncruces/go-sqlite3"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint/internal/pgload"
)

// holdFlags say what is held open while something is measured.
type holdFlags struct {
	pin     bool
	writers int
}

func (h *holdFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&h.pin, "pin-horizon", false, "hold a snapshot and an idle write transaction open (SQLite: a read transaction)")
	flags.IntVar(&h.writers, "open-writers", 0, "hold so many unrelated write transactions open (PostgreSQL)")
}

// any reports whether anything is to be held open.
func (h holdFlags) any() bool { return h.pin || h.writers > 0 }

// check finds what cannot be held open in that database.
func (h holdFlags) check(db databaseFlags) error {
	switch {
	case h.writers < 0:
		return usagef("--open-writers: %d is less than 0", h.writers)
	case h.writers > 0 && !db.isPostgres():
		return usagef("--open-writers is for PostgreSQL: an SQLite file has one writer, and everybody would wait for it")
	}
	return nil
}

// checkCompare refuses to compare with a run without, when nothing is held open.
func (h holdFlags) checkCompare(compare bool) error {
	if compare && !h.any() {
		return usagef("--compare: there is nothing to compare with; add --pin-horizon or --open-writers")
	}
	return nil
}

// tell adds to the settings what is held open.
func (h holdFlags) tell(s settings) { s["pinned_horizon"], s["open_writers"] = h.pin, h.writers }

// connectionsPerEngine is how many connections must stay free for each engine
// beside what is held open: those of its pool, and what listens.
const connectionsPerEngine = 10

// during runs a workload while all of it is held open. The workload ends early,
// with the reason, when that was not so.
func (h holdFlags) during(ctx context.Context, g *ground, engines int, work func(ctx context.Context) error) (err error) {
	if h.pin && !g.flags.isPostgres() {
		release, err := pinFile(g.flags.url)
		if err != nil {
			return err
		}
		defer release()
	}
	var holds []func() (*pgload.Hold, error)
	url := g.flags.withDefaults()
	if h.pin && g.flags.isPostgres() {
		holds = append(holds, func() (*pgload.Hold, error) { return pgload.PinHorizon(ctx, url) })
	}
	if h.writers > 0 {
		holds = append(holds, func() (*pgload.Hold, error) {
			return pgload.OpenWriters(ctx, url, h.writers, connectionsPerEngine*engines)
		})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, open := range holds {
		held, openErr := open()
		if openErr != nil {
			return openErr
		}
		defer func() {
			// Why something was lost tells more than that the work was cut short.
			if closed := held.Close(); closed != nil && (err == nil || context.Cause(ctx) == errNotHeld) {
				err = closed
			}
		}()
		go func() {
			select {
			case <-held.Lost():
				cancel(errNotHeld)
			case <-ctx.Done():
			}
		}()
	}
	return work(ctx)
}

var errNotHeld = errors.New("a transaction that was held open ended")

// pinFile holds a read transaction open, as a backup does that takes long: the
// log beside the file cannot start anew meanwhile, and grows.
func pinFile(path string) (release func(), err error) {
	db, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		return nil, err
	}
	if err := db.Exec(`pragma query_only = on; begin; select count(*) from sqlite_schema`); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return func() { _ = db.Close() }, nil
}
