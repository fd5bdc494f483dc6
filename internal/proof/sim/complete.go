package sim

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

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
