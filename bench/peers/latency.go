package main

import (
	"context"
	"fmt"

	"github.com/stint-go/stint/bench/contest"
)

// latency is the bout of the idle: how soon does a single job begin?
func latency(s *server, o options) contest.Bout {
	b := contest.Bout{
		Name:    "latency",
		About:   fmt.Sprintf("from the call of a single enqueue to the start of the job, %v per second for %v", o.rate, o.span),
		Figures: contest.IdleFigures,
	}
	for _, c := range []contestant{
		stintDefault,
		riverEager.contestant("River, tuned"),
		riverDefault.contestant("River, defaults"),
	} {
		b.Entrants = append(b.Entrants, contest.Entrant{Name: c.name, Settings: c.settings, Turn: func(ctx context.Context) (f contest.Figures, err error) {
			err = c.on(ctx, s, func(q contest.Queue, _ string) error {
				times, err := contest.Idle(ctx, q, contest.Idly{Rate: o.rate, Duration: o.span})
				f = contest.Quantiles(times.Start)
				return err
			})
			return f, err
		}})
	}
	return b
}
