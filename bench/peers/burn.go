package main

import (
	"context"
	"slices"

	"github.com/stint-go/stint/internal/contest"
)

const walPerJob = "WAL bytes/job"

// burn is the bout of bulk: jobs enqueued, then jobs worked off.
func burn(s *server, o options) contest.Bout {
	b := contest.Bout{
		Name:    "burn",
		About:   contest.Number(float64(o.jobs)) + " no-op jobs enqueued in bulk, then worked off; each committed, history kept",
		Figures: append(slices.Clone(contest.BurnFigures), contest.Figure{Name: walPerJob, LessIsMore: true}),
	}
	for _, c := range []contestant{
		stintDefault,
		riverBest.contestant("River, tuned"),
		riverDefault.contestant("River, defaults"),
		rows("rows", 4, 500),
	} {
		b.Entrants = append(b.Entrants, burnEntrant(s, o, c))
	}
	return b
}

func burnEntrant(s *server, o options, c contestant) contest.Entrant {
	n := o.jobs
	if c.slow {
		n = max(1, n/10)
	}
	return contest.Entrant{Name: c.name, Settings: c.settings, Turn: func(ctx context.Context) (contest.Figures, error) {
		return burnTurn(ctx, s, c, n)
	}}
}

func burnTurn(ctx context.Context, s *server, c contestant, n int) (f contest.Figures, err error) {
	err = c.on(ctx, s, func(q contest.Queue, _ string) error {
		before, err := s.written(ctx)
		if err != nil {
			return err
		}
		if f, err = contest.Burn(ctx, q, n, c.bulk); err != nil {
			return err
		}
		after, err := s.written(ctx)
		f[walPerJob] = float64(after-before) / float64(n)
		return err
	})
	return f, err
}
