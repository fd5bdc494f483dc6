package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
)

var (
	errTold   = errors.New("told to fail")
	errGoexit = errors.New("told to end the goroutine")
	errPanic  = errors.New("told to panic")
)

// perform is the handler of every kind.
func (p *process) perform(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
	var a args
	if err := json.Unmarshal(job.Args, &a); err != nil {
		return nil, err
	}
	began, reached := check.Now(), time.Now()
	if !p.awake() {
		return nil, errGone
	}
	h := p.holding(job.ID)
	defer p.takesSlot(job, h)()
	defer p.visits(job.ID, h)()
	start := check.Run{Job: int64(job.ID), Pos: int64(h.pos), Engine: int64(h.engine), Attempt: job.Attempt}
	var run check.Running
	p.log(func(w *check.Writer) { run = w.Start(start) })
	p.w.note(p.name, []int64{int64(job.ID)}, "attempt %d starts", job.Attempt)
	p.w.mayBegin(p, job.ID, h)
	p.w.mayBeginYet(p, job.ID, h)
	p.w.mayBeginIn(p, job, h, reached)
	p.w.begins(a)
	how, err := p.try(ctx, a, job, h.pos, began)
	if how == check.Open {
		return nil, err
	}
	p.log(func(*check.Writer) { run.End(how, fmt.Sprint(err)) })
	p.w.note(p.name, []int64{int64(job.ID)}, "attempt %d ends: %s, %v", job.Attempt, how, err)
	p.w.ends(a)
	switch {
	case errors.Is(err, errPanic):
		panic("told to panic")
	case errors.Is(err, errGoexit):
		runtime.Goexit()
	}
	return nil, err
}

// try works, and says how the attempt ends: not at all if the process dies. It
// began then, which is before it froze, if it did.
func (p *process) try(ctx context.Context, a args, job *stint.Job, at store.Position, began check.Instant) (check.How, error) {
	starts := time.Now()
	e := p.newEffect(job.ID, at)
	defer e.rollback()
	var hindered error
	if a.Early {
		hindered = e.begin(ctx, p.w.handlers)
	}
	if hindered == nil {
		p.work(ctx, a)
	}
	if job.Attempt <= a.Kill {
		p.w.note(p.name, []int64{int64(job.ID)}, "attempt %d kills", job.Attempt)
		p.kill()
	}
	alive := p.awake()
	p.wasDeaf(ctx, a.Deaf, began)
	if !alive {
		return check.Open, errGone
	}
	p.mustHaveHeard(ctx, job, starts)
	how, err := p.end(ctx, a, job)
	switch {
	case hindered != nil:
		return p.failed(ctx, hindered)
	case how == check.OK && a.Tx:
		how, err = p.complete(ctx, a, e)
		p.wasDeaf(ctx, a.Blind, began)
	}
	return how, err
}

// wasDeaf notes a handler that did not heed its cancellation: deaf all the
// while, not only since somebody spoke.
func (p *process) wasDeaf(ctx context.Context, was bool, began check.Instant) {
	if was && ctx.Err() != nil {
		p.w.disturb(check.Disturbance{Does: check.Deafens, Process: p.name, From: began, To: check.Now()})
	}
}

// work passes the time that the job takes, or less when it is cancelled and
// takes notice.
func (p *process) work(ctx context.Context, a args) {
	timer := time.NewTimer(a.Work)
	defer timer.Stop()
	cancelled := ctx.Done()
	if a.Deaf {
		cancelled = nil
	}
	select {
	case <-timer.C:
	case <-cancelled:
	case <-p.gone:
	}
}

// end says how an attempt ends. One that was cancelled for its engine's sake
// may have done its work all the same, and otherwise has no say.
func (p *process) end(ctx context.Context, a args, job *stint.Job) (check.How, error) {
	cause := context.Cause(ctx)
	toldOff := errors.Is(cause, stint.ErrStopping) || errors.Is(cause, stint.ErrFenced)
	if cause != nil && (!a.Deaf || toldOff && !a.done(job)) {
		return check.Cancelled, cause
	}
	switch {
	case p.w.nap(a):
		return check.Snooze, stint.Snooze(time.Duration(a.Naps) * 400 * time.Millisecond)
	case job.Attempt <= a.Fail && a.By == byPanic:
		return check.Panic, errPanic
	case job.Attempt <= a.Fail && a.By == byGoexit:
		return check.Error, errGoexit
	case job.Attempt <= a.Fail:
		return check.Error, errTold
	case a.Last == lastGiveUp:
		return check.Error, stint.NoRetry(errTold)
	case a.Last == lastCancel:
		return check.Error, stint.Cancel("told to cancel")
	}
	return check.OK, nil
}

// done reports whether this attempt succeeds, whatever else happens.
func (a args) done(job *stint.Job) bool { return a.Naps == 0 && job.Attempt > a.Fail && a.Last == "" }
