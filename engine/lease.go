package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stint-go/stint"
)

// duty is a chore that one engine does for all of them.
type duty struct {
	lease string
	wants func(c *Config) bool                  // whether an engine does it at all; nil says that each does
	do    func(s *session, ctx context.Context) // returns when ctx ends, which is soon after the lease is lost
}

// duties are those of every engine.
var duties = []duty{
	{stint.LeaseRetention, retains, (*session).retain},
}

// lead does the duties whose leases this engine gets, until ctx ends.
func (s *session) lead(ctx context.Context) {
	store, ok := s.store.(stint.Leaser)
	if !ok {
		return
	}
	var all sync.WaitGroup
	for i, d := range s.duties {
		if d.wants != nil && !d.wants(&s.config) {
			continue // it would keep the lease from those who do
		}
		c := &campaign{session: s, store: store, duty: d, bell: s.leasebells[i]}
		all.Go(func() { c.run(ctx) })
	}
	all.Wait()
}

// ringLeases says that leases may be free.
func (s *session) ringLeases() {
	for _, b := range s.leasebells {
		b.ring()
	}
}

// campaign is for one lease.
type campaign struct {
	*session
	store stint.Leaser
	duty  duty
	bell  *bell
	next  time.Duration // how long to wait for the next attempt
}

// run asks for the lease again and again, and does the duty while it has it.
func (c *campaign) run(ctx context.Context) {
	for ctx.Err() == nil {
		sent := time.Now()
		l, err := c.ask(ctx, c.config.LeaseFor)
		switch {
		case errors.Is(err, stint.ErrBuried):
			return // the session ends
		case err != nil:
			c.troubleAbout(ctx, "acquire the lease", c.duty.lease, err)
		case l.Engine == c.token:
			c.next = 0
			c.reign(ctx, sent, l)
		}
		if ctx.Err() == nil {
			c.wait(ctx)
		}
	}
}

// wait waits for the next attempt, up to a third less than is set, so that
// engines which started together do not all ask at once. A ring may mean that
// the lease is free, but rings come with every enqueue.
func (c *campaign) wait(ctx context.Context) {
	c.next = min(max(2*c.next, c.config.LeaseWait), c.config.LeaseWaitMax)
	pause(ctx, c.next/3)
	c.bell.wait(ctx, c.next/3+rand.N(c.next/3))
}

func (c *campaign) ask(ctx context.Context, patience time.Duration) (stint.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, min(patience, c.config.TimeToLive))
	defer cancel()
	return c.store.Acquire(ctx, c.duty.lease, c.token, c.config.LeaseFor)
}

// reign does the duty until the lease is lost or ctx ends, and renews the lease
// at a third of its time. How long it is believed in is counted from when it
// was asked for, on this process's own clock: by the store's it ends later.
func (c *campaign) reign(ctx context.Context, sent time.Time, l stint.Lease) {
	c.emit(stint.Event{Type: stint.EventLeaseAcquired, Engine: c.token, Lease: c.duty.lease})
	work, end := context.WithCancel(ctx)
	var duty sync.WaitGroup
	duty.Go(func() { c.duty.do(c.session, work) })
	lost := c.renew(ctx, sent, l)
	end()
	duty.Wait()
	switch {
	case errors.Is(lost, stint.ErrNotHeld), errors.Is(lost, stint.ErrBuried), ctx.Err() == nil:
	case c.fenced():
		lost = stint.ErrFenced // its burial frees the lease
	default:
		lost = stint.ErrStopping
		c.resign(ctx)
	}
	c.emit(stint.Event{Type: stint.EventLeaseLost, Engine: c.token, Lease: c.duty.lease, Err: lost})
}

// renew keeps the lease until it is lost or ctx ends, and says why.
func (c *campaign) renew(ctx context.Context, sent time.Time, l stint.Lease) error {
	since, until := l.Acquired, sent.Add(c.config.LeaseFor)
	wait := newBackoff()
	for due := sent.Add(c.config.LeaseFor / 3); ; {
		// A ring may mean that somebody freed the lease.
		pause(ctx, min(time.Until(due), c.config.LeaseFor/15))
		if c.bell.wait(ctx, max(0, time.Until(due))); ctx.Err() != nil {
			return ctx.Err()
		}
		sent := time.Now()
		if !sent.Before(until) {
			return fmt.Errorf("it was not renewed within %v", c.config.LeaseFor)
		}
		l, err := c.ask(ctx, time.Until(until))
		switch {
		case errors.Is(err, stint.ErrBuried):
			return err
		case err == nil && l.Engine == c.token && l.Acquired.Equal(since):
			until, due = sent.Add(c.config.LeaseFor), sent.Add(c.config.LeaseFor/3)
			wait.reset()
		case err == nil:
			return notHeld(l, c.token)
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			c.troubleAbout(ctx, "renew the lease", c.duty.lease, err)
			rest, cancel := context.WithDeadline(ctx, until)
			wait.sleep(rest)
			cancel()
			due = time.Now()
		}
	}
}

// notHeld says why a lease is not an engine's any more.
func notHeld(l stint.Lease, engine stint.Token) error {
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
		return fmt.Errorf("%w: %s", stint.ErrNotHeld, text)
	case l.Engine != 0 && l.Engine != engine:
		return fmt.Errorf("%w: %s does", stint.ErrNotHeld, l.Instance)
	}
	return fmt.Errorf("%w: its time was over", stint.ErrNotHeld)
}

// resign gives the lease back, so that another engine takes it at once. Should
// that fail, the burial that is to come frees it, or its time.
func (c *campaign) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(c.config.LeaseFor, c.config.TimeToLive))
	defer cancel()
	if _, err := c.store.Resign(ctx, c.duty.lease, c.token); err != nil {
		c.troubleAbout(ctx, "resign the lease", c.duty.lease, err)
	}
}
