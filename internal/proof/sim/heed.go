package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

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
		if !asked {
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
	if late := time.Since(since); late > p.ttl/4+time.Second && !p.distracted(opCancelling, since) {
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
			answer == stint.CancelRequested && job.State != stint.Running && !ended,
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
		case named && !tried:
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
		cancelled := x.Outcome == stint.OutcomeCancelled
		switch {
		case c.now && !cancelled:
			j.wrong(id, "somebody was told that it is cancelled, and it was %s", x.Outcome)
		case !c.late.IsZero() && (cancelled || x.Finished.After(c.late)):
			j.wrong(id, "somebody was told that it had ended otherwise, and it was %s at %v", x.Outcome, x.Finished)
		case c.stands != 0 && cancelled && t.Last != lastCancel && !slices.Contains(c.why, t.info.Reason) && !(c.gone && t.info.Reason == "cancelled"):
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
