package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// undecidedTests are about failures that wait for a retry function.
var undecidedTests = []test{
	{"What is undecided shows as retrying, without a date, and is never promoted", func(t *T) {
		id := t.undecided("f")[0]
		t.promoteAll(0)
		p := must(t.Store.Promote(t.ctx, time.Time{}, 10))(t)
		info := t.info(id)
		expect(t, p.Next < 0 && info.State == stint.Retrying && info.PendingRetry == "f" && info.Attempt == 2 &&
			info.Due.Equal(info.Created),
			"the next is due in %v; it shows as %s, undecided %q, attempt %d, due %v after it was created", p.Next, info.State,
			info.PendingRetry, info.Attempt, info.Due.Sub(info.Created))
		x := info.Attempts[0]
		expect(t, !x.Final && x.Error != nil && x.Error.Message == "no paper", "its failure shows as %+v", x)
		counts := must(t.Store.Counts(t.ctx))(t)
		got := t.list(store.Filter{States: []stint.State{stint.Retrying}})
		expect(t, slices.Equal(got, []stint.ID{id}) && counts[stint.Retrying] == 1,
			"as retrying are listed %v, counted %d", got, counts[stint.Retrying])
	}},
	{"A failure is told to whoever has the function, whole", undecidedWhole},
	{"Only failures for these functions are told, in the order of their IDs, page by page", func(t *T) {
		ids := t.undecided("f", "g", "f", "h", "f")
		want := []stint.ID{ids[0], ids[2], ids[3], ids[4]}
		var got []stint.ID
		for after := stint.ID(0); ; after = got[len(got)-1] {
			page := must(t.Store.Undecided(t.ctx, []string{"f", "h", "x"}, after, 3))(t)
			for _, u := range page {
				got = append(got, u.ID)
			}
			if len(page) < 3 {
				break
			}
		}
		equalAll(t, got, want, "told were %v, want %v")
		for _, names := range [][]string{nil, {"x"}} {
			page, err := t.Store.Undecided(t.ctx, names, 0, 10)
			expect(t, err == nil && len(page) == 0, "for %v %d are told, error %v", names, len(page), err)
		}
	}},
	{"A decision for another attempt gives it its date", decideAgain},
	{"A decision against another attempt ends the job", decideFinal},
	{"A decision for one attempt says nothing about a later one", func(t *T) {
		id := t.undecided("f")[0]
		w := t.join("k")
		stale := t.decisions(retry.Again(0))
		t.decided(w, 1, stale...)
		t.promoteAll(1)
		w.Finish(failure, w.ClaimAll()...)
		t.decided(w, 0, stale...)
		info := t.info(id)
		expect(t, info.PendingRetry == "f" && info.Attempt == 3,
			"it is %s, undecided %q, attempt %d", info.State, info.PendingRetry, info.Attempt)
		t.decided(w, 1, t.decisions(retry.Final("enough"))...)
		t.state(id, stint.Failed)
	}},
	{"Who is not in the roster decides nothing", func(t *T) {
		id := t.undecided("f")[0]
		done := t.decisions(retry.Final("enough"))
		w := t.join("k")
		w.Leave()
		for _, engine := range []*Worker{w, NewWorker(t, t.Store, "k")} {
			ids, err := t.Store.Decide(t.ctx, engine.Info.Token, done)
			expect(t, errors.Is(err, store.ErrBuried) && ids == nil, "it decided %v, error %v, want ErrBuried", ids, err)
		}
		t.state(id, stint.Retrying)
	}},
	{"What was decided is decided once, whoever repeats it", func(t *T) {
		t.undecided("f", "f", "f")
		w := t.join("k")
		done := t.decisions(retry.Again(time.Hour))
		t.decided(w, 2, done[:2]...)
		t.decided(w, 1, done...)
		t.decided(w, 0, done...)
		l := t.ledger()
		expect(t, len(l.Executions) == 6 && len(l.Waiting) == 3,
			"there are %d executions and %d waits, want 6 and 3", len(l.Executions), len(l.Waiting))
		t.decided(w, 0)
	}},
	{"Of many that decide at once, one does", func(t *T) {
		const n = 20
		t.undecided(slices.Repeat([]string{"f"}, n)...)
		again, final := t.decisions(retry.Again(time.Hour)), t.decisions(retry.Final("enough"))
		var sum atomic.Int64
		errs := atOnce(6, func(i int) error {
			w := t.join("k")
			done := slices.Clone([][]store.Completion{again, final}[i%2])
			if i%3 == 0 {
				slices.Reverse(done)
			}
			got, err := t.Store.Decide(t.ctx, w.Info.Token, done)
			sum.Add(int64(len(got)))
			return err
		})
		err := errors.Join(errs...)
		expect(t, err == nil && sum.Load() == n, "%d were decided, error %v, want %d", sum.Load(), err, n)
		equal(t, len(t.ledger().Executions), 2*n, "there are %d executions, want %d")
	}},
	{"A job that is cancelled while it is undecided stays cancelled", func(t *T) {
		ids := t.undecided("f", "f")
		w := t.join("k")
		again, final := t.decisions(retry.Again(0))[:1], t.decisions(retry.Final("enough"))[1:]
		t.cancel("not needed", ids...)
		for _, id := range ids {
			info := t.info(id)
			expect(t, info.State == stint.Cancelled && info.Reason == "not needed", "it is %s, %q", info.State, info.Reason)
		}
		t.decided(w, 0, append(again, final...)...)
		t.promoteAll(0)
		equal(t, len(w.ClaimAll()), 0, "%d of the cancelled are claimed, want %d")
	}},
	{"Deciding a batch with a stranger's job leaves that alone", func(t *T) {
		id := t.undecided("f")[0]
		w := t.join("k")
		other := t.enqueue(job("k"), job("k", stint.Delay(time.Hour)))
		var done []store.Completion
		for _, at := range append(other, 1<<60) {
			x := t.decisions(retry.Final("enough"))[0]
			x.Job = at
			done = append(done, x)
		}
		t.decided(w, 1, append(done, t.decisions(retry.Final("enough"))...)...)
		t.state(id, stint.Failed)
		t.states(other, stint.Available, stint.Scheduled)
	}},
	{"A call whose context has ended decides nothing", func(t *T) {
		id := t.undecided("f")[0]
		w := t.join("k")
		ctx := t.over()
		ids, err := t.Store.Decide(ctx, w.Info.Token, t.decisions(retry.Final("enough")))
		expect(t, err != nil && ids == nil, "it decided %v, error %v", ids, err)
		t.state(id, stint.Retrying)
	}},
}

// failure is how the attempts of these tests end.
var failure = store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("no paper"), Stack: "main.go:1"}

// undecided enqueues jobs, each with a retry function, and fails them at an
// engine that has none.
func (t *T) undecided(funcs ...string) []stint.ID {
	t.Helper()
	var batch []stint.NewJob
	for _, name := range funcs {
		batch = append(batch, job("k", stint.Retry(retry.Function(name).Faulty(1))))
	}
	ids := t.enqueue(batch...)
	w := t.join("k")
	w.Finish(failure, w.ClaimAll()...)
	w.Leave()
	return ids
}

// decisions has each undecided failure decided in one way.
func (t *T) decisions(d retry.Decision) []store.Completion {
	t.Helper()
	var funcs retry.Registry
	names := []string{"f", "g", "h"}
	for _, name := range names {
		t.must(funcs.Register(name, func(error, retry.Failure) retry.Decision { return d }))
	}
	all := must(t.Store.Undecided(t.ctx, names, 0, 1000))(t)
	var done []store.Completion
	for _, u := range all {
		x := must(u.Conclude(&funcs, time.Now(), 0.5))(t)
		done = append(done, x)
	}
	return done
}

// decided records decisions and checks how many were new.
func (t *T) decided(w *Worker, want int, done ...store.Completion) {
	t.Helper()
	ids, err := t.Store.Decide(t.ctx, w.Info.Token, done)
	expect(t, err == nil && len(ids) == want && distinct(ids), "decided were %v, error %v, want %d", ids, err, want)
	for _, id := range ids {
		expect(t, slices.ContainsFunc(done, func(x store.Completion) bool { return x.Job == id }),
			"job %d was decided, and nobody asked", id)
	}
}

func undecidedWhole(t *T) {
	j := rich()
	j.Delay, j.Retry = 0, retry.Function("f").Deadline(time.Hour)
	w := t.join(j.Kind)
	t.enqueue(j)
	first := w.One()
	for attempt := 1; attempt <= 3; attempt++ {
		e := first
		if attempt > 1 {
			e = w.One()
		}
		x := w.Conclude(e, store.Result{Outcome: stint.OutcomeFailed, Err: fmt.Errorf("attempt %d", attempt), Stack: "main.go:1"})
		x.Error.Classes = []string{x.Error.Class, "another"}
		x.Ended = time.Now()
		x.Started = x.Ended.Add(-3 * time.Second)
		if attempt == 2 {
			x.Next.Queue, x.Next.Priority, x.Next.Losses = "elsewhere", 7, 1
		}
		w.record(1, x)
		all := must(t.Store.Undecided(t.ctx, []string{"f"}, 0, 10))(t)
		want := store.PendingRetry{Job: first.Job, Func: "f", Error: *x.Error}
		want.Attempt, want.Queue, want.Priority, want.Losses = attempt+1, x.Next.Queue, x.Next.Priority, x.Next.Losses
		need(t, len(all) == 1, "%d are told, want 1", len(all))
		noDiff(t, cmp.Diff(want, all[0], append(sameJob, cmpopts.IgnoreFields(store.PendingRetry{}, "Took"))...),
			"attempt %d (-want +got)", attempt)
		took := all[0].Took
		expect(t, took >= 3*time.Second-time.Millisecond && took <= 3*time.Second+time.Millisecond,
			"an attempt of 3s is told as %v long", took)
		t.decided(w, 1, t.decisions(retry.Again(0))...)
		t.promoteAll(1)
	}
	w.Complete(w.One())
}

func decideAgain(t *T) {
	id := t.undecided("f")[0]
	w := t.join("k")
	before := t.now()
	t.decided(w, 1, t.decisions(retry.Decision{Retry: true, Wait: time.Hour, Queue: "bulk", Note: "odd"})...)
	after := t.now()
	info := t.info(id)
	expect(t, info.State == stint.Retrying && info.PendingRetry == "" && info.Queue == "bulk" && info.Attempt == 2 && info.Faulty,
		"it is %s, undecided %q, in queue %s, attempt %d, faulty %v", info.State, info.PendingRetry, info.Queue, info.Attempt,
		info.Faulty)
	const slack = 10 * time.Millisecond
	expect(t, between(info.Due, before.Add(time.Hour-slack), after.Add(time.Hour+slack)),
		"an hour after the decision is %v, decided between %v and %v", info.Due, before, after)
	need(t, len(info.Attempts) == 2, "it has %d executions, want the failure and the decision", len(info.Attempts))
	x := info.Attempts[1]
	if x.Outcome != stint.OutcomeReturned || x.Final || x.Slot != 0 || x.Attempt != 2 || x.Engine != int64(w.Info.Token) ||
		x.Reason != "decided by the retry function f" || x.Error == nil || x.Error.Message != "no paper" || x.Error.Note != "odd" {
		text, _ := json.Marshal(x)
		t.Errorf("the decision is recorded as %s", text)
	}
	counts := must(t.Store.Counts(t.ctx))(t)
	expect(t, counts[stint.Running] == 0 && counts[stint.Retrying] == 1 && counts[stint.Completed] == 0,
		"the counts are %v", counts)
	// And its date is a date like any other.
	id = t.undecided("g")[0]
	t.decided(w, 1, t.decisions(retry.Again(0))...)
	t.promoteAll(1)
	if e := w.One(); e.ID != id || e.Attempt != 2 {
		t.Errorf("claimed job %d, attempt %d", e.ID, e.Attempt)
	} else {
		w.Complete(e)
	}
}

func decideFinal(t *T) {
	id := t.undecided("f")[0]
	w := t.join("k")
	t.decided(w, 1, t.decisions(retry.Final("customer left"))...)
	info := t.info(id)
	need(t, info.State == stint.Failed && info.Reason == "customer left" && info.PendingRetry == "" && !info.Faulty &&
		len(info.Attempts) == 2,
		"it is %s (%s), undecided %q, faulty %v, with %d executions", info.State, info.Reason, info.PendingRetry, info.Faulty,
		len(info.Attempts))
	x := info.Attempts[1]
	expect(t, x.Outcome == stint.OutcomeFailed && x.Final && x.Engine == int64(w.Info.Token) && x.Error != nil &&
		x.Error.Message == "no paper",
		"the decision is recorded as %+v", x)
	counts := must(t.Store.Counts(t.ctx))(t)
	expect(t, counts[stint.Running] == 0 && counts[stint.Retrying] == 0 && counts[stint.Failed] == 1, "the counts are %v", counts)
	equalAll(t, t.list(store.Filter{States: []stint.State{stint.Failed}}), []stint.ID{id}, "as failed are listed %v, want %v")
}

// faultyTests are about jobs that people should look at before they have
// failed for good.
var faultyTests = []test{
	{"A job is faulty from its bound on, wherever it is, until it ends", faultyLife},
	{"The filter by faulty shows those alone, and together with others", func(t *T) {
		w := t.join("k")
		var faulty []stint.ID
		for _, queue := range []string{"p", "q"} {
			for _, policy := range []retry.Policy{retry.Fixed(1, time.Hour), retry.Fixed(2, time.Hour), retry.Forever(time.Hour).Faulty(1)} {
				id := t.enqueue(job("k", stint.Queue(queue), stint.Retry(policy)))[0]
				w.Finish(failed, w.ClaimAll()...)
				if policy != retry.Fixed(2, time.Hour) {
					faulty = append(faulty, id)
				}
			}
		}
		t.enqueue(job("k"), job("k", stint.Delay(time.Hour)))
		slices.Reverse(faulty)
		t.shows(store.Filter{Faulty: true}, faulty...)
		t.shows(store.Filter{Faulty: true, Queue: "p"}, faulty[2:]...)
		t.shows(store.Filter{Faulty: true, States: []stint.State{stint.Retrying}}, faulty...)
		t.shows(store.Filter{Faulty: true, States: []stint.State{stint.Available}})
		t.shows(store.Filter{Faulty: true, States: []stint.State{stint.Failed}})
		t.shows(store.Filter{Faulty: true, Limit: 1, Before: faulty[0]}, faulty[1:2]...)
	}},
	{"Every final state has its reason, in the list as in the job", func(t *T) {
		w := t.join("k")
		failed := func(err error) store.Result { return store.Result{Outcome: stint.OutcomeFailed, Err: err} }
		for _, c := range []struct {
			end    store.Result
			policy retry.Policy
			want   string
		}{
			{completed, retry.Default(), "done"},
			{cancelled, retry.Default(), "cancelled"},
			{store.Result{Outcome: stint.OutcomeCancelled, Note: "sold out"}, retry.Default(), "sold out"},
			{expired, retry.Default(), "expired"},
			{failed(errors.New("no")), retry.None(), "no retries"},
			{failed(errors.New("no")), retry.Fixed(0, 0), "retries exhausted"},
			{failed(stint.NoRetry(errors.New("no"))), retry.Default(), "error not retriable"},
			{failed(errors.New("no")), retry.Default().Only("timeout"), "error not retriable"},
		} {
			id := t.enqueue(job("k", stint.Retry(c.policy)))[0]
			w.Finish(c.end, w.ClaimAll()...)
			info := t.info(id)
			listed := must(t.Store.Jobs(t.ctx, store.Filter{Limit: 1}))(t)
			if info.Reason != c.want || listed[0].Reason != c.want || info.Attempts[0].Reason != c.want {
				t.Errorf("%v under %v: the job says %q, the list %q, the execution %q, want %q",
					c.end.Outcome, c.policy, info.Reason, listed[0].Reason, info.Attempts[0].Reason, c.want)
			}
		}
		id := t.enqueue(job("k", stint.MaxLosses(1)))[0]
		w.Heartbeat(w.One().Pos)
		w.Leave()
		equal(t, t.info(id).Reason, "lost", "a lost job says %q, want %q")
	}},
}

func faultyLife(t *T) {
	id := t.enqueue(job("k", stint.Retry(retry.Fixed(9, 0).Faulty(2))))[0]
	w := t.join("k")
	see := func(state stint.State, faulty bool) {
		t.Helper()
		info := t.info(id)
		expect(t, info.State == state && info.Faulty == faulty,
			"it is %s, faulty %v; want %s, %v", info.State, info.Faulty, state, faulty)
		got := t.list(store.Filter{Faulty: true})
		expect(t, (len(got) == 1) == faulty, "%s, faulty %v: the filter shows %v", state, faulty, got)
	}
	fails := failed
	see(stint.Available, false)
	w.Finish(fails, w.One())
	see(stint.Retrying, false)
	t.promoteAll(1)
	e := w.One()
	see(stint.Running, false)
	w.Finish(fails, e)
	see(stint.Retrying, true)
	t.promoteAll(1)
	see(stint.Available, true)
	e = w.One()
	see(stint.Running, true)
	w.Finish(returned, e)
	see(stint.Available, true)
	w.Finish(snoozed, w.One())
	see(stint.Scheduled, true)
	t.promoteAll(1)
	w.Heartbeat(w.One().Pos)
	w.Leave() // it was lost
	see(stint.Available, true)
	w = t.join("k")
	w.Complete(w.One())
	see(stint.Completed, false)
}
