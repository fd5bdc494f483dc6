package main

import (
	"context"
	"slices"

	"github.com/stint-go/stint/bench/contest"
	spent "github.com/stint-go/stint/bench/server"
)

const (
	walPerJob = "WAL bytes/job"
	serverCPU = "server CPU µs/job"
)

// burn is the bout of bulk: jobs enqueued, then jobs worked off.
func burn(s *server, o options) contest.Bout {
	b := contest.Bout{
		Name:  "burn",
		About: contest.Number(float64(o.jobs)) + " no-op jobs enqueued in bulk, then worked off; each committed, history kept",
		Figures: append(slices.Clone(contest.BurnFigures),
			contest.Figure{Name: walPerJob, LessIsMore: true},
			contest.Figure{Name: serverCPU, LessIsMore: true, Description: "of the server's processes, from the first enqueue to the last outcome"}),
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

// mostSlow is how many jobs a contestant works at most of which a tenth tells as
// much.
const mostSlow = 20_000

func burnEntrant(s *server, o options, c contestant) contest.Entrant {
	n := o.jobs
	if c.slow {
		n = min(max(1, n/10), mostSlow)
		c.settings += "; " + contest.Number(float64(n)) + " jobs"
	}
	return contest.Entrant{Name: c.name, Settings: c.settings, Turn: func(ctx context.Context) (contest.Figures, error) {
		return burnTurn(ctx, s, c, n)
	}}
}

func burnTurn(ctx context.Context, s *server, c contestant, n int) (f contest.Figures, err error) {
	err = c.on(ctx, s, func(q contest.Queue, url string) error {
		probe, err := spent.NewProbe(ctx, url)
		if err != nil {
			return err
		}
		defer probe.Close()
		return contest.Recorded(ctx, q, n, func() error {
			before, err := probe.Read(ctx)
			if err != nil {
				return err
			}
			if f, err = contest.Burn(ctx, q, n, c.load(url)); err != nil {
				return err
			}
			after, err := probe.Read(ctx)
			used := after.Since(before)
			f[walPerJob] = float64(used.WAL) / float64(n)
			if used.CPUKnown {
				f[serverCPU] = float64(used.CPU.Microseconds()) / float64(n)
			}
			return err
		})
	})
	return f, err
}
