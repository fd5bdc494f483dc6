package storetest

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// logTests are about what runs say while they go on: what of it is kept, for whom, and until when.
var logTests = []test{
	{"What beats bring is there while the attempt runs, and what comes with the outcome after it", func(t *T) {
		c := t.working(nil)
		c.beats(c.says(1, "a", "ü ☃ \\ \"\t"))
		t.log(c.id, "1 a", "2 ü ☃ \\ \"\t")
		c.beats(c.says(3, ""))
		c.ends(completed, c.says(4, "d"))
		t.log(c.id, "1 a", "2 ü ☃ \\ \"\t", "3 ", "4 d")
		t.state(c.id, stint.Completed)
	}},
	{"One message brings what many attempts say, and each keeps its own", func(t *T) {
		c, d := t.working(nil), t.working(nil)
		d.w = c.w // one engine has both
		d.id = t.enqueue(job("k"))[0]
		d.e = c.w.One()
		c.beats(d.says(1, "of d"), c.says(1, "of c", "too"))
		t.log(c.id, "1 of c", "2 too")
		t.log(d.id, "1 of d")
		x, y := c.w.Conclude(c.e, completed), d.w.Conclude(d.e, completed)
		x.Log, y.Log = new(c.says(3, "end of c")), new(d.says(2, "end of d"))
		equal(t, must(c.w.TryFinish(t.ctx, y, x))(t), 2, "recorded %d outcomes, want %d")
		t.log(c.id, "1 of c", "2 too", "3 end of c")
		t.log(d.id, "1 of d", "2 end of d")
		t.log(d.id + 1000)
	}},
	{"A line stays as it is, however often it comes", func(t *T) {
		c := t.working(nil)
		c.beats(c.says(1, "a", "b"))
		c.beats(c.says(2, "another b", "c"))
		c.beats(c.says(1, "another a"))
		c.ends(failed, c.says(3, "another c", "d"))
		t.log(c.id, "1 a", "2 b", "3 c", "4 d")
	}},
	{"Time and level of a line are kept", func(t *T) {
		c := t.working(nil)
		before := t.now()
		r := c.says(1, "a", "b")
		r.Lines[0].At = time.Now().Add(-3 * time.Second)
		r.Lines[0].Level, r.Lines[1].Level = slog.LevelError+2, -3
		c.beats(r)
		all := must(as[store.LogReader](t).Log(t.ctx, c.id, store.LogFilter{}))(t)
		need(t, len(all) == 2 && all[0].Level == slog.LevelError+2 && all[1].Level == -3, "the levels of %v are not 10 and -3", all)
		ago := before.Sub(all[0].At)
		expect(t, ago > time.Second && ago < 4*time.Second && !all[1].At.Before(before.Add(-time.Millisecond)) && all[0].Attempt == 1 && all[0].Run == int64(c.e.Pos),
			"what was said 3s ago, and now, is kept as of %v ago, and of %v after: %+v", ago, all[1].At.Sub(before), all)
	}},
	{"Lines that are left out go, also those that come with that", func(t *T) {
		c := t.working(nil)
		c.beats(c.says(1, "a", "b", "c", "d"))
		r := c.says(7, "g")
		r.From, r.To = 2, 3
		c.beats(r)
		t.log(c.id, "1 a", "4 d", "7 g")
		r = c.says(9, "i")
		r.From, r.To = 4, 8
		c.ends(failed, r)
		t.log(c.id, "1 a", "9 i")
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{c.id: {Answer: stint.RerunReady, ID: c.id}})
		c.e = c.w.One() // of the attempt before nothing goes
		r = c.says(10, "j")
		r.From, r.To = 1, 9
		c.ends(completed, r)
		t.log(c.id, "1 a", "9 i", "10 j")
	}},
	{"The last progress of a run counts, in whatever order they come", func(t *T) {
		c := t.working(nil)
		before := t.now()
		c.beats(c.at(1, 0.25, "one"))
		t.progress(c.id, "1: 0.25 one")
		c.beats(c.at(3, 1.0/3, ""))
		c.beats(c.at(2, 0.5, "late"))
		c.beats(c.at(3, 0.75, "again"))
		t.progress(c.id, fmt.Sprintf("1: %v ", 1.0/3))
		all := must(as[store.LogReader](t).Progress(t.ctx, c.id))(t)
		need(t, len(all) == 1, "there are %v", all)
		expect(t, between(all[0].At, before.Add(-time.Millisecond), t.now()), "it is kept as of %v, after %v", all[0].At, before)
		c.ends(completed, c.at(4, 1, "all"))
		t.progress(c.id, "1: 1 all")
	}},
	{"Each run keeps what it said, and people see them in order", func(t *T) {
		c := t.working(nil)
		for n, end := range []store.Result{returned, failed, completed} {
			r := c.at(1, float64(n)/4, fmt.Sprint("run ", n))
			r.Lines = c.says(1, fmt.Sprint("a", n), fmt.Sprint("b", n)).Lines
			c.ends(end, r)
			if end.Outcome == stint.OutcomeFailed {
				t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{c.id: {Answer: stint.RerunReady, ID: c.id}})
			}
			if end.Outcome != stint.OutcomeCompleted {
				c.e = c.w.One()
			}
		}
		t.log(c.id, "1 a0", "2 b0", "1 a1", "2 b1", "1 a2", "2 b2")
		t.progress(c.id, "1: 0 run 0", "1: 0.25 run 1", "2: 0.5 run 2")
		l := as[store.LogReader](t)
		all := must(l.Log(t.ctx, c.id, store.LogFilter{}))(t)
		need(t, len(all) == 6, "there are %v", all)
		var attempts strings.Builder
		for _, line := range all {
			fmt.Fprint(&attempts, line.Attempt)
		}
		equal(t, attempts.String(), "111122", "the lines are of attempts %s, want %s")
		after := store.LogFilter{Run: all[3].Run, N: 1}
		t.logOf(c.id, after, "2 b1", "1 a2", "2 b2")
		after.Limit = 2
		t.logOf(c.id, after, "2 b1", "1 a2")
		after.Last = true
		t.logOf(c.id, after, "1 a2", "2 b2")
		t.logOf(c.id, store.LogFilter{Limit: 3}, "1 a0", "2 b0", "1 a1")
		t.logOf(c.id, store.LogFilter{Limit: 3, Last: true}, "2 b1", "1 a2", "2 b2")
		t.logOf(c.id, store.LogFilter{Run: all[5].Run, N: 2})
	}},
	{"Of many runs the progress of the last ones is shown", func(t *T) {
		c := t.working(nil)
		for range store.MostProgress {
			c.ends(returned, c.at(1, 0.5, "mostly"))
			c.e = c.w.One()
		}
		c.ends(completed, c.at(1, 1, "last"))
		all := must(as[store.LogReader](t).Progress(t.ctx, c.id))(t)
		need(t, len(all) == store.MostProgress, "%d are shown", len(all))
		equal(t, all[len(all)-1].Text, "last", "the last one is %q, want %q")
	}},
	{"An attempt that has an outcome says no more, nor does a claim that is another's", func(t *T) {
		c := t.working(nil)
		other := t.join("k")
		right := c.at(1, 0.5, "wrong")
		right.Lines = c.says(1, "wrong").Lines
		for what, claim := range map[string]store.ClaimRef{
			"another nonce":  {Lane: right.Claim.Lane, N: right.Claim.N, Nonce: right.Claim.Nonce + 1},
			"a later number": {Lane: right.Claim.Lane, N: right.Claim.N + 1, Nonce: right.Claim.Nonce},
			"another lane":   {Lane: right.Claim.Lane + 1, N: right.Claim.N, Nonce: right.Claim.Nonce},
		} {
			wrong := right
			wrong.Claim = claim
			c.beats(wrong)
			t.silent(c.id, "the claim was given with "+what)
		}
		t.must(errOf(t.Store.Heartbeat(t.ctx, other.Info.Token, store.Heartbeat{Number: 1, Logs: []store.LogRecord{right}})))
		t.silent(c.id, "another engine said it")
		c.w.Finish(failed, c.e)
		c.beats(right)
		t.silent(c.id, "the attempt has failed")
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{c.id: {Answer: stint.RerunReady, ID: c.id}})
		c.e = c.w.One()
		right = c.says(1, "wrong")
		c.ends(completed, c.says(1, "right"))
		c.beats(right, c.says(2, "wrong"))
		t.log(c.id, "1 right")
		x := c.w.Conclude(c.e, completed)
		x.Log = new(c.says(2, "repeated"))
		equal(t, must(c.w.TryFinish(t.ctx, x))(t), 0, "%d outcomes are new, want %d")
		t.log(c.id, "1 right")
	}},
	{"Beside what is refused the rest is kept", func(t *T) {
		c, d := t.working(nil), t.working(nil)
		d.w = c.w
		d.id = t.enqueue(job("k"))[0]
		d.e = c.w.One()
		late := c.says(1, "late")
		c.w.Complete(c.e)
		c.beats(late, d.says(1, "kept"), late)
		t.log(c.id)
		t.log(d.id, "1 kept")
	}},
	{"The buried say nothing", func(t *T) {
		c := t.working(nil)
		r := c.says(1, "a")
		x := c.w.Conclude(c.e, completed)
		x.Log = &r
		c.w.Leave()
		fails(t, errOf(t.Store.Heartbeat(t.ctx, c.w.Info.Token, store.Heartbeat{Number: 99, Logs: []store.LogRecord{r}})), store.ErrBuried, "the buried beat with %v, want ErrBuried")
		fails(t, errOf(t.Store.Finish(t.ctx, c.w.Info.Token, []store.ClaimRef{r.Claim}, []store.Completion{x})), store.ErrBuried, "the buried finish with %v, want ErrBuried")
		t.silent(c.id, "its engine is buried")
	}},
	{"What a batch brings that is refused as a whole is not kept", func(t *T) {
		c := t.working(nil)
		x := c.w.Conclude(c.e, completed)
		x.Log = new(c.says(1, "a"))
		wrong := x
		wrong.Nonce++
		fails(t, errOf(t.Store.Finish(t.ctx, c.w.Info.Token, []store.ClaimRef{{Lane: x.Log.Claim.Lane, N: x.Log.Claim.N, Nonce: wrong.Nonce}}, []store.Completion{wrong})), store.ErrClaimGone, "it ends with %v, want ErrClaimGone")
		t.silent(c.id, "the claim is gone")
		equal(t, must(c.w.TryFinish(t.ctx, x))(t), 1, "%d outcomes are new, want %d")
		t.log(c.id, "1 a")
	}},
	{"An outcome in the handler's transaction brings it too, and what was rolled back says nothing", func(t *T) {
		c := t.working(nil)
		c.beats(c.says(1, "a"))
		c.x.Log = new(c.at(1, 0.5, "half"))
		c.x.Log.Lines = c.says(2, "b").Lines
		tx := t.beginToFinish()
		t.must(tx.Rollback())
		expect(t, c.finish(tx) != nil, "it completed in a transaction that had ended")
		t.log(c.id, "1 a")
		t.progress(c.id)
		t.must(c.finish(t.beginToFinish()))
		t.state(c.id, stint.Completed)
		t.log(c.id, "1 a", "2 b")
		t.progress(c.id, "1: 0.5 half")
	}},
	{"What was said goes with its job, and is not brought back", func(t *T) {
		c, d := t.working(nil), t.working(nil)
		d.beats(d.says(1, "kept"), d.at(1, 0.5, "kept"))
		r, p := c.says(1, "a"), c.at(1, 0.5, "a")
		c.beats(r, p)
		c.w.Complete(c.e)
		t.delete(c.id)
		t.silent(c.id, "it was deleted")
		c.beats(r, p)
		t.silent(c.id, "it was deleted before")
		t.log(d.id, "1 kept")
		t.progress(d.id, "1: 0.5 kept")
	}},
	{"A job that is recovered says its own", func(t *T) {
		c := t.working(nil)
		c.beats(c.says(1, "old"), c.at(1, 0.5, "old"))
		c.w.Finish(failedFinally, c.e)
		anew := t.recovers(c.id, stint.RerunOptions{})
		t.silent(anew, "it has not begun")
		t.log(c.id, "1 old")
		old := c.id
		c.id = anew
		c.e = c.w.One()
		c.ends(completed, c.says(1, "new"))
		t.log(anew, "1 new")
		t.log(old, "1 old")
		t.progress(old, "1: 0.5 old")
	}},
	{"Beats and outcomes that bring the same at once do not hinder each other", saidAtOnce},
	{"As much as a run may say is kept, and said at once", func(t *T) {
		c := t.working(nil)
		texts := make([]string, 2048)
		for i := range texts {
			texts[i] = strings.Repeat("x", i%64)
		}
		r := c.says(1, texts...)
		c.beats(r)
		all := must(as[store.LogReader](t).Log(t.ctx, c.id, store.LogFilter{}))(t)
		expect(t, len(all) == len(texts) && all[2047].Text == texts[2047] && all[2047].N == 2048, "%d lines are kept of %d", len(all), len(texts))
		r.Lines, r.From, r.To = nil, 2, 2047
		c.ends(completed, r)
		t.log(c.id, "1 ", "2048 "+texts[2047])
	}},
}

// saidAtOnce has beats and outcomes of one engine bring the same lines, each in an order of its own.
func saidAtOnce(t *T) {
	const jobs, rounds = 8, 5
	for range rounds {
		c := t.working(nil)
		all := []completion{*c}
		for range jobs - 1 {
			d := *c
			d.id = t.enqueue(job("k"))[0]
			d.e = c.w.One()
			all = append(all, d)
		}
		logs := make([]store.LogRecord, jobs)
		done := make([]store.Completion, jobs)
		for i := range all {
			logs[i] = all[i].says(1, "a", "b", "c", "d")
			logs[i].Progress = all[i].at(1, 0.5, "half").Progress
			logs[i].From, logs[i].To = 2, 3
			done[i] = c.w.Conclude(all[i].e, completed)
			done[i].Log = &logs[i]
		}
		errs := atOnce(4, func(i int) error {
			if i == 0 {
				_, err := c.w.TryFinish(t.ctx, done...)
				return err
			}
			mine := slices.Clone(logs)
			if i%2 == 1 {
				slices.Reverse(mine)
			}
			return errOf(t.Store.Heartbeat(t.ctx, c.w.Info.Token, store.Heartbeat{Logs: mine}))
		})
		t.must(errors.Join(errs...))
		for i := range all {
			t.log(all[i].id, "1 a", "4 d")
			t.progress(all[i].id, "1: 0.5 half")
		}
	}
}

// says are lines of the attempt.
func (c *completion) says(from int, texts ...string) store.LogRecord {
	r := store.LogRecord{Claim: c.w.taken[c.e.Pos], Pos: c.e.Pos, Job: c.id}
	for i, text := range texts {
		r.Lines = append(r.Lines, stint.LogLine{N: from + i, At: time.Now(), Text: text})
	}
	return r
}

// at is how far the attempt is.
func (c *completion) at(n int, fraction float64, text string) store.LogRecord {
	r := c.says(0)
	r.Progress = &stint.Progress{N: n, At: time.Now(), Fraction: fraction, Text: text}
	return r
}

// beats sends a beat that brings what attempts say.
func (c *completion) beats(logs ...store.LogRecord) {
	c.t.Helper()
	c.t.must(errOf(c.t.Store.Heartbeat(c.t.ctx, c.w.Info.Token, store.Heartbeat{Running: []store.Position{c.e.Pos}, Logs: logs})))
}

// ends records how the attempt ended, with what it said last.
func (c *completion) ends(end store.Result, r store.LogRecord) {
	c.t.Helper()
	x := c.w.Conclude(c.e, end)
	x.Log = &r
	equal(c.t, must(c.w.TryFinish(c.t.ctx, x))(c.t), 1, "recorded %d outcomes, want %d")
}

// log checks the lines of a job: by number and text.
func (t *T) log(id stint.ID, want ...string) {
	t.Helper()
	t.logOf(id, store.LogFilter{}, want...)
}

func (t *T) logOf(id stint.ID, f store.LogFilter, want ...string) {
	t.Helper()
	var got []string
	for _, l := range must(as[store.LogReader](t).Log(t.ctx, id, f))(t) {
		got = append(got, fmt.Sprintf("%d %s", l.N, l.Text))
	}
	equalAll(t, got, want, "of job %d by %+v the log is %q, want %q", id, f)
}

// progress checks how far the runs of a job said they were: by attempt.
func (t *T) progress(id stint.ID, want ...string) {
	t.Helper()
	var got []string
	for _, p := range must(as[store.LogReader](t).Progress(t.ctx, id))(t) {
		got = append(got, fmt.Sprintf("%d: %v %s", p.Attempt, p.Fraction, p.Text))
	}
	equalAll(t, got, want, "the progress of job %d is %q, want %q", id)
}

// silent checks that nothing is kept of a job.
func (t *T) silent(id stint.ID, why string) {
	t.Helper()
	t.log(id)
	t.progress(id)
	need(t, !t.Failed(), "something is kept, though %s", why)
}
