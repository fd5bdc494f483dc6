package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/bench/contest"
)

// contestant is a queue at some settings.
type contestant struct {
	name     string
	settings string // what a reader must know to do the same
	bulk     contest.Bulk
	slow     bool // a tenth of the jobs tells as much, in a bearable time

	// open makes its tables in an empty database. Close of the queue closes
	// every connection.
	open func(ctx context.Context, url string) (contest.Queue, error)
}

// args are those of a job, the same for everyone.
type args struct {
	N int `json:"n"`
}

// load is how the contestant takes in many jobs in a database. Statistics are
// gathered behind the first of them, as autovacuum would have in a database that
// is older than a minute: without them, a planner sorts all that waits for each
// claim of a few rows.
func (c contestant) load(url string) contest.Bulk {
	b := c.bulk
	b.Ready = func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		_, err = conn.Exec(ctx, "analyze")
		return err
	}
	return b
}

// on opens the contestant on a database of its own, hands it to f, and drops the
// database.
func (c contestant) on(ctx context.Context, s *server, f func(q contest.Queue, url string) error) error {
	return s.database(ctx, func(url string) error {
		q, err := c.open(ctx, url)
		if err != nil {
			return err
		}
		err = f(q, url)
		if closed := q.Close(); err == nil {
			err = closed
		}
		return err
	})
}
