package sim

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

var (
	errTold   = errors.New("told to fail")
	errGoexit = errors.New("told to end the goroutine")
	errPanic  = errors.New("told to panic")
)

// perform is the handler of every kind.
func (p *process) perform(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
	return p.performWith(ctx, job, nil)
}

// performWith performs a job. Of a batch it returns together with the others.
func (p *process) performWith(ctx context.Context, job *stint.Job, others func()) (json.RawMessage, error) {
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
	p.w.mayBeginYet(p, a, job.ID, h)
	p.w.mayBeginIn(p, job, h, reached)
	p.w.begins(a)
	p.w.mayBeginAfter(p, job)
	how, err := p.try(ctx, a, job, h.pos, began, run)
	if how == check.Open {
		return nil, err
	}
	if others != nil {
		others()
		if !p.awake() {
			return nil, errGone
		}
		cause := context.Cause(ctx)
		if toldOff(cause) && how != check.OK && how != check.Recorded { // it has no say any more
			how, err = check.Cancelled, cause
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

// performMany is the handler of batches. Each job does what it is told, as if it were alone: one that
// panics or ends its goroutine takes no other with it.
func (p *process) performMany(_ context.Context, jobs []stint.BatchJob[args]) error {
	errs := make([]error, len(jobs))
	var all, working sync.WaitGroup
	working.Add(len(jobs))
	for i, j := range jobs {
		errs[i] = errGoexit
		all.Go(func() {
			done := sync.OnceFunc(working.Done)
			defer done()
			defer func() {
				if v := recover(); v != nil {
					errs[i] = &stint.PanicError{Value: v}
				}
			}()
			_, errs[i] = p.performWith(j.Context(), j.Job, func() { done(); working.Wait() })
		})
	}
	all.Wait()
	return stint.PerJob(errs)
}

// try works, and says how the attempt ends: not at all if the process dies. It
// began then, which is before it froze, if it did.
func (p *process) try(ctx context.Context, a args, job *stint.Job, at store.Position, began check.Instant, run check.Running) (check.How, error) {
	starts := time.Now()
	e := p.newEffect(job.ID, at)
	defer e.rollback()
	var hindered error
	if a.Early {
		hindered = e.begin(ctx, p.w.handlers)
	}
	var how check.How
	if hindered == nil {
		if how, hindered = p.act(ctx, a, job, run); hindered == nil {
			p.work(ctx, a)
		}
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
	if how == check.Snooze {
		return how, hindered
	}
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
	cancelled := ctx.Done()
	if a.Deaf {
		cancelled = nil
	}
	select {
	case <-time.After(a.Work):
	case <-cancelled:
	case <-p.gone:
	}
}

// end says how an attempt ends. One that was cancelled for its engine's sake
// may have done its work all the same, and otherwise has no say.
func (p *process) end(ctx context.Context, a args, job *stint.Job) (check.How, error) {
	cause := context.Cause(ctx)
	if cause != nil && (!a.Deaf || toldOff(cause) && !a.done(job)) {
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

// toldOff reports whether an attempt was cancelled for its engine's sake.
func toldOff(cause error) bool {
	return errors.Is(cause, stint.ErrStopping) || errors.Is(cause, stint.ErrFenced)
}

// done reports whether this attempt succeeds, whatever else happens.
func (a args) done(job *stint.Job) bool { return a.Naps == 0 && job.Attempt > a.Fail && a.Last == "" }

// effectsSQL is where handlers write what they did, in the transaction that
// completes their job.
const effectsSQL = `create table sim_effects (job integer not null, pos integer not null, process text not null, n integer not null)`

// effect is what a handler does in a transaction of its own: it leaves one row.
type effect struct {
	job     stint.ID
	pos     store.Position
	process string
	n       int // which of the process
	answer  error

	// begun is a transaction that is open while the handler works: everybody
	// else who writes waits for it. Otherwise the transaction begins when its
	// commit arrives, and nobody waits.
	begun *sql.Tx
}

func (p *process) newEffect(job stint.ID, at store.Position) *effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.effects++
	return &effect{job: job, pos: at, process: p.name, n: p.effects}
}

// begin has a handler begin its transaction before it works.
func (e *effect) begin(ctx context.Context, db *sql.DB) (err error) {
	if e.begun, err = db.BeginTx(ctx, nil); err == nil {
		err = e.write(ctx, e.begun)
	}
	return err
}

func (e *effect) write(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `insert into sim_effects values (?, ?, ?, ?)`, int64(e.job), int64(e.pos), e.process, e.n)
	return err
}

// rollback ends a transaction that is still open.
func (e *effect) rollback() {
	if e.begun != nil {
		_ = e.begun.Rollback()
	}
}

func (e *effect) commit(ctx context.Context, p *process, token store.EngineID, claim store.ClaimRef, x store.Completion) error {
	tx := e.begun
	if tx == nil {
		var err error
		if tx, err = p.w.handlers.BeginTx(ctx, nil); err != nil {
			return err
		}
		defer tx.Rollback()
		if err := e.write(ctx, tx); err != nil {
			return err
		}
	}
	return p.store.FinishTx(ctx, sqlite.Tx(tx), token, claim, x)
}

// FinishTx implements [store.TxFinisher]. Now and then its process is killed
// when the commit arrives, or when it was done.
func (p *process) FinishTx(ctx context.Context, tx stint.Tx, token store.EngineID, claim store.ClaimRef, x store.Completion) error {
	e := tx.Handle.(*effect)
	defer e.rollback()
	p.commits(x.Pos, underWay)
	o := opComplete
	if e.begun != nil {
		o = opCommit
	}
	dies := 100
	if d := roll(p.w.seed.N, p.name+"dies completing", p.count(o)); !p.w.over.Load() {
		dies = d.IntN(100)
	}
	answer, _, err := call(ctx, p, o, func(ctx context.Context) (error, error) {
		if dies < 2 {
			p.kill()
			return nil, errGone
		}
		err := e.commit(ctx, p, token, claim, x)
		p.w.note(p.name, []int64{int64(x.Job)}, "complete entry %d, engine %x: %v", x.Pos, token, err)
		if dies < 4 {
			p.kill()
		}
		return err, nil
	})
	switch {
	case err == nil && answer == nil:
		p.commits(x.Pos, made)
		return nil
	case err == nil:
		p.commits(x.Pos, notBegun)
		return answer
	case errors.Is(err, errRefused), errors.Is(err, errEvicted), errors.Is(err, errGone), p.w.bug == bugCertain:
		p.commits(x.Pos, notBegun)
		return err
	}
	p.commits(x.Pos, inDoubt)
	return fmt.Errorf("%w: %w", stint.ErrCommitUnknown, err)
}

// commitment is how far an engine has come with completing an entry.
type commitment int

const (
	notBegun commitment = iota
	underWay
	inDoubt
	made
)

func (p *process) commits(at store.Position, c commitment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commit[at] = c
}

// mayRecord checks a batch: what is being completed enters none, what may have
// been is recorded by itself, and what was is not recorded again, but by a beat
// that learnt what its engine holds before that.
func (p *process) mayRecord(batch []store.Completion) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range batch {
		x := &batch[i]
		switch c := p.commit[x.Pos]; {
		case c == underWay, c == inDoubt && len(batch) > 1, c == made && x.Outcome != stint.OutcomeReturned:
			p.w.wrong("job %d: %s records entry %d as %s in a batch of %d, while its completion is %v", x.Job, p.name, x.Pos, x.Outcome, len(batch), c)
		}
	}
}

func (c commitment) String() string {
	return [...]string{"not begun", "under way", "in doubt", "made"}[c]
}

// The ways in which a handler returns that has completed its job, but for no
// error. None of them matters any more.
const (
	thenError  = "error"
	thenPanic  = "panic"
	thenGoexit = "goexit"
	thenSnooze = "snooze"
	thenCancel = "cancel"
)

// complete ends an attempt by the handler's own transaction.
func (p *process) complete(ctx context.Context, a args, e *effect) (check.How, error) {
	until := ctx
	if a.Blind {
		until = context.WithoutCancel(ctx)
	}
	e.answer = engine.CompleteTx(until, stint.Tx{Handle: e}, json.RawMessage(`{"by":"itself"}`))
	if !p.awake() {
		return check.Open, errGone
	}
	p.w.completes(e)
	switch {
	case e.answer == nil:
		return check.Recorded, a.then()
	case a.Shrug:
		return check.OK, nil
	case a.Then == thenGoexit:
		return check.Error, errGoexit
	}
	return p.failed(ctx, e.answer)
}

// failed says how an attempt ends that could not do what it wanted.
func (p *process) failed(ctx context.Context, err error) (check.How, error) {
	if cause := context.Cause(ctx); cause != nil {
		return check.Cancelled, cause
	}
	return check.Error, err
}

// then is what a handler returns that has completed its job.
func (a args) then() error {
	switch a.Then {
	case thenError:
		return errTold
	case thenPanic:
		return errPanic
	case thenGoexit:
		return errGoexit
	case thenSnooze:
		return stint.Snooze(time.Second)
	case thenCancel:
		return stint.Cancel("too late")
	}
	return nil
}

// completes notes what a handler was told when it completed its job.
func (w *world) completes(e *effect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects = append(w.effects, e)
}

// trail is what one effect left in the database.
type trail struct {
	job     stint.ID
	pos     store.Position
	process string
	n       int
}

func (e *effect) trail() trail { return trail{e.job, e.pos, e.process, e.n} }

// trails reads them all, each with how often it is there.
func (w *world) trails(ctx context.Context) map[trail]int {
	all := map[trail]int{}
	must(0, w.ground.each(ctx, `select job, pos, process, n from sim_effects`, func(rows *sql.Rows) error {
		var t trail
		err := rows.Scan(&t.job, &t.pos, &t.process, &t.n)
		all[t]++
		return err
	}))
	return all
}

// checkEffects holds what handlers wrote in the transactions that completed
// their jobs against what they were told, and against the outcomes.
func (j *judging) checkEffects(ctx context.Context, w *world) {
	trails := w.trails(ctx)
	of := map[stint.ID]int{}
	at := map[store.Position]bool{}
	for t, n := range trails {
		of[t.job] += n
		at[t.pos] = true
		if x := j.executions[t.pos]; x == nil || x.Job != t.job || x.Outcome != stint.OutcomeCompleted {
			j.wrong(t.job, "%s wrote in a transaction that completes entry %d, which is %s", t.process, t.pos, outcomeOf(x))
		}
	}
	for job, n := range of {
		if n > 1 {
			j.wrong(job, "it was completed in %d transactions", n)
		}
	}
	for _, e := range w.effects {
		n := trails[e.trail()]
		switch {
		case e.answer == nil && n != 1:
			j.wrong(e.job, "%s was told that entry %d is completed, and of what it wrote there are %d", e.process, e.pos, n)
		case e.answer != nil && n > 0 && !errors.Is(e.answer, stint.ErrCommitUnknown):
			j.wrong(e.job, "%s was told that entry %d is not completed (%v), and what it wrote is there", e.process, e.pos, e.answer)
		}
	}
	for pos, x := range j.executions {
		a := j.told[x.Job].args
		if x.Outcome == stint.OutcomeCompleted && a.Tx && !a.Shrug && !at[pos] {
			j.wrong(x.Job, "it was completed without what its handler wrote with that")
		}
	}
}

func outcomeOf(x *store.LedgerExecution) string {
	if x == nil {
		return "not concluded"
	}
	return fmt.Sprint(x.Outcome)
}

// poolsOf divides the slots of some engines among the queues; together they
// have as many as before, and one more of each that would have none.
func poolsOf(d dice, c engine.Config) engine.Config {
	if !d.chance(30) {
		return c
	}
	first := 1 + d.IntN(c.Slots)
	c.QueueSlots = map[string]int{stint.DefaultQueue: first, "*": max(1, c.Slots-first)}
	if len(c.Queues) > 0 { // it works on the first only
		delete(c.QueueSlots, "*")
	}
	c.Slots = 0
	return c
}

// pool is a part of an engine's slots, by the name that its configuration has
// for it; empty where there is one for all.
type pool struct {
	engine store.EngineID
	name   string
}

// takesSlot notes that an attempt begins in an engine, and checks that the
// engine has a slot for it. The function returned is called at its end.
func (p *process) takesSlot(job *stint.Job, h holding) (leave func()) {
	if h.guest || p.gathers && job.Kind == together { // a batch has one slot
		return func() {}
	}
	in, slots := pool{engine: h.engine}, p.slots
	if len(p.pools) > 0 {
		in.name = "*"
		if p.pools[job.Queue] > 0 {
			in.name = job.Queue
		}
		slots = p.pools[in.name]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[in]++
	if n := p.running[in]; n > slots {
		p.w.wrong("job %d: %s runs %d at once of the queue %s, and has %d slots for them", job.ID, p.name, n, job.Queue, slots)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.running[in]--
	}
}

// crowd gives an engine more slots than it says, where that is planted.
func crowd(bug Bug, pools map[string]int) map[string]int {
	if bug != bugCrowds {
		return pools
	}
	pools = maps.Clone(pools)
	for _, queue := range slices.Collect(maps.Keys(pools)) {
		pools[queue]++
	}
	return pools
}
