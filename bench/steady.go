package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/bench/load"
	"github.com/stint-go/stint/bench/server"
)

// keptSeconds is for how many seconds of work the history has jobs at the end.
const keptSeconds = "kept, in s of work"

// steady enqueues and works at once. By hand the two come one after the other, so
// the rate of both together is what it is held against.
func steady(ctx context.Context, b *bench) error {
	figures := []contest.Figure{{Name: contest.WorkRate}}
	for _, name := range []string{"first", "last", "median", "least"} {
		figures = append(figures, contest.Figure{Name: name, Description: "jobs worked per second in single intervals"})
	}
	for _, name := range []string{walPerJob, serverCPU, keptSeconds} {
		figures = append(figures, contest.Figure{Name: name, LessIsMore: true})
	}
	entrants := b.entrants(func(ctx context.Context, held holding) (contest.Figures, error) { return b.steady(ctx, held, b.keep) },
		func(ctx context.Context) (contest.Figures, error) {
			f, err := b.handBurn(ctx)
			return contest.Figures{contest.WorkRate: f[bothRate]}, err
		})
	if b.keep > 0 {
		entrants = slices.Insert(entrants, 1, contest.Entrant{Name: "stint, all kept", Turn: func(ctx context.Context) (contest.Figures, error) {
			return b.steady(ctx, holding{b.pin, b.writers}, 0)
		}})
	}
	return b.hold(ctx, contest.Bout{
		Name: "steady", About: fmt.Sprintf("jobs worked per second while they are enqueued, for %v; first, last, median and least: in intervals of %v", b.duration, b.every),
		Figures: figures, Entrants: entrants,
	})
}

// steady is one turn, in which jobs are kept for so long after they ended.
func (b *bench) steady(ctx context.Context, held holding, keep time.Duration) (f contest.Figures, err error) {
	err = b.on(ctx, func(s *site) error {
		return held.during(ctx, s, func() error {
			var series []float64
			spent, err := s.spending(ctx, func() (err error) {
				series, err = contest.Steady(ctx, s.queue(load.Options{Plain: true, Keep: keep}), contest.Steadily{
					Duration: b.duration, Slice: b.every, Backlog: b.backlog, Bulk: contest.Bulk{Batch: b.batch, Producers: b.producers},
				})
				return err
			})
			if err != nil {
				return err
			}
			counts, err := s.store.Counts(ctx)
			if err != nil {
				return err
			}
			rate := contest.Mean(series)
			f = contest.Figures{
				contest.WorkRate: rate, "first": series[0], "last": series[len(series)-1],
				"median": contest.Median(series), "least": slices.Min(series), keptSeconds: float64(counts[stint.Completed]) / rate,
			}
			n := rate * b.duration.Seconds()
			if s.isPostgres() {
				f[walPerJob] = float64(spent.WAL) / n
			}
			if spent.CPUKnown {
				f[serverCPU] = float64(spent.CPU.Microseconds()) / n
			}
			for i, v := range series { // --json prints these
				f[fmt.Sprintf("interval %d", i+1)] = v
			}
			return nil
		})
	})
	return f, err
}

// holding is what is held open while something is measured.
type holding struct {
	pin     bool
	writers int
}

// connectionsPerEngine is how many connections must stay free for each engine
// beside what is held open: those of its pool, and what listens.
const connectionsPerEngine = 10

// during does something while all of it is held open. What was measured while it
// was not does not count.
func (h holding) during(ctx context.Context, s *site, do func() error) (err error) {
	if h.pin && !s.isPostgres() {
		release, err := pinFile(filepath.Join(s.dir, "stint.db"))
		if err != nil {
			return err
		}
		defer release()
	}
	var holds []*server.Hold
	defer func() {
		for _, held := range holds {
			err = errors.Join(err, held.Close())
		}
	}()
	if h.pin && s.isPostgres() {
		held, err := server.PinHorizon(ctx, s.url())
		if err != nil {
			return err
		}
		holds = append(holds, held)
	}
	if h.writers > 0 {
		held, err := server.OpenWriters(ctx, s.url(), h.writers, connectionsPerEngine*s.engines)
		if err != nil {
			return err
		}
		holds = append(holds, held)
	}
	return do()
}

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
