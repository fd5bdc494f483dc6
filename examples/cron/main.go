// Cron runs recurring jobs: one by a cron expression in a time zone, one by an
// interval, and one by a function of its own.
//
//	go run ./examples/cron
//	go run ./examples/cron --db postgres://localhost/test
//
// It prints when they come next, and works until it is interrupted. Any number of
// it may run on one database: each occurrence makes one job, whoever fires it and
// whatever is killed meanwhile. What came while none ran is made up for by
// one job, where that makes sense.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db := flag.String("db", "cron.db", "where jobs and schedules are kept: a file, or postgres://…")
	flag.Parse()
	if err := run(ctx, *db, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

// run works until ctx ends.
func run(ctx context.Context, db string, out io.Writer) error {
	store, closeStore, err := open(ctx, db)
	if err != nil {
		return err
	}
	defer closeStore()
	mux := program(out)
	if err := upcoming(mux, time.Now(), out); err != nil {
		return err
	}
	worker, err := engine.New(store, mux, engine.Config{})
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}

func open(ctx context.Context, db string) (store.Store, func(), error) {
	if strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://") {
		store, err := postgres.Open(ctx, db)
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	}
	store, err := sqlite.Open(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	return store, func() { _ = store.Close() }, nil
}

// upcoming prints when the schedules of a program fire next, by the clock of each.
func upcoming(mux *stint.Mux, after time.Time, out io.Writer) error {
	planner := store.NewPlanner(mux.Recurrences())
	for _, s := range mux.Schedules() {
		next, err := planner.Upcoming(&store.ScheduleInfo{Schedule: s, After: after}, 3)
		if err != nil {
			return fmt.Errorf("plan %s: %w", s.Name, err)
		}
		zone, err := s.Location()
		if err != nil {
			return err
		}
		for _, t := range next {
			fmt.Fprintf(out, "%-10s %s\n", s.Name, t.In(zone).Format(time.RFC1123))
		}
	}
	return nil
}
