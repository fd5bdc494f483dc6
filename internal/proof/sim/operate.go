package sim

import (
	"context"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Retry implements [store.Operator].
func (p *process) Retry(ctx context.Context, ids []stint.ID, again stint.RerunOptions) (map[stint.ID]stint.RerunResult, error) {
	answers, _, err := call(ctx, p, opRetry, func(ctx context.Context) (map[stint.ID]stint.RerunResult, error) {
		before, asked := p.w.see(ctx, ids), p.w.operations.asks(ids)
		answers, err := p.store.Retry(ctx, ids, again)
		p.w.note(p.name, numbers(ids), "run again, %+v: %v, %v", again, answers, err)
		p.w.operations.retried(p.w.tick(), asked, again, answers, err)
		p.w.checkRetried(ctx, before, answers)
		return answers, err
	})
	return answers, err
}

// Delete implements [store.Operator].
func (p *process) Delete(ctx context.Context, ids []stint.ID) (map[stint.ID]store.DeleteStatus, error) {
	answers, _, err := call(ctx, p, opDelete, func(ctx context.Context) (map[stint.ID]store.DeleteStatus, error) {
		before := p.w.see(ctx, ids)
		p.w.operations.deletes(ids)
		answers, err := p.store.Delete(ctx, ids)
		p.w.note(p.name, numbers(ids), "delete: %v, %v", answers, err)
		p.w.operations.deleted(answers)
		p.w.checkDeleted(ctx, before, answers)
		return answers, err
	})
	return answers, err
}

// Find implements [store.Operator].
func (p *process) Find(ctx context.Context, f store.Filter) ([]stint.ID, error) {
	ids, _, err := call(ctx, p, opFind, func(ctx context.Context) ([]stint.ID, error) {
		return p.store.Find(ctx, f)
	})
	return ids, err
}

// operations are what people did to jobs, or tried to do.
type operations struct {
	mu        sync.Mutex
	jobs      map[stint.ID]*operated
	recovered map[stint.ID]stint.ID // what is done again, by the job that does it, as somebody was told
}

// operated is what is known of one job.
type operated struct {
	asked    int       // calls that had it run again
	open     int       // of these, under way
	doubt    int       // of these, that failed: nobody knows what came of them
	deleting time.Time // since when somebody has been trying to delete it; zero when nobody has
	deleted  bool      // somebody was told that it is gone

	// A job that waits does not begin before until, if it was read after the
	// instant postponed, as the world counts; 0 when that is not known.
	postponed int64
	until     time.Time
}

// asking is a call that has jobs run again, when it began.
type asking struct {
	at    time.Time
	asked map[stint.ID]int // which call of each it is
}

func newOperations() *operations {
	return &operations{jobs: map[stint.ID]*operated{}, recovered: map[stint.ID]stint.ID{}}
}

// of is what is known of a job.
func (l *operations) of(job stint.ID) operated {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.jobs[job]; o != nil {
		return *o
	}
	return operated{}
}

func (l *operations) lockedOf(id stint.ID) *operated {
	o := l.jobs[id]
	if o == nil {
		o = new(operated)
		l.jobs[id] = o
	}
	return o
}

// asks notes that somebody is about to have jobs run again: from now on nobody
// knows when they may.
func (l *operations) asks(ids []stint.ID) asking {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := asking{time.Now(), map[stint.ID]int{}}
	for _, id := range ids {
		if a.asked[id] != 0 {
			continue
		}
		o := l.lockedOf(id)
		o.asked++
		o.open++
		o.postponed = 0
		a.asked[id] = o.asked
	}
	return a
}

// retried notes what the store says came of it.
func (l *operations) retried(tick int64, a asking, again stint.RerunOptions, answers map[stint.ID]stint.RerunResult, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := again.RunAt
	if again.Delay > 0 {
		until = a.at.Add(again.Delay)
	}
	for id, n := range a.asked {
		o, r := l.lockedOf(id), answers[id]
		o.open--
		if err != nil {
			o.doubt++
			continue
		}
		if r.Answer == stint.RerunRecovered {
			l.recovered[r.ID] = id
			id, n = r.ID, 0
		} else if r.Answer != stint.RerunScheduled {
			continue
		}
		// Of two at the same time nobody knows which was the last.
		if o = l.lockedOf(id); o.open == 0 && o.asked == n && until.After(a.at) {
			o.postponed, o.until = tick, until.Add(-time.Millisecond) // stores round
		}
	}
}

func (l *operations) deletes(ids []stint.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if o := l.lockedOf(id); o.deleting.IsZero() {
			o.deleting = time.Now()
		}
	}
}

func (l *operations) deleted(answers map[stint.ID]store.DeleteStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, answer := range answers {
		o := l.lockedOf(id)
		o.deleted = o.deleted || answer == store.DeletedNow
	}
}

// deleting tells whether somebody may have deleted a job by now.
func (l *operations) deleting(job stint.ID) bool { return !l.of(job).deleting.IsZero() }

// mayBeGone tells whether a job may have been deleted by now, by whomever.
func (w *world) mayBeGone(job stint.ID) bool {
	return w.retention.Shortest() != store.Forever || w.operations.deleting(job)
}
