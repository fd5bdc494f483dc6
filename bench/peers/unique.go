package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/bench/load"
	"github.com/stint-go/stint/postgres"
)

// askers is how many producers ask for unique jobs side by side, with a connection each.
const askers = 16

// unique is the bout of jobs of which one for each key may be unfinished: producers ask for one of each key, and
// then for all of them again, while nobody works.
func unique(s *server, o options) contest.Bout {
	const stored, refused = "stored/s", "refused/s"
	n := max(askers, o.jobs/10)
	b := contest.Bout{
		Name: "unique",
		About: fmt.Sprintf("%s single enqueues by %d producers of jobs that are unique by their arguments while they are unfinished; and the same again, which stores nothing",
			contest.Number(float64(n)), askers),
		Figures: []contest.Figure{{Name: stored}, {Name: refused}},
	}
	for _, c := range []contestant{stintUnique, riverUnique.contestant("River")} {
		b.Entrants = append(b.Entrants, contest.Entrant{Name: c.name, Settings: c.settings, Turn: func(ctx context.Context) (f contest.Figures, err error) {
			err = c.on(ctx, s, func(q contest.Queue, db string) error {
				f = contest.Figures{}
				for _, figure := range []string{stored, refused} {
					took, err := askFor(ctx, q, n)
					if err != nil {
						return err
					}
					f[figure] = float64(n) / took.Seconds()
				}
				return nil
			})
			return f, err
		}})
	}
	return b
}

// askFor enqueues jobs one at a time, and returns how long that took.
func askFor(ctx context.Context, q contest.Queue, n int) (time.Duration, error) {
	began := time.Now()
	all, ctx := errgroup.WithContext(ctx)
	for i := range askers {
		all.Go(func() error {
			for job := i; job < n; job += askers {
				if err := q.Enqueue(ctx, job, 1); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := all.Wait()
	return time.Since(began), err
}

// riverUnique has a connection for each producer.
var riverUnique = riverSettings{clients: 1, workers: 100, conns: askers, unique: true}

var stintUnique = contestant{
	name:     "stint",
	settings: fmt.Sprintf("UniqueUntilEnded by the argument; a pool of %d connections", askers),
	open: func(ctx context.Context, db string) (contest.Queue, error) {
		u, err := url.Parse(db)
		if err != nil {
			return nil, err
		}
		values := u.Query()
		values.Set("pool_max_conns", strconv.Itoa(askers))
		u.RawQuery = values.Encode()
		store, err := postgres.Open(ctx, u.String())
		if err != nil {
			return nil, err
		}
		return load.New(store, load.Options{Unique: true}, closing(store)), nil
	},
}
