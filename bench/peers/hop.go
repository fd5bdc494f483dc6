package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stint-go/stint/bench/contest"
)

// hopTurn starts single workflows, signals each after it waits, and measures both, while suspended others wait.
func hopTurn(ctx context.Context, s *server, c workflowContestant, o options, suspended int) (f contest.Figures, err error) {
	n := warmWorkflows + max(1, int(o.rate*o.span.Seconds()))
	err = c.on(ctx, s, 0, func(w workflows, url string) (err error) {
		m, err := newMeter(ctx, url, c.history)
		if err != nil {
			return err
		}
		defer m.close()
		p := newParts(n, 2)
		started, signaled := make([]chan time.Time, n), make([]chan time.Time, n)
		for i := range n {
			started[i], signaled[i] = make(chan time.Time, 1), make(chan time.Time, 1)
		}
		others := newParts(suspended, 1)
		stop, err := w.Work(ctx, func(workflow, part int) {
			now := time.Now()
			if workflow >= n {
				others.did(workflow-n, part)
				return
			}
			if p.did(workflow, part); part == 0 {
				started[workflow] <- now
			} else {
				signaled[workflow] <- now
			}
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
		if err := suspend(ctx, w, others, n, suspended); err != nil {
			return err
		}
		var mu sync.Mutex
		var starts, signals []time.Duration
		all, each := errgroup.WithContext(ctx)
		for i := range n {
			if err := pause(each, time.Duration(float64(time.Second)/o.rate*(0.5+rand.Float64()))); err != nil {
				break
			}
			all.Go(func() error {
				start, err := hopOf(each, started[i], func() error { return w.Start(each, shapeHop, i, 1) })
				if err != nil {
					return fmt.Errorf("start: %w", err)
				}
				// By then it waits.
				if err := pause(each, 150*time.Millisecond+rand.N(100*time.Millisecond)); err != nil {
					return err
				}
				signal, err := hopOf(each, signaled[i], func() error { return w.Signal(each, i) })
				if err != nil {
					return fmt.Errorf("signal: %w", err)
				}
				if i >= warmWorkflows {
					mu.Lock()
					defer mu.Unlock()
					starts, signals = append(starts, start), append(signals, signal)
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			return err
		}
		if err := m.until(ctx, p.done, n); err != nil {
			return err
		}
		f = contest.Figures{}
		for name, v := range contest.Quantiles(starts) {
			f["start "+name] = v
		}
		for name, v := range contest.Quantiles(signals) {
			f["signal "+name] = v
		}
		return p.once()
	})
	return f, err
}

// suspend starts workflows that wait for a signal for good, and returns when they do.
func suspend(ctx context.Context, w workflows, others *parts, first, n int) error {
	for at, size := 0, 0; at < n; at += size {
		size = min(n-at, 5000)
		if err := w.Start(ctx, shapeHop, first+at, size); err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	select {
	case <-others.done:
		return pause(ctx, 2*time.Second) // the last attempts end
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hopOf is how long it takes from a call until something has come.
func hopOf(ctx context.Context, came <-chan time.Time, call func() error) (time.Duration, error) {
	began := time.Now()
	if err := call(); err != nil {
		return 0, err
	}
	limit, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("nothing came of it in a minute"))
	defer cancel()
	select {
	case at := <-came:
		return at.Sub(began), nil
	case <-limit.Done():
		return 0, context.Cause(limit)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
