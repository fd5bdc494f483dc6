package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// session is one membership in the roster, from the join until the engine leaves or is buried.
type session struct {
	*Engine
	token store.EngineID
	me    processIdentity
	beat  time.Time // when the join was sent; it counts as the first beat

	// work is the context of handlers and of everything that is recorded for them. Its cause is
	// ErrStopping or ErrFenced.
	work   context.Context
	cancel context.CancelCauseFunc

	// kept is the same for handlers that go on when the engine is fenced.
	kept       context.Context
	cancelKept context.CancelCauseFunc

	stopping chan struct{} // closed when no more work may start
	draining chan struct{} // closed when the engine was asked to leave
	drain    func()        // closes it

	endTold atomic.Bool // whether it was told that the session is fenced, or leaves

	wakeups      wakeups                          // what the store notifies of
	capacity     *wakeup                          // a slot came free
	listening    atomic.Bool                      // the store notifies
	drawn        atomic.Bool                      // notified of work as one of a few
	tooMuch      atomic.Bool                      // which was too much for this engine
	peers        atomic.Pointer[[]store.EngineID] // engines of the same queues, as the last look at the roster had them
	beatRequests chan chan<- bool                 // from goroutines that wait for the next beat

	retention  *retention   // how far retention has come, once this session had its lease
	fenceAt    atomic.Int64 // when the engine fences itself unless a beat arrives, in nanoseconds after beat
	nextLook   atomic.Int64 // when watchFence looks again, likewise
	wokeAt     atomic.Int64 // when it last found that the process had stood still, likewise
	passedOver atomic.Bool  // lanes that looks passed over may be claimed from again

	// lookAgain has the claim stage look at once, though it trusts its last look: that may lack a limit of
	// a queue, or work of a buried engine, which is first in line.
	lookAgain atomic.Bool

	primed     bool // of the claim stage: tasks waited for slots since it last found nothing to claim
	slots      []slot
	pauses     pauses
	pools      pools
	filled     *wakeup // the pools have something
	inlineRuns inlineRuns
	ended      chan *task             // to the last stage
	aloneTurn  chan struct{}          // holds one value while a suspect runs alone
	runners    map[string]*kindRunner // by kind
	inflight   *inflight              // claimed and not yet recorded
	permits    *permits
	clock      clock
	hooks      *hooks
	over       <-chan struct{} // closed when the stages have ended
	remains    *remains
	moves      atomic.Int64 // how often it went on at another server
	endEvents  endEvents

	logs logs // of the loop of beats

	stepRequests chan *stepRequest // from handlers whose steps are to be recorded
	stepsOver    chan struct{}     // closed when no more are
}

// longestJoin bounds joining: its connection may stop answering.
const longestJoin = 15 * time.Second

// join enters the roster under a new id.
func (e *Engine) join(ctx context.Context) (*session, error) {
	s := &session{
		Engine: e, token: store.EngineID(random63()), me: processIdentity(identity()), beat: time.Now(),
		stopping: make(chan struct{}), draining: make(chan struct{}),
		wakeups: newWakeups(len(e.singletonTasks)), capacity: newWakeup(), filled: newWakeup(),
		beatRequests: make(chan chan<- bool), stepRequests: make(chan *stepRequest), stepsOver: make(chan struct{}), slots: make([]slot, max(e.config.Slots, e.config.MaxSlots)), aloneTurn: make(chan struct{}, 1),
		runners: newKindRunners(e.mux), inflight: newInflight(), remains: newRemains(), ended: make(chan *task, maxPrefetch), hooks: newHooks(ctx, e.mux, max(e.config.Slots, e.config.MaxSlots)),
	}
	for i := range s.slots {
		s.slots[i].number = i + 1
	}
	s.inlineRuns.first = 1
	s.permits = s.newPermits()
	s.pools = newPools(e.config, s.runners, s.slots, s.filled)
	if e.tuner != nil {
		s.pools.all[0].tunedBy(e.tuner)
	}
	s.drain = sync.OnceFunc(func() { close(s.draining) })
	s.setFenceAt(s.beat.Add(e.config.TimeToLive * 3 / 4))
	e.liveness.beats.mark()
	decls := e.mux.Declarations()
	info := store.EngineInfo(s.me)
	if e.config.Beside != nil {
		// That this process lives or is gone proves nothing.
		info = store.EngineInfo{Host: cmp.Or(e.config.Host, info.Host), PID: cmp.Or(e.config.PID, info.PID), BootID: store.WorkerBoot}
	}
	info.Token, info.Former, info.Instance, info.Version = s.token, e.last, e.config.Instance, e.config.Version
	info.Queues, info.Slots, info.TimeToLive, info.MaxOutage = e.config.Queues, s.slotsNow(), e.config.TimeToLive, e.config.MaxOutage
	if _, ok := e.store.(store.LivenessLocker); !ok {
		info.MaxOutage = 0
	}
	for _, d := range decls {
		info.Kinds = append(info.Kinds, d.Name)
	}
	limit, cancel := context.WithTimeout(ctx, longestJoin)
	defer cancel()
	decls = slices.DeleteFunc(decls, func(d stint.KindInfo) bool { return d.Name == stint.AnyKind })
	if err := e.store.Join(limit, info, decls); err != nil {
		return nil, err
	}
	if err := e.declareLimits(limit); err != nil {
		return nil, err
	}
	if e.last != 0 { // it may have been asked to drain without learning of it
		if reply, err := e.store.Heartbeat(limit, s.token, store.Heartbeat{}); err == nil && reply.Drain {
			s.drain()
			s.Drain(nil)
		}
	}
	e.meters.with(func(m *report.Metrics) { m.Engine = s.token })
	s.clock.sample(limit, e.store)
	// The work outlives the caller's context by the grace.
	s.work, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.kept, s.cancelKept = context.WithCancelCause(context.WithoutCancel(ctx))
	return s, nil
}

// run works until ctx ends or the session is fenced, and then leaves the roster.
func (s *session) run(ctx context.Context) error {
	defer s.releaseLiveness()
	defer s.cancel(nil)
	defer func() {
		if !s.fenced() {
			s.cancelKept(nil)
		}
	}()
	s.liveness.joined(s)
	defer s.liveness.left()
	s.emit(event.Event{Type: event.EventJoined, Engine: s.token})

	// The loops end after the stages: the engine must beat while the last jobs run.
	signals, endSignals := context.WithCancel(context.WithoutCancel(ctx))
	defer endSignals()
	claiming, stopClaiming := context.WithCancel(ctx)
	defer stopClaiming()
	select {
	case <-s.draining: // since it joined
		stopClaiming()
	default:
	}
	var side, leads sync.WaitGroup
	loops := []func(context.Context){s.beats, s.watchFence, s.watchCancellations, s.announceLong, s.shareWork, s.keepPermits, s.recordSteps}
	if s.config.Beside != nil {
		loops = append(loops, s.hostNews)
	} else {
		loops = append(loops, s.listen, s.promote, s.watch, s.decide, s.watchPauses, s.rollUpStats, s.watchUnresponsive, s.tidyPermits)
		// As soon as the engine is told to stop, leases are given back, and schedules are left to other engines: what it fired
		// from then on, it would not run.
		leads.Go(func() { s.holdLeases(claiming) })
		leads.Go(func() { s.fire(claiming) })
	}
	if s.tuner != nil {
		loops = append(loops, s.tuneSlots)
	}
	for _, loop := range loops {
		side.Go(func() { loop(signals) })
	}

	go func() {
		select {
		case <-ctx.Done():
		case <-s.draining:
			s.tellDraining(ctx)
		case <-s.work.Done(): // fenced
		}
		stopClaiming()
		close(s.stopping)
		// While the engine drains jobs may end; a stop gives them the grace.
		select {
		case <-ctx.Done():
			s.startGrace()
		case <-s.work.Done():
		}
	}()

	s.inlineRuns.first = len(s.slots) + 1
	s.current.Store(s)
	defer s.current.CompareAndSwap(s, nil)
	var stages sync.WaitGroup
	stages.Go(func() {
		defer s.pools.close()
		defer s.permits.close()
		s.claim(claiming)
	})
	stages.Go(func() { defer close(s.ended); s.execute(s.ended); s.inlineRuns.close() })
	stages.Go(func() { s.finish(s.ended) })

	s.over = ended(&stages)
	stuck := !s.awaitStages(s.over)
	leads.Wait()
	var err error
	switch {
	case stuck:
		err = fmt.Errorf("%w: %d did not end", ErrStillRunning, len(s.runningPositions()))
	case s.fenced():
		err = store.ErrBuried
	default:
		defer s.awaitHooks()
		err = s.leave()
	}
	endSignals()
	side.Wait()
	return err
}

func (s *session) tellDraining(ctx context.Context) {
	if _, asked, _ := s.liveness.read(); ctx.Err() == nil {
		s.emit(event.Event{Type: event.EventDraining, Engine: s.token, Err: drainReason(asked)})
	}
}

// startGrace cancels what still runs when the grace is over.
func (s *session) startGrace() {
	timer := time.AfterFunc(s.config.Grace, func() {
		s.cancelKept(stint.ErrStopping)
		s.cancel(stint.ErrStopping)
	})
	context.AfterFunc(s.work, func() { timer.Stop() })
}

// awaitStages waits for the stages to end. After the handlers were cancelled it waits for
// cancelGrace only, and then returns false. It does not wait for handlers that go on when the
// engine is fenced.
func (s *session) awaitStages(all <-chan struct{}) bool {
	select {
	case <-all:
		return true
	case <-s.work.Done():
	}
	late := time.NewTimer(cancelGrace)
	defer late.Stop()
	look := time.NewTicker(cancelGrace / 100)
	defer look.Stop()
	for {
		select {
		case <-all:
			return true
		case <-late.C:
			return false
		case <-look.C:
			if s.fenced() && !s.endsWithSession() {
				return true
			}
		}
	}
}

// endsWithSession reports whether a handler runs that should end with the session.
func (s *session) endsWithSession() bool {
	for a := range s.attempts {
		if !a.task.runner.keep {
			return true
		}
	}
	return false
}

// fenced reports whether the session lost its place in the roster.
func (s *session) fenced() bool { return errors.Is(context.Cause(s.work), stint.ErrFenced) }

// cancelGrace is how long a cancelled handler may take to return.
const cancelGrace = 5 * time.Second

// fence cancels the session's work at once: nothing that still runs will count.
func (s *session) fence() {
	s.cancel(stint.ErrFenced)
	if s.fenced() && s.endTold.CompareAndSwap(false, true) { // and had not ended before
		s.emit(event.Event{Type: event.EventBuried, Engine: s.token})
	}
}

// leave buries the session itself, uncharged. What the stages left open, such as a claim whose
// answer was lost, returns to the front of its lane. A beat that finds the session gone after that
// is not reported.
func (s *session) leave() error {
	s.endTold.Store(true)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.work), s.config.TimeToLive)
	defer cancel()
	wait := new(backoff)
	for {
		n, err := s.store.Bury(ctx, store.Burial{Engine: s.token, Why: store.WhyLeft}, func(e *store.Entry, _ bool) store.Completion {
			return store.Conclude(e, returnedUnstarted, time.Now(), 0)
		})
		switch {
		case err == nil:
			if n > 0 {
				s.meters.gotEntries(n, n) // of claims whose answers were lost
				s.emit(event.Event{Type: event.EventReturned, Engine: s.token, Count: n})
			}
			s.emit(event.Event{Type: event.EventLeft, Engine: s.token})
			return nil
		case errors.Is(err, store.ErrBuried):
			return nil // another engine did it
		case !wait.sleep(ctx):
			return fmt.Errorf("engine: leave the roster: %w", err)
		}
	}
}

func random63() int64 {
	var b [8]byte
	rand.Read(b[:])
	return max(1, int64(binary.BigEndian.Uint64(b[:])>>1))
}
