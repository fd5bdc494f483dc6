package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stint-go/stint"
)

// ErrNoImmediate says that the store cannot enqueue a job that is claimed
// already, which [Engine.RunNow] needs.
var ErrNoImmediate = errors.New("engine: the store enqueues no job that is claimed already")

// RunNow enqueues a job and performs it at once, in this process: for work that
// a caller wants to see done, and that the background takes over when that
// does not succeed. It returns when the handler has returned and its outcome
// is recorded.
//
// The execution says how the attempt ended. One that is not final left the job
// in the queue: after an error that is to be retried with one attempt used, and
// due when its policy says. Hooks and events fire, and the timeout, a panic and
// [CompleteTx] count, as in any attempt.
//
// An error means that the job was not run, or not recorded. When the execution
// beside it names no job, the job was not enqueued, as far as is known: like
// every enqueue it may have been when the connection broke meanwhile. When it
// does, the job is in the store and engines see to it; [stint.ErrBuried] then
// says that others took it over while it ran here, and [stint.ErrCommitUnknown]
// that its handler may have completed it, and nobody knows.
//
// Of a job with an idempotency key under which one was enqueued before, nothing
// is run, whether that one has run yet or not. The error is a
// [stint.DuplicateError], and the execution names the first job.
//
// When ctx ends, the handler's context is cancelled too. Unless the handler
// completes its job all the same, the job goes back to the queue, uncharged, for
// engines to run at once: that nobody waits any more says nothing about the job.
// The handler gets the values of ctx.
//
// The caller decides when it runs: neither slots nor a paused queue hold it up.
//
// # Who answers for it
//
// The job is in an engine's hands from its first moment. While [Engine.Run]
// works, that is this engine, with all that it does for its jobs; else the call
// joins the roster for its own duration, beats, and leaves. Either way the job is
// announced before it begins. So if the process dies in the middle, the burial
// charges the attempt, unless it finds another job that killed the process, and
// the job runs again elsewhere, first in line. A program
// that runs many jobs in this way runs the engine too: joining costs two
// transactions each time.
func (e *Engine) RunNow(ctx context.Context, job stint.NewJob) (stint.Execution, error) {
	x, err := e.runNow(ctx, job)
	if err != nil {
		return x, fmt.Errorf("run a job of the kind %s now: %w", job.Kind, err)
	}
	return x, nil
}

func (e *Engine) runNow(ctx context.Context, job stint.NewJob) (stint.Execution, error) {
	store, ok := e.store.(stint.Immediate)
	switch {
	case !ok:
		return stint.Execution{}, ErrNoImmediate
	case e.mux.Handler(job.Kind) == nil:
		return stint.Execution{}, stint.Invalid("kind", "this engine has no handler for %q", job.Kind)
	case job.Delay != 0 || !job.RunAt.IsZero():
		return stint.Execution{}, stint.Invalid("at", "a job that is run now waits for no time")
	case ctx.Err() != nil:
		return stint.Execution{}, context.Cause(ctx)
	}
	if s := e.current.Load(); s != nil && s.guests.enter(s.stopping) {
		return s.host(ctx, store, job)
	}
	s, err := e.joinAlone(ctx)
	if err != nil {
		return stint.Execution{}, err
	}
	leave := s.workAlone()
	x, err := s.host(ctx, store, job)
	if left := leave(); err == nil && !errors.Is(left, stint.ErrBuried) {
		// Buried behind the record of its only job: it had nothing to lose.
		err = left
	}
	return x, err
}

// joinAlone enters the roster for one job.
func (e *Engine) joinAlone(ctx context.Context) (*session, error) {
	c := e.config
	c.Slots, c.QueueSlots = 1, nil
	return (&Engine{store: e.store, inspector: e.inspector, client: e.client, mux: e.mux, meters: e.meters, config: c}).join(ctx)
}

// workAlone does for a session's only job what a running engine does for all of
// its own: it beats, hears of cancellations, and records. The function that it
// returns ends that and leaves the roster.
func (s *session) workAlone() (leave func() error) {
	s.emit(stint.Event{Type: stint.EventJoined, Engine: s.token})
	signals, endSignals := context.WithCancel(context.WithoutCancel(s.work))
	var side, stages sync.WaitGroup
	side.Go(func() { s.beats(signals) })
	side.Go(func() { s.heed(signals) })
	stages.Go(func() { s.finish(s.ended) })
	s.guests.enter(s.stopping)
	return func() (err error) {
		s.guests.shut()
		close(s.ended)
		stages.Wait()
		if s.fenced() {
			err = stint.ErrBuried
		} else {
			err = s.leave()
		}
		endSignals()
		side.Wait()
		s.awaitHooks()
		s.letGo()
		s.cancelKept(nil)
		s.cancel(nil)
		return err
	}
}

// host takes a guest's job through all of its stages. The guest has entered, and
// leaves here, when only the record is left to be written.
func (s *session) host(ctx context.Context, store stint.Immediate, job stint.NewJob) (stint.Execution, error) {
	t, err := s.takeNow(ctx, store, job)
	if err != nil {
		s.guests.leave()
		var x stint.Execution
		if first, ok := errors.AsType[*stint.DuplicateError](err); ok {
			x.Job = first.ID
		}
		return x, err
	}
	answer := s.submit(s.performNow(t))
	s.guests.leave()
	return answer()
}

// submit sends an outcome on to the last stage. The function that it returns
// waits until that is recorded, and says as what.
func (s *session) submit(t *task) func() (stint.Execution, error) {
	s.ended <- t
	return func() (stint.Execution, error) {
		r := <-t.guest.answer
		r.done.Pos, r.done.Job = t.entry.Pos, t.entry.ID // also of one that was dropped
		return r.done, r.err
	}
}

// takeNow enqueues the job in the session's hands.
func (s *session) takeNow(ctx context.Context, store stint.Immediate, job stint.NewJob) (*task, error) {
	var c stint.Claim
	var claim *held
	var first *stint.DuplicateError
	serial := int64(0)
	// Through the engine's client, which fills in and checks what there is to a
	// job, and has middleware.
	client := s.client.Over(enqueuer(func(_ context.Context, _ stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
		if len(jobs) != 1 || serial != 0 {
			return nil, errNotOne
		}
		req := s.request()
		serial = req.Serial
		// Not ctx: the fate of what is cut in the middle would be unknown.
		limit, cancel := context.WithTimeout(s.work, s.config.TimeToLive/2)
		defer cancel()
		var err error
		began := time.Now()
		c, err = store.EnqueueClaimed(limit, jobs[0], req)
		if errors.As(err, &first) {
			s.held.nothing(serial)
			return []stint.Receipt{{ID: first.ID, Duplicate: true}}, nil
		}
		if len(c.Positions) == 0 {
			return nil, err
		}
		s.meters.asked(began, len(c.Positions))
		claim = s.held.took(c)
		if err != nil { // it is ours, but we have not seen it
			c.Entries, err = s.fetch(c.Positions)
		}
		if err != nil {
			return nil, err
		}
		return []stint.Receipt{{ID: c.Entries[0].ID}}, nil
	}))
	receipt, err := client.EnqueueReceipt(ctx, job)
	switch {
	case err != nil || claim != nil:
	case first != nil:
		return nil, first
	case receipt.Duplicate: // says the middleware
		return nil, &stint.DuplicateError{Key: job.IdempotencyKey, ID: receipt.ID}
	default:
		err = errNotOne
	}
	switch {
	case err == nil:
		s.meters.got(1, 0)
		return s.brought(ctx, &c.Entries[0], claim), nil
	case serial == 0, first != nil: // it did not come so far, or took nothing
	case claim != nil:
		s.held.unknown(serial) // it is there, whatever a middleware made of that; the next beat hands it back
	case errors.Is(err, stint.ErrBuried):
		s.fence()
	case errors.Is(err, stint.ErrInvalid), errors.Is(err, stint.ErrUnstorable), errors.Is(err, stint.ErrKeyConflict):
		s.held.nothing(serial)
	default:
		s.held.unknown(serial) // the next beat compares, or the burial at the end
	}
	return nil, err
}

// brought is the task of a guest.
func (s *session) brought(caller context.Context, e *stint.Entry, claim *held) *task {
	return &task{entry: e, claim: claim, trade: s.trades[e.Kind], guest: &guest{caller, make(chan receipt, 1)}}
}

// errNotOne says that what is to be run is not one job any more.
var errNotOne = errors.New("an enqueue middleware did not pass on exactly one job")

// enqueuer makes a function an [stint.Enqueuer].
type enqueuer func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error)

// Enqueue implements [stint.Enqueuer].
func (f enqueuer) Enqueue(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	return f(ctx, tx, jobs)
}

// performNow announces a task, runs it, and says what came of it.
func (s *session) performNow(t *task) *task {
	seat := s.guests.sit(t.entry.Pos)
	defer s.guests.rise(seat)
	slot := min(seat, lastSlot)
	if !s.reserveHooks(t.entry) {
		return s.giveUp(t)
	}
	if s.tooLate(t.entry) {
		return s.notBegun(t)
	}
	if t.entry.MaxLosses == 0 {
		s.held.begins(t.entry.Pos)
	}
	if !s.announce() || s.expired() || s.tooLate(t.entry) {
		return s.notBegun(t)
	}
	// A goroutine of its own, since a handler may end the one it runs in, and so
	// may its error when it is asked about itself.
	var done *task
	over := make(chan struct{})
	go func() {
		defer close(over)
		end := s.perform(t, slot)
		if err := context.Cause(t.guest.caller); err != nil && end.Outcome == stint.OutcomeReturned {
			end.Note = "the caller gave up: " + err.Error()
		}
		done = s.conclude(t, end)
	}()
	<-over
	if done == nil {
		done = s.conclude(t, stint.Ending{Outcome: stint.OutcomeFailed, Err: errGoexit})
	}
	return done
}

// lastSlot is the last one that an execution has room to name, counted from 0.
const lastSlot = 1<<15 - 2
