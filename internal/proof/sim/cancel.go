package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stint-go/stint"
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

func (l *cancellations) lockedOf(id stint.ID) *cancellation {
	c := l.jobs[id]
	if c == nil {
		c = new(cancellation)
		l.jobs[id] = c
	}
	return c
}

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
