package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// wakeTests are about jobs that await signals: what people see of them, and when they run.
var wakeTests = []test{
	{"A signal that commits late holds up nobody, and wakes whoever awaits it", func(t *T) {
		t.skipIf(t.SingleWriter, "an open transaction holds up every writer")
		c := t.awaiting()
		tx := t.begin()
		t.must(t.send(tx.Tx(), c.id, stint.Signal{Name: "a", Value: []byte(`"late"`)}))
		t.sends(c.id, "a", `1`)
		c.takes("x", "a", `1`)
		c.takes("y", "a", "")
		c.parks(time.Hour, `{"y":"a"}`)
		t.promoteAll(0)
		t.must(tx.Commit())
		t.promoteAll(1)
		c.e = c.w.One()
		c.takes("y", "a", `"late"`)
	}},
	{"A job that awaits signals is blocked, and shows which until when", showsAwaited},
	{"A signal wakes the job that awaits it, before or after its attempt ended", func(t *T) {
		early, late := t.awaiting(), t.awaiting()
		early.takes("x", "a", "")
		t.sends(early.id, "a", `1`)
		early.parks(time.Hour, `{"x":"a"}`)
		late.takes("x", "a", "")
		late.parks(time.Hour, `{"x":"a"}`)
		t.promoteAll(1)
		t.state(early.id, stint.Available)
		t.state(late.id, stint.Blocked)
		tx := t.begin()
		t.must(t.send(tx.Tx(), late.id, stint.Signal{Name: "a", Value: []byte(`2`)}))
		t.must(tx.Commit())
		t.promoteAll(1)
		t.promoteAll(0)
		for _, e := range early.w.ClaimAll() {
			c := &completion{t: t, w: early.w, id: e.ID, e: e}
			c.takes("x", "a", map[stint.ID]string{early.id: `1`, late.id: `2`}[e.ID])
			expect(t, len(t.info(e.ID).Awaits) == 0, "job %d runs and awaits %q", e.ID, t.info(e.ID).Awaits)
			c.w.Complete(e)
		}
		t.states([]stint.ID{early.id, late.id}, stint.Completed)
	}},
	{"Any of the names that a job awaits wakes it, and no other", func(t *T) {
		for _, name := range []string{"a", `"b`, "ünï"} {
			c, d := t.awaiting(), t.awaiting()
			for _, one := range []*completion{c, d} {
				one.parks(time.Hour, `{"x":"a","y":"\"b","z":"ünï"}`)
			}
			for _, other := range []string{"x", "y", "A", "ab", `{"x":"a"}`} {
				t.sends(c.id, other, `1`)
			}
			t.promoteAll(0)
			t.sends(c.id, name, `2`)
			t.promoteAll(1)
			t.state(c.id, stint.Available)
			t.state(d.id, stint.Blocked)
			c.e = c.w.One()
			c.takes("it", name, `2`)
			c.w.Complete(c.e)
			t.cancel("", d.id)
		}
	}},
	{"Nobody is woken by a signal that was taken", func(t *T) {
		c := t.awaiting()
		t.sends(c.id, "a", `1`)
		for n, next := range []string{`2`, `3`} {
			c.takes(fmt.Sprint(n), "a", fmt.Sprint(n+1))
			c.takes(fmt.Sprint(n+1), "a", "")
			c.parks(time.Hour, fmt.Sprintf(`{"%d":"a"}`, n+1))
			t.promoteAll(0)
			t.state(c.id, stint.Blocked)
			t.sends(c.id, "a", next)
			t.promoteAll(1)
			c.e = c.w.One()
		}
		c.takes("2", "a", `3`)
	}},
	{"A job that is blocked becomes ready when its time is over", func(t *T) {
		c := t.awaiting()
		c.parks(20*time.Millisecond, `{"x":"a"}`)
		t.sends(c.id, "other", `1`)
		t.promoteAfter(40*time.Millisecond, 1)
		c.e = c.w.One()
		r := c.take("x", "a")
		r.Until = t.clock().Add(-time.Millisecond)
		c.took(c.recorded(r)[0], "x", "timeout")
		c.parks(time.Hour, `{"y":"a"}`)
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{c.id: {Answer: stint.RerunReady, ID: c.id}})
		t.state(c.id, stint.Available)
		t.sends(c.id, "a", `1`)
		t.promoteAll(0)
		c.e = c.w.One()
		c.takes("y", "a", `1`)
	}},
	{"Who is woken is promoted up to the limit, and what is due later is found from there", func(t *T) {
		const n = 3
		var all []stint.ID
		for range n {
			c := t.awaiting()
			c.parks(time.Hour, `{"x":"a"}`)
			all = append(all, c.id)
		}
		p := t.promoteAll(0)
		expect(t, p.Next > time.Minute && p.Next <= time.Hour, "the next job is due in %v, want an hour", p.Next)
		for _, id := range all {
			t.sends(id, "a", `1`)
		}
		for i := range n {
			p = must(t.Store.Promote(t.ctx, time.Time{}, 1))(t)
			expect(t, p.Moved == 1 && (i == n-1 || p.Next == 0), "call %d promoted %d, the next in %v", i, p.Moved, p.Next)
		}
		t.states(all, stint.Available)
		bound := p.Until
		soon := t.enqueue(job("k", stint.Delay(20*time.Millisecond)))[0]
		time.Sleep(40 * time.Millisecond)
		p = must(t.Store.Promote(t.ctx, bound, 10))(t)
		expect(t, p.Moved == 1, "from the bound %v of the last call %d were promoted", bound, p.Moved)
		t.state(soon, stint.Available)
	}},
	{"It rings for a signal, and in a transaction when that commits", func(t *T) {
		c := t.awaiting()
		c.parks(time.Hour, `{"x":"a"}`)
		bell := t.listen(t.again())
		bell.rings("after a signal", func() { t.sends(c.id, "a", `1`) })
		tx := t.begin()
		t.must(t.send(tx.Tx(), c.id, stint.Signal{Name: "a", Value: []byte(`1`)}))
		bell.rings("after the commit", func() { t.must(tx.Commit()) })
	}},
	{"A job that is cancelled while it is blocked has ended", func(t *T) {
		c := t.awaiting()
		c.parks(time.Hour, `{"x":"a"}`)
		t.cancels(map[stint.ID]stint.CancelStatus{c.id: stint.CancelledNow}, "why")
		info := t.info(c.id)
		expect(t, info.State == stint.Cancelled && info.Reason == "why" && len(info.Awaits) == 0, "it is %s, reason %q, awaits %q", info.State, info.Reason, info.Awaits)
		fails(t, t.send(stint.Tx{}, c.id, stint.Signal{Name: "a", Value: []byte(`1`)}), stint.ErrEnded, "a signal gives %v, want ErrEnded")
		t.promoteAll(0)
		t.ended(c.id)
	}},
	{"A job that is blocked holds its unique key", func(t *T) {
		j := job("k", stint.UniqueUntilEnded())
		as[store.Signaler](t)
		c := t.working(&j)
		c.parks(time.Hour, `{"x":"a"}`)
		r := t.keyed(j)[0]
		expect(t, r.Duplicate && r.ID == c.id, "beside the blocked job %d another gives %+v", c.id, r)
		t.sends(c.id, "a", `1`)
		t.promoteAll(1)
		c.w.Complete(c.w.One())
		expect(t, !t.keyed(j)[0].Duplicate, "the key is held when job %d has completed", c.id)
	}},
	{"However a signal and the end of an attempt meet, the job is woken once", wakeAtOnce},
}

// parks ends the attempt with a wait for signals.
func (c *completion) parks(d time.Duration, awaits string) {
	c.t.Helper()
	c.w.Finish(store.Result{Outcome: stint.OutcomeSnoozed, Snooze: d, Awaits: json.RawMessage(awaits)}, c.e)
	c.t.state(c.id, stint.Blocked)
}

// showsAwaited compares a job that awaits signals with one that sleeps.
func showsAwaited(t *T) {
	c, sleeps := t.awaiting(), t.awaiting()
	before := t.clock()
	c.parks(time.Hour, `{"z":"b","y":"a","x":"ünï \"☃\"","w":"b"}`)
	after := t.clock()
	sleeps.w.Finish(store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, sleeps.e)
	info, other := t.info(c.id), t.info(sleeps.id)
	expect(t, between(info.Due, before.Add(time.Hour-time.Second), after.Add(time.Hour+time.Second)), "it is due at %v, want an hour after %v", info.Due, before)
	x := info.Attempts[len(info.Attempts)-1]
	expect(t, info.Attempt == other.Attempt && len(info.Attempts) == len(other.Attempts) && info.Begun == other.Begun && info.Losses == other.Losses &&
		x.Outcome == stint.OutcomeSnoozed && !x.Final, "it shows as %+v, and one that sleeps as %+v", info, other)
	awaits := []string{"a", "b", `ünï "☃"`}
	equalAll(t, info.Awaits, awaits, "it awaits %q, want %q")
	listed := must(t.Store.Jobs(t.ctx, store.Filter{States: []stint.State{stint.Blocked}}))(t)
	need(t, len(listed) == 1 && listed[0].ID == c.id, "as blocked are listed %+v, want job %d", listed, c.id)
	expect(t, listed[0].State == stint.Blocked && slices.Equal(listed[0].Awaits, awaits), "it is listed as %s, awaits %q", listed[0].State, listed[0].Awaits)
	equalAll(t, t.list(store.Filter{States: []stint.State{stint.Scheduled}}), []stint.ID{sleeps.id}, "as scheduled are listed %v, want %v")
	counts := must(t.Store.Counts(t.ctx))(t)
	expect(t, counts[stint.Blocked] == 1 && counts[stint.Scheduled] == 1, "counted are %v", counts)
	expect(t, len(other.Awaits) == 0, "a job that sleeps awaits %q", other.Awaits)
}

// wakeAtOnce sends signals in the moment that an attempt ends.
func wakeAtOnce(t *T) {
	c, other := t.awaiting(), t.again().(store.Signaler)
	rng := NewSeed(t).Rand("signals")
	for round := range 30 {
		step, pause := fmt.Sprint(round), time.Duration(rng.IntN(1000)-500)*time.Microsecond
		c.takes(step, "a", "")
		x := c.w.Conclude(c.e, store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour, Awaits: fmt.Appendf(nil, `{%q:"a"}`, step)})
		t.must(errors.Join(atOnce(2, func(i int) error {
			if i == 0 {
				time.Sleep(max(0, pause))
				return errOf(c.w.TryFinish(t.ctx, x))
			}
			time.Sleep(max(0, -pause))
			return other.Signal(t.ctx, stint.Tx{}, c.id, stint.Signal{Name: "a", Value: fmt.Append(nil, round)})
		})...))
		var moved atomic.Int64
		t.must(errors.Join(atOnce(3, func(int) error {
			p, err := t.Store.Promote(t.ctx, time.Time{}, 10)
			moved.Add(int64(p.Moved))
			return err
		})...))
		need(t, moved.Load() == 1, "in round %d it was woken %d times, want once", round, moved.Load())
		c.e = c.w.One()
		c.takes(step, "a", fmt.Sprint(round))
	}
}
