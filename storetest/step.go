package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// stepTests are about the steps of handlers: which are kept, for whom, and until when.
var stepTests = []test{
	{"The first record of a step counts", func(t *T) {
		c := t.working(nil)
		c.records(c.step("a", `{"n":1}`), `{"n":1}`)
		c.records(c.step("b", `[2]`), `[2]`)
		c.records(c.step("a", `"another"`), `{"n":1}`)
		t.steps(c.id, `a={"n":1}`, `b=[2]`)
		t.steps(c.id + 1000)
	}},
	{"A call records steps of many jobs, and each has names of its own", func(t *T) {
		c, d := t.working(nil), t.working(nil)
		k := as[store.StepKeeper](t)
		d.w = c.w // one engine has both
		d.id = t.enqueue(job("k"))[0]
		d.e = c.w.One()
		got := must(k.RecordSteps(t.ctx, c.w.Info.Token, []store.StepRecord{c.step("z", `1`), d.step("z", `2`), c.step("a", `3`), c.step("a", `4`), d.step("ünï ☃ = \\", `null`)}))(t)
		results := make([]string, len(got))
		for i, r := range got {
			results[i] = string(r.Result)
		}
		equal(t, fmt.Sprint(results), "[1 2 3 3 null]", "recorded %v, want %v")
		t.steps(c.id, "a=3", "z=1")
		t.steps(d.id, "z=2", `ünï ☃ = \=null`)
		equal(t, len(must(k.RecordSteps(t.ctx, c.w.Info.Token, nil))(t)), 0, "no steps are recorded as %d, want %d")
	}},
	{"It says when a step began and ended, and they are listed in that order", func(t *T) {
		c := t.working(nil)
		before := t.now()
		r := c.step("z", `1`)
		r.Began, r.Ended = r.Ended.Add(-3*time.Second), r.Ended.Add(-time.Second)
		c.records(c.step("a", `1`), `1`)
		c.records(r, `1`)
		all := must(as[store.StepKeeper](t).Steps(t.ctx, c.id))(t)
		need(t, len(all) == 2 && all[0].Name == "z", "listed %v, want z and a", all)
		took, ago := all[0].Ended.Sub(all[0].Began), before.Sub(all[0].Ended)
		expect(t, took.Round(10*time.Millisecond) == 2*time.Second && ago > 0 && ago < 2*time.Second && !all[1].Ended.Before(before.Add(-time.Millisecond)),
			"a step of 2s that ended a second before took %v and ended %v before", took, ago)
	}},
	{"Later attempts find the steps of those before, and add to them", func(t *T) {
		c := t.working(nil)
		c.records(c.step("a", `1`), `1`)
		c.w.Finish(store.Result{Outcome: stint.OutcomeReturned}, c.e)
		c.e = c.w.One()
		c.records(c.step("a", `2`), `1`)
		c.records(c.step("b", `3`), `3`)
		c.w.Finish(failed, c.e)
		t.steps(c.id, "a=1", "b=3")
	}},
	{"An attempt that has an outcome records nothing, nor does a claim that is another's", func(t *T) {
		c := t.working(nil)
		other := t.join("k")
		right := c.step("a", `1`)
		for what, claim := range map[string]store.ClaimRef{
			"another nonce":  {Lane: right.Claim.Lane, N: right.Claim.N, Nonce: right.Claim.Nonce + 1},
			"a later number": {Lane: right.Claim.Lane, N: right.Claim.N + 1, Nonce: right.Claim.Nonce},
			"another lane":   {Lane: right.Claim.Lane + 1, N: right.Claim.N, Nonce: right.Claim.Nonce},
		} {
			wrong := right
			wrong.Claim = claim
			c.records(wrong, "")
			need(t, !t.Failed(), "the claim was given with %s", what)
		}
		got := must(as[store.StepKeeper](t).RecordSteps(t.ctx, other.Info.Token, []store.StepRecord{right}))(t)
		expect(t, got[0].Result == nil, "another engine recorded %s", got[0].Result)
		c.records(c.step("before", `0`), `0`)
		for _, end := range []store.Result{failed, completed} {
			old := c.step("late", `1`)
			c.w.Finish(end, c.e)
			c.records(old, "")
			if end.Outcome == stint.OutcomeFailed {
				t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{c.id: {Answer: stint.RerunReady, ID: c.id}})
				c.e = c.w.One()
			}
		}
		t.steps(c.id, "before=0")
	}},
	{"The buried record nothing", func(t *T) {
		c := t.working(nil)
		r := c.step("a", `1`)
		c.w.Leave()
		fails(t, errOf(as[store.StepKeeper](t).RecordSteps(t.ctx, c.w.Info.Token, []store.StepRecord{r})), store.ErrBuried, "the buried get %v, want ErrBuried")
		t.steps(c.id)
	}},
	{"Steps go with their job, and are not brought back", func(t *T) {
		c, d := t.working(nil), t.working(nil)
		d.records(d.step("a", `1`), `1`)
		r := c.step("a", `1`)
		c.records(r, `1`)
		c.w.Complete(c.e)
		t.delete(c.id)
		t.steps(c.id)
		c.records(r, "")
		t.steps(c.id)
		t.steps(d.id, "a=1")
	}},
	{"A job that is recovered goes on where the one before was, unless that had completed", func(t *T) {
		for n, end := range slices.Repeat([]store.Result{{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("it"))}, cancelled, completed}, 2) {
			c := t.working(nil)
			if n < 3 { // in a later attempt
				c.w.Finish(store.Result{Outcome: stint.OutcomeReturned}, c.e)
				c.e = c.w.One()
			}
			c.records(c.step("a", `1`), `1`)
			c.w.Finish(end, c.e)
			anew := t.recovers(c.id, stint.RerunOptions{})
			if end.Outcome == stint.OutcomeCompleted {
				t.steps(anew)
			} else {
				t.steps(anew, "a=1")
			}
			t.steps(c.id, "a=1")
			c.e, c.id = c.w.One(), anew
			c.records(c.step("b", `2`), `2`)
			c.w.Complete(c.e)
			c.w.Leave()
		}
	}},
	{"What the handler wrote and the step become true together", func(t *T) {
		c := t.working(nil)
		tx := t.beginToFinish()
		next := t.enqueueIn(tx, job("next"))[0]
		t.absent(next)
		t.steps(c.id)
		t.must(as[store.StepKeeper](t).RecordStepTx(t.ctx, tx.Tx(), c.w.Info.Token, c.step("a", `{"n":1}`)))
		t.state(next, stint.Available)
		t.steps(c.id, `a={"n":1}`)
		t.state(c.id, stint.Running)
		c.w.Complete(c.e)
	}},
	{"Nothing of the transaction stays where the step cannot be recorded", func(t *T) {
		k := as[store.StepKeeper](t)
		for what, wrong := range map[string]func(c *completion) error{
			"it is recorded":         func(c *completion) error { c.records(c.step("a", `1`), `1`); return store.ErrStepRefused },
			"the attempt has ended":  func(c *completion) error { c.w.Complete(c.e); return store.ErrStepRefused },
			"its claim is gone":      func(c *completion) error { c.w.taken[c.e.Pos] = store.ClaimRef{}; return store.ErrStepRefused },
			"its engine was buried":  func(c *completion) error { c.w.Leave(); return store.ErrBuried },
			"its job was deleted":    func(c *completion) error { c.w.Complete(c.e); t.delete(c.id); return store.ErrStepRefused },
			"the transaction is off": func(c *completion) error { return nil },
		} {
			c := t.working(nil)
			want := wrong(c)
			tx := t.beginToFinish()
			next := t.enqueueIn(tx, job("next"))[0]
			if want == nil {
				t.must(tx.Rollback())
			}
			err := k.RecordStepTx(t.ctx, tx.Tx(), c.w.Info.Token, c.step("a", `2`))
			expect(t, err != nil && (want == nil || errors.Is(err, want)) && !errors.Is(err, stint.ErrCommitUnknown), "when %s, recording gives %v, want %v", what, err, want)
			_ = tx.Commit()
			t.absent(next)
			if what == "it is recorded" {
				t.steps(c.id, "a=1")
			} else {
				t.steps(c.id)
			}
		}
		c := t.working(nil)
		for _, handle := range []any{nil, struct{}{}, "tx"} {
			expect(t, k.RecordStepTx(t.ctx, stint.Tx{Handle: handle}, c.w.Info.Token, c.step("a", `1`)) != nil, "a handle of type %T was accepted", handle)
		}
		t.steps(c.id)
	}},
	{"Of those who record a step at once one wins, and all are told what", recordAtOnce},
}

// step is a step of the attempt.
func (c *completion) step(name, result string) store.StepRecord {
	now := time.Now()
	return store.StepRecord{Claim: c.w.taken[c.e.Pos], Pos: c.e.Pos, Job: c.id, Name: name, Began: now, Ended: now, Result: []byte(result)}
}

// records records a step and checks what is recorded then: nothing if that is empty.
func (c *completion) records(r store.StepRecord, want string) {
	c.t.Helper()
	got := must(as[store.StepKeeper](c.t).RecordSteps(c.t.ctx, c.w.Info.Token, []store.StepRecord{r}))(c.t)
	need(c.t, len(got) == 1, "one step is recorded as %v", got)
	if want == "" {
		expect(c.t, got[0].Result == nil, "%s is recorded as %s, though its attempt cannot", r.Name, got[0].Result)
		return
	}
	expect(c.t, got[0].Name == r.Name && sameJSON(got[0].Result, []byte(want)), "%s is recorded as %s %s, want %s", r.Name, got[0].Name, got[0].Result, want)
}

// steps checks which steps a job has, by name.
func (t *T) steps(id stint.ID, want ...string) {
	t.Helper()
	all := must(as[store.StepKeeper](t).Steps(t.ctx, id))(t)
	got := make([]string, len(all))
	for i, r := range all {
		var compact bytes.Buffer
		t.must(json.Compact(&compact, r.Result))
		got[i] = r.Name + "=" + compact.String()
	}
	slices.Sort(got)
	noDiff(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), "the steps of job %d (-want +got)", id)
}

// recordAtOnce has several calls record the same steps, in another order each.
func recordAtOnce(t *T) {
	k, c := as[store.StepKeeper](t), t.working(nil)
	const callers, names = 8, 20
	got := make([][]stint.RecordedStep, callers)
	errs := atOnce(callers, func(i int) (err error) {
		mine := make([]store.StepRecord, names)
		for n := range mine {
			mine[n] = c.step(fmt.Sprint((n*(2*i+1)+i)%names), fmt.Sprint(i))
		}
		got[i], err = k.RecordSteps(t.ctx, c.w.Info.Token, mine)
		return err
	})
	t.must(errors.Join(errs...))
	all := must(k.Steps(t.ctx, c.id))(t)
	equal(t, len(all), names, "%d steps are recorded, want %d")
	recorded := map[string]string{}
	for _, r := range all {
		recorded[r.Name] = string(r.Result)
	}
	for i := range got {
		for _, r := range got[i] {
			equal(t, string(r.Result), recorded[r.Name], "a caller was told %s, want %s")
		}
	}
}
