package main

import (
	"context"

	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/bench/load"
	"github.com/stint-go/stint/sqlite"
)

var stintDefault = contestant{
	name:     "stint",
	settings: "1 engine with its defaults; EnqueueMany of 5,000",
	open: func(ctx context.Context, path string) (contest.Queue, error) {
		store, err := sqlite.Open(ctx, path)
		if err != nil {
			return nil, err
		}
		return load.New(store, load.Options{}, store.Close), nil
	},
}
