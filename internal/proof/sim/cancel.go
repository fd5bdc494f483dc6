package sim

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Cancel implements [store.Canceller]. Half of it is the marker alone, which is
// all that a program in another language writes.
func (p *process) Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.CancelStatus, error) {
	answers, _, err := callWith(ctx, p, opCancel, func(ctx context.Context, f fate) (map[stint.ID]stint.CancelStatus, error) {
		p.w.cancels.asked(ids)
		if f.fault == half {
			marked, err := p.w.ground.mark(ctx, ids, why)
			p.w.cancels.stand(p.w.tick(), why, marked)
			p.w.note(p.name, numbers(ids), "mark as cancelled, %q: %v stand, %v", why, marked, err)
			return nil, errors.Join(errLost, err)
		}
		answers, err := p.store.Cancel(ctx, ids, why)
		p.w.cancels.answered(p.w.tick(), why, answers)
		p.w.note(p.name, numbers(ids), "cancel, %q: %v, %v", why, answers, err)
		p.w.checkAnswers(ctx, answers)
		return answers, err
	})
	return answers, err
}

// Cancelling implements [store.Canceller]. It must name everything that was
// cancelled before and has not ended.
func (p *process) Cancelling(ctx context.Context, ids []stint.ID) ([]stint.ID, error) {
	began := time.Now()
	p.wonders(opCancelling, began)
	r, _, err := call(ctx, p, opCancelling, func(ctx context.Context) (reading[[]stint.ID], error) {
		after := p.w.tick()
		gone, err := p.store.Cancelling(ctx, ids)
		return reading[[]stint.ID]{gone, after}, err
	})
	p.wonders(opCancelling, time.Time{})
	if err != nil || time.Since(began) > patience {
		p.unease()
		return r.what, err
	}
	p.w.checkCancelling(ctx, ids, r)
	return r.what, nil
}

// cancellations are the jobs that clients cancelled, or may have.
type cancellations struct {
	mu     sync.Mutex
	jobs   map[stint.ID]*cancellation
	absent map[stint.ID]time.Time // since when somebody says that there is no such job
}

// cancellation is what is known of one job's.
type cancellation struct {
	stands int64     // since which instant there has been a marker, as the world counts; 0 when that is not known
	at     time.Time // when that was
	why    []string  // that it bears; more than one when several came at the same instant
	gone   bool      // its schedule was removed, which cancels it without a reason, at an instant that is not known
	now    bool      // somebody was told that the job will not run (again)
	late   time.Time // since when it has ended otherwise, as somebody was told
}

func newCancellations() *cancellations {
	return &cancellations{jobs: map[stint.ID]*cancellation{}, absent: map[stint.ID]time.Time{}}
}

// of is what is known of a job; the zero value says that nobody cancelled it
// for certain, and false that nobody tried to.
func (l *cancellations) of(job stint.ID) (cancellation, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.jobs[job]; c != nil {
		return *c, true
	}
	return cancellation{}, false
}

// asked notes that somebody tries to.
func (l *cancellations) asked(ids []stint.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		l.lockedOf(id)
	}
}

// removed notes that their schedule was removed.
func (l *cancellations) removed(ids []stint.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		l.lockedOf(id).gone = true
	}
}

func (l *cancellations) lockedOf(id stint.ID) *cancellation { return madeIn(l.jobs, id) }

// stand notes the markers of jobs that had not ended. The first stands.
func (l *cancellations) stand(tick int64, why string, ids []stint.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		c := l.lockedOf(id)
		if c.stands == 0 {
			c.stands, c.at = tick, now
		}
		if c.at.Equal(now) {
			c.why = append(c.why, why)
		}
	}
}

// answered notes what the store says came of a call.
func (l *cancellations) answered(tick int64, why string, answers map[stint.ID]stint.CancelStatus) {
	var marked []stint.ID
	for id, answer := range answers {
		if answer == stint.CancelledNow || answer == stint.CancelRequested {
			marked = append(marked, id)
		}
	}
	l.stand(tick, why, marked)
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, answer := range answers {
		c := l.lockedOf(id)
		switch answer {
		case stint.CancelledNow:
			c.now = true
		case stint.CancelTooLate:
			c.late = time.Now()
		case stint.CancelNotFound:
			l.absent[id] = time.Now()
		}
	}
}

// patience is how long a question who was cancelled may take and count as
// answered at once.
const patience = 500 * time.Millisecond

// mayBegin checks that an attempt may begin: not of what was cancelled before
// its engine had read it. What an engine had in hand by then may.
func (w *world) mayBegin(p *process, job stint.ID, h holding) {
	if c, _ := w.cancels.of(job); c.stands != 0 && h.read > c.stands {
		w.wrong("job %d: %s began it, though it was cancelled %v ago, before it was handed out", job, p.name, time.Since(c.at))
	}
}

// mustHaveHeard checks, when an attempt ends, that it was told of its
// cancellation in time, unless something kept its process from hearing; and
// that it was not told of one that there was not.
func (p *process) mustHaveHeard(ctx context.Context, job *stint.Job, began time.Time) {
	if job.Kind == kept && errors.Is(context.Cause(ctx), stint.ErrFenced) {
		p.w.wrong("job %d: its handler on %s was to go on when its engine was fenced", job.ID, p.name)
	}
	c, asked := p.w.cancels.of(job.ID)
	if errors.Is(context.Cause(ctx), stint.ErrCancelled) {
		if !asked && !p.w.wasAsked(job.ID) {
			p.w.wrong("job %d: %s was told that it is cancelled, and nobody asked for that", job.ID, p.name)
		}
		return
	}
	if c.stands == 0 || ctx.Err() != nil || job.Kind == kept {
		return // nobody tells what is kept of anything once its engine is fenced
	}
	since := c.at
	if began.After(since) {
		since = began
	}
	// An engine asks, pauses for a tenth of a second, and waits for a quarter of its time to live; an answer
	// read just before the cancellation may take as long as one after it.
	if late := time.Since(since); late > p.ttl/4+time.Second/10+2*patience && !p.distracted(opCancelling, since) {
		p.w.wrong("job %d: for %v nobody told its handler on %s that it is cancelled", job.ID, late, p.name)
	}
}

// distracted tells whether anything kept the process from hearing since, as it
// would by asking.
func (p *process) distracted(by op, since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.uneasy.Before(since) || !p.asking[by].IsZero() && time.Since(p.asking[by]) > patience
}

func (p *process) unease() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uneasy = time.Now()
}

// wonders notes since when the process has been asking.
func (p *process) wonders(what op, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking[what] = since
}

// checkAnswers checks that what was cancelled at once shows so, or as claimed by
// somebody who is told; and that what is asked to stop runs, or has ended by now.
func (w *world) checkAnswers(ctx context.Context, answers map[stint.ID]stint.CancelStatus) {
	for id, answer := range answers {
		if answer == stint.CancelNotFound {
			continue // those that are there by now may not have been
		}
		job, err := w.real.Job(context.WithoutCancel(ctx), id)
		if err != nil {
			if !w.mayBeGone(id) {
				w.wrong("job %d: somebody was told that it is %s, and nobody sees it: %v", id, answer, err)
			}
			continue
		}
		n := len(job.Attempts)
		ended := n > 0 && job.Attempts[n-1].Final
		switch {
		case answer == stint.CancelledNow && job.State != stint.Cancelled && job.State != stint.Running,
			answer == stint.CancelRequested && job.State != stint.Running && !ended && !job.IsFlow,
			answer == stint.CancelTooLate && (!ended || job.State == stint.Cancelled):
			w.wrong("job %d: somebody was told %q, and it shows as %s", id, answer, job.State)
		}
	}
}

// checkCancelling checks an answer to the question who of the asked was
// cancelled: it names all of them that have not ended, and nobody else.
func (w *world) checkCancelling(ctx context.Context, asked []stint.ID, r reading[[]stint.ID]) {
	for _, id := range asked {
		c, tried := w.cancels.of(id)
		switch named := slices.Contains(r.what, id); {
		case named && !tried && !w.wasAsked(id):
			w.wrong("job %d is said to be cancelled, and nobody asked for that", id)
		case named || c.stands == 0 || c.stands > r.after:
		default:
			if job, err := w.real.Job(context.WithoutCancel(ctx), id); err != nil && !w.mayBeGone(id) || err == nil && !job.State.Final() {
				w.wrong("job %d was cancelled %v ago, and its engine is not told (%v)", id, time.Since(c.at), err)
			}
		}
	}
}

// checkCancellations checks how cancelled jobs ended: as cancelled, unless an
// attempt that was under way ended it otherwise; never by another attempt. And
// that clients were told the truth.
func (j *judging) checkCancellations(l *cancellations, people *operations, e *erased) {
	ends := map[stint.ID]*store.LedgerExecution{}
	for _, x := range j.executions {
		if x.Final {
			ends[x.Job] = x
		}
		c := l.jobs[x.Job]
		if c != nil && c.stands != 0 && !x.Final && x.Finished.After(c.at) {
			j.wrong(x.Job, "it goes on after entry %d, which was %s %v after the cancellation", x.Pos, x.Outcome, x.Finished.Sub(c.at))
		}
	}
	for id, c := range l.jobs {
		x, t := ends[id], j.told[id]
		if x == nil {
			continue
		}
		cancelled := x.Outcome.State() == stint.Cancelled // skipped, too
		switch {
		case c.now && !cancelled:
			j.wrong(id, "somebody was told that it is cancelled, and it was %s", x.Outcome)
		case !c.late.IsZero() && (cancelled || x.Finished.After(c.late)):
			j.wrong(id, "somebody was told that it had ended otherwise, and it was %s at %v", x.Outcome, x.Finished)
		case c.stands != 0 && cancelled && t.Last != lastCancel && !slices.Contains(c.why, t.info.Reason) && !inherits(t.info.Reason) && !(c.gone && t.info.Reason == "cancelled"):
			j.wrong(id, "it was cancelled because of %q, not of %q", t.info.Reason, c.why)
		}
	}
	for id, at := range l.absent {
		if since, by := people.of(id).deleting, e.when(id); j.gone[id] && (!since.IsZero() && !since.After(at) || !by.IsZero() && !by.After(at)) {
			continue
		}
		if t, there := j.told[id]; there && t.info.Created.Before(at) {
			j.wrong(id, "somebody was told that there is no such job")
		}
	}
}
