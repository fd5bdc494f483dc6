package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// notifier rings for enqueues whose commits are the store's own.
//
// NOTIFY takes a lock of the whole cluster at commit, which more than halves
// the rate of single enqueues. So only an enqueue that finds itself alone, and
// somebody asleep, rings in its own transaction, which is soonest. The others
// leave it to a ring behind them: one for all that have committed since the
// last, and none when nobody sleeps. It always comes after the commits that it
// tells of; should the process die in between, a poll finds the jobs.
type notifier struct {
	// send rings for everybody, or for those who sleep, and tells whether
	// somebody does.
	send  func(ctx context.Context, everybody bool) (asleep bool, err error)
	under atomic.Int32 // enqueues under way
	owed  atomic.Int32 // what is owed to commits that nobody has told of yet

	busy  atomic.Bool  // nobody slept when that was last asked
	asked atomic.Int64 // when that was, in Unix nanoseconds

	mu      sync.Mutex // guards running
	running bool
	idle    sync.WaitGroup
}

// What commits may be owed.
const (
	owedToSleepers  = 1 << iota // a ring if somebody sleeps
	owedToEverybody             // a ring
)

// askAgain is for how long it is believed that somebody sleeps. Whether
// somebody does again is asked behind every enqueue.
const askAgain = time.Second

// begin counts an enqueue in, and tells whether it should ring by itself.
func (n *notifier) begin() (ring bool) { return n.under.Add(1) == 1 && !n.busy.Load() }

// end counts it out. One that may have committed without a ring is owed one,
// and everybody is to hear of a job that has a time: who sleeps until then
// does not say so.
func (n *notifier) end(rang, scheduled bool) {
	n.under.Add(-1)
	switch {
	case rang && time.Now().UnixNano()-n.asked.Load() < int64(askAgain):
		return
	case scheduled && !rang:
		n.owed.Or(owedToEverybody)
	default:
		n.owed.Or(owedToSleepers)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running {
		n.running = true
		n.idle.Go(n.run)
	}
}

// notifyTimeout bounds one ring; what it was for is found by polls.
const notifyTimeout = 5 * time.Second

// askPause is how long it takes until somebody is asked again whether anybody
// sleeps, when nobody did: to ask without a break takes a fifth of the rate of
// single enqueues.
const askPause = time.Millisecond

// run rings until nothing is owed.
func (n *notifier) run() {
	for {
		if n.busy.Load() {
			since := max(0, time.Duration(time.Now().UnixNano()-n.asked.Load())) // the clock may have been set back
			time.Sleep(askPause - since)
		}
		n.mu.Lock()
		owed := n.owed.Swap(0)
		if owed == 0 {
			n.running = false
			n.mu.Unlock()
			return
		}
		n.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
		asleep, err := n.send(ctx, owed&owedToEverybody != 0)
		cancel()
		n.asked.Store(time.Now().UnixNano())
		n.busy.Store(err == nil && !asleep)
	}
}

// wait waits for what is owed, so that a program that enqueues and ends has
// rung.
func (n *notifier) wait() { n.idle.Wait() }

// ringSQL rings for what was committed before, if asked to or if an engine is
// asleep, and tells whether one is.
const ringSQL = `
select b.asleep, case when $1::boolean or b.asleep then pg_notify('stint', '') is null end
from (select exists (select from stint.beats where asleep)) as b(asleep)`

func (s *Store) ring(ctx context.Context, everybody bool) (asleep bool, err error) {
	err = s.pool.QueryRow(ctx, s.sql.ring, everybody).Scan(&asleep, nil)
	return asleep, translate(err)
}

var _ stint.Sleeper = (*Store)(nil)

// Asleep implements [stint.Sleeper]. A ring asks behind the commits that it is
// for: so either it sees this, or the engine's next look sees them.
func (s *Store) Asleep(ctx context.Context, engine stint.Token, asleep bool) error {
	if err := s.mark(ctx, `update stint.beats set asleep = $2 where token = $1 returning true`, engine, asleep); err != nil {
		return fmt.Errorf("say whether the engine sleeps: %w", err)
	}
	return nil
}
