package postgres

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint/store"
)

// notifier notifies engines of enqueues whose commits are the store's own.
//
// NOTIFY takes a lock of the whole cluster at commit, which more than halves
// the rate of single enqueues. So only an enqueue that finds itself alone, and
// somebody asleep, rings in its own transaction, which is soonest. The others
// leave it to a ring behind them: one for all that have committed since the
// last, and none when nobody sleeps. It always comes after the commits that it
// tells of; should the process die in between, a poll finds the jobs.
type notifier struct {
	// send notifies all engines, or those that sleep, and reports whether one
	// sleeps.
	send  func(ctx context.Context, everybody bool) (asleep bool, err error)
	under atomic.Int32 // enqueues under way
	owed  atomic.Int32 // what is owed to commits of which no engine was notified yet

	busy  atomic.Bool  // no engine slept when that was last asked
	asked atomic.Int64 // when that was, in Unix nanoseconds

	mu      sync.Mutex // guards running
	running bool
	idle    sync.WaitGroup
}

// What commits may be owed.
const (
	owedToSleepers  = 1 << iota // a notification if an engine sleeps
	owedToEverybody             // a notification
)

// askAgain is for how long an engine is believed to sleep. Whether one sleeps again
// is asked after every enqueue.
const askAgain = time.Second

// begin counts an enqueue in, and reports whether it should notify by itself.
func (n *notifier) begin() (ring bool) { return n.under.Add(1) == 1 && !n.busy.Load() }

// end counts it out. One that may have committed without a notification is owed
// one, and all engines are to hear of a job that has a time: one that sleeps until
// then does not say so.
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

// notifyTimeout bounds one notification; polls find what it was for.
const notifyTimeout = 5 * time.Second

// askPause is the time between two questions whether an engine sleeps, when none
// did: to ask without a break takes a fifth of the rate of single enqueues.
const askPause = 5 * time.Millisecond

// run notifies until nothing is owed.
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

// ringSQL notifies of what was committed before, if asked to or if an engine is
// asleep, and reports whether one is.
const ringSQL = `
select b.asleep, case when $1::boolean then pg_notify('stint', 'due ' || pg_current_xact_id()) is null end,
       case when b.asleep then pg_notify('stint', 'work ' || pg_current_xact_id()) is null end
from (select exists (select from stint.beats where asleep)) as b(asleep)`

func (s *Store) ring(ctx context.Context, everybody bool) (asleep bool, err error) {
	err = s.pool.QueryRow(ctx, s.sql.ring, everybody).Scan(&asleep, nil, nil)
	return asleep, translate(err)
}

// passOnSQL wakes the claim stages of all engines if one sleeps.
const passOnSQL = `select pg_notify('stint', 'work') where exists (select from stint.beats where asleep)`

// newsOf reads what a notification says. An enqueue of jobs that are ready sends the number of its
// transaction: so many enqueues in one transaction are one notification. So does what jobs wait for.
//
// One that is about permits says of which engine, 0 for all, and of which gate.
func newsOf(payload string) store.News {
	if about, ok := strings.CutPrefix(payload, "permits "); ok {
		engine, gate, _ := strings.Cut(about, " ")
		n, _ := strconv.ParseInt(engine, 10, 64)
		return store.News{Permits: gate, Engine: store.EngineID(n)}
	}
	about, lot, _ := strings.Cut(payload, " ")
	n, _ := strconv.ParseUint(lot, 10, 64)
	return store.News{Ready: about == "work", Due: about == "due", Lot: n}
}

var _ store.IdleNotifier = (*Store)(nil)

// Ring implements [store.IdleNotifier].
func (s *Store) Ring(ctx context.Context) (err error) {
	defer wrap(&err, "ring for work")
	_, err = s.work().Exec(ctx, s.sql.passOn)
	return translate(err)
}

// Asleep implements [store.IdleNotifier]. A notification asks after the commits that it is
// for: so either it sees this, or the engine's next look sees them.
func (s *Store) Asleep(ctx context.Context, engine store.EngineID, asleep bool) (err error) {
	defer wrap(&err, "say whether the engine sleeps")
	return s.mark(ctx, `update stint.beats set asleep = $2 where token = $1 returning true`, engine, asleep)
}
