package sim

import (
	"context"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// queues are all that there are.
var queues = []string{stint.DefaultQueue, "other"}

func (p *process) Pause(ctx context.Context, queue, by, why string) (bool, error) {
	return ask(ctx, p, opPause, func(ctx context.Context) (bool, error) {
		news, err := p.store.Pause(ctx, queue, by, why)
		p.w.note(p.name, nil, "PAUSE the queue %s: %v, %v", queue, news, err)
		if err == nil {
			p.w.pauses.stand(queue)
		}
		return news, err
	})
}

func (p *process) Resume(ctx context.Context, queue string) (bool, error) {
	return ask(ctx, p, opPause, func(ctx context.Context) (bool, error) {
		ended := p.w.pauses.end(queue)
		defer ended()
		news, err := p.store.Resume(ctx, queue)
		p.w.note(p.name, nil, "RESUME the queue %s: %v, %v", queue, news, err)
		return news, err
	})
}

func (p *process) Paused(ctx context.Context) ([]string, error) {
	began := time.Now()
	p.wonders(opPaused, began)
	names, _, err := call(ctx, p, opPaused, p.store.Paused)
	p.wonders(opPaused, time.Time{})
	if err != nil || time.Since(began) > patience {
		p.unease()
	}
	if err == nil {
		p.learns(names)
	}
	if p.w.bug == bugHeedless {
		return nil, err
	}
	return names, err
}

func (p *process) Queues(ctx context.Context) ([]store.QueueInfo, error) {
	return ask(ctx, p, opPaused, p.store.Queues)
}

// pauses are the queues that are paused for certain, and since when.
type pauses struct {
	mu       sync.Mutex
	since    map[string]time.Time
	resuming map[string]int // by how many
}

func newPauses() *pauses { return &pauses{since: map[string]time.Time{}, resuming: map[string]int{}} }

// stand notes that a queue is paused, unless somebody resumes it meanwhile.
func (l *pauses) stand(queue string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since[queue].IsZero() && l.resuming[queue] == 0 {
		l.since[queue] = time.Now()
	}
}

// end notes that somebody is about to resume a queue, until the function is
// called that it returns.
func (l *pauses) end(queue string) (ended func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.since, queue)
	l.resuming[queue]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.since, queue)
		l.resuming[queue]--
	}
}

// of is since when a queue is paused; zero when it may not be.
func (l *pauses) of(queue string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since[queue]
}

// learns notes which queues an engine knows to be paused.
func (p *process) learns(names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := make(map[string]time.Time, len(names))
	for _, name := range names {
		known[name] = time.Now()
		if since, before := p.paused[name]; before {
			known[name] = since
		}
	}
	p.paused = known
}

// knows is since when the process knows that a queue is paused, and since when
// its engine stands in the roster.
func (p *process) knows(queue string) (since, joined time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused[queue], p.since
}

// mayBeginIn checks that an attempt may begin in a queue: not when its engine
// knows that it is paused, nor long after that, when it should. Reached is when
// the attempt came to its handler. What a caller brought is the caller's affair.
func (w *world) mayBeginIn(p *process, job *stint.Job, h holding, reached time.Time) {
	if h.guest {
		return
	}
	known, joined := p.knows(job.Queue)
	if late := reached.Sub(known); !known.IsZero() && late > 0 {
		w.wrong("job %d: %s began it %v after it had learnt that the queue %s is paused", job.ID, p.name, late, job.Queue)
	}
	since := w.pauses.of(job.Queue)
	if since.IsZero() {
		return
	}
	if joined.After(since) {
		since = joined
	}
	if late := reached.Sub(since); late > p.ttl/4+time.Second && !p.distracted(opPaused, since) {
		w.wrong("job %d: %s began it, and its queue %s had been paused for %v", job.ID, p.name, job.Queue, late)
	}
}
