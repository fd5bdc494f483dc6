package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// questionTests are about questions to people: which are kept, who may answer, and who is told what.
var questionTests = []test{
	{"A question is kept once, as it was asked first", func(t *T) {
		c := t.asking()
		first := c.ask("pay?", "Pay 900 € to \"ACME\"?\nReally?", "yes", "nö", `"\`)
		before := t.clock()
		c.open(first, first)
		again := c.ask("pay?", "Pay 1 EUR?", "maybe")
		again.Question.Until = again.Question.Until.Add(time.Hour)
		c.open(again, first)
		c.w.Finish(returned, c.e)
		c.e = c.w.One()
		again.Claim, again.Pos = c.ask("pay?", "x", "y").Claim, c.e.Pos
		c.open(again, first)
		c.open(c.ask("a", "Another?", "yes"), c.ask("a", "Another?", "yes"))
		all := must(as[store.StepKeeper](t).Steps(t.ctx, c.id))(t)
		need(t, len(all) == 2 && all[0].Name == "pay?" && all[1].Name == "a", "recorded are %+v, want pay? and a", all)
		q := all[0]
		expect(t, q.Result == nil && q.Ended.IsZero() && between(q.Began, before.Add(-time.Second), t.clock().Add(time.Second)), "the open question is listed as %+v", q)
		c.sameQuestion(q.Question, first.Question)
	}},
	{"The first answer counts, and says who gave it", func(t *T) {
		c := t.asking()
		r := c.opens("q", "yes", "no")
		before := t.clock()
		t.must(t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "no", By: "ünï \"☃\"", Comment: "too much\n— \\", At: time.Unix(1, 0)}))
		after := t.clock()
		for _, other := range []stint.Answer{{Choice: "yes", By: "bob"}, {Choice: "no", By: "ünï \"☃\""}, {Choice: "perhaps", By: "bob"}} {
			t.answered(t.answer(stint.Tx{}, c.id, "q", other), "q", "no", "ünï \"☃\"", "too much\n— \\")
		}
		got := c.recorded(r)[0]
		a := c.gave(got, "no", "ünï \"☃\"", "too much\n— \\")
		expect(t, between(a.At, before.Add(-time.Second), after.Add(time.Second)), "it was given at %v, between %v and %v", a.At, before, after)
		all := must(as[store.StepKeeper](t).Steps(t.ctx, c.id))(t)
		need(t, len(all) == 1 && all[0].Question != nil && sameJSON(all[0].Result, got.Result), "recorded are %+v", all)
		c.sameQuestion(all[0].Question, r.Question)
		expect(t, all[0].Ended.Sub(a.At).Abs() < time.Second && !all[0].Ended.Before(all[0].Began), "it is recorded from %v to %v, given at %v", all[0].Began, all[0].Ended, a.At)
		c.opens("r", "yes")
		t.must(t.answer(stint.Tx{}, c.id, "r", stint.Answer{Choice: "yes", By: "a"}))
		var plain map[string]any
		t.must(json.Unmarshal(c.recorded(c.ask("r", "?", "yes"))[0].Result, &plain))
		expect(t, len(plain) == 3 && plain["comment"] == nil, "without a comment is recorded %v", plain)
		c.w.Complete(c.e)
		t.answered(t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "yes", By: "bob"}), "q", "no", "ünï \"☃\"", "too much\n— \\")
	}},
	{"An answer to what is not asked, or by what is no choice, is refused", func(t *T) {
		c, d := t.asking(), t.asking()
		c.opens("q", "yes", "no", "ä")
		d.opens("other", "yes")
		c.records(c.step("s", `{"choice":"yes","by":"me"}`), `{"choice":"yes","by":"me"}`)
		for _, choice := range []string{"maybe", "Yes", "yes ", "a\u0308", `yes","no`} {
			err := t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: choice, By: "a"})
			fails(t, err, stint.ErrInvalid, "the choice "+choice+" gives %v, want ErrInvalid")
			expect(t, err != nil && strings.Contains(err.Error(), `"yes", "no", "ä"`), "the error does not say the choices: %v", err)
		}
		for _, name := range []string{"other", "s", "Q", "qq", "q until"} {
			fails(t, t.answer(stint.Tx{}, c.id, name, stint.Answer{Choice: "yes", By: "a"}), stint.ErrNotAsked, "the question "+name+" gives %v, want ErrNotAsked")
		}
		for _, id := range []stint.ID{0, -1, 1 << 60, c.id + 1000} {
			fails(t, t.answer(stint.Tx{}, id, "q", stint.Answer{Choice: "yes", By: "a"}), stint.ErrNotFound, "a job that is not there gives %v, want ErrNotFound")
		}
		t.must(t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "ä", By: "a"}))
	}},
	{"A question of a job that has ended gets no answer", func(t *T) {
		for _, end := range []store.Result{completed, failedFinally, cancelled} {
			c := t.asking()
			c.opens("q", "yes")
			c.w.Finish(end, c.e)
			fails(t, t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "yes", By: "a"}), stint.ErrEnded, "an answer gives %v, want ErrEnded")
			fails(t, t.answer(stint.Tx{}, c.id, "none", stint.Answer{Choice: "yes", By: "a"}), stint.ErrEnded, "an answer to nothing gives %v, want ErrEnded")
			t.delete(c.id)
			fails(t, t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "yes", By: "a"}), stint.ErrNotFound, "of a deleted job it gives %v, want ErrNotFound")
		}
		c := t.asking()
		c.opens("q", "yes")
		c.parks(time.Hour, `{"q":""}`)
		t.cancels(map[stint.ID]stint.CancelStatus{c.id: stint.CancelledNow}, "")
		fails(t, t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "yes", By: "a"}), stint.ErrEnded, "of a cancelled job it gives %v, want ErrEnded")
		c = t.asking()
		c.opens("q", "yes")
		t.cancels(map[stint.ID]stint.CancelStatus{c.id: stint.CancelRequested}, "")
		t.must(t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "yes", By: "a"})) // it runs, and has not ended
	}},
	{"When the time to answer is over that is recorded for good", func(t *T) {
		c := t.asking()
		r := c.ask("q", "?", "yes")
		r.Question.Until = t.clock().Add(soonOver)
		c.open(r, r)
		answered := c.ask("in time", "?", "yes")
		answered.Question.Until = r.Question.Until
		c.open(answered, answered)
		t.must(t.answer(stint.Tx{}, c.id, "in time", stint.Answer{Choice: "yes", By: "a"}))
		t.past(r)
		fails(t, t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "yes", By: "a"}), stint.ErrNoAnswer, "an answer gives %v, want ErrNoAnswer")
		later := c.ask("q", "?", "yes") // which has no more time than the first
		for range 2 {
			c.over(c.recorded(later)[0])
		}
		c.gave(c.recorded(answered)[0], "yes", "a", "")
		fails(t, t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "yes", By: "a"}), stint.ErrNoAnswer, "an answer gives %v, want ErrNoAnswer")
		never := c.ask("never", "?", "yes")
		never.Question.Until = t.clock().Add(-time.Hour)
		c.over(c.recorded(never)[0])
		t.questions(store.QuestionFilter{})
		c.w.Complete(c.e)
		fails(t, t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "yes", By: "a"}), stint.ErrNoAnswer, "an answer gives %v, want ErrNoAnswer")
	}},
	{"The time of a question is not over while somebody answers in a transaction", func(t *T) {
		t.skipIf(t.SingleWriter, "an open transaction holds up every writer")
		for _, commit := range []bool{false, true} {
			c := t.asking()
			r := c.ask("q", "?", "yes")
			r.Question.Until = t.clock().Add(soonOver)
			c.open(r, r)
			other := c.ask("other", "?", "yes")
			other.Question.Until = r.Question.Until
			c.open(other, other)
			tx := t.begin()
			t.must(t.answer(tx.Tx(), c.id, "q", stint.Answer{Choice: "yes", By: "a"}))
			t.past(r)
			got := c.recorded(r, other)
			expect(t, got[0].Name == "q" && got[0].Result == nil && got[0].Question != nil, "the question in hand is %+v, want open", got[0])
			c.over(got[1])
			if !commit {
				t.must(tx.Rollback())
				c.over(c.recorded(r)[0])
				continue
			}
			t.must(tx.Commit())
			c.gave(c.recorded(r)[0], "yes", "a", "")
		}
	}},
	{"Who answers waits for who is answering, and is told what became of it", func(t *T) {
		t.skipIf(t.SingleWriter, "an open transaction holds up every writer")
		for _, commit := range []bool{false, true} {
			c := t.asking()
			r := c.opens("q", "yes", "no")
			tx := t.begin()
			t.must(t.answer(tx.Tx(), c.id, "q", stint.Answer{Choice: "yes", By: "a"}))
			t.answered(t.answer(tx.Tx(), c.id, "q", stint.Answer{Choice: "no", By: "a"}), "q", "yes", "a", "")
			t.must(tx.Rollback()) // an error aborts it on some stores
			if commit {
				tx = t.begin()
				t.must(t.answer(tx.Tx(), c.id, "q", stint.Answer{Choice: "yes", By: "a"}))
				told := make(chan error, 1)
				other := t.again().(store.Questioner)
				go func() { told <- other.Answer(t.ctx, stint.Tx{}, c.id, "q", stint.Answer{Choice: "no", By: "b"}) }()
				time.Sleep(30 * time.Millisecond)
				expect(t, len(told) == 0, "an answer beside an open transaction did not wait")
				t.must(tx.Commit())
				t.answered(<-told, "q", "yes", "a", "")
				c.gave(c.recorded(r)[0], "yes", "a", "")
				continue
			}
			t.must(t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "no", By: "b"}))
			c.gave(c.recorded(r)[0], "no", "b", "")
		}
	}},
	{"An answer in a transaction is given when that commits", func(t *T) {
		c := t.asking()
		r := c.opens("q", "yes")
		for _, commit := range []bool{false, true} {
			tx := t.begin()
			made := t.enqueueIn(tx, job("made"))[0]
			t.must(t.answer(tx.Tx(), c.id, "q", stint.Answer{Choice: "yes", By: "a"}))
			t.questions(store.QuestionFilter{}, fmt.Sprint(c.id, " q"))
			if !commit {
				t.must(tx.Rollback())
				t.absent(made)
				c.open(r, r)
				continue
			}
			t.must(tx.Commit())
			t.state(made, stint.Available)
			c.gave(c.recorded(r)[0], "yes", "a", "")
		}
		t.questions(store.QuestionFilter{})
		tx := t.begin()
		fails(t, t.answer(tx.Tx(), c.id, "none", stint.Answer{Choice: "yes", By: "a"}), stint.ErrNotAsked, "the error is %v, want ErrNotAsked")
		t.must(tx.Rollback())
		for _, handle := range []any{struct{}{}, "tx"} {
			expect(t, t.answer(stint.Tx{Handle: handle}, c.id, "q", stint.Answer{Choice: "yes", By: "a"}) != nil, "a handle of type %T was accepted", handle)
		}
	}},
	{"An answer wakes the job that awaits it, before or after its attempt ended", func(t *T) {
		early, late, other := t.asking(), t.asking(), t.asking()
		for _, c := range []*completion{early, late, other} {
			c.opens("q", "yes")
			c.opens("r", "yes")
		}
		t.must(t.answer(stint.Tx{}, early.id, "q", stint.Answer{Choice: "yes", By: "a"}))
		t.must(t.answer(stint.Tx{}, other.id, "r", stint.Answer{Choice: "yes", By: "a"}))
		early.parks(time.Hour, `{"q":"","x":"a"}`)
		late.parks(time.Hour, `{"r":"","q":"","x":"a","y":"a"}`)
		other.parks(time.Hour, `{"q":""}`)
		t.promoteAll(1)
		t.states([]stint.ID{early.id}, stint.Available)
		t.states([]stint.ID{late.id, other.id}, stint.Blocked)
		info := t.info(late.id)
		equalAll(t, info.Asks, []string{"q", "r"}, "it asks %q, want %q")
		equalAll(t, info.Awaits, []string{"a"}, "it awaits %q, want %q")
		only := t.info(other.id)
		expect(t, slices.Equal(only.Asks, []string{"q"}) && len(only.Awaits) == 0, "it asks %q and awaits %q, want q alone", only.Asks, only.Awaits)
		listed := must(t.Store.Jobs(t.ctx, store.Filter{States: []stint.State{stint.Blocked}}))(t)
		expect(t, len(listed) == 2 && slices.Equal(listed[0].Asks, only.Asks), "listed are %+v", listed)
		t.sends(other.id, "q", `1`) // a signal is no answer
		t.promoteAll(0)
		tx := t.begin()
		t.must(t.answer(tx.Tx(), late.id, "r", stint.Answer{Choice: "yes", By: "a"}))
		t.must(tx.Commit())
		t.promoteAll(1)
		t.promoteAll(0)
		t.state(late.id, stint.Available)
		expect(t, len(t.info(late.id).Asks) == 0, "ready it asks %q", t.info(late.id).Asks)
		t.must(t.answer(stint.Tx{}, other.id, "q", stint.Answer{Choice: "yes", By: "a"}))
		t.promoteAll(1)
		t.state(other.id, stint.Available)
	}},
	{"A job whose question gets no answer becomes ready when the time is over", func(t *T) {
		c := t.asking()
		r := c.ask("q", "?", "yes")
		r.Question.Until = t.clock().Add(soonOver)
		c.open(r, r)
		c.parks(soonOver, `{"q":""}`)
		t.promoteAfter(soonOver+20*time.Millisecond, 1)
		c.e = c.w.One()
		c.over(c.recorded(c.ask("q", "?", "yes"))[0])
	}},
	{"Open questions are listed, those of the newest jobs first", func(t *T) {
		var all []string
		var last *completion
		before := t.clock()
		for i := range 3 {
			c := t.asking()
			for _, name := range []string{"b", "a", "ä"} {
				c.opens(name, "yes", "no")
			}
			all = append([]string{fmt.Sprint(c.id, " a"), fmt.Sprint(c.id, " b"), fmt.Sprint(c.id, " ä")}, all...)
			if i == 1 {
				c.parks(time.Hour, `{"a":""}`)
			}
			last = c
		}
		t.questions(store.QuestionFilter{}, all...)
		t.questions(store.QuestionFilter{Limit: 3}, all[:3]...)
		t.questions(store.QuestionFilter{Limit: 4}, all[:6]...)
		t.questions(store.QuestionFilter{Limit: 100}, all...)
		t.questions(store.QuestionFilter{Before: last.id}, all[3:]...)
		t.questions(store.QuestionFilter{Before: last.id, Limit: 1}, all[3:6]...)
		t.questions(store.QuestionFilter{Before: 1})
		q := must(as[store.Questioner](t).Questions(t.ctx, store.QuestionFilter{Limit: 1}))(t)[0]
		info := t.info(last.id)
		expect(t, q.Kind == info.Kind && q.Queue == info.Queue && between(q.Asked, before.Add(-time.Second), t.clock().Add(time.Second)), "it is listed as %+v, of %+v", q, info)
		last.sameQuestion(&q.Question, last.ask("a", "Is it a?", "yes", "no").Question)
		t.must(t.answer(stint.Tx{}, last.id, "b", stint.Answer{Choice: "yes", By: "a"}))
		t.questions(store.QuestionFilter{}, append([]string{all[0]}, all[2:]...)...)
		last.w.Finish(failedFinally, last.e)
		t.questions(store.QuestionFilter{}, all[3:]...)
		t.cancels(map[stint.ID]stint.CancelStatus{jobOf(all[3]): stint.CancelledNow}, "")
		t.questions(store.QuestionFilter{}, all[6:]...)
	}},
	{"Questions whose time is over are not open", func(t *T) {
		c := t.asking()
		r := c.ask("q", "?", "yes")
		r.Question.Until = t.clock().Add(soonOver)
		c.open(r, r)
		t.past(r)
		t.questions(store.QuestionFilter{})
	}},
	{"Questions go with their job", func(t *T) {
		c, d := t.asking(), t.asking()
		for _, one := range []*completion{c, d} {
			one.opens("q", "yes")
			one.opens("r", "yes")
			t.must(t.answer(stint.Tx{}, one.id, "r", stint.Answer{Choice: "yes", By: "a"}))
		}
		c.w.Finish(failedFinally, c.e)
		t.delete(c.id)
		expect(t, len(must(as[store.StepKeeper](t).Steps(t.ctx, c.id))(t)) == 0, "questions of job %d are left", c.id)
		t.questions(store.QuestionFilter{}, fmt.Sprint(d.id, " q"))
	}},
	{"A job that is recovered takes its questions along", func(t *T) {
		c := t.asking()
		r := c.opens("q", "yes", "no")
		c.opens("r", "yes")
		t.must(t.answer(stint.Tx{}, c.id, "r", stint.Answer{Choice: "yes", By: "a", Comment: "c"}))
		c.w.Finish(failedFinally, c.e)
		anew := t.recovers(c.id, stint.RerunOptions{})
		t.questions(store.QuestionFilter{}, fmt.Sprint(anew, " q"))
		c.e, c.id = c.w.One(), anew
		c.gave(c.recorded(c.ask("r", "?", "yes"))[0], "yes", "a", "c")
		c.open(c.ask("q", "Other?", "x"), r)
		t.must(t.answer(stint.Tx{}, anew, "q", stint.Answer{Choice: "no", By: "a"}))
		c.gave(c.recorded(c.ask("q", "?", "yes"))[0], "no", "a", "")
	}},
	{"An attempt that records nothing asks nothing", func(t *T) {
		c := t.asking()
		wrong := c.ask("q", "?", "yes")
		wrong.Claim.Nonce++
		late, over := c.ask("kept", "?", "yes"), c.ask("over", "?", "yes")
		late.Question.Until, over.Question.Until = t.clock().Add(soonOver), t.clock().Add(-time.Hour)
		c.open(late, late)
		c.refuses(wrong)
		c.w.Finish(returned, c.e)
		c.refuses(over)
		t.past(late)
		c.refuses(late)
		all := must(as[store.StepKeeper](t).Steps(t.ctx, c.id))(t)
		expect(t, len(all) == 1 && all[0].Name == "kept" && all[0].Result == nil, "recorded are %+v, want kept alone, and open", all)
		c.e = c.w.One()
		late = c.ask("kept", "?", "yes")
		c.w.Leave()
		_, err := as[store.StepKeeper](t).RecordSteps(t.ctx, c.w.Info.Token, []store.StepRecord{late})
		fails(t, err, store.ErrBuried, "the buried get %v, want ErrBuried")
	}},
	{"A step does not take the place of an open question", func(t *T) {
		c := t.asking()
		r := c.opens("q", "yes")
		c.refuses(c.step("q", `1`))
		c.open(r, r)
		c.records(c.step("s", `1`), `1`)
		c.records(c.ask("s", "?", "yes"), `1`)
		t.questions(store.QuestionFilter{}, fmt.Sprint(c.id, " q"))
	}},
	{"A call records questions beside signals and steps", func(t *T) {
		c := t.asking()
		t.sends(c.id, "a", `1`)
		c.opens("p", "yes")
		t.must(t.answer(stint.Tx{}, c.id, "p", stint.Answer{Choice: "yes", By: "a"}))
		over := c.ask("o", "?", "yes")
		over.Question.Until = t.clock().Add(-time.Hour)
		q := c.ask("q", "?", "yes")
		got := c.recorded(c.take("x", "a"), q, c.step("plain", `"p"`), over, c.take("y", "a"), c.ask("p", "?", "yes"))
		c.took(got[0], "x", `1`)
		expect(t, got[1].Name == "q" && got[1].Result == nil, "the question is recorded as %+v", got[1])
		c.sameQuestion(got[1].Question, q.Question)
		expect(t, sameJSON(got[2].Result, []byte(`"p"`)) && got[2].Question == nil, "the plain step is recorded as %+v", got[2])
		c.over(got[3])
		c.took(got[4], "y", "")
		c.gave(got[5], "yes", "a", "")
	}},
	{"It rings for an answer, and in a transaction when that commits", func(t *T) {
		c := t.asking()
		c.opens("q", "yes")
		c.opens("r", "yes")
		c.parks(time.Hour, `{"q":"","r":""}`)
		bell := t.listen(t.again())
		bell.rings("after an answer", func() { t.must(t.answer(stint.Tx{}, c.id, "q", stint.Answer{Choice: "yes", By: "a"})) })
		tx := t.begin()
		t.must(t.answer(tx.Tx(), c.id, "r", stint.Answer{Choice: "yes", By: "a"}))
		bell.rings("after the commit", func() { t.must(tx.Commit()) })
	}},
	{"However answers and the end of the time meet, all are told the same", answerAtOnce},
	{"However an answer, the end of an attempt and a cancellation meet, an answer that was accepted is there", answerBesideCancellation},
}

// asking claims a job of a store that has questions.
func (t *T) asking() *completion {
	t.Helper()
	as[store.Questioner](t)
	return t.working(nil)
}

// answer answers a question of a job.
func (t *T) answer(tx stint.Tx, id stint.ID, question string, a stint.Answer) error {
	return as[store.Questioner](t).Answer(t.ctx, tx, id, question, a)
}

// answered checks that an answer was refused, since another one counts.
func (t *T) answered(err error, question, choice, by, comment string) {
	t.Helper()
	e, ok := errors.AsType[*stint.AnsweredError](err)
	if !ok {
		t.Errorf("the answer gives %v, want an AnsweredError", err)
		return
	}
	a := e.Answer
	expect(t, e.Question == question && a.Choice == choice && a.By == by && a.Comment == comment && !a.At.IsZero(), "it was answered as %+v", e)
}

// questions checks which questions are open, in their order.
func (t *T) questions(f store.QuestionFilter, want ...string) {
	t.Helper()
	var got []string
	for _, q := range must(as[store.Questioner](t).Questions(t.ctx, f))(t) {
		got = append(got, fmt.Sprint(q.Job, " ", q.Name))
	}
	noDiff(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), "the open questions (-want +got)")
}

// jobOf is the job of one of these.
func jobOf(question string) (id stint.ID) {
	_, _ = fmt.Sscan(question, &id)
	return id
}

// ask is a question of the attempt, which may be answered for an hour.
func (c *completion) ask(name, text string, choices ...string) store.StepRecord {
	r := c.step(name, "")
	r.Result, r.Question = nil, &stint.Question{Text: text, Choices: choices, Until: c.t.clock().Add(time.Hour)}
	return r
}

// soonOver is for how long a question can be answered in a test that waits until that is over.
const soonOver = time.Second

// past waits until the time of a question is over.
func (t *T) past(r store.StepRecord) {
	t.Helper()
	for !t.clock().After(r.Question.Until) {
		time.Sleep(10 * time.Millisecond)
	}
}

// opens asks a question, and checks that it is open.
func (c *completion) opens(name string, choices ...string) store.StepRecord {
	c.t.Helper()
	r := c.ask(name, "Is it "+name+"?", choices...)
	c.open(r, r)
	return r
}

// open checks that a question is open, as it was asked first.
func (c *completion) open(r, first store.StepRecord) {
	c.t.Helper()
	got := c.recorded(r)[0]
	need(c.t, got.Name == r.Name && got.Result == nil && got.Question != nil, "the question %s is recorded as %+v, want open", r.Name, got)
	c.sameQuestion(got.Question, first.Question)
}

func (c *completion) sameQuestion(got, want *stint.Question) {
	c.t.Helper()
	need(c.t, got != nil, "there is no question")
	expect(c.t, got.Text == want.Text && slices.Equal(got.Choices, want.Choices) && got.Until.Sub(want.Until).Abs() < time.Minute, "asked is %+v, want %+v", got, want)
}

// over checks that the time of a question is recorded to be over.
func (c *completion) over(got stint.RecordedStep) {
	c.t.Helper()
	expect(c.t, sameJSON(got.Result, []byte(`{"timeout":true}`)), "the question is recorded as %q %s, want a timeout", got.Name, got.Result)
}

// gave checks the answer that is recorded.
func (c *completion) gave(got stint.RecordedStep, choice, by, comment string) (a stint.Answer) {
	c.t.Helper()
	err := json.Unmarshal(got.Result, &a)
	expect(c.t, err == nil && got.Name != "" && a.Choice == choice && a.By == by && a.Comment == comment, "recorded is %q %s, want %s by %s: %v", got.Name, got.Result, choice, by, err)
	return a
}

// answerAtOnce has several answer in the moment that the time is over.
func answerAtOnce(t *T) {
	const callers = 4
	c, other, keeper := t.asking(), t.again().(store.Questioner), as[store.StepKeeper](t)
	rng := NewSeed(t).Rand("questions")
	for round := range 40 {
		name := fmt.Sprint(round)
		r := c.ask(name, "?", "yes")
		r.Question.Until = t.clock().Add(time.Duration(3000+rng.IntN(4000)) * time.Microsecond)
		if c.recorded(r)[0].Result != nil {
			continue // it took that long
		}
		told, pauses := make([]error, callers), make([]time.Duration, callers)
		for i := range pauses {
			pauses[i] = time.Duration(rng.IntN(7000)) * time.Microsecond
		}
		var last stint.RecordedStep
		t.must(errors.Join(atOnce(callers+1, func(i int) error {
			if i < callers {
				time.Sleep(pauses[i])
				told[i] = other.Answer(t.ctx, stint.Tx{}, c.id, name, stint.Answer{Choice: "yes", By: fmt.Sprint("caller ", i)})
				return nil
			}
			for stop := time.Now().Add(20 * time.Second); last.Result == nil; {
				if time.Now().After(stop) {
					return errors.New("the time of the question is never over")
				}
				got, err := keeper.RecordSteps(t.ctx, c.w.Info.Token, []store.StepRecord{r})
				if err != nil {
					return err
				}
				last = got[0]
			}
			return nil
		})...))
		var a stint.Answer
		t.must(json.Unmarshal(last.Result, &a))
		for i, err := range told {
			me := fmt.Sprint("caller ", i)
			e, answered := errors.AsType[*stint.AnsweredError](err)
			switch {
			case err == nil:
				expect(t, a.By == me, "in round %d %s was accepted, and recorded is %s", round, me, last.Result)
			case answered:
				expect(t, a.By == e.Answer.By && a.By != me, "in round %d %s was told of %s, and recorded is %s", round, me, e.Answer.By, last.Result)
			case errors.Is(err, stint.ErrNoAnswer):
				expect(t, a.By == "", "in round %d %s was told that the time is over, and recorded is %s", round, me, last.Result)
			default:
				t.Errorf("in round %d %s was told %v", round, me, err)
			}
		}
	}
}

// answerBesideCancellation answers a question while the attempt ends that asks it, and its job is cancelled.
func answerBesideCancellation(t *T) {
	canceller := as[store.Canceller](t)
	other := t.again().(store.Questioner)
	rng := NewSeed(t).Rand("cancellations")
	for round := range 30 {
		c := t.asking()
		c.opens("q", "yes")
		x := c.w.Conclude(c.e, store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour, Awaits: json.RawMessage(`{"q":""}`)})
		var told error
		pauses := [3]time.Duration{}
		for i := range pauses {
			pauses[i] = time.Duration(rng.IntN(1000)) * time.Microsecond
		}
		cancels := round%3 > 0
		t.must(errors.Join(atOnce(3, func(i int) error {
			time.Sleep(pauses[i])
			switch {
			case i == 0:
				return errOf(c.w.TryFinish(t.ctx, x))
			case i == 1:
				told = other.Answer(t.ctx, stint.Tx{}, c.id, "q", stint.Answer{Choice: "yes", By: "a"})
			case cancels:
				return errOf(canceller.Cancel(t.ctx, []stint.ID{c.id}, ""))
			}
			return nil
		})...))
		for range 2 {
			_ = must(t.Store.Promote(t.ctx, time.Time{}, 10))(t)
		}
		kept := must(as[store.StepKeeper](t).Steps(t.ctx, c.id))(t)[0]
		state := t.info(c.id).State
		switch {
		case told == nil:
			c.gave(kept, "yes", "a", "")
			expect(t, state == stint.Available || cancels && state == stint.Cancelled, "in round %d the job is %s after the answer", round, state)
		case errors.Is(told, stint.ErrEnded):
			expect(t, cancels && kept.Result == nil && state == stint.Cancelled, "in round %d the answer came too late, and the job is %s, recorded is %s", round, state, kept.Result)
		default:
			t.Errorf("in round %d who answered was told %v", round, told)
		}
		if state == stint.Available {
			c.w.Complete(c.w.One())
		}
	}
}
