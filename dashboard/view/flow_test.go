package view_test

import (
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
)

func TestABlockedJobSaysWhichJobItNeedsFirst(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		job  stint.JobInfo
		want string
	}{
		{stint.JobInfo{State: stint.Blocked, NeedsFirst: 17, Flow: 12}, "is blocked, needs job 17 to end first"},
		{stint.JobInfo{State: stint.Blocked, NeedsFirst: 17, IsFlow: true}, "is blocked, waits for its jobs, such as job 17"},
		{stint.JobInfo{State: stint.Blocked, IsFlow: true}, "is blocked, waits for its jobs"},
		{stint.JobInfo{State: stint.Blocked, Awaits: []string{"go"}, Due: now, Flow: 12}, `is blocked, awaits the signal "go", otherwise due now`},
		{stint.JobInfo{State: stint.Cancelled, Reason: "needs job 17 (a), which completed", Flow: 12}, "is cancelled: needs job 17 (a), which completed"},
	} {
		if got := (view.Crew{}).StateInWords(c.job, now); got != c.want {
			t.Errorf("it %s, want %s", got, c.want)
		}
	}
}

func TestAJobSaysWhichFlowItBelongsTo(t *testing.T) {
	for want, job := range map[string]stint.JobInfo{"": {}, "flow 12": {Flow: 12}, "flow 12 as fetch": {Flow: 12, Node: "fetch"}} {
		if got := view.MemberInWords(job); got != want {
			t.Errorf("it belongs to %q, want %q", got, want)
		}
	}
}

func TestAnAttemptThatNoEngineHadNamesNone(t *testing.T) {
	for _, x := range []stint.Attempt{
		{Outcome: stint.OutcomeSkipped}, {Outcome: stint.OutcomeCompleted}, {Outcome: stint.OutcomeFailed, Reason: "job 17 (a) failed"}, {Outcome: stint.OutcomeCancelled},
	} {
		if !view.NeverTaken(x) || view.Unbegun(x) {
			t.Errorf("of one that is %s: never taken is %v, not begun %v", x.Outcome, view.NeverTaken(x), view.Unbegun(x))
		}
	}
	for _, x := range []stint.Attempt{
		{Outcome: stint.OutcomeFailed, Error: &stint.Failure{}}, {Outcome: stint.OutcomeExpired}, {Outcome: stint.OutcomeCancelled, Engine: 5}, {Outcome: stint.OutcomeCompleted, Slot: 1, Engine: 5},
	} {
		if view.NeverTaken(x) {
			t.Errorf("%+v was never taken", x)
		}
	}
}
