package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

// singletonTask is a task that one engine does for all of them.
type singletonTask struct {
	lease string
	wants func(c *Config) bool                  // whether an engine does it at all; nil means yes
	do    func(s *session, ctx context.Context) // returns when ctx ends, which is soon after the lease is lost
}

var singletonTasks = []singletonTask{
	{store.LeaseRetention, retains, (*session).retain},
}

// holdLeases does the singleton tasks whose leases this engine gets, until ctx ends.
func (s *session) holdLeases(ctx context.Context) {
	store, ok := s.store.(store.Leaser)
	if !ok {
		return
	}
	var all sync.WaitGroup
	for i, d := range s.singletonTasks {
		if d.wants != nil && !d.wants(&s.config) {
			continue // it would keep the lease from engines that do
		}
		c := &leaseLoop{session: s, store: store, task: d, free: s.wakeups[int(leases)+i]}
		all.Go(func() { c.run(ctx) })
	}
	all.Wait()
}

// leaseLoop asks for one lease, again and again.
type leaseLoop struct {
	*session
	store store.Leaser
	task  singletonTask
	free  *wakeup
	next  time.Duration // how long to wait before it asks again
}

// run asks for the lease, and does the task while this engine holds it.
func (c *leaseLoop) run(ctx context.Context) {
	for ctx.Err() == nil {
		sent := time.Now()
		l, err := c.acquire(ctx, c.config.LeaseFor)
		switch {
		case errors.Is(err, store.ErrBuried):
			return // the session ends
		case err != nil:
			c.troubleAbout(ctx, "acquire the lease", c.task.lease, err)
		case l.Engine == c.token:
			c.next = 0
			c.hold(ctx, sent, l)
		}
		if ctx.Err() == nil {
			c.wait(ctx)
		}
	}
}

// wait waits before it asks again, up to a third less than is set, so that engines which started
// together do not all ask at once, and longer in a large fleet. A notification may mean that the lease is free, but every
// enqueue sends one.
func (c *leaseLoop) wait(ctx context.Context) {
	c.next = min(max(2*c.next, c.config.LeaseWait), c.config.LeaseWaitMax)
	sleep(ctx, c.next/3)
	c.free.wait(ctx, c.shared(c.next/3+rand.N(c.next/3)))
}

func (c *leaseLoop) acquire(ctx context.Context, patience time.Duration) (store.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, min(patience, c.config.TimeToLive))
	defer cancel()
	return c.store.Acquire(ctx, c.task.lease, c.token, c.config.LeaseFor)
}

// hold does the task until the lease is lost or ctx ends, and renews the lease. The lease is
// trusted for LeaseFor from when it was asked for, by this process's clock: by the store's clock it
// ends later.
func (c *leaseLoop) hold(ctx context.Context, sent time.Time, l store.Lease) {
	c.emit(event.Event{Type: event.EventLeaseAcquired, Engine: c.token, Lease: c.task.lease})
	work, end := context.WithCancel(ctx)
	var task sync.WaitGroup
	task.Go(func() { c.task.do(c.session, work) })
	lost := c.renew(ctx, sent, l)
	end()
	task.Wait()
	switch {
	case errors.Is(lost, store.ErrNotHeld), errors.Is(lost, store.ErrBuried), ctx.Err() == nil:
	case c.fenced():
		lost = stint.ErrFenced // its burial frees the lease
	default:
		lost = stint.ErrStopping
		c.release(ctx)
	}
	c.emit(event.Event{Type: event.EventLeaseLost, Engine: c.token, Lease: c.task.lease, Err: lost})
}

// renew keeps the lease until it is lost or ctx ends, and returns why.
func (c *leaseLoop) renew(ctx context.Context, sent time.Time, l store.Lease) error {
	since, until := l.Acquired, sent.Add(c.config.LeaseFor)
	wait := new(backoff)
	for due := sent.Add(c.config.LeaseFor / 3); ; {
		// A notification may mean that the lease was revoked.
		sleep(ctx, min(time.Until(due), c.config.LeaseFor/15))
		if c.free.wait(ctx, max(0, time.Until(due))); ctx.Err() != nil {
			return ctx.Err()
		}
		sent := time.Now()
		if !sent.Before(until) {
			return fmt.Errorf("it was not renewed within %v", c.config.LeaseFor)
		}
		l, err := c.acquire(ctx, time.Until(until))
		switch {
		case errors.Is(err, store.ErrBuried):
			return err
		case err == nil && l.Engine == c.token && l.Acquired.Equal(since):
			until, due = sent.Add(c.config.LeaseFor), sent.Add(c.config.LeaseFor/3)
			wait.reset()
		case err == nil:
			return notHeld(l, c.token)
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			c.troubleAbout(ctx, "renew the lease", c.task.lease, err)
			rest, cancel := context.WithDeadline(ctx, until)
			wait.sleep(rest)
			cancel()
			due = time.Now()
		}
	}
}

// notHeld says why an engine no longer holds a lease.
func notHeld(l store.Lease, engine store.EngineID) error {
	d := l.Deposed
	switch {
	case d.Engine == engine:
		text := "it was freed"
		if d.By != "" {
			text += " by " + d.By
		}
		if d.Why != "" {
			text += ": " + d.Why
		}
		return fmt.Errorf("%w: %s", store.ErrNotHeld, text)
	case l.Engine != 0 && l.Engine != engine:
		return fmt.Errorf("%w: %s does", store.ErrNotHeld, l.Instance)
	}
	return fmt.Errorf("%w: its time was over", store.ErrNotHeld)
}

// release gives the lease back, so that another engine takes it at once. If that fails, the burial
// or the lease's own end frees it.
func (c *leaseLoop) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(c.config.LeaseFor, c.config.TimeToLive))
	defer cancel()
	if _, err := c.store.ReleaseLease(ctx, c.task.lease, c.token); err != nil {
		c.troubleAbout(ctx, "release the lease", c.task.lease, err)
	}
}
