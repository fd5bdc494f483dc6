package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var errorsTests = []test{
	{"Attempts that failed or were lost are grouped, those that were tried again too, and others are not", func(t *T) {
		e := errorBook{T: t}
		w := t.join("a", "b")
		for i, kind := range []string{"a", "b", "a", "a", "b", "a", "a"} {
			e.enqueue(kind, "", w)
			end := []store.Result{
				failedWith("no"), failedWith("no"), {Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("yes"))}, completed,
				{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, cancelled, returned,
			}[i]
			e.ends(w, end)
		}
		// One is lost for good; one that failed before is tried again, and lost with its engine.
		e.T.enqueue(job("b", stint.MaxLosses(0)))
		e.claimed = w.ClaimAll()
		e.ends(w, store.Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost})
		e.again(w)
		w.Heartbeat(positions(w.ClaimAll())...)
		w.Leave()
		e.note()
		e.compare(report.ErrorFilter{})
		e.compare(report.ErrorFilter{Kind: "a"})
		e.compare(report.ErrorFilter{Kind: "none"})
	}},
	{"A panic is grouped by its place, and the newest message and job are told", func(t *T) {
		e := errorBook{T: t}
		w := t.join("k")
		for i := range 6 {
			e.enqueue("k", "", w)
			line := 10 + i%2
			stack := fmt.Sprintf("goroutine 7 [running]:\nruntime/debug.Stack()\n\t/go/debug/stack.go:26 +0x5e\npanic({0x1, 0x2})\n\t/go/panic.go:787 +0x132\nmain.work(0x%d)\n\t/src/work.go:%d +0x1f\n%s",
				i, line, strings.Repeat("main.deep()\n\t/src/deep.go:1 +0x1\n", 50))
			e.ends(w, store.Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(&stint.PanicError{Value: fmt.Sprintf("message %d %s", i, strings.Repeat("ä", 2000)), Stack: stack}), Stack: stack})
		}
		e.note()
		r := e.compare(report.ErrorFilter{})
		for _, g := range r.Groups {
			expect(t, strings.HasPrefix(g.Place, "main.work (work.go:1") && g.Class == "panic" && g.Attempts == 3,
				"a group is %+v", g)
		}
	}},
	{"Errors are of a queue, a kind, and a time", func(t *T) {
		e := errorBook{T: t}
		w := t.join("a", "b")
		var middle time.Time
		for i := range 12 {
			if i == 6 {
				time.Sleep(3 * time.Millisecond)
				middle = t.clock()
				time.Sleep(3 * time.Millisecond)
			}
			e.enqueue([]string{"a", "b"}[i%2], []string{"p", "q", "r"}[i%3], w)
			e.ends(w, failedWith("no"))
		}
		e.note()
		for _, f := range []report.ErrorFilter{
			{}, {Kind: "a"}, {Queue: "q"}, {Kind: "b", Queue: "r"}, {Since: middle}, {Since: middle, Kind: "a"}, {Since: middle.Add(time.Hour)}, {Queue: "Q"},
		} {
			e.compare(f)
		}
	}},
	{"Errors are grouped up to a bound, the newest, and it is said that there are more", func(t *T) {
		w := t.join("k")
		fails := func(n int, text string) {
			t.enqueue(jobs(n, "k")...)
			w.Finish(failedWith(text), w.ClaimAll()...)
		}
		fails(1, "the first")
		fails(report.MaxErrors-1, "the second")
		for _, cut := range []bool{false, true} {
			for _, f := range []report.ErrorFilter{{}, {Kind: "k"}} {
				r := must(as[report.ErrorAnalyst](t).Errors(t.ctx, f))(t)
				need(t, len(r.Groups) == 1 && r.Attempts == report.MaxErrors && r.Groups[0].Attempts == report.MaxErrors &&
					r.CutOff == cut,
					"%+v: %d attempts are in %d groups, cut off: %v, want %d in one, and %v", f, r.Attempts, len(r.Groups),
					r.CutOff, report.MaxErrors, cut)
				message := r.Groups[0].Message
				expect(t, cut == (message == "the third"), "%+v: the newest message is %q", f, message)
			}
			if !cut {
				fails(1, "the third")
			}
		}
	}},
	{"Where nothing went wrong there are no groups", func(t *T) {
		t.enqueue(job("k"))
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		errorBook{T: t}.compare(report.ErrorFilter{})
	}},
}

func failedWith(text string) store.Result {
	return store.Result{Outcome: stint.OutcomeFailed, Err: errors.New(text)}
}

// errorBook works out by itself what the groups are.
type errorBook struct {
	*T
	claimed []store.Entry
	all     []noted
}

// noted is an attempt with an error, and where it was.
type noted struct {
	report.FailedAttempt
	queue string
}

// enqueue stores a job, and claims it.
func (e *errorBook) enqueue(kind, queue string, w *Worker) {
	e.Helper()
	if queue == "" {
		queue = stint.DefaultQueue
	}
	e.T.enqueue(job(kind, stint.Queue(queue)))
	e.claimed = w.ClaimAll()
}

// ends ends what was claimed.
func (e *errorBook) ends(w *Worker, end store.Result) {
	e.Helper()
	w.Finish(end, e.claimed...)
}

// again has what waits for another attempt be ready.
func (e *errorBook) again(w *Worker) {
	e.Helper()
	waiting := e.list(store.Filter{States: []stint.State{stint.Retrying}})
	e.retry(stint.RerunOptions{}, waiting[0])
}

// note looks at each job for what the store has recorded of it.
func (e *errorBook) note() {
	e.Helper()
	e.all = nil
	for _, id := range e.list(store.Filter{}) {
		info := e.info(id)
		for _, x := range info.Attempts {
			if x.Outcome != stint.OutcomeFailed && x.Outcome != stint.OutcomeLost {
				continue
			}
			message := x.Error.Message
			if runes := []rune(message); len(runes) > 1000 {
				message = string(runes[:1000])
			}
			e.all = append(e.all, noted{report.FailedAttempt{Job: id, Kind: info.Kind, Class: x.Error.Class, Message: message, Stack: x.Error.Stack, Ended: x.Finished}, info.Queue})
		}
	}
	if len(e.all) == 0 {
		e.Fatal("nothing went wrong")
	}
}

// compare asks for groups, and compares them with what was noted.
func (e errorBook) compare(f report.ErrorFilter) report.ErrorReport {
	e.Helper()
	var fit []report.FailedAttempt
	for _, n := range e.all {
		if (f.Kind == "" || n.Kind == f.Kind) && (f.Queue == "" || n.queue == f.Queue) && !n.Ended.Before(f.Since) {
			fit = append(fit, n.FailedAttempt)
		}
	}
	got := must(as[report.ErrorAnalyst](e.T).Errors(e.ctx, f))(e)
	utc := cmp.Transformer("utc", func(at time.Time) time.Time { return at.UTC() })
	noDiff(e, cmp.Diff(report.GroupErrors(fit, false), got, utc), "%+v (-worked out +said)", f)
	return got
}
