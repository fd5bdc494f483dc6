package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
)

// defaultWait suits supervisors: it is longer than a server takes to start again,
// and a mistake is not hidden for ever.
const defaultWait = time.Minute

// The first time between two tries to reach the database, and the longest.
const (
	firstTry   = 250 * time.Millisecond
	longestTry = 5 * time.Second
	sayAgain   = 30 * time.Second
)

// keepTrying tries until it succeeds, fails in a way that time does not fix, or
// the time is over. An engine that has joined once is beyond this: it waits for
// the database by itself.
func (w *worker) keepTrying(ctx context.Context, try func() error) error {
	var said time.Time
	for wait := firstTry; ; wait = min(2*wait, longestTry) {
		err := try()
		if err == nil || ctx.Err() != nil || w.joined.Load() || !w.app.unreachable(err) || time.Until(w.until) < wait {
			return err
		}
		if time.Since(said) > sayAgain {
			said = time.Now()
			w.log.Warn("cannot reach the database, trying again", "error", oneLine(w.app.explain(err).Error()), "until", waits.write(w.wait))
		}
		select {
		case <-ctx.Done():
			return nil // told to stop before there was anything to do
		case <-time.After(wait):
		}
	}
}

// unreachable tells whether an error is about the way to a PostgreSQL server, or
// about one that is just starting, stopping or full: all of that passes. What a
// server has against us stays, and so does what is wrong with a file.
func (a *app) unreachable(err error) bool {
	if !a.db.isPostgres() || errors.Is(err, stint.ErrSchema) || errors.Is(err, stint.ErrInvalid) {
		return false
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return slices.Contains([]string{"53300", "57P01", "57P02", "57P03"}, refused.Code) || strings.HasPrefix(refused.Code, "08")
	}
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connect || network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}
