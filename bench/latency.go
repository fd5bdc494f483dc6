package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/bench/floor"
	"github.com/stint-go/stint/bench/load"
	"github.com/stint-go/stint/store"
)

// timesFigures are what is told of each kind of time.
var timesFigures = append(contest.IdleFigures[:2:2], contest.Figure{Name: "max ms", LessIsMore: true})

// latency enqueues single jobs at a rate that leaves the engine idle. Between them
// the floor is measured: one row is inserted and committed, a NOTIFY goes to a
// listener in this process, and that reads the row (SQLite: one row is committed
// and read). A part of the jobs is scheduled for an instant of the next two
// seconds.
func latency(ctx context.Context, b *bench) error {
	var clocks []clock
	bout := contest.Bout{
		Name: "latency", Figures: timesFigures,
		About: fmt.Sprintf("%v jobs a second for %v; ×n: how many times the floor (one insert, one NOTIFY, one select)", b.rate, b.duration),
	}
	names := []string{"floor", "enqueue to start", "return to start", "enqueue itself", "scheduled, late"}
	bout.Entrants = b.jointly(names, func(ctx context.Context, s *site) (all []contest.Figures, err error) {
		times, offset, err := s.idle(ctx)
		for _, one := range [][]time.Duration{times.Floor, times.Start, times.Return, times.Call, times.Late} {
			all = append(all, contest.Quantiles(one))
		}
		clocks = append(clocks, offset)
		return all, err
	})
	if err := b.hold(ctx, bout); err != nil {
		return err
	}
	if last := clocks[len(clocks)-1]; last.unknown > 0 && !b.json {
		fmt.Fprintf(b.out, "the database's clock less this one: %.3f ms, give or take %.3f\n", last.offset.Seconds()*1e3, last.unknown.Seconds()*1e3)
	}
	return nil
}

// idle measures on a site. It also tells what is known of the two clocks: when
// scheduled jobs are due is for the database's to say.
func (s *site) idle(ctx context.Context) (t contest.Times, c clock, err error) {
	round, closeFloor, err := s.round(ctx)
	if err != nil {
		return t, c, err
	}
	defer func() { err = errors.Join(err, closeFloor()) }()
	before, err := readClock(ctx, s.store)
	if err != nil {
		return t, c, err
	}
	if s.lanes > 1 { // which the engine is to know
		if _, err := contest.Burn(ctx, s.queue(load.Options{Plain: true, Lanes: s.lanes}), s.lanes, contest.Bulk{}); err != nil {
			return t, c, fmt.Errorf("work a job of each queue off beforehand: %w", err)
		}
	}
	q := s.queue(load.Options{Lanes: s.lanes})
	t, err = contest.Idle(ctx, q, contest.Idly{
		Rate: s.rate, Duration: s.duration, Floor: round, Scheduled: s.scheduled,
		Later: func(ctx context.Context, job int, due time.Time) error {
			return q.EnqueueAt(ctx, job, due.Add(before.offset).Round(0))
		},
	})
	if err != nil {
		return t, c, err
	}
	after, err := readClock(ctx, s.store)
	c = before.mean(after)
	for i := range t.Late {
		// It was due when the database's clock showed so, whatever that was here.
		t.Late[i] += c.offset - before.offset
	}
	return t, c, err
}

// round opens the floor of latency.
func (s *site) round(ctx context.Context) (round func(context.Context) error, closeFloor func() error, err error) {
	if !s.isPostgres() {
		r, err := floor.NewRows(filepath.Join(s.dir, "floor.db"))
		if err != nil {
			return nil, nil, err
		}
		return r.Round, r.Close, nil
	}
	r, err := floor.NewRounds(context.WithoutCancel(ctx), s.url(), s.schema+"_floor")
	if err != nil {
		return nil, nil, err
	}
	return r.Round, r.Close, nil
}

// clock is what is known of the store's clock at one moment.
type clock struct {
	offset  time.Duration // how far it is ahead of the one of this process
	unknown time.Duration // how far that may be wrong, either way
}

// mean is what is known between two moments.
func (c clock) mean(d clock) clock {
	return clock{(c.offset + d.offset) / 2, max(c.unknown, d.unknown) + (c.offset-d.offset).Abs()/2}
}

// clockQuestions is how often the store is asked for the time; the fastest
// answer says most.
const clockQuestions = 20

// readClock compares the store's clock with the one of this process. It is the
// same where the store has none.
func readClock(ctx context.Context, st store.Store) (best clock, err error) {
	asked, ok := st.(store.Clock)
	if !ok {
		return clock{}, nil
	}
	best.unknown = math.MaxInt64
	for range clockQuestions {
		before := time.Now()
		there, err := asked.Now(ctx)
		if err != nil {
			return best, fmt.Errorf("compare the clocks: %w", err)
		}
		half := time.Since(before) / 2
		if half < best.unknown {
			best = clock{there.Sub(before.Add(half)), half}
		}
	}
	return best, nil
}
