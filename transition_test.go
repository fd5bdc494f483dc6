package stint

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint/retry"
)

func TestConcludeSaysWhatFollowsAnAttempt(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	entry := func(change func(*Entry)) *Entry {
		e := &Entry{Pos: 7, Job: Job{ID: 5, Kind: "k", Queue: "q", Priority: 3, Attempt: 1, MaxLosses: 3, Due: now, Created: now}}
		if change != nil {
			change(e)
		}
		return e
	}
	next := func(change func(*Successor)) *Successor {
		s := &Successor{Kind: "k", Queue: "q", Priority: 3, Attempt: 1}
		change(s)
		return s
	}
	boom := errors.New("boom")
	type verdict struct {
		Final  bool
		Reason string
		Next   *Successor
	}
	for _, c := range []struct {
		name  string
		entry *Entry
		end   Ending
		want  verdict
	}{
		{"completed", entry(nil), Ending{Outcome: OutcomeCompleted}, verdict{Final: true}},
		{"cancelled", entry(nil), Ending{Outcome: OutcomeCancelled, Note: "why"}, verdict{Final: true, Reason: "why"}},
		{"expired", entry(nil), Ending{Outcome: OutcomeExpired}, verdict{Final: true, Reason: "expired"}},
		{"failed once under the default", entry(nil), Ending{Outcome: OutcomeFailed, Err: boom},
			verdict{Next: next(func(s *Successor) { s.Wait, s.Why, s.Delay, s.Attempt = true, Retrying, time.Minute, 2 })}},
		{"failed for the tenth time", entry(func(e *Entry) { e.Attempt = 10 }), Ending{Outcome: OutcomeFailed, Err: boom},
			verdict{Next: next(func(s *Successor) { s.Wait, s.Why, s.Delay, s.Attempt = true, Retrying, 512*time.Minute, 11 })}},
		{"failed for the last time", entry(func(e *Entry) { e.Attempt = 11 }), Ending{Outcome: OutcomeFailed, Err: boom},
			verdict{Final: true, Reason: "retries exhausted"}},
		{"failed without a policy", entry(func(e *Entry) { e.Retry = retry.None() }), Ending{Outcome: OutcomeFailed, Err: boom},
			verdict{Final: true, Reason: "policy gave no date"}},
		{"failed for good", entry(nil), Ending{Outcome: OutcomeFailed, Err: fmt.Errorf("x: %w", NoRetry(boom))},
			verdict{Final: true, Reason: "error not retriable"}},
		{"snoozed", entry(nil), Ending{Outcome: OutcomeSnoozed, Snooze: time.Hour},
			verdict{Next: next(func(s *Successor) { s.Wait, s.Why, s.Delay = true, Scheduled, time.Hour })}},
		{"returned to the front", entry(nil), Ending{Outcome: OutcomeReturned, Part: PartFront, Suspect: 1},
			verdict{Next: next(func(s *Successor) { s.Part, s.Suspect = PartFront, 1 })}},
		{"sent to its kind's lane", entry(nil), Ending{Outcome: OutcomeReturned, Part: PartKind},
			verdict{Next: next(func(s *Successor) { s.Part = PartKind })}},
		{"lost once, though its policy filters and waits",
			entry(func(e *Entry) { e.Retry = retry.Fixed(3, time.Hour).Only("x") }), Ending{Outcome: OutcomeLost, Err: retry.ErrLost},
			verdict{Next: next(func(s *Successor) { s.Part, s.Attempt, s.Losses = PartFront, 2, 1 })}},
		{"lost twice under fixed(1)",
			entry(func(e *Entry) { e.Retry, e.Attempt, e.Losses = retry.Fixed(1, 0), 2, 1 }), Ending{Outcome: OutcomeLost, Err: retry.ErrLost},
			verdict{Final: true, Reason: "retries exhausted"}},
		{"lost twice under none",
			entry(func(e *Entry) { e.Retry, e.Attempt, e.Losses = retry.None(), 2, 1 }), Ending{Outcome: OutcomeLost, Err: retry.ErrLost},
			verdict{Next: next(func(s *Successor) { s.Part, s.Attempt, s.Losses = PartFront, 3, 2 })}},
		{"lost three times under none",
			entry(func(e *Entry) { e.Retry, e.Attempt, e.Losses = retry.None(), 3, 2 }), Ending{Outcome: OutcomeLost, Err: retry.ErrLost},
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

func TestErrorsAreNamedByWhatIsInside(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{io.EOF, "errors.errorString"},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", &InvalidError{})), "stint.InvalidError"},
		{errors.Join(nil, &InvalidError{}, io.EOF), "stint.InvalidError"},
		{NoRetry(&InvalidError{}), "stint.InvalidError"},
		{&PanicError{Value: io.EOF}, "panic"},
		{fmt.Errorf("%w: %w", ErrTimeout, io.EOF), "timeout"},
	} {
		if got := Classes(c.err); len(got) != 1 || got[0] != c.want {
			t.Errorf("%v has the classes %v, want %s", c.err, got, c.want)
		}
	}
	if Classes(nil) != nil {
		t.Error("no error has classes")
	}
}
