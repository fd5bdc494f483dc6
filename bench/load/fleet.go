// Package load is stint as a queue of a contest: [New] makes one of a store.
//
// What is measured through it is what a caller of the library sees, with the
// same engine, client and handlers.
package load

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/store"
)

// Opener opens the store once more. An engine that has a store of its own has
// connections of its own, as in a process of its own.
type Opener func(ctx context.Context) (store store.Store, close func(), err error)

// open returns a store for the engine of a number, from 0: the first has the
// queue's own.
func (q *Queue) open(ctx context.Context, number int) (store store.Store, close func(), err error) {
	if number == 0 || q.o.Open == nil {
		return q.store, func() {}, nil
	}
	return q.o.Open(ctx)
}

// workAll works with engines in this process.
func (q *Queue) workAll(ctx context.Context, mux *stint.Mux) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // only stop ends the work
	var wg sync.WaitGroup
	errs := make([]error, q.o.Engines)
	stop = func() error {
		cancel()
		wg.Wait()
		return errors.Join(errs...)
	}
	for i := range q.o.Engines {
		db, closeStore, err := q.open(ctx, i)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		e, err := engine.New(db, mux, engine.Config{Client: q.client.Over(db), Slots: q.o.Slots, Queues: q.o.Queues, Instance: fmt.Sprintf("load-%d", i+1),
			Retention: store.Retention{KeepFor: store.KeepFor{All: q.o.Keep}}})
		if err != nil {
			closeStore()
			return nil, errors.Join(err, stop())
		}
		wg.Go(func() {
			defer closeStore()
			errs[i] = e.Run(ctx)
		})
	}
	return stop, nil
}
