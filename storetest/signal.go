package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// signalTests are about signals to jobs: which are kept, for whom and until when, and who takes them.
var signalTests = []test{
	{"The first signal of a name is taken, and each once", func(t *T) {
		c := t.awaiting()
		t.sends(c.id, "a", `{"n":9007199254740993}`, `"ünï 😀"`, `null`)
		c.takes("z", "a", `{"n":9007199254740993}`)
		c.takes("x", "a", `"ünï 😀"`)
		c.takes("y", "a", `null`)
		c.takes("w", "a", "")
		t.sends(c.id, "a", `4`)
		c.takes("w", "a", `4`)
	}},
	{"Signals are listed in the order in which they were sent, with who took them", func(t *T) {
		c := t.awaiting()
		before := t.clock()
		t.sends(c.id, "b", `1`, `[2]`)
		t.sends(c.id, "a", `{"n":3}`)
		t.must(t.send(stint.Tx{}, c.id, stint.Signal{Name: "b", Key: "ünï ☃", Value: []byte(`4`)}))
		after := t.clock()
		c.takes("step", "b", `1`)
		t.signals(c.id, "b=1 by step", "b=[2]", `a={"n":3}`, "b=4 of ünï ☃")
		t.signals(c.id + 1000)
		var last int64
		for _, s := range must(as[store.Signaler](t).Signals(t.ctx, c.id))(t) {
			expect(t, s.N > last && between(s.Sent, before.Add(-time.Second), after.Add(time.Second)),
				"signal %d after %d was sent at %v, between %v and %v", s.N, last, s.Sent, before, after)
			last = s.N
		}
	}},
	{"Of several signals of a job with the same key the first one counts", func(t *T) {
		c, d := t.awaiting(), t.awaiting()
		for i, id := range []stint.ID{c.id, c.id, d.id, c.id} {
			t.must(t.send(stint.Tx{}, id, stint.Signal{Name: "a", Key: "once", Value: fmt.Append(nil, i)}))
		}
		t.must(t.send(stint.Tx{}, c.id, stint.Signal{Name: "a", Key: "Once", Value: []byte(`"other"`)}))
		c.takes("x", "a", `0`)
		t.must(t.send(stint.Tx{}, c.id, stint.Signal{Name: "a", Key: "once", Value: []byte(`"late"`)}))
		t.signals(c.id, "a=0 of once by x", `a="other" of Once`)
		t.signals(d.id, "a=2 of once")
	}},
	{"A signal can be sent again under its key when the job has ended", func(t *T) {
		c := t.awaiting()
		once := stint.Signal{Name: "a", Key: "once", Value: []byte(`1`)}
		t.must(t.send(stint.Tx{}, c.id, once))
		c.takes("x", "a", `1`)
		c.w.Complete(c.e)
		tx := t.begin()
		t.must(t.send(tx.Tx(), c.id, once))
		t.must(tx.Commit())
		t.must(t.send(stint.Tx{}, c.id, once))
		t.signals(c.id, "a=1 of once by x")
		once.Key = "another"
		fails(t, t.send(stint.Tx{}, c.id, once), stint.ErrEnded, "another signal gives %v, want ErrEnded")
		t.delete(c.id)
		once.Key = "once"
		fails(t, t.send(stint.Tx{}, c.id, once), stint.ErrNotFound, "a signal to a job that was deleted gives %v, want ErrNotFound")
	}},
	{"A job gets so many signals and no more", func(t *T) {
		c, d := t.awaiting(), t.awaiting()
		noise := make([]byte, 786<<10) // which cannot be compressed
		random := rand.New(rand.NewPCG(1, 2))
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		large := must(json.Marshal(noise))(t)
		for range 15 {
			t.must(t.send(stint.Tx{}, c.id, stint.Signal{Name: "a", Value: large}))
		}
		if err := t.send(stint.Tx{}, c.id, stint.Signal{Name: "b", Value: large}); err != nil {
			fails(t, err, stint.ErrInvalid, "the 16th gives %v, want ErrInvalid")
		}
		tx := t.begin()
		fails(t, t.send(tx.Tx(), c.id, stint.Signal{Name: "b", Value: large}), stint.ErrInvalid, "the 17th gives %v, want ErrInvalid")
		t.must(tx.Rollback())
		fails(t, t.send(stint.Tx{}, c.id, stint.Signal{Name: "b", Value: large}), stint.ErrInvalid, "the 17th gives %v, want ErrInvalid")
		t.sends(d.id, "a", `1`)
	}},
	{"A signal is for one job and one name", func(t *T) {
		c, d := t.awaiting(), t.awaiting()
		names := []string{"a", "A", "a a", "ä", "a\u0308", `"\`, "aa"}
		for i, name := range names {
			t.sends(c.id, name, fmt.Sprint(i))
		}
		d.takes("x", "a", "")
		for i, name := range slices.Backward(names) {
			c.takes(fmt.Sprint("step ", i), name, fmt.Sprint(i))
			c.takes(fmt.Sprint("again ", i), name, "")
		}
	}},
	{"A step whose signal is not there records nothing, and is no refusal", func(t *T) {
		c := t.awaiting()
		r := c.take("x", "a")
		r.Result = []byte(`"not this"`)
		for range 2 {
			got := c.recorded(r)[0]
			expect(t, got.Name == "x" && got.Result == nil, "recorded as %q %s, want x and nothing", got.Name, got.Result)
		}
		t.steps(c.id)
		t.sends(c.id, "a", `1`)
		c.took(c.recorded(r)[0], "x", `1`)
		c.records(c.step("x", `2`), string(c.recorded(r)[0].Result))
	}},
	{"When the time is over that is recorded for good, unless a signal is there", func(t *T) {
		c := t.awaiting()
		t.sends(c.id, "a", `1`)
		for i, want := range []string{`1`, "timeout", "timeout"} {
			r := c.take(fmt.Sprint("x", i), "a")
			r.Until = t.clock().Add(-time.Hour)
			c.took(c.recorded(r)[0], r.Name, want)
		}
		t.sends(c.id, "a", `2`)
		c.takes("x1", "a", "timeout")
		t.signals(c.id, "a=1 by x0", "a=2")
		c.takes("y", "a", `2`)
		r := c.take("soon", "a")
		r.Until = t.clock().Add(10 * time.Millisecond)
		time.Sleep(30 * time.Millisecond)
		c.took(c.recorded(r)[0], "soon", "timeout")
	}},
	{"Steps of one call take signals of their own, in the order of their names", func(t *T) {
		c, d := t.awaiting(), t.awaiting()
		d.w, d.id = c.w, t.enqueue(job("k"))[0]
		d.e = c.w.One()
		t.sends(c.id, "a", `1`, `2`)
		t.sends(d.id, "a", `3`)
		t.sends(c.id, "b", `4`)
		batch := []store.StepRecord{
			c.take("z", "a"), d.take("z", "a"), c.step("plain", `"p"`), c.take("b", "b"), c.take("x", "a"), c.take("x", "a"), c.take("zz", "a"),
		}
		for range 2 {
			got := c.recorded(batch...)
			c.took(got[0], "z", `2`)
			d.took(got[1], "z", `3`)
			expect(t, got[2].Name == "plain" && sameJSON(got[2].Result, []byte(`"p"`)), "the plain step is recorded as %+v", got[2])
			c.took(got[3], "b", `4`)
			c.took(got[4], "x", `1`)
			c.took(got[5], "x", `1`)
			c.took(got[6], "zz", "")
		}
		t.signals(c.id, "a=1 by x", "a=2 by z", "b=4 by b")
	}},
	{"Who lost the answer gets it again, and no other signal is taken", func(t *T) {
		c := t.awaiting()
		t.sends(c.id, "a", `1`, `2`)
		c.takes("x", "a", `1`)
		c.takes("x", "a", `1`)
		c.w.Finish(returned, c.e)
		c.e = c.w.One()
		c.takes("x", "a", `1`)
		t.signals(c.id, "a=1 by x", "a=2")
	}},
	{"A signal is kept until it is taken, whatever the job does meanwhile", func(t *T) {
		id := t.enqueue(job("k", stint.Delay(time.Hour)))[0]
		t.sends(id, "a", `1`)
		t.promoteAll(0)
		t.state(id, stint.Scheduled)
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{id: {Answer: stint.RerunReady, ID: id}})
		t.sends(id, "a", `2`)
		c := &completion{t: t, id: id, w: t.join("k")}
		c.e = c.w.One()
		t.sends(id, "a", `3`)
		c.w.Finish(failed, c.e)
		t.sends(id, "a", `4`)
		t.promoteAll(0)
		t.state(id, stint.Retrying)
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{id: {Answer: stint.RerunReady, ID: id}})
		c.e = c.w.One()
		c.w.Leave()
		c.w = t.join("k")
		c.e = c.w.One()
		for n := range 4 {
			c.takes(fmt.Sprint(n), "a", fmt.Sprint(n+1))
		}
	}},
	{"An attempt that records nothing takes nothing", func(t *T) {
		c := t.awaiting()
		t.sends(c.id, "a", `1`)
		wrong := c.take("x", "a")
		wrong.Claim.Nonce++
		late, over := c.take("x", "a"), c.take("o", "none")
		over.Until = t.clock().Add(-time.Hour)
		c.refuses(wrong)
		c.w.Finish(returned, c.e)
		c.refuses(late)
		c.refuses(over)
		c.e = c.w.One()
		late = c.take("x", "a")
		c.w.Leave()
		_, err := as[store.StepKeeper](t).RecordSteps(t.ctx, c.w.Info.Token, []store.StepRecord{late})
		fails(t, err, store.ErrBuried, "the buried get %v, want ErrBuried")
		t.signals(c.id, "a=1")
		t.steps(c.id)
		c.w = t.join("k")
		c.e = c.w.One()
		c.takes("x", "a", `1`)
		late = c.take("y", "a")
		c.w.Complete(c.e)
		t.delete(c.id)
		c.refuses(late)
	}},
	{"Signals to what is not there or has ended are refused", func(t *T) {
		as[store.Signaler](t)
		ended := t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		all := w.ClaimAll()
		for i, end := range []store.Result{completed, failedFinally, cancelled, completed} {
			w.Finish(end, all[i])
		}
		t.delete(ended[3])
		waits, ready := t.enqueue(job("k", stint.Delay(time.Hour)))[0], t.enqueue(job("k"))[0]
		t.cancel("", waits, ready)
		again := t.enqueue(job("k"))[0]
		w.Finish(returned, w.One())
		e := w.One()
		for _, id := range []stint.ID{ended[3], 0, -1, 1 << 60, stint.ID(e.Pos)} {
			fails(t, t.send(stint.Tx{}, id, stint.Signal{Name: "a", Value: []byte(`1`)}), stint.ErrNotFound, "a signal to job %d gives %v, want ErrNotFound", id)
			t.signals(id)
		}
		for _, id := range append(ended[:3:3], waits, ready) {
			fails(t, t.send(stint.Tx{}, id, stint.Signal{Name: "a", Value: []byte(`1`)}), stint.ErrEnded, "a signal to job %d gives %v, want ErrEnded", id)
			t.signals(id)
		}
		t.cancels(map[stint.ID]stint.CancelStatus{again: stint.CancelRequested}, "")
		t.sends(again, "a", `1`) // it runs, and has not ended
		t.signals(again, "a=1")
	}},
	{"A signal in a transaction is sent when that commits", func(t *T) {
		c := t.awaiting()
		for _, commit := range []bool{false, true} {
			tx := t.begin()
			made := t.enqueueIn(tx, job("made"))[0]
			for _, id := range []stint.ID{c.id, made} {
				t.must(t.send(tx.Tx(), id, stint.Signal{Name: "a", Key: "k", Value: []byte(`1`)}))
			}
			t.signals(c.id)
			t.signals(made)
			if !commit {
				t.must(tx.Rollback())
				t.signals(c.id)
				c.takes("x", "a", "")
				continue
			}
			t.must(tx.Commit())
			t.signals(c.id, "a=1 of k")
			t.signals(made, "a=1 of k")
			c.takes("x", "a", `1`)
		}
		tx := t.begin()
		fails(t, t.send(tx.Tx(), c.id+1000, stint.Signal{Name: "a", Value: []byte(`1`)}), stint.ErrNotFound, "the error is %v, want ErrNotFound")
		t.must(tx.Rollback())
		for _, handle := range []any{struct{}{}, "tx"} {
			expect(t, t.send(stint.Tx{Handle: handle}, c.id, stint.Signal{Name: "a", Value: []byte(`1`)}) != nil, "a handle of type %T was accepted", handle)
		}
	}},
	{"Signals go with their job, deleted or old", func(t *T) {
		c, old, d := t.awaiting(), t.awaiting(), t.awaiting()
		for _, one := range []*completion{c, old, d} {
			t.sends(one.id, "a", `1`, `2`)
			one.takes("x", "a", `1`)
		}
		c.w.Complete(c.e)
		t.signals(c.id, "a=1 by x", "a=2")
		t.delete(c.id)
		t.signals(c.id)
		t.signals(old.id, "a=1 by x", "a=2")
		old.w.Complete(old.e)
		as[store.Retainer](t)
		t.retain(atOnceKept)
		t.signals(old.id)
		t.signals(d.id, "a=1 by x", "a=2")
	}},
	{"A job that is recovered takes along the signals that nobody took", func(t *T) {
		for _, end := range []store.Result{failedFinally, cancelled} {
			c := t.awaiting()
			t.sends(c.id, "a", `1`, `2`)
			t.sends(c.id, "b", `3`)
			t.sends(c.id, "a", `4`)
			c.takes("x", "a", `1`)
			took := c.recorded(c.take("x", "a"))[0]
			c.w.Finish(end, c.e)
			anew := t.recovers(c.id, stint.RerunOptions{})
			t.signals(c.id, "a=1 by x", "a=2", "b=3", "a=4")
			t.signals(anew, "a=2", "b=3", "a=4")
			c.e, c.id = c.w.One(), anew
			c.records(c.take("x", "a"), string(took.Result))
			c.takes("y", "a", `2`)
			c.takes("z", "a", `4`)
			c.takes("b", "b", `3`)
			c.w.Complete(c.e)
			c.w.Leave()
		}
	}},
	{"Of those who take signals at once each gets its own, and all are told the same", takeAtOnce},
	{"Nothing is left of a signal to a job that is deleted meanwhile", signalBesideDeletion},
}

// awaiting claims a job of a store that has signals.
func (t *T) awaiting() *completion {
	t.Helper()
	as[store.Signaler](t)
	return t.working(nil)
}

// send sends a signal to a job.
func (t *T) send(tx stint.Tx, id stint.ID, s stint.Signal) error {
	return as[store.Signaler](t).Signal(t.ctx, tx, id, s)
}

// sends sends signals of a name to a job, one with each value.
func (t *T) sends(id stint.ID, name string, values ...string) {
	t.Helper()
	for _, v := range values {
		t.must(t.send(stint.Tx{}, id, stint.Signal{Name: name, Value: json.RawMessage(v)}))
	}
}

// signals checks which signals a job has, in their order.
func (t *T) signals(id stint.ID, want ...string) {
	t.Helper()
	var got []string
	for _, s := range must(as[store.Signaler](t).Signals(t.ctx, id))(t) {
		var b bytes.Buffer
		b.WriteString(s.Name + "=")
		t.must(json.Compact(&b, s.Value))
		if s.Key != "" {
			b.WriteString(" of " + s.Key)
		}
		if s.Step != "" {
			b.WriteString(" by " + s.Step)
		}
		got = append(got, b.String())
	}
	noDiff(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), "the signals of job %d (-want +got)", id)
}

// take is a step of the attempt that takes a signal, or waits for it for an hour.
func (c *completion) take(step, signal string) store.StepRecord {
	r := c.step(step, "")
	r.Result, r.Signal, r.Until = nil, signal, c.t.clock().Add(time.Hour)
	return r
}

// recorded records steps, and returns what is recorded then.
func (c *completion) recorded(steps ...store.StepRecord) []stint.RecordedStep {
	c.t.Helper()
	got := must(as[store.StepKeeper](c.t).RecordSteps(c.t.ctx, c.w.Info.Token, steps))(c.t)
	need(c.t, len(got) == len(steps), "%d steps are recorded as %v", len(steps), got)
	return got
}

// takes takes a signal and checks what was sent with it, or "timeout"; empty for nothing yet.
func (c *completion) takes(step, signal, want string) {
	c.t.Helper()
	c.took(c.recorded(c.take(step, signal))[0], step, want)
}

// took checks what is recorded of a step that takes a signal, which the list of signals must confirm.
func (c *completion) took(got stint.RecordedStep, step, want string) {
	c.t.Helper()
	switch {
	case want == "":
		expect(c.t, got.Name == step && got.Result == nil, "%s is recorded as %q %s, want nothing", step, got.Name, got.Result)
		return
	case want == "timeout":
		want = `{"timeout":true}`
	default:
		n := int64(-1)
		for _, s := range must(as[store.Signaler](c.t).Signals(c.t.ctx, c.id))(c.t) {
			if s.Step == step {
				n = s.N
			}
		}
		want = fmt.Sprintf(`{"signal":%d,"value":%s}`, n, want)
	}
	expect(c.t, got.Name == step && sameJSON(got.Result, []byte(want)), "%s is recorded as %q %s, want %s", step, got.Name, got.Result, want)
}

// refuses checks that a step cannot be recorded.
func (c *completion) refuses(r store.StepRecord) {
	c.t.Helper()
	got := c.recorded(r)[0]
	expect(c.t, got.Name == "" && got.Result == nil, "the step %s is recorded as %q %s, though its attempt cannot", r.Name, got.Name, got.Result)
}

// takeAtOnce has several callers take the same signals by the same steps: one after the other, or by one call.
func takeAtOnce(t *T) {
	const callers, names = 8, 12
	c := t.awaiting()
	for n := range names {
		t.sends(c.id, "a", fmt.Sprint(n))
	}
	steps, got := make([][]store.StepRecord, callers), make([][]stint.RecordedStep, callers)
	for i := range steps {
		for n := range names {
			steps[i] = append(steps[i], c.take(fmt.Sprint((n*(2*i+1)+i)%names), "a"))
		}
	}
	k := as[store.StepKeeper](t)
	t.must(errors.Join(atOnce(callers, func(i int) error {
		size := names
		if i%2 == 1 {
			size = 1
		}
		for batch := range slices.Chunk(steps[i], size) {
			all, err := k.RecordSteps(t.ctx, c.w.Info.Token, batch)
			if err != nil {
				return err
			}
			got[i] = append(got[i], all...)
		}
		return nil
	})...))
	taken := map[string]int64{}
	for _, s := range must(as[store.Signaler](t).Signals(t.ctx, c.id))(t) {
		expect(t, s.Step != "" && taken[s.Step] == 0, "signal %d was taken by the step %q, which took %d", s.N, s.Step, taken[s.Step])
		taken[s.Step] = s.N
	}
	for _, r := range slices.Concat(got...) {
		var told struct{ Signal int64 }
		if r.Name != "" && r.Result == nil {
			continue // it was beaten, and its job would be woken
		}
		err := json.Unmarshal(r.Result, &told)
		expect(t, err == nil && told.Signal == taken[r.Name], "a caller was told %s of the step %q, which took %d", r.Result, r.Name, taken[r.Name])
	}
}

// signalBesideDeletion sends signals in the moment that a job ends and is deleted.
func signalBesideDeletion(t *T) {
	as[store.Signaler](t)
	operator := as[store.Operator](t)
	other, rng := t.again().(store.Signaler), NewSeed(t).Rand("signals")
	ids := t.enqueue(jobs(20, "k")...)
	w := t.join("k")
	for _, e := range w.ClaimAll() {
		pause := time.Duration(rng.IntN(1000)) * time.Microsecond
		t.must(errors.Join(atOnce(2, func(i int) error {
			if i == 0 {
				_, err := w.TryFinish(t.ctx, w.Conclude(e, completed))
				return errors.Join(err, errOf(operator.Delete(t.ctx, []stint.ID{e.ID})))
			}
			time.Sleep(pause)
			err := other.Signal(t.ctx, stint.Tx{}, e.ID, stint.Signal{Name: "a", Value: []byte(`1`)})
			if errors.Is(err, stint.ErrEnded) || errors.Is(err, stint.ErrNotFound) {
				return nil
			}
			return err
		})...))
		t.promoteAll(0)
		t.signals(e.ID)
	}
	t.gone(ids...)
}
