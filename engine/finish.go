package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

// maxFlush bounds one flush, so that its transaction stays short.
const maxFlush = 5000

// In a flush of fewer outcomes than this the transaction costs more than they do. The rest after it is
// as many times as long as the flush as there were outcomes, up to maxRest: one that comes alone is
// recorded at once, and what an engine has not recorded when it dies is done again. In a fleet of more than
// fewEngines, each of which has a small share of the outcomes, it is up to twice as long.
const (
	fewOutcomes = 512
	maxRest     = 25 * time.Millisecond
	fewEngines  = 10
	flowRest    = 5 * time.Millisecond // at most, while outcomes are of jobs that others may wait for

	// gatherFor is how long an engine beside another one waits before a flush: who waits for the record has ended
	// many runs at once, mostly, and ends no more before that.
	gatherFor = 200 * time.Microsecond
)

// finish is the last stage. Outcomes gather while the previous flush runs, so the load itself sets
// the size of the batches. While the database is away outcomes wait, and in the end the slots do
// too.
//
// After a flush of a few outcomes it rests: many engines with small batches would spend the
// server's time on transactions. No slot waits for the rest, and a single outcome is recorded at
// once.
func (s *session) finish(ended <-chan *task) {
	batch := make([]*task, 0, 256)
	var buf []store.Completion
	var unknowns sync.WaitGroup
	defer unknowns.Wait()
	for t := range ended {
		if s.config.Beside != nil {
			time.Sleep(gatherFor)
		}
		batch = s.gather(batch[:0], t, ended)
		// An outcome that may be in a transaction whose commit still runs is
		// recorded by itself: its flush may have to wait for that commit.
		n := 0
		for _, t := range batch {
			if t.tx != txUnknown || t.drop {
				batch[n] = t
				n++
				continue
			}
			unknowns.Go(func() { s.flush([]*task{t}, nil) })
		}
		buf = slices.Grow(buf[:0], n)
		began := time.Now()
		s.flush(batch[:n], buf)
		if 1 < n && n < fewOutcomes && s.config.Beside == nil && !slices.ContainsFunc(batch[:n], isInline) {
			longest := maxRest * time.Duration(min(max(s.countPeers(), fewEngines), 2*fewEngines)) / fewEngines
			if slices.ContainsFunc(batch[:n], func(t *task) bool { return t.done.Flow }) {
				longest = flowRest
			}
			time.Sleep(min(longest, time.Duration(n)*time.Since(began)))
		}
		clear(buf[:n])
		clear(batch)
	}
}

// isInline reports whether a caller waits for a task.
func isInline(t *task) bool { return t.inline != nil }

// gather adds the outcomes that have arrived meanwhile.
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

// flush records a batch, and tries again until it is recorded or the session is fenced. A commit
// whose result is unknown is repeated. buf is reused for the outcomes.
func (s *session) flush(batch []*task, buf []store.Completion) {
	wait := new(backoff)
	stripped, repeats := false, false
	for {
		began := time.Now()
		n, wrote, err := s.record(batch, buf)
		switch {
		case err == nil && wrote:
			s.meters.flushed(began)
			fallthrough
		case err == nil:
			if n == 0 && len(batch) == 1 && batch[0].tx == txUnknown && !batch[0].drop {
				s.resolveTx(batch[0], repeats)
			}
			s.recorded(batch)
			return
		case errors.Is(err, store.ErrBuried), errors.Is(err, store.ErrClaimGone):
			// What this session holds belongs to other engines now, or will.
			s.fence()
			s.giveUp(batch)
			return
		case errors.Is(err, stint.ErrUnstorable) && len(batch) > 1:
			s.meters.flushAgain()
			s.flush(batch[:len(batch)/2], buf)
			s.flush(batch[len(batch)/2:], buf)
			return
		case errors.Is(err, stint.ErrUnstorable) && !stripped:
			s.meters.flushAgain()
			stripTexts(&batch[0].done)
			stripped = true
			continue
		}
		repeats = true
		s.trouble(s.work, "record outcomes", fmt.Errorf("%d of them: %w", len(batch), err))
		if s.fenced() {
			s.giveUp(batch)
			return
		}
		s.meters.flushAgain()
		// A stop ends the context of the work, but what is left is still written.
		until, cancel := context.WithTimeout(context.WithoutCancel(s.work), s.config.TimeToLive)
		wait.sleep(until)
		cancel()
	}
}

// record writes what of a batch is not in the store yet. It returns how many of these outcomes were
// new there, and whether there was anything to write.
func (s *session) record(batch []*task, buf []store.Completion) (n int, wrote bool, err error) {
	if s.fenced() {
		return 0, false, store.ErrBuried
	}
	done := slices.Grow(buf[:0], len(batch))
	claims := make([]store.ClaimRef, 0, 8)
	var last *claimState
	seen := map[*claimState]bool{}
	for _, t := range batch {
		if t.drop || t.tx == txCompleted {
			continue
		}
		done = append(done, t.done)
		if !t.done.Final && s.config.OnEvent != nil {
			s.endEvents.expect(t.entry.ID)
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
	ctx, cancel := s.untilFenced()
	defer cancel()
	moves := s.moves.Load()
	n, err = s.store.Finish(ctx, s.token, claims, done)
	if err == nil && s.movedSince(moves) {
		err = store.ErrBuried
	}
	return n, true, err
}

// untilFenced is the context of a call that records something. A stop does not end it, but a fence
// does: its answer may never come, and would not matter.
func (s *session) untilFenced() (ctx context.Context, cancel func()) {
	ctx, end := context.WithTimeout(context.WithoutCancel(s.work), s.config.TimeToLive)
	forget := context.AfterFunc(s.work, func() {
		if s.fenced() {
			end()
		}
	})
	return ctx, func() { forget(); end() }
}

// recorded notifies everything that waits for a batch.
func (s *session) recorded(batch []*task) {
	s.meters.recorded(batch)
	s.inflight.recorded(batch)
	if slices.ContainsFunc(batch, func(t *task) bool { return t.done.Flow }) {
		s.wakeups[dueTimes].notify() // somebody may wait for one of them
	}
	for i, t := range batch {
		s.permits.recorded(t)
		if t.drop {
			s.giveUp(batch[i : i+1])
			continue
		}
		s.notifyEnd(t)
		if t.inline != nil {
			r := inlineResult{done: t.done}
			if t.uncertain {
				r.err = stint.ErrCommitUnknown
			}
			t.inline.result <- r
		}
	}
}

// notifyEnd emits the events of a recorded attempt, and starts its hooks.
func (s *session) notifyEnd(t *task) {
	if s.config.OnEvent != nil {
		if t.done.Slot > 0 {
			s.emit(event.Event{Type: event.EventEnded, Engine: s.token, Job: &t.entry.Job, Attempt: &t.done})
		}
		s.emitFailed(&t.entry.Job, &t.done)
		s.endEvents.sent(t.entry.ID)
	}
	if t.done.Slot > 0 || t.done.Outcome == stint.OutcomeExpired {
		s.callHooks(&t.entry.Job, &t.done, true)
	}
}

func (s *session) emitFailed(job *stint.Job, x *store.Completion) {
	if x.Final && x.Outcome.State() == stint.Failed {
		s.emit(event.Event{Type: event.EventFailed, Engine: s.token, Job: job, Attempt: x})
	}
}

// giveUp tells inline callers that the session will not record a batch.
func (s *session) giveUp(batch []*task) {
	for _, t := range batch {
		s.remains.note(t)
		if t.inline != nil {
			t.inline.result <- inlineResult{t.done, store.ErrBuried}
		}
	}
}

// stripTexts removes what the handler wrote, for a database that refuses it: the outcome still
// counts.
func stripTexts(x *store.Completion) {
	x.Result, x.Reason, x.Log = nil, "the database refused what the handler returned", nil
	if x.Error != nil {
		x.Error = &stint.Failure{Class: "unstorable", Message: "the database refused the error's text", Recoverable: x.Error.Recoverable}
	}
}

func random01() float64 { return rand.Float64() }

// endEvents tracks jobs with an attempt that is recorded, or about to be, and whose end was not
// reported yet. After the record the next attempt may start at once, perhaps in this engine; but
// listeners must get the end before the next start.
type endEvents struct {
	pending atomic.Int64 // how many jobs: mostly 0
	jobs    sync.Map     // by id a chan struct{}, closed when the end was reported
}

// expect notes that the end of a job's attempt will be reported.
func (u *endEvents) expect(job stint.ID) {
	if _, known := u.jobs.LoadOrStore(job, make(chan struct{})); !known {
		u.pending.Add(1)
	}
}

func (u *endEvents) sent(job stint.ID) {
	if u.pending.Load() == 0 {
		return
	}
	if c, known := u.jobs.LoadAndDelete(job); known {
		close(c.(chan struct{}))
		u.pending.Add(-1)
	}
}

// await waits until the end of a job's attempt is reported, or for the end of the session, after
// which nothing is reported.
func (u *endEvents) await(job stint.ID, end <-chan struct{}) {
	if u.pending.Load() == 0 {
		return
	}
	if c, known := u.jobs.Load(job); known {
		select {
		case <-c.(chan struct{}):
		case <-end:
		}
	}
}
