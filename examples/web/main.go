// Web is a shop over HTTP that ships its orders by jobs. A request writes the
// order, takes the goods from the stock and enqueues the shipment in one
// transaction: either all of it happened or nothing did.
//
//	go run ./examples/web
//	curl -d '{"item":"book","quantity":2}' localhost:8080/orders
//	curl localhost:8080/orders/1
//
// With --db postgres://… it uses PostgreSQL, and any number of them may run: those
// with --work=false only take orders, those with --addr="" only ship.
//
// At SIGINT or SIGTERM it answers the requests that it has, finishes the jobs
// that run, and leaves the rest to the next one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db := flag.String("db", "orders.db", "where orders and jobs are kept: a file, or postgres://…")
	addr := flag.String("addr", "localhost:8080", "where to listen; nowhere if it is empty")
	work := flag.Bool("work", true, "ship orders too")
	flag.Parse()
	var listener net.Listener
	if *addr != "" {
		var err error
		if listener, err = net.Listen("tcp", *addr); err != nil {
			fmt.Fprintln(os.Stderr, "web:", err)
			os.Exit(1)
		}
		slog.Info("listening", "addr", listener.Addr())
	}
	if err := run(ctx, *db, listener, *work); err != nil {
		fmt.Fprintln(os.Stderr, "web:", err)
		os.Exit(1)
	}
}

// shutdownTime is how long requests may go on when the program is to stop.
const shutdownTime = 10 * time.Second

// run serves, unless listener is nil, and ships, if it is to, until ctx ends.
func run(ctx context.Context, db string, listener net.Listener, work bool) error {
	s, err := open(ctx, db)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var parts sync.WaitGroup
	var errs [2]error
	part := func(err *error, run func(context.Context) error) {
		parts.Go(func() {
			defer stop() // one part without the other is no shop
			*err = run(ctx)
		})
	}
	if work {
		part(&errs[0], s.ship)
	}
	if listener != nil {
		part(&errs[1], func(ctx context.Context) error { return s.serve(ctx, listener) })
	}
	parts.Wait()
	return errors.Join(errs[:]...)
}

// ship runs an engine until ctx ends.
func (s *shop) ship(ctx context.Context) error {
	mux := stint.NewMux()
	stint.Handle(mux, Ship, s.shipOne)
	worker, err := engine.New(s.store, mux, engine.Config{Slots: 8})
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}

// serve answers requests until ctx ends, and then those that it has.
func (s *shop) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
	down := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		down <- server.Shutdown(limit)
	})
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	return <-down
}
