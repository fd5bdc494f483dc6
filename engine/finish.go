package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
)

// maxFlush bounds one flush, so that its transaction stays short.
const maxFlush = 5000

// A flush of fewer outcomes than this costs about as much as one of a single
// outcome. The rest behind it is twice as long as it took, within a bound: what an
// engine that dies has not recorded is done again.
const (
	fewOutcomes = 64
	maxRest     = 5 * time.Millisecond
)

// finish is the last stage. Outcomes gather while the flush before is under
// way, so that the load itself sets the size of the batches: there is no timer
// to tune. While the database is away they wait, and so, in the end, do the
// slots.
//
// Behind a flush of some, but few, it rests: many engines with small batches spend
// the server's time on transactions. No slot waits for that, and an outcome that
// comes alone is recorded at once.
func (s *session) finish(ended <-chan *task) {
	batch := make([]*task, 0, 256)
	var room []stint.Execution
	var doubtful sync.WaitGroup
	defer doubtful.Wait()
	for t := range ended {
		batch = s.gather(batch[:0], t, ended)
		// What may be in a transaction that is still being committed is
		// recorded by itself: its flush may have to wait for that.
		n := 0
		for _, t := range batch {
			if t.fate != unknown || t.drop {
				batch[n] = t
				n++
				continue
			}
			doubtful.Go(func() { s.flush([]*task{t}, nil) })
		}
		room = slices.Grow(room[:0], n)
		began := time.Now()
		s.flush(batch[:n], room)
		if 1 < n && n < fewOutcomes {
			time.Sleep(min(maxRest, 2*time.Since(began)))
		}
		clear(room[:n])
		clear(batch)
	}
}

// gather adds what ended meanwhile.
func (s *session) gather(batch []*task, first *task, ended <-chan *task) []*task {
	batch = append(batch, first)
	for len(batch) < maxFlush {
		select {
		case t, ok := <-ended:
			if !ok {
				return batch
			}
			batch = append(batch, t)
		default:
			return batch
		}
	}
	return batch
}

// flush records a batch, trying again until it is recorded or the session is
// fenced. A commit whose fate is unknown is simply repeated. The executions are put
// into the room given, as far as they fit.
func (s *session) flush(batch []*task, room []stint.Execution) {
	wait := newBackoff()
	stripped, repeats := false, false
	for {
		began := time.Now()
		n, wrote, err := s.record(batch, room)
		switch {
		case err == nil && wrote:
			s.meters.flushed(began)
			fallthrough
		case err == nil:
			if n == 0 && len(batch) == 1 && batch[0].fate == unknown && !batch[0].drop {
				s.settle(batch[0], repeats)
			}
			s.recorded(batch)
			return
		case errors.Is(err, stint.ErrBuried), errors.Is(err, stint.ErrClaimGone):
			// Whatever we hold is somebody else's, or will be.
			s.fence()
			forgo(batch)
			return
		case errors.Is(err, stint.ErrUnstorable) && len(batch) > 1:
			s.meters.flushAgain()
			s.flush(batch[:len(batch)/2], room)
			s.flush(batch[len(batch)/2:], room)
			return
		case errors.Is(err, stint.ErrUnstorable) && !stripped:
			s.meters.flushAgain()
			strip(&batch[0].done)
			stripped = true
			continue
		}
		repeats = true
		s.trouble(s.work, "record outcomes", fmt.Errorf("%d of them: %w", len(batch), err))
		if s.fenced() {
			forgo(batch)
			return
		}
		s.meters.flushAgain()
		// A stop ends the work's context, but not what is left to write.
		until, cancel := context.WithTimeout(context.WithoutCancel(s.work), s.config.TimeToLive)
		wait.sleep(until)
		cancel()
	}
}

// settle says what stands of an attempt whose handler may have completed it, and
// of which nothing new was recorded: its completion had arrived, or else this record
// had, when it was tried before. The store knows; where it cannot be asked, a
// caller who waits is not told what is only likely.
func (s *session) settle(t *task, repeats bool) {
	completes, known := s.completes(t)
	switch {
	case known && !completes:
	case known, !repeats && t.guest == nil:
		t.done, t.fate = *t.commit, completed
	default:
		t.vague = true
	}
}

// completes asks the store whether an attempt is recorded as completed.
func (s *session) completes(t *task) (yes, known bool) {
	if s.inspector == nil {
		return false, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.work), s.config.TimeToLive)
	defer cancel()
	job, err := s.inspector.Job(ctx, t.entry.ID)
	if err != nil {
		return false, false
	}
	return slices.ContainsFunc(job.Executions, func(x stint.ExecutionInfo) bool {
		return x.Attempt == t.entry.Attempt && x.Engine == s.token && x.Outcome == stint.OutcomeCompleted
	}), true
}

// record writes what of a batch is not in the store yet, and reports how many
// of these outcomes were new there, and whether there was anything to write.
func (s *session) record(batch []*task, room []stint.Execution) (n int, wrote bool, err error) {
	if s.fenced() {
		return 0, false, stint.ErrBuried
	}
	done := slices.Grow(room[:0], len(batch))
	claims := make([]stint.ClaimRef, 0, 8)
	var last *held
	seen := map[*held]bool{}
	for _, t := range batch {
		if t.drop || t.fate == completed {
			continue
		}
		done = append(done, t.done)
		if !t.done.Final && s.config.OnEvent != nil {
			s.untold.expect(t.entry.ID)
		}
		if t.claim != last && !seen[t.claim] {
			claims = append(claims, t.claim.ref)
			seen[t.claim] = true
		}
		last = t.claim
	}
	if len(done) == 0 {
		return 0, false, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.work), s.config.TimeToLive)
	defer cancel()
	// A stop does not end it, but a fence does: the answer may never come, and
	// would not matter.
	defer context.AfterFunc(s.work, func() {
		if errors.Is(context.Cause(s.work), stint.ErrFenced) {
			cancel()
		}
	})()
	n, err = s.store.Finish(ctx, s.token, claims, done)
	return n, true, err
}

// recorded tells everybody that a batch is in the store.
func (s *session) recorded(batch []*task) {
	s.meters.recorded(batch)
	s.held.recorded(batch)
	for i, t := range batch {
		if t.drop {
			forgo(batch[i : i+1])
			continue
		}
		s.told(t)
		if t.guest != nil {
			r := receipt{done: t.done}
			if t.vague {
				r.err = stint.ErrCommitUnknown
			}
			t.guest.answer <- r
		}
	}
}

// told emits the events of a recorded attempt, and has its hooks called.
func (s *session) told(t *task) {
	if s.config.OnEvent != nil {
		if t.done.Slot > 0 {
			s.emit(stint.Event{Type: stint.EventEnded, Engine: s.token, Job: &t.entry.Job, Execution: &t.done})
		}
		s.emitFailed(&t.entry.Job, &t.done)
		s.untold.told(t.entry.ID)
	}
	if t.done.Slot > 0 || t.done.Outcome == stint.OutcomeExpired {
		s.callHooks(&t.entry.Job, &t.done, true)
	}
}

// emitFailed tells of a job that failed for good.
func (s *session) emitFailed(job *stint.Job, x *stint.Execution) {
	if x.Final && x.Outcome.State() == stint.Failed {
		s.emit(stint.Event{Type: stint.EventFailed, Engine: s.token, Job: job, Execution: x})
	}
}

// forgo tells those who wait for a batch that it will not be recorded.
func forgo(batch []*task) {
	for _, t := range batch {
		if t.guest != nil {
			t.guest.answer <- receipt{t.done, stint.ErrBuried}
		}
	}
}

// strip takes out of an execution what the handler wrote, for a database that
// refuses it all the same: the outcome counts, its words do not.
func strip(x *stint.Execution) {
	x.Result, x.Reason = nil, "the database refused what the handler left"
	if x.Error != nil {
		x.Error = &stint.Failure{Class: "unstorable", Message: "the database refused the error's text", Recoverable: x.Error.Recoverable}
	}
}

func random01() float64 { return rand.Float64() }
