// Package load puts stores and engines under load and measures them. The
// command line's bench and the tests share it.
//
// Every workload is a function of the same shape:
//
//	Burn(ctx, store, BurnOptions)       how many jobs per second at most
//	Steady(ctx, store, SteadyOptions)   whether that lasts, while jobs keep coming
//	Latency(ctx, store, LatencyOptions) how long from enqueue to start when idle
//	Single(ctx, store, SingleOptions)   one enqueue for each transaction
//	Mix(ctx, store, MixOptions)         jobs as programs have them, and whether each ended
//
// and Limit(ctx, log, n, meter) measures what the database would do by hand.
//
// It enqueues jobs of its own kinds into a store that holds nothing else, works
// them off with engines in this process, and returns plain figures. It prints
// nothing; a [Meter] shows how far it is. What it measures is what a caller of
// the library sees, with the same engine, client and handlers.
package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
)

// Meter counts while a workload runs. It may be read at any time.
type Meter struct {
	Enqueued atomic.Int64
	Started  atomic.Int64
}

// or returns a meter in any case.
func (m *Meter) or() *Meter {
	if m == nil {
		return &Meter{}
	}
	return m
}

// Opener opens the store once more. An engine that has a store of its own has
// connections of its own, as in a process of its own.
type Opener func(ctx context.Context) (store stint.Store, close func(), err error)

// fleet is engines that run in this process.
type fleet struct {
	cancel context.CancelFunc
	closed []func()
	wg     sync.WaitGroup
	dead   chan error // of engines that ended by themselves; one each at most
	errs   []error    // of engines that were stopped; complete after wg
	mu     sync.Mutex // guards errs
}

// startFleet starts n engines: all on the store, or each on one of its own.
func startFleet(ctx context.Context, store stint.Store, open Opener, n int, mux *stint.Mux, config engine.Config) (*fleet, error) {
	ctx, cancel := context.WithCancel(ctx)
	f := &fleet{cancel: cancel, dead: make(chan error, n)}
	for i := range n {
		if i > 0 && open != nil {
			own, closeStore, err := open(ctx)
			if err != nil {
				return nil, errors.Join(err, f.stop())
			}
			store = own
			f.closed = append(f.closed, closeStore)
		}
		c := config
		c.Instance = fmt.Sprintf("load-%d", i+1)
		e, err := engine.New(store, mux, c)
		if err != nil {
			return nil, errors.Join(err, f.stop())
		}
		f.wg.Go(func() {
			err := e.Run(ctx)
			if ctx.Err() == nil {
				f.dead <- cmpError(err, "an engine ended by itself")
				return
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.errs = append(f.errs, err)
		})
	}
	return f, nil
}

func cmpError(err error, otherwise string) error {
	if err != nil {
		return err
	}
	return errors.New(otherwise)
}

// stop stops the engines gracefully, which records all that they did.
func (f *fleet) stop() error {
	f.cancel()
	f.wg.Wait()
	for _, closeStore := range f.closed {
		closeStore()
	}
	return errors.Join(f.errs...)
}

// wait returns when done is closed, or with why it never will be.
func (f *fleet) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case err := <-f.dead:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errDue = errors.New("the time has come")

// until returns at an instant, or earlier with why there is no use in waiting.
func (f *fleet) until(ctx context.Context, due time.Time) error {
	ctx, cancel := context.WithDeadlineCause(ctx, due, errDue)
	defer cancel()
	if err := f.wait(ctx, nil); err != errDue {
		return err
	}
	return nil
}
