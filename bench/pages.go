package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/bench/load"
	"github.com/stint-go/stint/store"
)

// watches is how often one open page is compared with none: what the server does
// by itself meanwhile, such as a vacuum, is more than what either costs.
const watches = 6

// pages measures what the dashboard costs, in three bouts on one site: how soon
// each of its pages answers, how much of a processor the database spends on one
// page that somebody leaves open, and how fast jobs are worked with some pages
// open, in turns with none.
func pages(ctx context.Context, b *bench) error {
	b.before = max(1, b.before) // a kind has a page once it had a job
	return b.on(ctx, func(s *site) error {
		if err := s.fill(ctx); err != nil {
			return err
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
		pages, err := serveBoard(s.store)
		if err != nil {
			return err
		}
		defer pages.close()
		for _, measure := range []func(context.Context, *board) error{s.answers, s.watching, s.besideWork} {
			if err := measure(ctx, pages); err != nil {
				return err
			}
		}
		return nil
	})
}

// settle does what engines do in the minute after much was worked off and an engine left: it sums up the attempts, and
// looks once more through what the engine had claimed.
func (s *site) settle(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = s.store.SumUp(ctx); err != nil {
			return err
		}
	}
	sweeper, ok := s.store.(store.OrphanRecoverer)
	if !ok {
		return nil
	}
	if err := wait(ctx, 11*time.Second); err != nil { // then it counts as left
		return err
	}
	_, err := sweeper.Sweep(ctx, func(e *store.Entry, _ bool) store.Completion {
		panic(fmt.Sprintf("position %d was left", e.Pos)) // all of it was worked off
	})
	return err
}

// answers tells how soon each page answers.
func (s *site) answers(ctx context.Context, board *board) error {
	paths, err := board.pages(ctx, s.store)
	if err != nil {
		return err
	}
	bout := contest.Bout{
		Name: "answers", About: "how soon a page answers; late: how often it could not be made in time",
		Figures: append(slices.Clone(timesFigures), contest.Figure{Name: latePages, LessIsMore: true}),
	}
	for _, path := range paths {
		bout.Entrants = append(bout.Entrants, contest.Entrant{Name: path, Turn: func(ctx context.Context) (contest.Figures, error) {
			return board.times(ctx, path, max(1, s.rounds/s.runs))
		}})
	}
	return s.hold(ctx, bout)
}

// watching tells how much of a processor the server spends on one open page, which
// only a server's own machine knows.
func (s *site) watching(ctx context.Context, board *board) error {
	if !s.isPostgres() {
		return nil
	}
	const share = "% of a processor"
	share1 := func(ctx context.Context, tabs int) (float64, bool, error) {
		used, err := s.spending(ctx, func() error {
			return board.during(ctx, tabs, func(ctx context.Context) error { return wait(ctx, s.watch) })
		})
		return 100 * used.CPU.Seconds() / s.watch.Seconds(), used.CPUKnown, err
	}
	watched := *s.bench
	watched.runs, watched.results = watches, nil
	err := watched.hold(ctx, contest.Bout{
		Name: "watching", About: fmt.Sprintf("what the server spends on one open page in %v more than on none", s.watch),
		Figures: []contest.Figure{{Name: share, LessIsMore: true}},
		Entrants: []contest.Entrant{{Name: "one page", Turn: func(ctx context.Context) (contest.Figures, error) {
			idle, known, err := share1(ctx, 0)
			if err != nil || !known {
				return contest.Figures{}, err
			}
			open, _, err := share1(ctx, 1)
			return contest.Figures{share: open - idle}, err
		}}},
	})
	s.results = append(s.results, watched.results...)
	return err
}

// besideWork burns with and without pages open. What the store holds is counted
// only before and after all of it: counting millions takes longer than working
// them off.
func (s *site) besideWork(ctx context.Context, board *board) error {
	q := s.queue(load.Options{Plain: true})
	entrant := func(name string, tabs int) contest.Entrant {
		return contest.Entrant{Name: name, Turn: func(ctx context.Context) (f contest.Figures, err error) {
			late := board.late.Load()
			err = board.during(ctx, tabs, func(ctx context.Context) (err error) {
				f, err = s.burn(ctx, q)
				return err
			})
			if err == nil {
				f[latePages] = float64(board.late.Load() - late)
			}
			return f, err
		}}
	}
	figures := append(burnFigures(bothRate), contest.Figure{Name: latePages, LessIsMore: true})
	return contest.Recorded(ctx, q, 2*s.runs*s.jobs, func() error {
		return s.hold(ctx, contest.Bout{
			Name: "beside work", About: fmt.Sprintf("%s jobs enqueued and worked off with %d pages open, and with none", contest.Number(float64(s.jobs)), s.tabs),
			Figures: figures, Entrants: []contest.Entrant{entrant("pages open", s.tabs), entrant("none open", 0)},
		})
	})
}
