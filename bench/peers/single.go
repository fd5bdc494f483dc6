package main

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint/bench/contest"
)

// singleWorkers is how many claim side by side.
const singleWorkers = 8

// single is the bout of claims of one job each: what many small processes on one
// queue do to each other. The figure is of the time after both have settled,
// when the row queue has its dead rows and their vacuum to live with.
func single(s *server, o options) contest.Bout {
	const late, early = "jobs/s", "jobs/s at first"
	window := max(slice, o.settle/6).Truncate(slice)
	b := contest.Bout{
		Name:    "single",
		About:   fmt.Sprintf("%d workers on one queue claim one job each, with connections of their own; %v of it after %v", singleWorkers, window, o.settle),
		Figures: []contest.Figure{{Name: late}, {Name: early}},
	}
	for _, c := range []contestant{stintSingle(singleWorkers), rows("rows", singleWorkers, 1)} {
		b.Entrants = append(b.Entrants, contest.Entrant{Name: c.name, Settings: c.settings, Turn: func(ctx context.Context) (f contest.Figures, err error) {
			err = c.on(ctx, s, func(q contest.Queue, url string) error {
				series, err := contest.Steady(ctx, q, contest.Steadily{Duration: o.settle + window, Slice: slice, Bulk: c.load(url)})
				if err != nil {
					return err
				}
				settled := len(series) - int(window/slice)
				f = contest.Figures{late: contest.Mean(series[settled:]), early: series[0]}
				return nil
			})
			return f, err
		}})
	}
	return b
}

// slice is what each figure of a series is about.
const slice = 5 * time.Second
