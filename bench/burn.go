package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/bench/load"
	"github.com/stint-go/stint/bench/server"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/seal"
)

// The figures of a server, and of slots.
const (
	walPerJob     = "WAL bytes/job"
	commitsPerJob = "commits/job" // of transactions that wrote
	serverCPU     = "server CPU µs/job"
	slotsUsed     = "slots used %"
	bothRate      = "both/s" // enqueued and worked
)

func burnFigures(more ...string) []contest.Figure {
	all := slices.Clone(contest.BurnFigures)
	for _, name := range []string{walPerJob, commitsPerJob, serverCPU} {
		all = append(all, contest.Figure{Name: name, LessIsMore: true})
	}
	for _, name := range more {
		all = append(all, contest.Figure{Name: name})
	}
	return all
}

// entrants are stint, the same with nothing held open, and what is done by hand.
func (b *bench) entrants(stint func(context.Context, holding) (contest.Figures, error), hand func(context.Context) (contest.Figures, error)) []contest.Entrant {
	all := []contest.Entrant{{Name: "stint", Turn: func(ctx context.Context) (contest.Figures, error) {
		return stint(ctx, holding{b.pin, b.writers})
	}}}
	if b.compare {
		all = append(all, contest.Entrant{Name: "stint, nothing held", Turn: func(ctx context.Context) (contest.Figures, error) { return stint(ctx, holding{}) }})
	}
	if !b.noLimit && !b.oneByOne && b.work == 0 && b.args == 0 { // which is about something else
		all = append(all, contest.Entrant{Name: "by hand", Turn: hand})
	}
	return all
}

// burn enqueues jobs that do nothing, in bulk, and then has them worked off.
func burn(ctx context.Context, b *bench) error {
	entrants := b.entrants(func(ctx context.Context, held holding) (contest.Figures, error) { return b.burnOnce(ctx, held, nil) }, b.handBurn)
	if b.sealed {
		keys, err := seal.NewRing(seal.Key{ID: "bench", Secret: make([]byte, 32)})
		if err != nil {
			return err
		}
		entrants = append(entrants, contest.Entrant{Name: "stint, sealed", Turn: func(ctx context.Context) (contest.Figures, error) {
			return b.burnOnce(ctx, holding{b.pin, b.writers}, keys)
		}})
	}
	return b.hold(ctx, contest.Bout{
		Name: "burn", About: contest.Number(float64(b.jobs)) + " jobs that do nothing, enqueued in bulk, then worked off; each committed, history kept",
		Figures:  burnFigures(slotsUsed),
		Entrants: entrants,
	})
}

// burnOnce burns jobs once, sealed with keys if there are any.
func (b *bench) burnOnce(ctx context.Context, held holding, keys seal.Keys) (f contest.Figures, err error) {
	err = b.on(ctx, func(s *site) error {
		if err := s.fill(ctx); err != nil {
			return err
		}
		return held.during(ctx, s, func() (err error) {
			f, err = s.recorded(ctx, s.queue(load.Options{Plain: true, Args: s.args, Seal: keys, Lanes: s.lanes, Limit: stint.LimitRule{AtOnce: s.atOnce}, Keys: s.keys}))
			return err
		})
	})
	return f, err
}

// limit measures what the database could do by hand, alone.
func limit(ctx context.Context, b *bench) error {
	return b.hold(ctx, contest.Bout{
		Name: "limit", About: contest.Number(float64(b.jobs)) + " rows stored in bulk, read in order, and a row of history stored for each",
		Figures: burnFigures(bothRate), Entrants: []contest.Entrant{{Name: "by hand", Turn: b.handBurn}},
	})
}

// handBurn is the same work by hand.
func (b *bench) handBurn(ctx context.Context) (f contest.Figures, err error) {
	err = b.log(ctx, func(s *site, q contest.Queue) (err error) {
		f, err = s.recorded(ctx, q)
		return err
	})
	return f, err
}

// recorded burns once, and fails unless the history has it.
func (s *site) recorded(ctx context.Context, q contest.Queue) (f contest.Figures, err error) {
	err = contest.Recorded(ctx, q, s.jobs, func() (err error) {
		f, err = s.burn(ctx, q)
		return err
	})
	return f, err
}

// fill has jobs in the tables before anything is measured.
func (s *site) fill(ctx context.Context) error {
	q := load.New(s.store, load.Options{Plain: true}, nil)
	if s.before > 0 {
		if _, err := contest.Burn(ctx, q, s.before, contest.Bulk{}); err != nil {
			return fmt.Errorf("work %d jobs off beforehand: %w", s.before, err)
		}
	}
	if err := q.EnqueueWaiting(ctx, s.waiting); err != nil {
		return fmt.Errorf("enqueue %d jobs that wait: %w", s.waiting, err)
	}
	return nil
}

// burn burns once, and tells what the server spent on the jobs: on their whole
// life, and on whatever else it did.
func (s *site) burn(ctx context.Context, q contest.Queue) (f contest.Figures, err error) {
	used := usage{work: s.work}
	bulk := contest.Bulk{Batch: s.batch, Producers: s.producers}
	if s.work > 0 {
		bulk.Job = used.job
	}
	spent, err := s.spending(ctx, func() (err error) {
		f, err = contest.Burn(ctx, q, s.jobs, bulk)
		return err
	})
	if err != nil {
		return nil, err
	}
	n := float64(s.jobs)
	f[bothRate] = 1 / (1/f[contest.EnqueueRate] + 1/f[contest.WorkRate])
	if s.isPostgres() {
		f[walPerJob], f[commitsPerJob] = float64(spent.WAL)/n, float64(spent.Transactions)/n
	}
	if spent.CPUKnown {
		f[serverCPU] = float64(spent.CPU.Microseconds()) / n
	}
	if s.work > 0 {
		f[slotsUsed] = 100 * used.of(s.engines*cmp.Or(s.slots, engine.DefaultSlots()))
	}
	return f, nil
}

// spending tells what the server spent while something was done; nothing where
// there is no server.
func (s *site) spending(ctx context.Context, do func() error) (u server.Use, err error) {
	if !s.isPostgres() {
		return u, do()
	}
	probe, err := server.NewProbe(ctx, s.url())
	if err != nil {
		return u, err
	}
	defer probe.Close()
	before, err := probe.Read(ctx)
	if err != nil {
		return u, err
	}
	if err := do(); err != nil {
		return u, err
	}
	after, err := probe.Read(ctx)
	return after.Since(before), err
}

// usage is how well slots were used by jobs that take their time.
type usage struct {
	work        time.Duration
	first, last atomic.Int64 // nanoseconds: when the first began, and the last ended
	busy        atomic.Int64 // nanoseconds, of all jobs together
}

func (u *usage) job() {
	began := time.Now()
	u.first.CompareAndSwap(0, began.UnixNano())
	time.Sleep(u.work)
	took := time.Since(began)
	u.busy.Add(int64(took))
	for end := began.UnixNano() + int64(took); ; {
		if last := u.last.Load(); end <= last || u.last.CompareAndSwap(last, end) {
			return
		}
	}
}

// of is the share of the time of so many slots, from the first start to the last
// end.
func (u *usage) of(slots int) float64 {
	return float64(u.busy.Load()) / float64(slots) / float64(max(1, u.last.Load()-u.first.Load()))
}
