package main

import (
	"context"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/contest"
	"github.com/stint-go/stint/internal/load"
	"github.com/stint-go/stint/postgres"
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
		return load.NewQueue(store, load.QueueOptions{}, closing(store)), nil
	},
}

// stintSingle is stint where each claim takes one job.
func stintSingle(workers int) contestant {
	return contestant{
		name:     "stint",
		settings: "an engine with 1 slot and connections of its own for each worker; each claim takes 1 job",
		open: func(ctx context.Context, url string) (contest.Queue, error) {
			store, err := postgres.Open(ctx, url)
			if err != nil {
				return nil, err
			}
			more := func(ctx context.Context) (stint.Store, func(), error) {
				store, err := postgres.Open(ctx, url)
				return oneAtATime{store}, store.Close, err
			}
			return load.NewQueue(oneAtATime{store}, load.QueueOptions{Engines: workers, Slots: 1, Open: more}, closing(store)), nil
		},
	}
}

func closing(s *postgres.Store) func() error {
	return func() error {
		s.Close()
		return nil
	}
}

// oneAtATime claims one job, however many an engine asks for.
type oneAtATime struct{ *postgres.Store }

func (s oneAtATime) Claim(ctx context.Context, req stint.ClaimRequest) (stint.Claim, error) {
	req.Max = 1
	return s.Store.Claim(ctx, req)
}
