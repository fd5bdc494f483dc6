package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/contest"
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
	for _, e := range []struct {
		contestant
		pin bool
	}{
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
				if e.pin {
					release, err := pinHorizon(ctx, url)
					if err != nil {
						return err
					}
					defer release()
				}
				series, err := contest.Steady(ctx, q, contest.Steadily{Duration: o.duration, Slice: slice, Bulk: e.bulk})
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

// pinHorizon holds a snapshot and an idle transaction that has written, until it
// is released.
func pinHorizon(ctx context.Context, url string) (release func(), err error) {
	var held []*pgx.Conn
	release = func() {
		for _, c := range held {
			_ = c.Close(context.WithoutCancel(ctx))
		}
	}
	for _, what := range [][]string{
		{"begin isolation level repeatable read", "select 1"},
		{"begin", "select pg_current_xact_id()"},
	} {
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, c)
		for _, statement := range append([]string{"set idle_in_transaction_session_timeout = 0"}, what...) {
			if _, err := c.Exec(ctx, statement); err != nil {
				release()
				return nil, err
			}
		}
	}
	return release, nil
}
