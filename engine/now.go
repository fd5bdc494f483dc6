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
	if result, err := e.client.OpenResult(ctx, job.Kind, x.Result); err == nil { // otherwise it is as it is stored
		x.Result = result
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
	c.Slots, c.MaxSlots, c.QueueSlots = 1, 0, nil
	return (&Engine{store: e.store, reader: e.reader, keepsLogs: e.keepsLogs, client: e.client, mux: e.mux, meters: e.meters, config: c}).join(ctx)
}

// serveTemporary does for the jobs of a call what a running engine does for its own: it beats,
// watches cancellations, and records. The function that it returns ends that and leaves the roster.
func (s *session) serveTemporary() (leave func() error) {
	s.emit(event.Event{Type: event.EventJoined, Engine: s.token})
	signals, endSignals := context.WithCancel(context.WithoutCancel(s.work))
	var side, stages sync.WaitGroup
	side.Go(func() { s.beats(signals) })
	side.Go(func() { s.watchFence(signals) })
	side.Go(func() { s.watchCancellations(signals) })
	side.Go(func() { s.recordSteps(signals) })
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
	return t.recorded
}

// recorded waits until the outcome of an inline run that was submitted is recorded.
func (t *task) recorded() (store.Completion, error) {
	r := <-t.inline.result
	r.done.Pos, r.done.Job = t.entry.Pos, t.entry.ID // also of one that was dropped
	return r.done, r.err
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
		req := s.request(1)
		serial = req.Serial
		// Not ctx: the outcome of an interrupted call would be unknown.
		limit, cancel := context.WithTimeout(s.work, s.config.TimeToLive/2)
		defer cancel()
		var err error
		began, moves := time.Now(), s.moves.Load()
		c, err = st.EnqueueClaimed(limit, jobs[0], req)
		if len(c.Positions) > 0 && s.movedSince(moves) {
			c, err = store.Claim{}, store.ErrBuried
		}
		if errors.As(err, &first) {
			s.inflight.resolved(serial)
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
		s.inflight.resolved(serial)
	default:
		s.inflight.markUnknown(serial) // the next beat finds out, or the burial at the end
	}
	return nil, err
}

func (s *session) newInlineTask(caller context.Context, e *store.Entry, claim *claimState) *task {
	return &task{entry: e, claim: claim, runner: s.runner(e.Kind), inline: &inlineRun{caller, make(chan inlineResult, 1)}}
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
	one := s.inlineRuns.slot()
	defer s.inlineRuns.free(one)
	switch {
	case !s.reserveHooks(t.entry):
		return s.returnUnstarted(t)
	case !s.prepareStart(t, one):
		return s.concludeUnstarted(t)
	}
	// In its own goroutine, since the handler may end that, and so may methods of
	// its error.
	var done *task
	over := make(chan struct{})
	go func() {
		defer close(over)
		done = s.conclude(t, s.perform(t, one))
	}()
	<-over
	if done == nil {
		done = s.conclude(t, store.Result{Outcome: stint.OutcomeFailed, Err: errGoexit})
	}
	return done
}

// RunReady performs what is ready for the engine's kinds and queues, in this process, one job after
// the other, until nothing is left. A handler of batches gets those that follow each other, without
// a wait for more. It is for tests, and for programs that are started when there
// may be work. It returns how many jobs it performed.
//
// The order is an engine's: by priority, and within a lane as the jobs became ready. Jobs that
// handlers and hooks enqueue meanwhile are performed too, and hooks have ended before the next job
// begins. A job that is not due waits, even one that is to be retried at once: the caller moves due
// jobs to the log ([store.Promoter]). Paused queues are skipped. Jobs of kinds without a handler
// here are left to other engines and not counted.
//
// Unless told is nil, it is called for each entry after its outcome is recorded; if it returns
// false, RunReady ends. It is also called for jobs that have expired, or are cancelled just as they
// are claimed, with an outcome that has no start. All else is as in [Engine.RunNow]: a handler is announced before it
// begins, and the call joins the roster for its own duration, beside the engine's Run if that
// works, so other engines take over if the process dies.
//
// When ctx ends, the context of the running handler is cancelled, its job goes back uncharged, and
// the error is the cause. Other errors say that a job was not run, or not recorded.
func (e *Engine) RunReady(ctx context.Context, told func(*stint.Job, store.Completion) bool) (int, error) {
	n, err := e.runReady(ctx, told)
	if err != nil {
		return n, fmt.Errorf("run what is ready: %w", err)
	}
	return n, nil
}

func (e *Engine) runReady(ctx context.Context, told func(*stint.Job, store.Completion) bool) (n int, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	s, err := e.joinTemporary(ctx)
	if err != nil {
		return 0, err
	}
	leave := s.serveTemporary()
	defer func() {
		s.inlineRuns.leave()
		if left := leave(); err == nil {
			err = left
		}
	}()
	ready := readyTasks{s: s, known: newLanes(e.mux, e.config.Queues)}
	for ctx.Err() == nil {
		tasks, err := ready.take(ctx)
		if err != nil || tasks == nil {
			return n, err
		}
		s.performReady(tasks)
		more := true
		for _, t := range tasks {
			x, err := t.recorded()
			if err != nil {
				return n, err
			}
			s.hooks.all.Wait()
			if t.entry.Started.IsZero() && x.Outcome == stint.OutcomeReturned {
				continue // on its way to an engine that knows its kind
			}
			n++
			more = (told == nil || told(&t.entry.Job, x)) && more
		}
		if !more {
			return n, nil
		}
	}
	return n, context.Cause(ctx)
}

// takeReady claims the next entry; nil means that nothing is ready.
func (s *session) takeReady(ctx context.Context, known *lanes) (*task, error) {
	limit, cancel := s.limit(ctx)
	defer cancel()
	heads, err := s.store.Look(limit, known.hints())
	if err != nil {
		return nil, err
	}
	for _, lane := range known.targets(s.claimable(heads), 0) {
		all, claims, err := s.claimUpTo([]target{lane}, 1, true)
		if err != nil {
			return nil, err
		}
		if entries := all[0].Entries; len(entries) > 0 {
			return s.newInlineTask(ctx, &entries[0], claims[0]), nil
		}
	}
	return nil, nil
}

// performReady runs entries, or concludes them unstarted, and submits them: one, or a batch.
func (s *session) performReady(tasks []*task) {
	t := tasks[0]
	switch {
	case gathers(t):
		b := &batch{}
		for _, t := range tasks {
			t.batch = b
			b.slots = append(b.slots, s.inlineRuns.slot())
		}
		s.performBatch(b, tasks, func(t *task) { s.ended <- t })
		for _, one := range b.slots {
			s.inlineRuns.free(one)
		}
	case t.entry.Cancelled:
		s.ended <- s.conclude(t, store.Result{Outcome: stint.OutcomeCancelled})
	case t.runner == nil:
		s.ended <- s.conclude(t, store.Result{Outcome: stint.OutcomeReturned, Part: store.PartKind})
	default:
		s.ended <- s.performInline(t)
	}
}

// readyTasks takes what is ready, one by one.
type readyTasks struct {
	s     *session
	known *lanes
	next  *task // claimed while a batch was gathered, and not of it
}

// take returns the next task, or a batch of those that are ready; nil means that nothing is.
func (r *readyTasks) take(ctx context.Context) (tasks []*task, err error) {
	for {
		t := r.next
		if r.next = nil; t == nil {
			t, err = r.s.takeReady(ctx, r.known)
		}
		switch {
		case err != nil:
			return nil, err
		case t == nil:
			return tasks, nil
		case len(tasks) > 0 && !(gathers(t) && keyOf(t) == keyOf(tasks[0])):
			r.next = t
			return tasks, nil
		}
		if tasks = append(tasks, t); !gathers(t) || len(tasks) == t.runner.gather.Jobs {
			return tasks, nil
		}
	}
}
