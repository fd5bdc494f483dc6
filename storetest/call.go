package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// callTests are about jobs that call others and wait for their ends.
var callTests = []test{
	{"The end of a job is recorded as the step that called it, and wakes who waits", func(t *T) {
		for _, before := range []bool{true, false} {
			c := t.asking()
			child := c.calls("resize")
			info := t.info(child)
			expect(t, info.Flow == c.id && info.Node == "resize" && info.Correlation == t.info(c.id).Correlation, "what was called is %+v", info)
			e := c.w.One()
			if before { // its caller waits
				c.w.Finish(store.Result{Outcome: stint.OutcomeCompleted, Result: []byte(`{"w":1}`)}, e)
			}
			c.parks(time.Hour, `{"resize":""}`)
			if !before {
				waits := t.info(c.id)
				expect(t, waits.NeedsFirst == child && len(waits.Asks) == 0, "who waits for it is %+v", waits)
				expect(t, len(must(as[store.Questioner](t).Questions(t.ctx, store.QuestionFilter{}))(t)) == 0, "the call is a question to people")
				c.w.Finish(store.Result{Outcome: stint.OutcomeCompleted, Result: []byte(`{"w":1}`)}, e)
			}
			t.promoteAll(1)
			c.e = c.w.One()
			c.ended("resize", stint.CalledJob{Job: child, State: stint.Completed, Result: []byte(`{"w":1}`)})
			c.w.Complete(c.e)
		}
	}},
	{"How a job failed is recorded with its last error", func(t *T) {
		c := t.asking()
		child := c.calls("a")
		c.w.Finish(store.Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("it broke")), Stack: "here"}, c.w.One())
		c.parks(time.Hour, `{"a":""}`)
		t.promoteAll(1)
		c.e = c.w.One()
		end := c.ended("a", stint.CalledJob{Job: child, State: stint.Failed, Reason: t.info(child).Reason})
		expect(t, end.Failure != nil && end.Failure.Class != "" && end.Failure.Message == "it broke" && end.Failure.Stack == "", "its failure is %+v", end.Failure)
		cancels := c.calls("b")
		t.cancel("enough", cancels)
		must(t.Store.Promote(t.ctx, time.Time{}, 1000))(t)
		c.ended("b", stint.CalledJob{Job: cancels, State: stint.Cancelled, Reason: "enough"})
	}},
	{"A job is called once under a name", func(t *T) {
		c := t.asking()
		child := c.calls("a")
		again := must(stint.NewClient(t.Store).EnqueueReceipts(t.ctx, []stint.NewJob{c.call("a")}))(t)
		expect(t, len(again) == 1 && again[0].ID == child && again[0].Duplicate, "the second call gives %+v, want job %d", again, child)
		other := c.calls("b")
		expect(t, other != child, "another name is the same job")
	}},
	{"What a job has called stays until that has ended", func(t *T) {
		c := t.asking()
		child := c.calls("a")
		c.w.Complete(c.w.One())
		stays := func(why string) {
			t.deletes(map[stint.ID]store.DeleteStatus{child: store.DeleteNotFinal})
			t.retain(atOnceKept)
			t.state(child, stint.Completed)
			again := must(stint.NewClient(t.Store).EnqueueReceipts(t.ctx, []stint.NewJob{c.call("a")}))(t)
			expect(t, again[0].ID == child, "while it %s, another call runs job %d, want %d", why, again[0].ID, child)
		}
		stays("runs")
		c.parks(time.Hour, `{"a":""}`)
		stays("waits")
		t.promoteAll(1)
		c.e = c.w.One()
		stays("goes on")
		other := c.calls("b")
		c.w.Complete(c.w.One(), c.e)
		t.deletes(map[stint.ID]store.DeleteStatus{child: store.DeletedNow})
		t.retain(atOnceKept)
		t.gone(c.id, child, other)
	}},
	{"Only a job that has not ended calls others", func(t *T) {
		enqueue := func(c *completion) error {
			_, err := stint.NewClient(t.Store).EnqueueReceipts(t.ctx, []stint.NewJob{c.call("a")})
			return err
		}
		c := t.asking()
		c.w.Complete(c.e)
		fails(t, enqueue(c), stint.ErrEnded, "a call by a job that has ended gives %v")
		c = t.asking()
		t.cancels(map[stint.ID]stint.CancelStatus{c.id: stint.CancelRequested}, "")
		fails(t, enqueue(c), stint.ErrEnded, "a call by a job that is cancelled gives %v")
		c.id = 1 << 60
		fails(t, enqueue(c), stint.ErrNotFound, "a call by no job gives %v")
	}},
	{"What a job has called is cancelled with it, though it ends at once", func(t *T) {
		c := t.asking()
		child := c.calls("a")
		must(as[store.Canceller](t).Cancel(t.ctx, []stint.ID{c.id}, ""))(t)
		c.w.Finish(cancelled, c.e)
		must(t.Store.Promote(t.ctx, time.Time{}, 1000))(t)
		t.state(child, stint.Cancelled)
	}},
	{"What a job has called is cancelled with it", func(t *T) {
		for _, waits := range []bool{true, false} {
			c := t.asking()
			child := c.calls("a")
			if waits {
				c.parks(time.Hour, `{"a":""}`)
			}
			must(as[store.Canceller](t).Cancel(t.ctx, []stint.ID{c.id}, "enough"))(t)
			must(t.Store.Promote(t.ctx, time.Time{}, 1000))(t)
			must(t.Store.Promote(t.ctx, time.Time{}, 1000))(t)
			t.state(child, stint.Cancelled)
			expect(t, t.info(child).Reason == fmt.Sprintf("job %d, which called it, was cancelled: enough", c.id), "it was cancelled since %q", t.info(child).Reason)
			if waits {
				t.state(c.id, stint.Cancelled)
			} else {
				c.w.Finish(cancelled, c.e)
			}
		}
	}},
	{"A job that is recovered calls again what had not completed", func(t *T) {
		c := t.asking()
		good, bad := c.calls("good"), c.calls("bad")
		for _, e := range c.w.ClaimAll() {
			if e.ID == good {
				c.w.Complete(e)
			} else {
				c.w.Finish(failedFinally, e)
			}
		}
		must(t.Store.Promote(t.ctx, time.Time{}, 1000))(t)
		c.ended("bad", stint.CalledJob{Job: bad, State: stint.Failed, Reason: t.info(bad).Reason})
		c.w.Finish(failedFinally, c.e)
		anew := must(as[store.Operator](t).Retry(t.ctx, []stint.ID{c.id}, stint.RerunOptions{}))(t)[c.id].ID
		all := must(as[store.StepKeeper](t).Steps(t.ctx, anew))(t)
		expect(t, len(all) == 1 && all[0].Name == "good", "it goes on with %+v", all)
		// What was called is a job by itself: to retry it changes nothing of who called it.
		again := must(as[store.Operator](t).Retry(t.ctx, []stint.ID{bad}, stint.RerunOptions{}))(t)[bad]
		expect(t, again.ID != 0 && t.info(again.ID).Flow == 0, "what failed is retried as %+v", again)
	}},
	{"A job of an open flow that is recovered calls again what had not completed", func(t *T) {
		g := t.flow("a b")
		c := &completion{t: t, id: g.ids["a"], w: g.w}
		for _, e := range g.w.ClaimAll() { // b goes on
			if e.ID == c.id {
				c.e = e
			}
		}
		failed := c.calls("x")
		g.w.Finish(failedFinally, g.w.One())
		must(t.Store.Promote(t.ctx, time.Time{}, 1000))(t)
		g.w.Finish(failedFinally, c.e)
		c.id = must(as[store.Operator](t).Retry(t.ctx, []stint.ID{c.id}, stint.RerunOptions{}))(t)[c.id].ID
		g.promotes()
		c.e = g.w.One()
		expect(t, c.calls("x") != failed, "it calls again job %d, which failed", failed)
	}},
	{"A call gets no answer of people", func(t *T) {
		c := t.asking()
		c.calls("a")
		fails(t, t.answer(stint.Tx{}, c.id, "a", stint.Answer{Choice: "yes", By: "a"}), stint.ErrNotAsked, "an answer to a call gives %v, want ErrNotAsked")
	}},
}

// call is a job that a job calls.
func (c *completion) call(name string) stint.NewJob {
	c.t.Helper()
	job := job("k")
	job.Member = &stint.Member{Into: c.id, Call: true, Place: -1, Name: name}
	return job
}

// calls has a job call another one, and returns that.
func (c *completion) calls(name string) stint.ID {
	c.t.Helper()
	child := must(stint.NewClient(c.t.Store).EnqueueReceipts(c.t.ctx, []stint.NewJob{c.call(name)}))(c.t)[0].ID
	r := c.ask(name, "")
	r.Question = &stint.Question{Job: child, Until: r.Question.Until}
	got := c.recorded(r)[0]
	need(c.t, got.Name == name && got.Result == nil && got.Question != nil && got.Question.Job == child, "the call %s is recorded as %+v, want open", name, got)
	return child
}

// ended checks how a job ended that was called.
func (c *completion) ended(name string, want stint.CalledJob) (got stint.CalledJob) {
	c.t.Helper()
	r := c.ask(name, "")
	r.Question = &stint.Question{Job: want.Job, Until: r.Question.Until}
	recorded := c.recorded(r)[0]
	err := json.Unmarshal(recorded.Result, &got)
	expect(c.t, err == nil && got.Job == want.Job && got.State == want.State && got.Reason == want.Reason && (want.Result == nil && got.Result == nil || sameJSON(got.Result, want.Result)),
		"the step %s is %q %s, want %+v: %v", name, recorded.Name, recorded.Result, want, err)
	return got
}
