package storetest

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// completeTests are about outcomes that are recorded in the handler's own
// transaction. What the handler writes in it is another job.
var completeTests = []test{
	{"The outcome and what the handler wrote become true together", func(t *T) {
		c := t.working(nil)
		tx := t.beginToFinish()
		next := t.enqueueIn(tx, job("next"))[0]
		t.absent(next)
		t.state(c.id, stint.Running)
		t.must(c.finish(tx))
		t.state(c.id, stint.Completed)
		t.state(next, stint.Available)
		info := t.info(c.id)
		x := info.Attempts[0]
		expect(t, len(info.Attempts) == 1 && x.Engine == int64(c.w.Info.Token) && x.Slot == 1 && x.Final,
			"recorded %+v", info.Attempts)
		t.holds(c.w, 0)
	}},
	{"A handler that wrote nothing else completes all the same", func(t *T) {
		c := t.working(nil)
		t.must(c.finish(t.beginToFinish()))
		t.state(c.id, stint.Completed)
	}},
	{"A later attempt completes too, also of a job that was scheduled", func(t *T) {
		for _, delay := range []time.Duration{0, time.Millisecond} {
			j := job("k")
			j.Delay = delay
			c := t.working(&j)
			c.w.Finish(returned, c.e)
			c.e = c.w.One()
			c.x = c.w.Conclude(c.e, completed)
			t.must(c.finish(t.beginToFinish()))
			t.state(c.id, stint.Completed)
			c.w.Leave()
		}
	}},
	{"The result is kept, and so are the times", func(t *T) {
		const ran = 3 * time.Second
		c := t.working(nil)
		c.x.Result = json.RawMessage(`{"n":9007199254740993,"s":"\"\\ ünï 😀","a":[null,true,0.1]}`)
		c.x.Started = c.x.Ended.Add(-ran)
		before := t.now()
		t.must(c.finish(t.beginToFinish()))
		after := t.now()
		x := t.info(c.id).Attempts[0]
		expect(t, sameJSON(x.Result, c.x.Result) && between(x.Finished, before.Add(-time.Second), after),
			"recorded %+v, between %v and %v", x, before, after)
		d := x.Finished.Sub(x.Started)
		expect(t, d >= ran-time.Millisecond && d <= ran+time.Second, "an attempt of %v is recorded as %v long", ran, d)
	}},
	{"With a rollback instead, neither is there, and the handler's error decides", func(t *T) {
		c := t.working(nil)
		tx := t.beginToFinish()
		next := t.enqueueIn(tx, job("next"))[0]
		t.must(tx.Rollback())
		t.absent(next)
		t.state(c.id, stint.Running)
		err := c.finish(tx)
		expect(t, err != nil && !errors.Is(err, stint.ErrCommitUnknown),
			"in a transaction that had ended, completing gives %v", err)
		t.state(c.id, stint.Running)
		c.w.Finish(failed, c.e)
		t.state(c.id, stint.Retrying)
	}},
	{"The buried complete nothing, and nothing of the transaction stays", func(t *T) {
		c := t.working(nil)
		tx := t.beginToFinish()
		c.w.Leave()
		next := t.enqueueIn(tx, job("next"))[0]
		c.refused(tx, store.ErrBuried, next)
		t.state(c.id, stint.Available)
	}},
	{"A handler that wrote long ago does not keep its engine from being buried", func(t *T) {
		t.skipIf(t.SingleWriter, "an open transaction holds up every writer")
		c := t.working(nil)
		tx := t.beginToFinish()
		next := t.enqueueIn(tx, job("next"))[0]
		equal(t, c.w.Leave(), 1, "the burial concluded %d, want %d")
		c.refused(tx, store.ErrBuried, next)
	}},
	{"A claim that does not exist is told, and nothing of the transaction stays", func(t *T) {
		c := t.working(nil)
		right := c.w.taken[c.e.Pos]
		for what, wrong := range map[string]store.ClaimRef{
			"another nonce":  {Lane: right.Lane, N: right.N, Nonce: right.Nonce + 1},
			"a later number": {Lane: right.Lane, N: right.N + 1, Nonce: right.Nonce},
			"another lane":   {Lane: right.Lane + 1, N: right.N, Nonce: right.Nonce},
		} {
			tx := t.beginToFinish()
			next := t.enqueueIn(tx, job("next"))[0]
			c.w.taken[c.e.Pos] = wrong
			c.x.Nonce = wrong.Nonce
			c.refused(tx, store.ErrClaimGone, next)
			need(t, !t.Failed(), "the claim was given with %s", what)
			t.state(c.id, stint.Running)
		}
		c.w.taken[c.e.Pos], c.x.Nonce = right, right.Nonce
		t.must(c.finish(t.beginToFinish()))
	}},
	{"An entry that has an outcome keeps it, and nothing of the transaction stays", func(t *T) {
		for _, end := range []store.Result{completed, cancelled, {Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}} {
			c := t.working(nil)
			tx := t.beginToFinish()
			c.w.Finish(end, c.e)
			next := t.enqueueIn(tx, job("next"))[0]
			before := t.info(c.id).State
			c.refused(tx, nil, next)
			t.state(c.id, before)
			c.w.Leave()
		}
	}},
	{"A job that ended and was deleted is not brought back, and nothing of the transaction stays", func(t *T) {
		c := t.working(nil)
		tx := t.beginToFinish()
		c.w.Finish(cancelled, c.e)
		t.deletes(map[stint.ID]store.DeleteStatus{c.id: store.DeletedNow})
		c.refused(tx, nil, t.enqueueIn(tx, job("next"))[0])
		t.gone(c.id)
	}},
	{"What was completed in a transaction is not recorded again", func(t *T) {
		c := t.working(nil)
		t.must(c.finish(t.beginToFinish()))
		for _, end := range []store.Result{completed, returned, failed} {
			n, err := c.w.TryFinish(t.ctx, c.w.Conclude(c.e, end))
			expect(t, err == nil && n == 0, "%s recorded %d, error %v", end.Outcome, n, err)
		}
		tx := t.beginToFinish()
		c.refused(tx, nil, t.enqueueIn(tx, job("next"))[0])
		equal(t, c.w.Leave(), 0, "the burial concluded %d, want %d")
		t.state(c.id, stint.Completed)
	}},
	{"A cancelled job that completes in a transaction has completed, and no mark is left", func(t *T) {
		c := t.working(nil)
		t.cancels(map[stint.ID]stint.CancelStatus{c.id: stint.CancelRequested}, "too late")
		t.must(c.finish(t.beginToFinish()))
		info := t.info(c.id)
		expect(t, info.State == stint.Completed && info.Reason == retry.ReasonDone,
			"it is %s, reason %q", info.State, info.Reason)
		t.ended(c.id)
	}},
	{"A transaction of another driver is refused", func(t *T) {
		c := t.working(nil)
		f := as[store.TxFinisher](t)
		for _, handle := range []any{nil, struct{}{}, "tx"} {
			expect(t, f.FinishTx(t.ctx, stint.Tx{Handle: handle}, c.w.Info.Token, c.w.taken[c.e.Pos], c.x) != nil,
				"a handle of type %T was accepted", handle)
		}
		t.state(c.id, stint.Running)
	}},
	{"Beside a burial it completes or leaves nothing", completeBesideBurial},
}

// completion is a job whose handler is about to complete it.
type completion struct {
	t  *T
	w  *Worker
	id stint.ID
	e  store.Entry
	x  store.Completion
}

// working claims a job; nil is any.
func (t *T) working(j *stint.NewJob) *completion {
	t.Helper()
	as[store.TxFinisher](t)
	if j == nil {
		some := job("k")
		j = &some
	}
	c := &completion{t: t, id: t.enqueue(*j)[0], w: t.join("k")}
	if j.Delay > 0 {
		t.promoteAfter(15*time.Millisecond, 1)
	}
	l := lane(stint.DefaultQueue)
	all := c.w.Claim(l, 10)
	need(t, len(all) == 1 && all[0].ID == c.id, "claimed %v, want job %d", jobIDs(all), c.id)
	c.e = all[0]
	c.x = c.w.Conclude(c.e, completed)
	return c
}

// finish completes the job in a transaction.
func (c *completion) finish(tx Tx) error {
	return as[store.TxFinisher](c.t).FinishTx(c.t.ctx, tx.Tx(), c.w.Info.Token, c.w.taken[c.e.Pos], c.x)
}

// refused checks that completing fails for a reason, and that nothing of the
// transaction stays, whatever its owner does.
func (c *completion) refused(tx Tx, want error, wrote ...stint.ID) {
	c.t.Helper()
	err := c.finish(tx)
	expect(c.t, err != nil && (want == nil || errors.Is(err, want)) && !errors.Is(err, stint.ErrCommitUnknown),
		"completing gives %v, want %v", err, want)
	_ = tx.Commit()
	c.t.absent(wrote...)
}

// beginToFinish begins a transaction that an outcome can be recorded in.
func (t *T) beginToFinish() Tx {
	t.Helper()
	begin := t.Begin
	if t.BeginToFinish != nil {
		begin = t.BeginToFinish
	}
	tx := must(begin(t.T, t.Store))(t)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// completeBesideBurial buries engines in the moment that a handler completes.
func completeBesideBurial(t *T) {
	as[store.TxFinisher](t)
	other, rng := t.again(), NewSeed(t).Rand("burials")
	for round := range 30 {
		c := t.working(nil)
		tx := t.beginToFinish()
		var next stint.ID
		pause := time.Duration(rng.IntN(1500)) * time.Microsecond
		var completion error
		errs := atOnce(2, func(i int) error {
			if i == 0 {
				time.Sleep(pause)
				_, err := Bury(t.ctx, other, store.Burial{Engine: c.w.Info.Token}, Judge)
				return err
			}
			ids, err := stint.NewClient(t.Store).With(tx.Tx()).EnqueueMany(t.ctx, jobs(1, "next", stint.Queue("next")))
			if err != nil {
				return err
			}
			next = ids[0]
			completion = c.finish(tx)
			return nil
		})
		t.must(errors.Join(errs...))
		heir := t.join("k")
		left := heir.Claim(store.LaneOf(stint.DefaultQueue, 0, store.PartFront, "").ID, 10)
		switch {
		case completion == nil:
			t.state(c.id, stint.Completed)
			t.state(next, stint.Available)
		case errors.Is(completion, store.ErrBuried):
			t.state(c.id, stint.Running)
			t.absent(next)
		default:
			t.Errorf("completing gives %v", completion)
		}
		expect(t, (len(left) == 1) == (completion != nil), "%d entries came back, completing gave %v", len(left), completion)
		heir.Complete(left...)
		heir.Leave()
		need(t, !t.Failed(), "in round %d", round)
	}
}
