package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// notifier rings for enqueues whose commits are the store's own.
//
// NOTIFY takes a lock of the whole cluster at commit, which more than halves
// the rate of single enqueues. So only one that finds itself alone rings in
// its own transaction, which is soonest. The others leave it to a ring behind
// them: one for all that have committed since the last. It always comes after
// the commits that it tells of; should the process die in between, a poll
// finds the jobs.
type notifier struct {
	send  func(context.Context) error
	under atomic.Int32 // enqueues under way
	owed  atomic.Bool  // commits that nobody has told of yet

	mu      sync.Mutex // guards running
	running bool
	idle    sync.WaitGroup
}

// begin counts an enqueue in, and tells whether it should ring by itself.
func (n *notifier) begin() (alone bool) { return n.under.Add(1) == 1 }

// end counts it out. One that committed without a ring is owed one.
func (n *notifier) end(owed bool) {
	n.under.Add(-1)
	if !owed {
		return
	}
	n.owed.Store(true)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running {
		n.running = true
		n.idle.Go(n.run)
	}
}

// notifyTimeout bounds one ring; what it was for is found by polls.
const notifyTimeout = 5 * time.Second

// run rings until nothing is owed.
func (n *notifier) run() {
	for {
		n.mu.Lock()
		if !n.owed.Swap(false) {
			n.running = false
			n.mu.Unlock()
			return
		}
		n.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
		_ = n.send(ctx) // the polls of engines are the floor
		cancel()
	}
}

// wait waits for what is owed, so that a program that enqueues and ends has
// rung.
func (n *notifier) wait() { n.idle.Wait() }
