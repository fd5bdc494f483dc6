package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// session is one membership in the roster, from joining to leaving or being
// buried.
type session struct {
	*Engine
	token stint.Token
	me    self
	beat  time.Time // when the joining was sent: the first sign of life

	// work is the context of handlers and of everything that is recorded for
	// them. It is cancelled with a cause: stopping or fenced.
	work   context.Context
	cancel context.CancelCauseFunc

	// kept is the same for handlers that go on when the engine is fenced.
	kept       context.Context
	cancelKept context.CancelCauseFunc

	stopping chan struct{} // closed when no more work is to begin
	draining chan struct{} // closed when the engine was asked to leave
	drain    func()        // closes it

	parting sync.Once // the session is fenced, or leaves

	bell         *bell            // news for the claim stage
	waitbell     *bell            // news for the promoter
	cancelbell   *bell            // somebody may have cancelled something
	decidebell   *bell            // there may be failures to decide about
	pausebell    *bell            // somebody may have paused or resumed a queue
	leasebells   []*bell          // of each duty: its lease may be free
	schedulebell *bell            // somebody may have changed a schedule
	capacity     *bell            // a slot came free
	hears        atomic.Bool      // whether the store rings
	asks         chan chan<- bool // who waits for the next beat

	believed atomic.Int64 // until when nobody believes that the engine is dead, in nanoseconds after beat
	primed   bool         // of the claim stage: something waited for slots since it last had nothing to claim
	slots    slots
	pauses   pauses
	pools    pools
	guests   guests
	ended    chan *task    // to the last stage
	solo     chan struct{} // holds one while an entry is run that is to be run alone
	attempts attempts
	trades   map[string]*trade // by kind
	held     *hand             // what is claimed and not yet recorded
	clock    clock
	hooks    *hooks
	untold   untold
}

// longestJoin bounds joining, whose connection may go silent as any other.
const longestJoin = 15 * time.Second

// join enters the roster under a new token.
func (e *Engine) join(ctx context.Context) (*session, error) {
	s := &session{
		Engine: e, token: stint.Token(random63()), me: self(identity()), beat: time.Now(),
		stopping: make(chan struct{}), draining: make(chan struct{}),
		bell: newBell(), waitbell: newBell(), cancelbell: newBell(), decidebell: newBell(), pausebell: newBell(), schedulebell: newBell(), capacity: newBell(),
		asks: make(chan chan<- bool), slots: newSlots(e.config.Slots), solo: make(chan struct{}, 1),
		attempts: newAttempts(e.config.Slots), trades: trades(e.mux), held: newHand(), ended: make(chan *task, maxPrefetch), hooks: newHooks(ctx, e.mux, e.config.Slots),
	}
	for range e.duties {
		s.leasebells = append(s.leasebells, newBell())
	}
	s.pools = newPools(e.config, s.slots)
	s.drain = sync.OnceFunc(func() { close(s.draining) })
	s.mayWorkUntil(s.beat.Add(e.config.TimeToLive * 3 / 4))
	e.vitals.beats.mark()
	decls := e.mux.Declarations()
	info := stint.EngineInfo(s.me)
	info.Token, info.Instance, info.Version = s.token, e.config.Instance, e.config.Version
	info.Queues, info.Slots, info.TimeToLive = e.config.Queues, e.config.Slots, e.config.TimeToLive
	for _, d := range decls {
		info.Kinds = append(info.Kinds, d.Name)
	}
	limit, cancel := context.WithTimeout(ctx, longestJoin)
	defer cancel()
	if err := e.store.Join(limit, info, decls); err != nil {
		return nil, err
	}
	e.meters.engine.Store(int64(s.token))
	s.clock.sample(limit, e.store)
	// The work outlives the caller's context by the grace.
	s.work, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.kept, s.cancelKept = context.WithCancelCause(context.WithoutCancel(ctx))
	return s, nil
}

// run works until ctx ends or the session is fenced, and takes the session
// out of the roster.
func (s *session) run(ctx context.Context) error {
	defer s.letGo()
	defer s.cancel(nil)
	defer func() {
		if !s.fenced() {
			s.cancelKept(nil)
		}
	}()
	s.vitals.joined(s)
	defer s.vitals.left()
	s.emit(stint.Event{Type: stint.EventJoined, Engine: s.token})

	// Signals and chores end with the stages, not before: the beat must go on
	// while the last jobs run.
	signals, endSignals := context.WithCancel(context.WithoutCancel(ctx))
	defer endSignals()
	claiming, stopClaiming := context.WithCancel(ctx)
	defer stopClaiming()
	var side, leads sync.WaitGroup
	side.Go(func() { s.beats(signals) })
	side.Go(func() { s.listen(signals) })
	side.Go(func() { s.promote(signals) })
	side.Go(func() { s.watch(signals) })
	side.Go(func() { s.heed(signals) })
	side.Go(func() { s.decide(signals) })
	side.Go(func() { s.mind(signals) })
	side.Go(func() { s.fire(signals) })
	side.Go(func() { s.sumUp(signals) })
	side.Go(func() { s.watchDeaf(signals) })
	// What an engine leads it gives to others as soon as it is told to stop.
	leads.Go(func() { s.lead(claiming) })

	go func() {
		select {
		case <-ctx.Done():
		case <-s.draining:
			s.tellDraining(ctx)
		case <-s.work.Done(): // fenced
		}
		stopClaiming()
		close(s.stopping)
		// A drained engine lets its jobs end; a stop gives them the grace.
		select {
		case <-ctx.Done():
			s.stop()
		case <-s.work.Done():
		}
	}()

	s.guests.first = len(s.slots)
	s.current.Store(s)
	defer s.current.CompareAndSwap(s, nil)
	var stages sync.WaitGroup
	stages.Go(func() { defer s.pools.close(); s.claim(claiming) })
	stages.Go(func() { defer close(s.ended); s.execute(s.ended); s.guests.shut() })
	stages.Go(func() { s.finish(s.ended) })

	all := make(chan struct{})
	go func() { stages.Wait(); close(all) }()
	stuck := !s.await(all)
	leads.Wait()
	if !stuck && !s.fenced() {
		err := s.leave()
		endSignals()
		side.Wait()
		s.awaitHooks()
		return err
	}
	endSignals()
	side.Wait()
	switch {
	case stuck:
		return fmt.Errorf("%w: %d did not end", ErrStillRunning, len(s.busy()))
	default:
		return stint.ErrBuried
	}
}

// tellDraining says that the engine was told to leave, and not to stop.
func (s *session) tellDraining(ctx context.Context) {
	if _, asked, _ := s.vitals.look(); ctx.Err() == nil {
		s.emit(stint.Event{Type: stint.EventDraining, Engine: s.token, Err: drainedBy(asked)})
	}
}

// stop lets the grace run, and then cancels what still works.
func (s *session) stop() {
	timer := time.AfterFunc(s.config.Grace, func() {
		s.cancelKept(stint.ErrStopping)
		s.cancel(stint.ErrStopping)
	})
	context.AfterFunc(s.work, func() { timer.Stop() })
}

// await waits for the stages to end. Once handlers were cancelled it does so
// for a while only: false says that some took no notice. Those that are to go
// on when the engine is fenced are left to themselves.
func (s *session) await(all <-chan struct{}) bool {
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
			if s.fenced() && s.attempts.heedless() == 0 {
				return true
			}
		}
	}
}

// fenced tells whether the session lost its place in the roster.
func (s *session) fenced() bool { return errors.Is(context.Cause(s.work), stint.ErrFenced) }

// cancelGrace is how long a cancelled handler may take to notice.
const cancelGrace = 5 * time.Second

// fence ends the session's work at once: nothing that still runs will count.
func (s *session) fence() {
	s.cancel(stint.ErrFenced)
	if s.fenced() { // and had not ended before
		s.parting.Do(func() { s.emit(stint.Event{Type: stint.EventBuried, Engine: s.token}) })
	}
}

// leave buries the session itself, uncharged. Whatever the stages left open,
// such as a claim whose answer was lost, goes back to the front of its lane.
// A beat that finds the session gone then is no news.
func (s *session) leave() error {
	s.parting.Do(func() {})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.work), s.config.TimeToLive)
	defer cancel()
	wait := newBackoff()
	for {
		n, err := s.store.Bury(ctx, stint.Burial{Engine: s.token, Why: "left"}, func(e *stint.Entry, _ bool) stint.Execution {
			return stint.Conclude(e, stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront}, time.Now(), 0)
		})
		switch {
		case err == nil:
			if n > 0 {
				s.meters.got(n, n) // of claims whose answers were lost
				s.emit(stint.Event{Type: stint.EventReturned, Engine: s.token, Count: n})
			}
			s.emit(stint.Event{Type: stint.EventLeft, Engine: s.token})
			return nil
		case errors.Is(err, stint.ErrBuried):
			return nil // somebody else did it
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
