package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
)

// EnqueueClaimed implements [store.ClaimedEnqueuer]. Half of it is a claim that was
// made and could not be read.
func (p *process) EnqueueClaimed(ctx context.Context, job stint.NewJob, req store.ClaimRequest) (store.Claim, error) {
	r, f, err := call(ctx, p, opImmediate, func(ctx context.Context) (reading[store.Claim], error) {
		after := p.w.tick()
		c, err := p.store.EnqueueClaimed(ctx, job, req)
		p.w.note(p.name, numbers(c.Positions), "enqueue and claim, %d of engine %x: %v", req.Serial, req.Engine, err)
		return reading[store.Claim]{c, after}, err
	})
	if f.fault == half && err == nil {
		r.what.Entries, err = nil, errLost
	}
	p.claimed(req.Engine, r)
	return r.what, err
}

// answer is what somebody was told who had a job run in his process.
type answer struct {
	process string
	store.Completion
	err error
}

// visit is an attempt that somebody brought along, and when it ended; zero when
// it did not.
type visit struct {
	job    stint.ID
	engine store.EngineID
	ended  time.Time
}

// callSome has somebody run jobs in a process, by its engine, one after the
// other until the trouble is over.
func (p *process) callSome(ctx context.Context, d dice, e *engine.Engine, kinds []string, rest time.Duration) {
	for n := 1; p.w.rest(d.between(0, rest)) && ctx.Err() == nil && !p.dead(); n++ {
		if p.awake() {
			p.callOnce(ctx, d, e, fmt.Sprintf("%s-now-%d", p.name, n), kinds)
		}
	}
}

// callOnce has one job run. Now and then nobody waits for its end.
func (p *process) callOnce(ctx context.Context, d dice, e *engine.Engine, key string, kinds []string) {
	job, _ := draw(p.w.seed, key)
	job.Kind, job.Delay, job.Limits = kinds[d.IntN(len(kinds))], 0, nil
	if d.chance(20) {
		limit, cancel := context.WithTimeout(ctx, d.between(0, 3*time.Second))
		defer cancel()
		defer p.gaveUp(limit)
		ctx = limit
	}
	var intent check.Intent
	p.log(func(w *check.Writer) { intent = w.Intend(key) })
	x, err := e.RunNow(ctx, job)
	if !p.awake() {
		return
	}
	p.log(func(*check.Writer) {
		if x.Job != 0 {
			intent.Committed(int64(x.Job))
		} else {
			intent.Unknown()
		}
	})
	p.w.note(p.name, []int64{int64(x.Job)}, "ran it now: %s, final %v, %v", x.Outcome, x.Final, err)
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.answers = append(p.w.answers, answer{p.name, x, err})
}

// gaveUp notes that a caller waited no more, if he did: that cancels what he
// brought along, also when it only begins then.
func (p *process) gaveUp(limit context.Context) {
	if limit.Err() == nil {
		return
	}
	now := check.Now()
	deadline, _ := limit.Deadline()
	since := max(0, time.Since(deadline)) // or else all is over
	p.w.disturb(check.Disturbance{Does: check.Stops, Process: p.name, From: now.Add(-since), To: now})
}

// visits notes an attempt that somebody brought along. The function returned is
// called at its end.
func (p *process) visits(job stint.ID, h holding) (ends func()) {
	if !h.guest {
		return func() {}
	}
	v, w := &visit{job: job, engine: h.engine}, p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.guests[h.pos] = v
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !p.dead() {
			v.ended = time.Now()
		}
	}
}

// checkVisits checks that an attempt which somebody brought along, and which
// its process did not survive, was charged: it had been announced. But a burial
// that was cut short knows nothing any more, and one that found a culprit
// charges that alone.
func (j *judging) checkVisits(w *world) {
	for pos, v := range w.guests {
		x := j.executions[pos]
		at, buried := j.ledger.Buried[v.engine]
		if x == nil || !buried || x.Outcome != stint.OutcomeReturned || !v.ended.IsZero() && !v.ended.After(at) {
			continue
		}
		if !w.ground.wasCut(v.engine) && !w.culprits[v.engine] {
			j.wrong(v.job, "entry %d ran in its caller's process when that was buried, and was not charged", pos)
		}
	}
}

// finds notes what somebody sees who buries an engine: what ran there alone,
// because it had been suspected twice, killed it.
func (w *world) finds(engine store.EngineID, e *store.Entry, begun bool) {
	if begun && e.Suspect > 1 {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.culprits[engine] = true
	}
}

// checkAnswersNow checks that what callers were told is what was recorded,
// unless somebody had cancelled the job, which its recording finds out.
func (j *judging) checkAnswersNow(w *world) {
	for _, a := range w.answers {
		x := j.executions[a.Pos]
		switch _, cancelled := w.cancels.of(a.Job); {
		case a.err != nil:
		case x == nil || x.Job != a.Job:
			j.wrong(a.Job, "%s was told that entry %d was %s, and that is not recorded", a.process, a.Pos, a.Outcome)
		case cancelled && x.Outcome == stint.OutcomeCancelled && a.Outcome != stint.OutcomeCompleted:
		case x.Outcome != a.Outcome || x.Final != a.Final || x.Attempt != a.Attempt:
			j.wrong(a.Job, "%s was told that attempt %d, entry %d, was %s, final %v; recorded is attempt %d, %s, final %v",
				a.process, a.Attempt, a.Pos, a.Outcome, a.Final, x.Attempt, x.Outcome, x.Final)
		}
	}
}
