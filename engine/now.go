package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// ErrNoImmediate says that the store cannot enqueue a job and claim it in one step, which
// [Engine.RunNow] needs.
var ErrNoImmediate = errors.New("engine: the store enqueues no job that is claimed already")

// RunNow enqueues a job and performs it at once in this process. It returns when the handler has
// returned and its outcome is recorded. If the job does not succeed, engines retry it in the
// background.
//
// The completion says how the attempt ended. If it is not final the job is in the queue: after an
// error that will be retried, with one attempt used, and due when its policy says. Hooks, events,
// the timeout, panics and [CompleteTx] work as in any attempt.
//
// An error means that the job was not run, or not recorded. If the completion names no job, then
// the job was not enqueued as far as is known; as with every enqueue, it may have been if the
// connection broke. If it names a job, that job is in the store and engines will run it.
// [store.ErrBuried] then says that other engines took it over while it ran here, and
// [stint.ErrCommitUnknown] that its handler may have completed it.
//
// If a job was enqueued before under the same idempotency key, nothing runs, whether that job has
// run yet or not. The error is a [store.DuplicateError], and the completion names the first job.
//
// When ctx ends, the handler's context is cancelled too. Unless the handler completes its job all
// the same, the job goes back to the queue uncharged, and engines run it at once. The handler gets
// the values of ctx.
//
// The job starts at once: it needs no slot and ignores paused queues.
//
// # Which engine holds the job
//
// The job is claimed from its first moment. While [Engine.Run] works, this engine holds it like
// its other jobs. Otherwise the call joins the roster for its own duration, beats, and leaves.
// Either way the job is announced before it begins. So if the process dies, the burial charges
// the attempt, unless it finds another job that killed the process, and the job runs again
// elsewhere, first in line. A program that runs many jobs in this way should run the engine too:
// joining and leaving cost two transactions each time.
func (e *Engine) RunNow(ctx context.Context, job stint.NewJob) (store.Completion, error) {
	x, err := e.runNow(ctx, job)
	if err != nil {
		return x, fmt.Errorf("run a job of the kind %s now: %w", job.Kind, err)
	}
	return x, nil
}

func (e *Engine) runNow(ctx context.Context, job stint.NewJob) (store.Completion, error) {
	st, ok := e.store.(store.ClaimedEnqueuer)
	switch {
	case !ok:
		return store.Completion{}, ErrNoImmediate
	case e.mux.Handler(job.Kind) == nil:
		return store.Completion{}, valid.Invalid("kind", "this engine has no handler for %q", job.Kind)
	case job.Delay != 0 || !job.RunAt.IsZero():
		return store.Completion{}, valid.Invalid("run at", "a job that is run now waits for no time")
	case ctx.Err() != nil:
		return store.Completion{}, context.Cause(ctx)
	}
	if s := e.current.Load(); s != nil && s.inlineRuns.enter(s.stopping) {
		return s.runInline(ctx, st, job)
	}
	s, err := e.joinTemporary(ctx)
	if err != nil {
		return store.Completion{}, err
	}
	leave := s.serveTemporary()
	x, err := s.runInline(ctx, st, job)
	if left := leave(); err == nil && !errors.Is(left, store.ErrBuried) {
		// A burial after the record of its only job has no effect.
		err = left
	}
	return x, err
}

// joinTemporary enters the roster for one call.
func (e *Engine) joinTemporary(ctx context.Context) (*session, error) {
	c := e.config
	c.Slots, c.QueueSlots = 1, nil
	return (&Engine{store: e.store, reader: e.reader, client: e.client, mux: e.mux, meters: e.meters, config: c}).join(ctx)
}

// serveTemporary does for the jobs of a call what a running engine does for its own: it beats,
// watches cancellations, and records. The function that it returns ends that and leaves the roster.
func (s *session) serveTemporary() (leave func() error) {
	s.emit(event.Event{Type: event.EventJoined, Engine: s.token})
	signals, endSignals := context.WithCancel(context.WithoutCancel(s.work))
	var side, stages sync.WaitGroup
	side.Go(func() { s.beats(signals) })
	side.Go(func() { s.watchCancellations(signals) })
	stages.Go(func() { s.finish(s.ended) })
	s.inlineRuns.enter(s.stopping)
	return func() (err error) {
		s.inlineRuns.close()
		close(s.ended)
		stages.Wait()
		if s.fenced() {
			err = store.ErrBuried
		} else {
			err = s.leave()
		}
		endSignals()
		side.Wait()
		s.awaitHooks()
		s.releaseLiveness()
		s.cancelKept(nil)
		s.cancel(nil)
		return err
	}
}

// runInline takes an inline run through all stages. The run has entered inlineRuns, and leaves when
// only the record is left to write.
func (s *session) runInline(ctx context.Context, st store.ClaimedEnqueuer, job stint.NewJob) (store.Completion, error) {
	t, err := s.enqueueClaimed(ctx, st, job)
	if err != nil {
		s.inlineRuns.leave()
		var x store.Completion
		if first, ok := errors.AsType[*store.DuplicateError](err); ok {
			x.Job = first.ID
		}
		return x, err
	}
	answer := s.submit(s.performInline(t))
	s.inlineRuns.leave()
	return answer()
}

// submit sends a task to the last stage. The function that it returns waits until the outcome is
// recorded.
func (s *session) submit(t *task) func() (store.Completion, error) {
	s.ended <- t
	return func() (store.Completion, error) {
		r := <-t.inline.result
		r.done.Pos, r.done.Job = t.entry.Pos, t.entry.ID // also of one that was dropped
		return r.done, r.err
	}
}

// enqueueClaimed enqueues the job, claimed by this session.
func (s *session) enqueueClaimed(ctx context.Context, st store.ClaimedEnqueuer, job stint.NewJob) (*task, error) {
	var c store.Claim
	var claim *claimState
	var first *store.DuplicateError
	serial := int64(0)
	// Through the engine's client, which completes and checks the job, and has
	// middleware.
	client := s.client.Over(enqueuer(func(_ context.Context, _ stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
		if len(jobs) != 1 || serial != 0 {
			return nil, errNotOne
		}
		req := s.request()
		serial = req.Serial
		// Not ctx: the outcome of an interrupted call would be unknown.
		limit, cancel := context.WithTimeout(s.work, s.config.TimeToLive/2)
		defer cancel()
		var err error
		began := time.Now()
		c, err = st.EnqueueClaimed(limit, jobs[0], req)
		if errors.As(err, &first) {
			s.inflight.claimedNothing(serial)
			return []stint.Receipt{{ID: first.ID, Duplicate: true}}, nil
		}
		if len(c.Positions) == 0 {
			return nil, err
		}
		s.meters.claimAnswered(began, len(c.Positions))
		claim = s.inflight.claimed(c)
		if err != nil { // it was claimed, but not read
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
	case receipt.Duplicate: // according to middleware
		return nil, &store.DuplicateError{Key: job.IdempotencyKey, ID: receipt.ID}
	default:
		err = errNotOne
	}
	switch {
	case err == nil:
		s.meters.gotEntries(1, 0)
		return s.newInlineTask(ctx, &c.Entries[0], claim), nil
	case serial == 0, first != nil: // nothing was claimed
	case claim != nil:
		s.inflight.markUnknown(serial) // middleware failed after the claim; the next beat returns it
	case errors.Is(err, store.ErrBuried):
		s.fence()
	case errors.Is(err, stint.ErrInvalid), errors.Is(err, stint.ErrUnstorable), errors.Is(err, stint.ErrKeyConflict):
		s.inflight.claimedNothing(serial)
	default:
		s.inflight.markUnknown(serial) // the next beat finds out, or the burial at the end
	}
	return nil, err
}

func (s *session) newInlineTask(caller context.Context, e *store.Entry, claim *claimState) *task {
	return &task{entry: e, claim: claim, runner: s.runners[e.Kind], inline: &inlineRun{caller, make(chan inlineResult, 1)}}
}

// errNotOne says that middleware changed the number of jobs.
var errNotOne = errors.New("an enqueue middleware did not pass on exactly one job")

type enqueuer func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error)

// Enqueue implements [stint.Enqueuer].
func (f enqueuer) Enqueue(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	return f(ctx, tx, jobs)
}

// performInline announces a task, runs it, and concludes it.
func (s *session) performInline(t *task) *task {
	slotIndex := s.inlineRuns.begin(t.entry.Pos)
	defer s.inlineRuns.end(slotIndex)
	slot := min(slotIndex, maxSlotIndex)
	if !s.reserveHooks(t.entry) {
		return s.returnUnstarted(t)
	}
	if s.pastStartBy(t.entry) {
		return s.concludeUnstarted(t)
	}
	if t.entry.MaxLosses == 0 {
		s.inflight.addOnce(t.entry.Pos)
	}
	if !s.announce() || s.fenceDue() || s.pastStartBy(t.entry) {
		return s.concludeUnstarted(t)
	}
	// In its own goroutine, since the handler may end that, and so may methods of
	// its error.
	var done *task
	over := make(chan struct{})
	go func() {
		defer close(over)
		end := s.perform(t, slot)
		if err := context.Cause(t.inline.caller); err != nil && end.Outcome == stint.OutcomeReturned {
			end.Note = "the caller gave up: " + err.Error()
		}
		done = s.conclude(t, end)
	}()
	<-over
	if done == nil {
		done = s.conclude(t, store.Result{Outcome: stint.OutcomeFailed, Err: errGoexit})
	}
	return done
}

// maxSlotIndex is the greatest slot number that a store can record, counted from 0.
const maxSlotIndex = 1<<15 - 2
