package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/stint-go/stint/bench/contest"
	held "github.com/stint-go/stint/bench/server"
)

// pinned is the bout of a database that cannot clean up: a snapshot and an idle
// transaction that wrote are held open from the start, and vacuum can remove
// nothing. The same without them is beside it.
func pinned(s *server, o options, record *recording) contest.Bout {
	const whole, end = "work/s", "work/s at the end"
	b := contest.Bout{
		Name: "pinned",
		About: fmt.Sprintf("enqueue and work at once for %v, with a snapshot and an idle writing transaction held open from the start; at the end: the last quarter",
			o.duration),
		Figures: []contest.Figure{{Name: whole}, {Name: end}},
	}
	for _, e := range []pinnedOne{
		{stintDefault, true},
		{riverBest.contestant("River, tuned"), true},
		{stintDefault, false},
		{riverBest.contestant("River, tuned"), false},
	} {
		name := e.name
		if !e.pin {
			name += ", nothing held"
		}
		b.Entrants = append(b.Entrants, contest.Entrant{Name: name, Settings: e.settings, Turn: func(ctx context.Context) (f contest.Figures, err error) {
			err = e.on(ctx, s, func(q contest.Queue, url string) error {
				series, err := e.steady(ctx, o, q, url)
				if err != nil {
					return err
				}
				record.add(name, series)
				f = contest.Figures{whole: contest.Mean(series), end: contest.Mean(series[len(series)-max(1, len(series)/4):])}
				return nil
			})
			return f, err
		}})
	}
	return b
}

// pinnedOne is a contestant with or without what is held open.
type pinnedOne struct {
	contestant
	pin bool
}

func (e pinnedOne) steady(ctx context.Context, o options, q contest.Queue, url string) (series []float64, err error) {
	if e.pin {
		hold, notHeld := held.PinHorizon(ctx, url)
		if notHeld != nil {
			return nil, notHeld
		}
		// A turn in which it was not held all the time does not count.
		defer func() { err = errors.Join(err, hold.Close()) }()
	}
	return contest.Steady(ctx, q, contest.Steadily{Duration: o.duration, Slice: slice, Bulk: e.load(url)})
}
