package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/check"
	"github.com/stint-go/stint/retry"
)

// kinds are the types of jobs; not every engine knows all of them.
var kinds = []string{"alpha", "beta", "gamma"}

// kept is one more, whose handlers go on when their engine was buried.
const kept = "kept"

// args are what a job is told to do.
type args struct {
	Key   string        `json:"key"`             // its name in the history
	Work  time.Duration `json:"work,omitempty"`  // how long it is busy
	Deaf  bool          `json:"deaf,omitempty"`  // it does not heed its cancellation
	Fail  int           `json:"fail,omitempty"`  // attempts that fail
	By    string        `json:"by,omitempty"`    // how: by an error, or one of these
	Kill  int           `json:"kill,omitempty"`  // attempts that kill their process
	Naps  int           `json:"naps,omitempty"`  // how often it snoozes
	Last  string        `json:"last,omitempty"`  // how it ends at last: as done, or one of these
	Grant int           `json:"grant,omitempty"` // attempts that its policy grants; 0: it tries once, and again only when lost
	Tx    bool          `json:"tx,omitempty"`    // its handler completes it in a transaction of its own
	Early bool          `json:"early,omitempty"` // that is open while it works
	Blind bool          `json:"blind,omitempty"` // it does not heed its cancellation while it commits
	Shrug bool          `json:"shrug,omitempty"` // should that fail, it returns no error all the same
	Then  string        `json:"then,omitempty"`  // should it succeed, it returns this
}

// The ways in which a job can fail, but for an error, and end, but for success.
const (
	byPanic  = "panic"
	byGoexit = "goexit"

	lastCancel = "cancel"
	lastGiveUp = "give up"
)

// endless is more attempts than any job needs.
const endless = 1 << 20

// draw makes a job, and says whether its client will think better of it.
func draw(seed Seed, key string) (job stint.NewJob, h *whim) {
	job, a := drawPlain(roll(seed.N, key, 0), key)
	if !seed.Plain {
		h = twist(roll(seed.N, key, 1), &job, &a)
	}
	job.Args, _ = json.Marshal(a)
	return job, h
}

// drawPlain makes a job. Most are quick and do what they should; a fleet in
// which everything is odd would hardly move.
func drawPlain(d dice, key string) (stint.NewJob, args) {
	a := args{Key: key}
	if d.chance(40) {
		a.Work = d.between(0, 300*time.Millisecond)
	}
	if d.chance(12) {
		a.Work = d.between(time.Second, 8*time.Second)
		a.Deaf = d.chance(30)
	}
	if d.chance(25) {
		a.Fail, a.By = 1+d.IntN(3), []string{"", "", byPanic, byGoexit}[d.IntN(4)]
	}
	if d.chance(1) {
		a.Kill = 1 + d.IntN(4)
	}
	if d.chance(8) {
		a.Naps = 1 + d.IntN(2)
	}
	if d.chance(10) {
		a.Last = []string{lastCancel, lastGiveUp}[d.IntN(2)]
	}
	job := stint.NewJob{Kind: kinds[d.IntN(len(kinds))], Queue: stint.DefaultQueue}
	switch d.IntN(5) {
	case 0:
		n := 1 + d.IntN(3)
		job.Retry, a.Grant = retry.Fixed(n, d.between(10*time.Millisecond, 2*time.Second)), n+1
	case 1:
		job.Retry, a.Grant = retry.Exponential(3, 500*time.Millisecond).Jitter(0.3), 4
	case 2:
		job.Retry, a.Grant = retry.Forever(time.Second), endless
	case 3:
		job.Retry, a.Grant = retry.Timetable(retry.Row{Younger: time.Hour, Wait: 700 * time.Millisecond}), endless
	default:
		job.Retry, a.Grant = retry.Fixed(8, 100*time.Millisecond), 9
	}
	if d.chance(3) {
		job.Retry, a.Grant = retry.None(), 0
	}
	if d.chance(20) {
		job.Queue = "other"
	}
	if d.chance(20) {
		job.Priority = d.IntN(5) - 2
	}
	if d.chance(20) {
		job.Delay = d.between(time.Millisecond, 15*time.Second)
	}
	if d.chance(8) {
		job.Timeout = d.between(time.Second, 4*time.Second)
		job.Retry, a.Grant = retry.Fixed(2, time.Second), 3 // it may time out each time
	}
	return job, a
}

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
	began := check.Now()
	if !p.awake() {
		return nil, errGone
	}
	var run check.Running
	h := p.holding(job.ID)
	start := check.Run{Job: int64(job.ID), Pos: int64(h.pos), Engine: int64(h.engine), Attempt: job.Attempt}
	p.log(func(w *check.Writer) { run = w.Start(start) })
	p.w.note(p.name, []int64{int64(job.ID)}, "attempt %d starts", job.Attempt)
	p.w.mayBegin(p, job.ID, h)
	p.w.begins(a)
	starts := time.Now()
	e := &effect{job: job.ID, pos: h.pos, process: p.name, n: p.nextEffect()}
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
	deafens := func(is bool) {
		if is && ctx.Err() != nil {
			// Deaf all the while, not only since somebody spoke.
			p.w.disturb(check.Disturbance{Does: check.Deafens, Process: p.name, From: began, To: check.Now()})
		}
	}
	deafens(a.Deaf)
	if !alive {
		return nil, errGone
	}
	p.mustHaveHeard(ctx, job, starts)
	how, err := p.end(ctx, a, job)
	switch {
	case hindered != nil:
		how, err = p.failed(ctx, hindered)
	case how == check.OK && a.Tx:
		how, err = p.complete(ctx, a, e)
		deafens(a.Blind)
		if how == check.Open {
			return nil, err
		}
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
