package engine

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// pendingPause is a pause of a gate that the store does not have yet.
type pendingPause struct {
	store.Pause
	until time.Time
}

// deferLimit pauses a limit, or the key of it that a task waited for, as the task's handler asks.
func (p *permits) deferLimit(t *task, limit string, wait time.Duration) {
	if p.limiter == nil {
		return
	}
	if err := stint.CheckGate(limit); err != nil {
		p.s.emit(event.Event{Type: event.EventTrouble, Engine: p.s.token, Job: &t.entry.Job, Doing: "pause the limit that stint.Defer names", Err: err})
		return
	}
	if limit == stint.QueueLimit {
		limit += "=" + t.entry.Queue
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.gates != nil {
		for _, g := range t.gates.gates {
			if store.LimitOf(g.name) == limit {
				limit = g.name
			}
		}
	}
	p.pauseLocked(limit, store.Pause{For: wait, Why: fmt.Sprintf("job %d asked for it (stint.Defer)", t.entry.ID)})
}

// pauseLocked pauses a gate here at once, and for all as soon as keepPermits has told the store. A
// pause that lasts longer already stays.
func (p *permits) pauseLocked(name string, pause store.Pause) {
	pause.By = p.s.config.Instance
	asked := pendingPause{pause, time.Now().Add(pause.For)}
	if g := p.gates[name]; g != nil {
		if !g.paused.Before(asked.until) {
			return
		}
		g.paused, g.outcomes = asked.until, outcomes{}
	}
	if was := p.pauses[name]; was.until.After(asked.until) {
		return
	} else if was.Trial {
		asked.Trial = true
	}
	p.pauses[name] = asked
	delete(p.resumes, name)
	p.news.notify()
}

// tell tells the store of pauses, and of those that are over.
func (p *permits) tell(ctx context.Context) error {
	p.mu.Lock()
	pauses, resumes := maps.Clone(p.pauses), maps.Clone(p.resumes)
	p.mu.Unlock()
	if len(pauses)+len(resumes) == 0 {
		return nil
	}
	// An answer that was read before the store has the pause must not come after that.
	p.calling <- struct{}{}
	defer func() { <-p.calling }()
	limit, cancel := p.s.limit(ctx)
	defer cancel()
	for name, asked := range pauses {
		pause := asked.Pause
		if pause.For = time.Until(asked.until); pause.For > 0 {
			if err := p.limiter.PauseLimit(limit, name, pause); err != nil {
				return err
			}
			p.s.emit(event.Event{Type: event.EventPaused, Engine: p.s.token, Limit: name, Wait: pause.For, Why: pause.Why})
		}
		p.mu.Lock()
		if p.pauses[name] == asked {
			delete(p.pauses, name)
		}
		p.mu.Unlock()
	}
	for name := range resumes {
		if _, err := p.limiter.ResumeLimit(limit, name); err != nil {
			return err
		}
		p.mu.Lock()
		delete(p.resumes, name)
		p.mu.Unlock()
	}
	return nil
}

// outcomes are those of a gate's last attempts on this engine.
type outcomes struct {
	failed uint32 // the last one in the lowest bit
	count  int
	inARow int // failures
}

// counted is of how many outcomes a share of failures is.
const counted = 20

func (o *outcomes) note(failed bool) {
	o.failed, o.count, o.inARow = o.failed<<1, o.count+1, o.inARow+1
	if failed {
		o.failed++
	} else {
		o.inARow = 0
	}
}

// trips returns why a rule pauses the gate; empty if it does not.
func (o *outcomes) trips(r stint.LimitRule) string {
	failed := bits.OnesCount32(o.failed << (32 - counted))
	switch {
	case r.TripAfter > 0 && o.inARow >= r.TripAfter:
		return fmt.Sprintf("%d failures in a row", o.inARow)
	case r.TripPercent > 0 && o.count >= counted && 100*failed >= counted*r.TripPercent:
		return fmt.Sprintf("%d of %d attempts failed", failed, counted)
	}
	return ""
}

// endedLocked notes the outcome of a task for the gates whose rules go by it.
func (p *permits) endedLocked(t *task, g *gate) {
	if g.rule.TripFor == 0 && !g.trial || t.drop || t.done.Started.Before(g.paused) {
		return
	}
	completed := t.done.Outcome == stint.OutcomeCompleted || t.tx == txCompleted
	if !completed && t.done.Outcome != stint.OutcomeFailed {
		return
	}
	why := "the job that was tried failed"
	if g.outcomes.note(!completed); !g.trial || completed {
		why = g.outcomes.trips(g.rule)
	}
	switch {
	case why != "" && g.rule.TripFor > 0:
		if t.done.Error != nil {
			why += "; the last one: " + valid.CleanText(t.done.Error.Message, 200)
		}
		p.pauseLocked(g.name, store.Pause{For: g.rule.TripFor, Trial: true, Why: why})
	case completed && g.trial:
		p.resumes[g.name] = true
		p.news.notify()
	}
}
