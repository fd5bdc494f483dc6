package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
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
		fails(1, "number 1")
		fails(report.MaxErrors-1, "number 2")
		for _, cut := range []bool{false, true} {
			for _, f := range []report.ErrorFilter{{}, {Kind: "k"}} {
				r := must(as[report.ErrorAnalyst](t).Errors(t.ctx, f))(t)
				need(t, len(r.Groups) == 1 && r.Attempts == report.MaxErrors && r.Groups[0].Attempts == report.MaxErrors &&
					r.CutOff == cut,
					"%+v: %d attempts are in %d groups, cut off: %v, want %d in one, and %v", f, r.Attempts, len(r.Groups),
					r.CutOff, report.MaxErrors, cut)
				message := r.Groups[0].Message
				expect(t, cut == (message == "number 3"), "%+v: the newest message is %q", f, message)
			}
			if !cut {
				fails(1, "number 3")
			}
		}
	}},
	{"Errors of a kind and a class are as many groups as their messages have normal forms, each found by its key", func(t *T) {
		e := errorBook{T: t}
		w := t.join("k")
		for _, text := range []string{"order 1 not found", "order 2 not found", "order 1 not paid", `no user "ann"`, `no user "bob"`, "no user ann", "first\nline 1", "first\nline of two", "", "7"} {
			e.enqueue("k", "", w)
			e.ends(w, failedWith(text))
		}
		e.note()
		r := e.compare(report.ErrorFilter{})
		need(t, len(r.Groups) == 7, "there are %d groups, want 7: %+v", len(r.Groups), r.Groups)
		for _, g := range r.Groups {
			one := e.compare(report.ErrorFilter{Key: g.Key})
			expect(t, len(one.Groups) == 1 && one.Groups[0].Key == g.Key && one.Counts == report.ErrorCounts{Open: 1} && one.Attempts == g.Attempts,
				"the key of %+v finds %+v", g, one)
		}
		e.compare(report.ErrorFilter{Key: "0123456789abcdef"})
		e.compare(report.ErrorFilter{Key: r.Groups[0].Key, Kind: "other"})
	}},
	{"The trend of errors begins at the time that was asked for, or with the first of them, and ends now", func(t *T) {
		e := errorBook{T: t}
		w := t.join("k")
		for range 2 {
			e.enqueue("k", "", w)
			e.ends(w, failedWith("no"))
			time.Sleep(2 * time.Millisecond)
		}
		e.note()
		r := e.compare(report.ErrorFilter{})
		need(t, len(r.Groups) == 1 && r.From.Equal(r.Groups[0].First) && r.Step > 0, "it is %+v", r)
		since := r.Groups[0].Last.Add(-2 * report.TrendSteps * time.Second)
		r = e.compare(report.ErrorFilter{Since: since})
		need(t, len(r.Groups) == 1 && r.From.Equal(since), "it is %+v", r)
		expect(t, r.Step > 2*time.Second, "its steps are of %v, so it ends before now", r.Step) // 2 seconds would be up to the last error
	}},
	{"A resolved group of errors has returned as soon as an attempt fails so again, and can be resolved again", func(t *T) {
		e := errorBook{T: t}
		w := t.join("k")
		fail := func(text string) {
			e.enqueue("k", "", w)
			e.ends(w, failedWith(text))
			e.note()
		}
		fail("order 1 not found")
		fail("out of paper")
		key := ""
		for _, g := range e.compare(report.ErrorFilter{}).Groups {
			if g.Message == "order 1 not found" {
				key = g.Key
			}
		}
		states := func(when string, want report.ErrorState, counts report.ErrorCounts) {
			t.Helper()
			for _, s := range append(report.ErrorStates, "") {
				e.compare(report.ErrorFilter{State: s})
			}
			r := e.compare(report.ErrorFilter{Key: key})
			need(t, len(r.Groups) == 1 && r.Groups[0].State == want, "%s the group is %+v, want %s", when, r.Groups, want)
			equal(t, e.compare(report.ErrorFilter{}).Counts, counts, when+" the counts are %+v, want %+v")
		}
		states("At first", report.ErrorsOpen, report.ErrorCounts{Open: 2})
		e.mark(report.ErrorMark{Key: key, State: report.ErrorsResolved, By: "ann", Why: "restocked"})
		states("When it was resolved", report.ErrorsResolved, report.ErrorCounts{Open: 1, Resolved: 1})
		fail("out of paper")
		states("When another group had an error", report.ErrorsResolved, report.ErrorCounts{Open: 1, Resolved: 1})
		time.Sleep(2 * time.Millisecond)
		fail("order 2 not found")
		states("When such an attempt failed", report.ErrorsReturned, report.ErrorCounts{Open: 1, Returned: 1})
		time.Sleep(2 * time.Millisecond)
		e.mark(report.ErrorMark{Key: key, State: report.ErrorsResolved, By: "bob"})
		states("When it was resolved again", report.ErrorsResolved, report.ErrorCounts{Open: 1, Resolved: 1})
		e.reopen(key, true)
		states("When it was reopened", report.ErrorsOpen, report.ErrorCounts{Open: 2})
		e.reopen(key, false)
	}},
	{"A muted group of errors stays muted whatever fails, and is counted", func(t *T) {
		e := errorBook{T: t}
		w := t.join("k")
		fail := func() {
			e.enqueue("k", "", w)
			e.ends(w, failedWith("no"))
			e.note()
		}
		fail()
		r := e.compare(report.ErrorFilter{})
		need(t, len(r.Groups) == 1, "there are %d groups, want 1", len(r.Groups))
		key := r.Groups[0].Key
		e.mark(report.ErrorMark{Key: key, State: report.ErrorsResolved, By: "ann", Why: "done"})
		e.mark(report.ErrorMark{Key: key, State: report.ErrorsMuted})
		time.Sleep(2 * time.Millisecond)
		fail()
		for _, s := range []report.ErrorState{"", report.ErrorsMuted} {
			r := e.compare(report.ErrorFilter{State: s})
			need(t, len(r.Groups) == 1 && r.Groups[0].Attempts == 2 && r.Groups[0].State == report.ErrorsMuted && r.Groups[0].By == "", "of the state %q there are %+v", s, r)
		}
		for _, s := range []report.ErrorState{report.ErrorsOpen, report.ErrorsReturned, report.ErrorsResolved} {
			expect(t, len(e.compare(report.ErrorFilter{State: s}).Groups) == 0, "it is shown as %s", s)
		}
	}},
	{"Marks of errors that can never be right are refused, and odd texts are kept as a database can", func(t *T) {
		m := as[report.ErrorMarker](t)
		good := report.ErrorMark{Key: "0123456789abcdef", State: report.ErrorsMuted}
		for _, key := range []string{"", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "0123456789abcdeg", " 123456789abcdef"} {
			bad := good
			bad.Key = key
			fails(t, errOf(m.MarkErrors(t.ctx, bad)), stint.ErrInvalid, "marking %q gives %v", key)
			fails(t, errOf(m.ReopenErrors(t.ctx, key)), stint.ErrInvalid, "reopening %q gives %v", key)
		}
		for _, s := range []report.ErrorState{"", report.ErrorsOpen, report.ErrorsReturned, "Muted"} {
			bad := good
			bad.State = s
			fails(t, errOf(m.MarkErrors(t.ctx, bad)), stint.ErrInvalid, "marking as %q gives %v", s)
		}
		good.By, good.Why = strings.Repeat("b", 300), "a\x00b\xffc "+strings.Repeat("ä", 2000)
		got := must(m.MarkErrors(t.ctx, good))(t)
		got.At = time.Time{}
		noDiff(t, cmp.Diff(good.Clean(), got), "it is kept otherwise (-want +got)")
		expect(t, must(m.ReopenErrors(t.ctx, good.Key))(t), "a group without errors keeps no mark")
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
	marks   map[string]report.ErrorMark
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

// mark marks a group.
func (e *errorBook) mark(m report.ErrorMark) {
	e.Helper()
	before := e.clock()
	got := must(as[report.ErrorMarker](e.T).MarkErrors(e.ctx, m))(e)
	expect(e.T, !got.At.Before(before.Truncate(time.Microsecond)) && !got.At.After(e.clock()), "it is marked at %v, after %v", got.At, before)
	m.At = got.At
	noDiff(e, cmp.Diff(m, got), "it is another mark (-want +got)")
	if e.marks == nil {
		e.marks = map[string]report.ErrorMark{}
	}
	e.marks[m.Key] = m
}

// reopen forgets the mark of a group.
func (e *errorBook) reopen(key string, want bool) {
	e.Helper()
	equal(e.T, must(as[report.ErrorMarker](e.T).ReopenErrors(e.ctx, key))(e), want, "reopening it says %v, want %v")
	delete(e.marks, key)
}

// compare asks for groups, and compares them with what was noted. Their trends end between
// two looks at the clock.
func (e errorBook) compare(f report.ErrorFilter) report.ErrorReport {
	e.Helper()
	var fit []report.FailedAttempt
	for _, n := range e.all {
		if (f.Kind == "" || n.Kind == f.Kind) && (f.Queue == "" || n.queue == f.Queue) && !n.Ended.Before(f.Since) {
			fit = append(fit, n.FailedAttempt)
		}
	}
	found := report.ErrorsFound{Attempts: fit, Now: e.clock(), Marks: slices.Collect(maps.Values(e.marks))}
	got := must(as[report.ErrorAnalyst](e.T).Errors(e.ctx, f))(e)
	want := report.GroupErrors(found, f)
	if want.Step != got.Step {
		found.Now = e.clock()
		want = report.GroupErrors(found, f)
	}
	utc := cmp.Transformer("utc", func(at time.Time) time.Time { return at.UTC() })
	noDiff(e, cmp.Diff(want, got, utc), "%+v (-worked out +said)", f)
	return got
}
