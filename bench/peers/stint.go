package main

import (
	"context"

	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/bench/load"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/store"
)

// stintDefault is stint as it comes.
var stintDefault = contestant{
	name:     "stint",
	settings: "1 engine with its defaults; EnqueueMany of 5,000 by 2 producers",
	open: func(ctx context.Context, url string) (contest.Queue, error) {
		store, err := postgres.Open(ctx, url)
		if err != nil {
			return nil, err
		}
		return load.New(store, load.Options{}, closing(store)), nil
	},
}

// stintSingle is stint where each claim takes one job.
func stintSingle(workers int) contestant {
	return contestant{
		name:     "stint",
		settings: "each worker with a store and connections of its own; a claim takes 1 job, outcomes are recorded in batches of what gathered meanwhile",
		open: func(ctx context.Context, url string) (contest.Queue, error) {
			db, err := postgres.Open(ctx, url)
			if err != nil {
				return nil, err
			}
			more := func(ctx context.Context) (store.Store, func(), error) {
				db, err := postgres.Open(ctx, url)
				if err != nil {
					return nil, nil, err
				}
				return db, db.Close, nil
			}
			return load.New(db, load.Options{Engines: workers, Open: more, OneByOne: true}, closing(db)), nil
		},
	}
}

func closing(s *postgres.Store) func() error {
	return func() error {
		s.Close()
		return nil
	}
}
