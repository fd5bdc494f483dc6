// Service takes orders over HTTP and ships them by jobs, in one process on one PostgreSQL.
//
//	SHOP_DB=postgres:///shop go run ./examples/service
//	curl -d '{"item":"book"}' localhost:8080/orders
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
)

// Order is the body of a request, and the arguments of a job.
type Order struct {
	ID   int64  `json:"id"`
	Item string `json:"item"`
}

var Ship = stint.NewKind[Order]("ship", stint.Queue("shipping"))

type service struct {
	pool *pgxpool.Pool
	jobs *stint.Client
}

// order writes an order and enqueues its shipment: after the commit both are there, otherwise neither is.
func (s *service) order(ctx context.Context, o *Order) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `insert into orders (item) values ($1) returning id`, o.Item).Scan(&o.ID); err != nil {
			return err
		}
		_, err := Ship.Enqueue(ctx, s.jobs.With(postgres.Tx(tx)), *o)
		return err
	})
}

// ship is the handler of the jobs. It may run again after a crash, so it changes nothing the second time.
func (s *service) ship(ctx context.Context, _ *stint.Job, o Order) error {
	_, err := s.pool.Exec(ctx, `update orders set shipped = now() where id = $1 and shipped is null`, o.ID)
	return err
}

// mux has the handlers of all kinds.
func (s *service) mux() *stint.Mux {
	mux := stint.NewMux()
	stint.Handle(mux, Ship, s.ship)
	return mux
}

// ServeHTTP takes an order.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var o Order
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&o); err != nil || o.Item == "" {
		http.Error(w, `an order is such as {"item": "book"}`, http.StatusBadRequest)
		return
	}
	if err := s.order(r.Context(), &o); err != nil {
		log.Print("take an order: ", err)
		http.Error(w, "the order was not taken", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(o)
}

// open makes the tables: its own, and the schema stint beside them.
func open(ctx context.Context, pool *pgxpool.Pool) (*service, *postgres.Store, error) {
	const orders = `create table if not exists orders (id bigint generated always as identity primary key, item text not null, shipped timestamptz)`
	if _, err := pool.Exec(ctx, orders); err != nil {
		return nil, nil, err
	}
	store, err := postgres.New(ctx, pool)
	if err != nil {
		return nil, nil, err
	}
	return &service{pool, stint.NewClient(store)}, store, nil
}

// run serves and works until ctx ends. Then what runs and what was asked may end.
func run(ctx context.Context, url string, listener net.Listener) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	s, store, err := open(ctx, pool)
	if err != nil {
		return err
	}
	defer store.Close()
	worker, err := engine.New(store, s.mux(), engine.Config{})
	if err != nil {
		return err
	}
	routes := http.NewServeMux()
	routes.Handle("POST /orders", s)
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 5 * time.Second}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		defer stop() // an engine without the server is no service
		served <- server.Serve(listener)
	}()
	err = worker.Run(ctx)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(limit))
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", "localhost:8080")
	if err == nil {
		err = run(ctx, os.Getenv("SHOP_DB"), listener)
	}
	if err != nil {
		log.Fatal(err)
	}
}
