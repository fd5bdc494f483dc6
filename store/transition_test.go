package store

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

func TestConcludeSaysWhatFollowsAnAttempt(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	entry := func(change func(*Entry)) *Entry {
		e := &Entry{Pos: 7, Job: stint.Job{ID: 5, Kind: "k", Queue: "q", Priority: 3, Attempt: 1, MaxLosses: 3, Due: now, Created: now}}
		if change != nil {
			change(e)
		}
		return e
	}
	next := func(change func(*Next)) *Next {
		s := &Next{Kind: "k", Queue: "q", Priority: 3, Attempt: 1}
		change(s)
		return s
	}
	boom := errors.New("boom")
	type verdict struct {
		Final  bool
		Reason string
		Next   *Next
	}
	for _, c := range []struct {
		name  string
		entry *Entry
		end   Result
		want  verdict
	}{
		{"completed", entry(nil), Result{Outcome: stint.OutcomeCompleted}, verdict{Final: true}},
		{"cancelled", entry(nil), Result{Outcome: stint.OutcomeCancelled, Note: "why"}, verdict{Final: true, Reason: "why"}},
		{"expired", entry(nil), Result{Outcome: stint.OutcomeExpired}, verdict{Final: true, Reason: "expired"}},
		{"failed once under the default", entry(nil), Result{Outcome: stint.OutcomeFailed, Err: boom},
			verdict{Next: next(func(s *Next) { s.Wait, s.Why, s.Delay, s.Attempt = true, stint.Retrying, time.Minute, 2 })}},
		{"failed for the tenth time", entry(func(e *Entry) { e.Attempt = 10 }), Result{Outcome: stint.OutcomeFailed, Err: boom},
			verdict{Next: next(func(s *Next) {
				s.Wait, s.Why, s.Delay, s.Attempt, s.Faulty = true, stint.Retrying, 512*time.Minute, 11, true
			})}},
		{"failed for the last time", entry(func(e *Entry) { e.Attempt = 11 }), Result{Outcome: stint.OutcomeFailed, Err: boom},
			verdict{Final: true, Reason: "retries exhausted"}},
		{"failed without a policy", entry(func(e *Entry) { e.Retry = retry.None() }), Result{Outcome: stint.OutcomeFailed, Err: boom},
			verdict{Final: true, Reason: "no retries"}},
		{"failed for good", entry(nil), Result{Outcome: stint.OutcomeFailed, Err: fmt.Errorf("x: %w", stint.NoRetry(boom))},
			verdict{Final: true, Reason: "error not retriable"}},
		{"failed as often as the policy bears",
			entry(func(e *Entry) { e.Retry, e.Attempt = retry.Forever(time.Second).Faulty(3), 3 }), Result{Outcome: stint.OutcomeFailed, Err: boom},
			verdict{Next: next(func(s *Next) {
				s.Wait, s.Why, s.Delay, s.Attempt, s.Faulty = true, stint.Retrying, time.Second, 4, true
			})}},
		{"snoozed while it was faulty",
			entry(func(e *Entry) { e.Retry, e.Attempt = retry.Fixed(1, 0), 2 }), Result{Outcome: stint.OutcomeSnoozed},
			verdict{Next: next(func(s *Next) { s.Wait, s.Why, s.Attempt, s.Faulty = true, stint.Scheduled, 2, true })}},
		{"lost, so that one more try is left",
			entry(func(e *Entry) { e.Retry = retry.Fixed(1, time.Hour) }), Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost},
			verdict{Next: next(func(s *Next) { s.Part, s.Attempt, s.Losses, s.Faulty = PartFront, 2, 1, true })}},
		{"failed under a function that is not here",
			entry(func(e *Entry) { e.Retry = retry.Function("billing") }), Result{Outcome: stint.OutcomeFailed, Err: boom},
			verdict{Next: next(func(s *Next) { s.Wait, s.Why, s.Func, s.Attempt = true, stint.Retrying, "billing", 2 })}},
		{"failed for good under a function that is not here",
			entry(func(e *Entry) { e.Retry = retry.Function("billing") }), Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(boom)},
			verdict{Final: true, Reason: "error not retriable"}},
		{"lost under a function that is not here",
			entry(func(e *Entry) { e.Retry = retry.Function("billing") }), Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost},
			verdict{Next: next(func(s *Next) { s.Part, s.Attempt, s.Losses = PartFront, 2, 1 })}},
		{"snoozed", entry(nil), Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour},
			verdict{Next: next(func(s *Next) { s.Wait, s.Why, s.Delay = true, stint.Scheduled, time.Hour })}},
		{"snoozed for ever", entry(nil), Result{Outcome: stint.OutcomeSnoozed, Snooze: math.MaxInt64},
			verdict{Next: next(func(s *Next) { s.Wait, s.Why, s.Delay = true, stint.Scheduled, retry.MaxWait })}},
		{"returned to the front", entry(nil), Result{Outcome: stint.OutcomeReturned, Part: PartFront, Suspect: 1},
			verdict{Next: next(func(s *Next) { s.Part, s.Suspect = PartFront, 1 })}},
		{"sent to its kind's lane", entry(nil), Result{Outcome: stint.OutcomeReturned, Part: PartKind},
			verdict{Next: next(func(s *Next) { s.Part = PartKind })}},
		{"lost once, though its policy filters and waits",
			entry(func(e *Entry) { e.Retry = retry.Fixed(3, time.Hour).Only("x") }), Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost},
			verdict{Next: next(func(s *Next) { s.Part, s.Attempt, s.Losses = PartFront, 2, 1 })}},
		{"lost twice under fixed(1)",
			entry(func(e *Entry) { e.Retry, e.Attempt, e.Losses = retry.Fixed(1, 0), 2, 1 }), Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost},
			verdict{Final: true, Reason: "retries exhausted"}},
		{"lost twice under none",
			entry(func(e *Entry) { e.Retry, e.Attempt, e.Losses = retry.None(), 2, 1 }), Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost},
			verdict{Next: next(func(s *Next) { s.Part, s.Attempt, s.Losses = PartFront, 3, 2 })}},
		{"lost three times under none",
			entry(func(e *Entry) { e.Retry, e.Attempt, e.Losses = retry.None(), 3, 2 }), Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost},
			verdict{Final: true, Reason: "lost"}},
	} {
		x := Conclude(c.entry, c.end, now, 0)
		if diff := cmp.Diff(c.want, verdict{x.Final, x.Reason, x.Next}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if x.Pos != 7 || x.Job != 5 || x.Attempt != c.entry.Attempt || x.Outcome != c.end.Outcome {
			t.Errorf("%s: the execution is %+v", c.name, x)
		}
		if (x.Next == nil) != x.Final {
			t.Errorf("%s: final %v and successor %v", c.name, x.Final, x.Next)
		}
	}
}

func TestARetryBehindTheInstantToBeginByIsNotWaitedFor(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const never = -1
	boom := errors.New("boom")
	for _, c := range []struct {
		name   string
		policy retry.Policy
		left   time.Duration // to begin
		end    Result
		reason string // empty when it is not final
	}{
		{"in time", retry.Fixed(1, time.Minute), time.Minute, Result{Outcome: stint.OutcomeFailed, Err: boom}, ""},
		{"too late", retry.Fixed(1, time.Minute), time.Minute - 1, Result{Outcome: stint.OutcomeFailed, Err: boom}, retry.ReasonExpired},
		{"at once, when it is too late", retry.Fixed(1, 0), -2, Result{Outcome: stint.OutcomeFailed, Err: boom}, retry.ReasonExpired},
		{"none is left", retry.Fixed(0, 0), -2, Result{Outcome: stint.OutcomeFailed, Err: boom}, retry.ReasonExhausted},
		{"the error forbids one", retry.Fixed(1, time.Minute), -2, Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(boom)}, retry.ReasonNotRetriable},
		{"somebody else is to decide", retry.Function("f"), -2, Result{Outcome: stint.OutcomeFailed, Err: boom}, ""},
		{"no bound", retry.Fixed(1, time.Hour), never, Result{Outcome: stint.OutcomeFailed, Err: boom}, ""},
		{"lost in time", retry.Fixed(1, time.Hour), time.Second, Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost}, ""},
		{"lost too late", retry.Fixed(1, 0), -2, Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost}, retry.ReasonExpired},
		{"snoozed", retry.Fixed(1, 0), time.Second, Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, ""},
		{"returned", retry.Fixed(1, 0), -2, Result{Outcome: stint.OutcomeReturned}, ""},
		{"completed", retry.Fixed(1, 0), -2, Result{Outcome: stint.OutcomeCompleted}, retry.ReasonDone},
	} {
		e := &Entry{Pos: 7, Job: stint.Job{ID: 5, Kind: "k", Queue: "q", Attempt: 1, MaxLosses: 3, Retry: c.policy}}
		if c.left != never {
			e.StartBy = now.Add(c.left)
		}
		x := Conclude(e, c.end, now, 0)
		got := ""
		if x.Final {
			got = x.Outcome.FinalReason(x.Reason)
		}
		if got != c.reason || x.Outcome != c.end.Outcome || x.Final != (x.Next == nil) {
			t.Errorf("%s: the outcome is %v, the reason %q, what follows %+v; want %q", c.name, x.Outcome, got, x.Next, c.reason)
		}
		if x.Reason == retry.ReasonExpired && !x.Error.Recoverable {
			t.Errorf("%s: it is not recoverable, though only time was wanting", c.name)
		}
	}
	var funcs retry.Registry
	if err := funcs.Register("f", func(error, retry.Failure) retry.Decision { return retry.Again(time.Minute) }); err != nil {
		t.Fatal(err)
	}
	for left, final := range map[time.Duration]bool{time.Minute: false, time.Minute - 1: true} {
		u := &PendingRetry{Func: "f", Job: stint.Job{ID: 5, Attempt: 2, Retry: retry.Function("f"), StartBy: now.Add(left)}}
		x, err := u.Conclude(&funcs, now, 0)
		if err != nil || x.Final != final || (x.Next == nil) != final || final && (x.Outcome != stint.OutcomeFailed || x.Reason != retry.ReasonExpired) {
			t.Errorf("decided with %v left: %+v, %v", left, x, err)
		}
	}
}

func TestAFunctionSeesAllOfTheAttempt(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cause := fmt.Errorf("page 3: %w", errPaper)
	e := &Entry{Job: stint.Job{
		ID: 5, Kind: "k", Queue: "q", Attempt: 4, Retry: retry.Function("see"),
		Created: now.Add(-2 * time.Hour), Due: now.Add(-time.Hour),
	}}
	want := retry.Failure{
		Charged: 4, Classes: []string{"no_paper", "stationery"}, Message: "page 3: no paper",
		Created: e.Created, Due: e.Due, Now: now, Took: 3 * time.Second, Rand: 0.25,
	}
	var funcs retry.Registry
	err := funcs.Register("see", func(err error, f retry.Failure) retry.Decision {
		if err != cause {
			t.Errorf("the cause is %v", err)
		}
		if diff := cmp.Diff(want, f); diff != "" {
			t.Errorf("the failure (-want +got):\n%s", diff)
		}
		return retry.At(now.Add(time.Hour)).To("bulk")
	})
	if err != nil {
		t.Fatal(err)
	}
	x := ConcludeWith(&funcs, e, Result{Outcome: stint.OutcomeFailed, Err: cause, Took: 3 * time.Second}, now, 0.25)
	if x.Next == nil || x.Next.Delay != time.Hour || x.Next.Queue != "bulk" || x.Next.Func != "" || x.Next.Attempt != 5 {
		t.Errorf("its successor is %+v", x.Next)
	}
}

func TestTheAnswersOfAFunctionAreRecorded(t *testing.T) {
	e := &Entry{Job: stint.Job{ID: 5, Kind: "k", Queue: "q", Attempt: 11, Retry: retry.Function("f")}}
	for _, c := range []struct {
		name         string
		f            retry.Func
		reason, note string
		recoverable  bool
		queue        string // of the next attempt; empty when there is none
	}{
		{"a reason of its own", func(error, retry.Failure) retry.Decision { return retry.Final("customer left") }, "customer left", "", true, ""},
		{"not retriable", func(error, retry.Failure) retry.Decision { return retry.Final(retry.ReasonNotRetriable) }, "error not retriable", "", false, ""},
		{"a panic", func(error, retry.Failure) retry.Decision { panic("oh") },
			"retries exhausted", "decided by the default policy: retry function f panicked: oh", true, ""},
		{"no queue at all", func(error, retry.Failure) retry.Decision { return retry.Again(1).To("*") },
			"", `it stays in its queue: queue: "*" means every queue and names none`, true, "q"},
		{"a wrong queue", func(error, retry.Failure) retry.Decision { return retry.Again(1).To(" a") },
			"", `it stays in its queue: queue: " a" has space at an end`, true, "q"},
	} {
		var funcs retry.Registry
		if err := funcs.Register("f", c.f); err != nil {
			t.Fatal(err)
		}
		x := ConcludeWith(&funcs, e, Result{Outcome: stint.OutcomeFailed, Err: errPaper}, time.Now(), 0)
		queue := ""
		if x.Next != nil {
			queue = x.Next.Queue
		}
		if x.Reason != c.reason || x.Error.Note != c.note || x.Error.Recoverable != c.recoverable || queue != c.queue || x.Final != (queue == "") {
			t.Errorf("%s: reason %q, %+v, queue %q", c.name, x.Reason, x.Error, queue)
		}
	}
}

func TestAFailureIsRecoverableUnlessItsNatureForbidsARetry(t *testing.T) {
	for _, c := range []struct {
		policy  retry.Policy
		attempt int
		err     error
		want    bool
	}{
		{retry.Default(), 1, errPaper, true},
		{retry.Default(), 11, errPaper, true}, // exhausted, which is another matter
		{retry.None(), 1, errPaper, true},
		{retry.Default(), 1, stint.NoRetry(errPaper), false},
		{retry.Default(), 11, stint.NoRetry(errPaper), false},
		{retry.Default().Except("no_paper"), 1, errPaper, false},
		{retry.Default().Only("timeout"), 11, errPaper, false},
		{retry.ByError(retry.On("timeout", retry.Default())), 1, errPaper, false},
		{retry.ByError(retry.On("stationery", retry.None())), 1, errPaper, true},
	} {
		e := &Entry{Job: stint.Job{ID: 5, Kind: "k", Queue: "q", Attempt: c.attempt, Retry: c.policy}}
		x := Conclude(e, Result{Outcome: stint.OutcomeFailed, Err: c.err}, time.Now(), 0)
		if x.Error.Recoverable != c.want {
			t.Errorf("attempt %d under %v failed with %v: recoverable %v", c.attempt, c.policy, c.err, x.Error.Recoverable)
		}
	}
	for outcome, want := range map[stint.Outcome]*bool{stint.OutcomeCancelled: new(false), stint.OutcomeCompleted: nil, stint.OutcomeReturned: nil, stint.OutcomeExpired: nil} {
		x := stint.Attempt{Outcome: outcome}
		if x.Derive(); (x.Recoverable == nil) != (want == nil) || want != nil && *x.Recoverable != *want {
			t.Errorf("%v: recoverable %v", outcome, x.Recoverable)
		}
	}
}

func TestEveryFinalStateHasItsReason(t *testing.T) {
	for _, c := range []struct {
		outcome      stint.Outcome
		stored, want string
	}{
		{stint.OutcomeCompleted, "", "done"}, {stint.OutcomeCancelled, "", "cancelled"}, {stint.OutcomeCancelled, "sold out", "sold out"},
		{stint.OutcomeFailed, "retries exhausted", "retries exhausted"}, {stint.OutcomeLost, "lost", "lost"}, {stint.OutcomeExpired, "expired", "expired"},
	} {
		x := stint.Attempt{Outcome: c.outcome, Final: true, Reason: c.stored}
		if x.Derive(); x.Reason != c.want {
			t.Errorf("%v shows %q, want %q", c.outcome, x.Reason, c.want)
		}
	}
	x := stint.Attempt{Outcome: stint.OutcomeFailed}
	if x.Derive(); x.Reason != "" {
		t.Errorf("a failure that is not the end has the reason %q", x.Reason)
	}
}

func TestAnUndecidedFailureIsJudgedByWhatWasKeptOfIt(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	u := &PendingRetry{
		Job: stint.Job{ID: 5, Kind: "k", Queue: "q", Priority: 3, Attempt: 3, Losses: 1, Created: now.Add(-time.Hour), Due: now.Add(-time.Minute),
			Retry: retry.ByError(retry.On("no_paper", retry.Function("f")), retry.Otherwise(retry.None())).Faulty(2)},
		Func: "f", Took: time.Second,
		Error: stint.Failure{Class: "panic", Classes: []string{"panic", "no_paper"}, Message: "no paper", Stack: "main.go:1"},
	}
	if _, err := u.Conclude(nil, now, 0); !errors.Is(err, retry.ErrUnknownFunc) {
		t.Errorf("without the function: %v", err)
	}
	var answer retry.Decision
	var funcs retry.Registry
	want := retry.Failure{
		Charged: 2, Classes: []string{"panic", "no_paper"}, Message: "no paper", Created: u.Created, Due: u.Due, Now: now, Took: time.Second, Rand: 0.5,
	}
	err := funcs.Register("f", func(cause error, f retry.Failure) retry.Decision {
		if diff := cmp.Diff(want, f); diff != "" || cause.Error() != "no paper" {
			t.Errorf("the cause is %v, the failure (-want +got):\n%s", cause, diff)
		}
		return answer
	})
	if err != nil {
		t.Fatal(err)
	}
	failure := &stint.Failure{Class: "panic", Classes: []string{"panic", "no_paper"}, Message: "no paper", Recoverable: true}
	for _, c := range []struct {
		answer retry.Decision
		want   Completion
	}{
		{retry.Again(time.Hour).To("bulk"), Completion{
			Job: 5, Attempt: 3, Outcome: stint.OutcomeReturned, Reason: "decided by the retry function f", Error: failure,
			Next: &Next{Wait: true, Why: stint.Retrying, Delay: time.Hour, Kind: "k", Queue: "bulk", Priority: 3, Attempt: 3, Losses: 1, Faulty: true},
		}},
		{retry.Final("customer left"), Completion{Job: 5, Attempt: 3, Outcome: stint.OutcomeFailed, Final: true, Reason: "customer left", Error: failure}},
	} {
		answer = c.answer
		x, err := u.Conclude(&funcs, now, 0.5)
		if diff := cmp.Diff(c.want, x); diff != "" || err != nil {
			t.Errorf("%+v: error %v (-want +got):\n%s", c.answer, err, diff)
		}
	}
}
