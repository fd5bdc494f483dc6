package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/bench/floor"
	"github.com/stint-go/stint/bench/load"
	"github.com/stint-go/stint/store"
)

const callRate = "calls/s"

// single has producers enqueue one job for each transaction, and insert one bare
// row for each, by turns in short slices of time: what else keeps the machine
// busy is the same for both.
func single(ctx context.Context, b *bench) error {
	bout := contest.Bout{
		Name: "single", About: fmt.Sprintf("%d producers, each with a connection of its own, for %v by turns: one job or one bare row for each transaction", b.producers, b.duration),
		Figures: append([]contest.Figure{{Name: callRate}}, timesFigures...),
	}
	bout.Entrants = b.jointly([]string{"enqueue", "bare insert"}, func(ctx context.Context, s *site) ([]contest.Figures, error) { return s.single(ctx) })
	return b.hold(ctx, bout)
}

// insert is one call of a producer, numbered from 0.
type insert func(ctx context.Context, producer int) error

// single measures on a site.
func (s *site) single(ctx context.Context) (all []contest.Figures, err error) {
	bare, closeFloor, err := s.bare(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeFloor()) }()
	release, err := s.attend(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	client := stint.NewClient(s.store)
	// The policy is the default one, which no row names: the bare ones have none
	// either.
	job := stint.KindInfo{Name: "load_single"}.Job(nil)
	enqueue := func(ctx context.Context, _ int) error {
		_, err := client.Enqueue(ctx, job)
		return err
	}
	return alternate(ctx, s.producers, s.duration, enqueue, bare)
}

// slicePairs is how many slices of time each of two calls has, and one more that
// is not measured.
const slicePairs = 10

// alternate gives each of two calls its slices of time.
func alternate(ctx context.Context, producers int, d time.Duration, each ...insert) (all []contest.Figures, err error) {
	callers := make([]caller, len(each))
	for i := range slicePairs + 1 {
		for which, call := range each {
			c := &callers[which]
			if i <= 1 { // the first does not count
				*c = caller{took: make([][]time.Duration, producers)}
			}
			if err := c.slice(ctx, d/(2*slicePairs), call); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range callers {
		took := slices.Concat(c.took...)
		f := contest.Quantiles(took)
		f[callRate] = float64(len(took)) / c.spent.Seconds()
		all = append(all, f)
	}
	return all, nil
}

// caller is producers that make the same call side by side.
type caller struct {
	took  [][]time.Duration // of each producer
	spent time.Duration
}

// slice has each producer call again and again for a time. A call that has begun
// counts with all of its time.
func (c *caller) slice(ctx context.Context, d time.Duration, call insert) error {
	begin := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for i := range c.took {
		g.Go(func() error {
			for last := begin; last.Sub(begin) < d; {
				if err := call(ctx, i); err != nil {
					return err
				}
				now := time.Now()
				c.took[i] = append(c.took[i], now.Sub(last))
				last = now
			}
			return nil
		})
	}
	err := g.Wait()
	c.spent += time.Since(begin)
	return err
}

// attend starts an engine that leaves the jobs of single alone: with --asleep one
// that is idle, else one whose only slot is full until it is released.
func (s *site) attend(ctx context.Context) (release func() error, err error) {
	const queue = "load_engine"
	begun, released := make(chan struct{}), make(chan struct{})
	q := load.New(s.store, load.Options{Slots: 1, Queues: []string{queue}, To: queue}, nil)
	stop, err := q.Work(ctx, func(int) {
		close(begun)
		<-released
	})
	if err != nil {
		return nil, err
	}
	free := sync.OnceFunc(func() { close(released) })
	if err = q.Enqueue(ctx, 0, 1); err == nil {
		select {
		case <-begun:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-time.After(30 * time.Second):
			err = errors.New("the engine does not start a job")
		}
	}
	if s.asleep || err != nil {
		free()
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return func() error {
		free()
		return stop()
	}, nil
}

// bare opens a table for rows like those that jobs are stored in.
func (s *site) bare(ctx context.Context) (call insert, closeFloor func() error, err error) {
	if !s.isPostgres() {
		r, err := floor.NewRows(filepath.Join(s.dir, "floor.db"))
		if err != nil {
			return nil, nil, err
		}
		return r.Insert, r.Close, nil
	}
	i, err := floor.NewInserts(context.WithoutCancel(ctx), s.url(), s.schema+"_floor", s.producers,
		pgx.Identifier{s.schema, "entries"}, []floor.Column{
			{Name: "lane", Value: int64(store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID)},
			{Name: "queue", Value: stint.DefaultQueue},
			{Name: "priority", Value: int16(0)},
			{Name: "kind", Value: "load_single"},
			{Name: "args", Value: "{}"},
		})
	if err != nil {
		return nil, nil, err
	}
	return i.Insert, i.Close, nil
}
