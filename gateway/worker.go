package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/coalesce"
	"github.com/stint-go/stint/internal/failure"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// worker is one that this gateway has, with its engine.
type worker struct {
	engine  *engine.Engine
	stop    context.CancelFunc // ends the engine: it leaves the roster
	id      store.EngineID
	joining Joining

	// missedFor is how long ago a job must have been handed out to count as never received: longer than an answer
	// may be under way.
	missedFor time.Duration

	over chan struct{} // closed when the engine has ended, or may record nothing more
	left chan struct{} // closed when the gateway has forgotten it

	mu        sync.Mutex
	spoke     time.Time // when it was last heard of
	absent    bool      // its engine was told that it is
	open      int       // claims that wait
	asked     int       // for how many jobs these are
	working   int       // runs that were handed out and whose handlers have not returned
	order     []string  // of its queues, as the last claim has it
	runs      map[engine.Hold]*run
	byJob     map[stint.ID]*run
	waiting   []*run                    // not handed out yet
	changed   chan struct{}             // closed when there is something to tell; made anew by who waits
	polls     int                       // how many have begun
	recorded  map[engine.Hold]time.Time // runs that it ended, and that the store has; and when
	suspended map[engine.Hold]bool      // those of them that ended by a sleep
	beaten    time.Time                 // when its last heartbeat came
	abandoned bool                      // nothing more may be handed out
}

// remember is for how long a worker that asks again learns that an ending was recorded.
const remember = 2 * time.Minute

// run is a job that a handler of the engine has been called for.
type run struct {
	hold  engine.Hold
	job   ClaimedJob
	ctx   context.Context
	calls chan call     // to the handler's goroutine
	done  chan struct{} // closed when its end is recorded

	// Guarded by worker.mu.
	handed time.Time // when it was handed out; zero while it waits for that
	own    bool      // the worker ended it
	sleeps bool      // by a sleep
	missed int       // how many heartbeats since have not named it
	reason string    // why it is to end; empty if it is not
	told   bool      // by an answer to a claim

	// Of the handler's goroutine.
	recorded map[string]json.RawMessage // steps of earlier runs
	answered map[string]json.RawMessage // steps of this one
}

// call runs in the goroutine of a handler. If it reports true the handler returns.
type call func(ctx context.Context) (over bool, result json.RawMessage, err error)

// perform is the handler of all kinds: it hands the job out and waits until the worker says how it ended.
func (w *worker) perform(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
	r := &run{ctx: ctx, calls: make(chan call), done: make(chan struct{}), answered: map[string]json.RawMessage{}}
	r.hold, _ = engine.HoldOf(ctx)
	steps, err := engine.RecordedSteps(ctx)
	if err != nil {
		return nil, err
	}
	r.recorded = steps
	r.job = ClaimedJob{
		Receipt: receiptOf(r.hold), ID: job.ID, Kind: job.Kind, Queue: job.Queue, Args: job.Args, Attempt: job.Attempt, Timeout: retry.Duration(job.Timeout),
		Tags: job.Tags, Metadata: job.Metadata, Correlation: job.Correlation, MayHaveRun: job.MayHaveRun, Created: job.Created, Steps: steps,
	}
	if !w.offer(r) {
		return nil, stint.ErrFenced
	}
	defer w.worked(r)
	ended := ctx.Done()
	for {
		select {
		case c := <-r.calls:
			if over, result, err := c(ctx); over {
				r.markSteps()
				return result, err
			}
		case <-ended:
			if cause := context.Cause(ctx); !w.tellEnd(r, cause) {
				if errors.Is(cause, stint.ErrTimeout) && r.handed.IsZero() { // nobody hands it out any more
					cause = &failure.Return{Why: "it was not handed out in time"}
				}
				return nil, cause
			}
			ended = nil
		case <-w.over:
			return nil, stint.ErrFenced
		}
	}
}

// markSteps notes that the run came to all recorded steps: which of these a worker looks at, nobody knows.
func (r *run) markSteps() {
	for name := range r.recorded {
		if r.answered[name] == nil {
			_, _ = stint.Step(r.ctx, name, func(context.Context) (json.RawMessage, error) { return nil, errors.ErrUnsupported })
		}
	}
}

// offer has a run handed out to the next claim.
func (w *worker) offer(r *run) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.abandoned {
		return false
	}
	w.runs[r.hold], w.byJob[r.job.ID] = r, r
	// Handlers are called in any order.
	at, _ := slices.BinarySearchFunc(w.waiting, r, func(a, b *run) int { return cmp.Compare(a.hold.Pos, b.hold.Pos) })
	w.waiting = slices.Insert(w.waiting, at, r)
	w.tellLocked()
	w.returnSoonLocked()
	return true
}

// tellEnd notes why a run is to end, and reports whether the worker is to say when it has: not if it does not
// have it, and not if nothing of it will count or the engine leaves.
func (w *worker) tellEnd(r *run, cause error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(cause, stint.ErrFenced), errors.Is(cause, stint.ErrStopping):
		return false
	case errors.Is(cause, stint.ErrTimeout) && w.joining.OnDemand && !r.handed.IsZero():
		return false
	case errors.Is(cause, stint.ErrTimeout):
		r.reason = ReasonTimeout
	default:
		r.reason = ReasonCancelled
	}
	if r.handed.IsZero() {
		w.waiting = slices.DeleteFunc(w.waiting, func(other *run) bool { return other == r })
		return false
	}
	w.tellLocked()
	return true
}

// tellLocked wakes the claim that waits.
func (w *worker) tellLocked() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// on hears the events of the engine.
func (w *worker) on(e event.Event) {
	switch e.Type {
	case event.EventEnded:
		w.mu.Lock()
		defer w.mu.Unlock()
		if r := w.byJob[e.Job.ID]; r != nil {
			w.forgetLocked(r)
			if r.own {
				w.recorded[r.hold], w.suspended[r.hold] = time.Now(), r.sleeps
			}
			close(r.done)
		}
	case event.EventBuried:
		w.abandon() // also what waits for runs that were told to end before
	case event.EventDraining:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tellLocked()
	}
}

func (w *worker) forgetLocked(r *run) {
	delete(w.runs, r.hold)
	delete(w.byJob, r.job.ID)
	w.waiting = slices.DeleteFunc(w.waiting, func(other *run) bool { return other == r })
}

func (w *worker) isAbandoned() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.abandoned
}

// abandon ends all that the gateway does for the worker. The roster keeps it until it is buried.
func (w *worker) abandon() {
	w.mu.Lock()
	already := w.abandoned
	if !already {
		w.abandoned = true
		close(w.over)
		w.tellLocked()
	}
	w.mu.Unlock()
	if !already {
		w.engine.Abandon()
	}
}

// hear notes that the worker speaks.
func (w *worker) hear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spoke = time.Now()
	if w.absent {
		w.absent = false
		w.engine.LookAgain()
	}
}

// presentFor is for how long a worker counts as present after it was heard of.
const presentFor = 1500 * time.Millisecond

// present reports whether the worker is there to take jobs: it waits for some, or spoke just now.
func (w *worker) present() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.absent = w.open == 0 && time.Since(w.spoke) >= presentFor
	return !w.absent
}

// endClaims answers the claim that waits.
func (w *worker) endClaims() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.polls++
	w.tellLocked()
}

// claimAlive claims for a worker that lives, as it shows by that, and answers before its next sign of life is due.
func (w *worker) claimAlive(ctx context.Context, c Claim) (News, error) {
	w.hear()
	if c.Idle {
		w.note(nil)
	}
	if ttl := w.joining.TimeToLive; time.Since(w.lastBeat()) > ttl/4 {
		if err := w.passOn(ctx); err != nil {
			return News{}, err
		}
	}
	c.Wait = min(c.Wait, w.joining.TimeToLive/2)
	return w.claim(ctx, c), nil
}

// passOn has the database know that the worker lives.
func (w *worker) passOn(ctx context.Context) error {
	sent := time.Now()
	err := w.engine.Beat(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.beaten = sent
		return nil
	case errors.Is(err, store.ErrBuried), w.abandoned:
		return ErrLost
	}
	return fmt.Errorf("%w: %w", ErrUnanswered, err)
}

// claim answers with up to so many jobs, and waits for the first up to a time. A later claim ends it, unless the worker
// is one on demand.
func (w *worker) claim(ctx context.Context, c Claim) News {
	most, wait, onDemand := c.Max, c.Wait, w.joining.OnDemand
	w.mu.Lock()
	defer w.mu.Unlock()
	if !onDemand {
		w.polls++
		w.tellLocked()
	}
	mine := w.polls
	w.open++
	w.asked += most
	defer func() {
		w.open--
		w.asked -= most
		w.spoke = time.Now()
		if ctx.Err() != nil && !onDemand {
			w.spoke = time.Time{} // it hung up
		}
		w.returnSoonLocked()
	}()
	if onDemand {
		if len(c.Queues) > 0 {
			w.order = c.Queues
		}
		w.engine.LookAgain()
	}
	timer := time.NewTimer(coalesce.Wait(wait))
	defer timer.Stop()
	for {
		if mine != w.polls || ctx.Err() != nil || w.abandoned {
			return newNews(w.drains())
		}
		news := w.newsLocked(most)
		if len(news.Jobs) > 0 || len(news.Cancel) > 0 || news.Drain || wait <= 0 {
			return news
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			wait = 0
		case <-ctx.Done():
		}
		w.mu.Lock()
	}
}

// newsLocked takes up to so many jobs to hand out, and what was not told yet.
func (w *worker) newsLocked(most int) (n News) {
	n = newNews(w.drains())
	now := time.Now()
	for _, r := range w.waiting[:min(most, len(w.waiting))] {
		r.handed = now
		w.working++
		n.Jobs = append(n.Jobs, r.job)
	}
	w.waiting = slices.Delete(w.waiting, 0, len(n.Jobs))
	for _, r := range w.runs {
		if r.reason != "" && !r.told && !r.handed.IsZero() {
			r.told = true
			n.Cancel = append(n.Cancel, Cancel{r.job.Receipt, r.reason})
		}
	}
	return n
}

// running is how many jobs the worker has been given whose end is not recorded.
func (w *worker) running() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runs) - len(w.waiting)
}

func (w *worker) lastBeat() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.beaten
}

func (w *worker) drains() bool { return w.engine.Status().Leaving }

// do has the handler of a run do something, and reports false if the run is over. The call may go on when
// ctx has ended, and answers in any case.
func (w *worker) do(ctx context.Context, r *run, c call) bool {
	finished := make(chan struct{})
	select {
	case r.calls <- func(ctx context.Context) (bool, json.RawMessage, error) {
		defer close(finished)
		return c(ctx)
	}:
		<-finished
		return true
	case <-r.done:
	case <-w.over:
	case <-ctx.Done():
	}
	return false
}

// finish ends runs, and says what became of each when all are recorded, and whether the end of the worker kept some
// from that.
func (w *worker) finish(ctx context.Context, endings []Ending) (_ []Recorded, fenced bool, _ error) {
	w.hear()
	answers := make([]Recorded, len(endings))
	waits := make([]*run, len(endings))
	for i := range endings {
		answers[i], waits[i] = w.end(ctx, &endings[i])
	}
	for i, r := range waits {
		if r == nil {
			continue
		}
		select {
		case <-r.done:
			answers[i] = Recorded{Status: OK}
			if !r.own {
				answers[i] = Recorded{Fenced, "the worker does not hold the job"}
			}
		case <-w.over:
			answers[i], fenced = Recorded{Status: Fenced, Problem: "the worker lost its place in the roster"}, true
		case <-ctx.Done():
			return nil, fenced, context.Cause(ctx)
		}
	}
	return answers, fenced, nil
}

// end ends one run. It returns the run if its record is to be waited for.
func (w *worker) end(ctx context.Context, x *Ending) (Recorded, *run) {
	hold, err := ParseReceipt(x.Receipt)
	if err != nil {
		return Recorded{Invalid, err.Error()}, nil
	}
	w.mu.Lock()
	r, recorded := w.runs[hold], w.recorded[hold]
	w.mu.Unlock()
	switch {
	case r != nil:
	case !recorded.IsZero():
		return Recorded{Status: OK}, nil
	default:
		return Recorded{Fenced, "the worker does not hold the job"}, nil
	}
	result, err := x.end()
	if isInvalid(err) {
		return Recorded{Invalid, err.Error()}, nil
	}
	w.do(ctx, r, func(context.Context) (bool, json.RawMessage, error) {
		r.own = true
		return true, result, err
	})
	return Recorded{}, r
}

// beat notes what runs, and passes on that the worker lives.
func (w *worker) beat(ctx context.Context, running []Running) (News, error) {
	w.hear()
	w.note(running)
	if err := w.passOn(ctx); err != nil {
		return News{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := newNews(w.drains())
	for _, r := range w.runs {
		if r.reason != "" && !r.handed.IsZero() {
			n.Cancel = append(n.Cancel, Cancel{r.job.Receipt, r.reason})
		}
	}
	for _, one := range running {
		if hold, err := ParseReceipt(one.Receipt); err == nil && w.runs[hold] == nil && w.recorded[hold].IsZero() {
			n.Cancel = append(n.Cancel, Cancel{one.Receipt, ReasonLost})
		}
	}
	return n, nil
}

// missedBeats is how many heartbeats may leave out a job before it counts as never received.
const missedBeats = 2

// note keeps what the worker says of what runs, and takes back what it was handed and does not know of.
func (w *worker) note(running []Running) {
	named := map[engine.Hold]bool{}
	for _, one := range running {
		hold, err := ParseReceipt(one.Receipt)
		if err != nil {
			continue
		}
		named[hold] = true
		w.mu.Lock()
		r := w.runs[hold]
		w.mu.Unlock()
		if r == nil {
			continue
		}
		if one.Progress != nil {
			stint.SetProgress(r.ctx, one.Progress.Fraction, one.Progress.Text)
		}
		for _, line := range one.Log {
			stint.Logger(r.ctx).Info(line)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for hold, r := range w.runs {
		switch {
		case r.handed.IsZero():
		case named[hold], w.joining.OnDemand:
			r.missed = 0
		default:
			r.missed++
			if r.missed >= missedBeats && now.Sub(r.handed) > w.missedFor {
				go w.do(context.Background(), r, func(context.Context) (bool, json.RawMessage, error) {
					return true, nil, &failure.Return{Why: "the worker did not receive it"}
				})
			}
		}
	}
	for hold, at := range w.recorded {
		if now.Sub(at) > remember {
			delete(w.recorded, hold)
			delete(w.suspended, hold)
		}
	}
}

// returnWaiting hands back what was not handed out: no claim comes any more.
func (w *worker) returnWaiting() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.waiting {
		go w.do(context.Background(), r, func(context.Context) (bool, json.RawMessage, error) {
			return true, nil, &failure.Return{Why: "the worker takes no more jobs"}
		})
	}
	w.waiting = nil
}

// worked notes that the handler of a run returns.
func (w *worker) worked(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !r.handed.IsZero() {
		w.working--
	}
}

// atOnce is how many jobs a worker on demand may have at once: those that it runs, and those that its claims ask for.
func (w *worker) atOnce() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.working + w.asked
}

func (w *worker) queueOrder() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.order
}

// returnSoonLocked hands back what waits for a claim of a worker on demand in a moment, if none comes: the claim for
// which it was taken has ended, and the next one may never come.
func (w *worker) returnSoonLocked() {
	if !w.joining.OnDemand || w.open > 0 || len(w.waiting) == 0 {
		return
	}
	time.AfterFunc(presentFor, func() {
		w.mu.Lock()
		silent := time.Since(w.spoke) >= presentFor
		if !silent {
			w.returnSoonLocked()
		}
		silent = silent && w.open == 0
		w.mu.Unlock()
		if silent {
			w.returnWaiting()
		}
	})
}

// run finds a running job by its receipt; nil for one that a sleep has ended.
func (w *worker) run(receipt string) (*run, error) {
	hold, err := ParseReceipt(receipt)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.runs[hold]; r != nil {
		return r, nil
	}
	if w.suspended[hold] {
		return nil, nil
	}
	return nil, ErrLost
}
