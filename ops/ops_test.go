package ops

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/store"
)

// untouched is a store that nothing may be asked of but to keep changes.
type untouched struct {
	Store
	began []string
}

func (u *untouched) BeginChange(_ context.Context, c store.NewChange) (int64, error) {
	u.began = append(u.began, c.Operation)
	return 1, nil
}
func (*untouched) EndChange(context.Context, int64, string) error { return nil }

func TestAnOperationIsForItsRoleAndNoneBelow(t *testing.T) {
	for _, op := range All {
		d := op.Describe()
		st := &untouched{}
		l := &Local{Store: st, As: &guard.Identity{Role: d.Needs - 1}}
		err := l.Call(t.Context(), op, op.Input(), op.Output())
		if forbidden, ok := errors.AsType[*ForbiddenError](err); !ok || forbidden.Needs != d.Needs || len(st.began) > 0 {
			t.Errorf("%s: below %s the error is %v, and %v is in the log", d.Name, d.Needs, err, st.began)
		}
		if d.Changes() && d.Needs < guard.Operator {
			t.Errorf("%s changes something, and is for the role %s", d.Name, d.Needs)
		}
	}
}

func TestWhatCanNeverBeRightIsRefusedBeforeItIsDone(t *testing.T) {
	for name, c := range map[string]struct {
		op  Operation
		in  any
		err error
	}{
		"a queue's name":         {PauseQueue, &QueueWhy{QueueName: QueueName{"a\x00b"}}, stint.ErrInvalid},
		"no queue":               {ResumeQueue, &QueueName{}, stint.ErrInvalid},
		"no lease":               {ReleaseLease, &LeaseWhy{}, stint.ErrInvalid},
		"a limit's name":         {ResetLimit, &LimitName{"a b"}, stint.ErrInvalid},
		"a key of a limit":       {ListKeys, &LimitMost{LimitName: LimitName{"tenant="}}, stint.ErrInvalid},
		"a gate's name":          {UnblockLimit, &LimitName{"account=\n"}, stint.ErrInvalid},
		"a rule that is none":    {SetLimit, &NewLimitRule{LimitName{"smtp"}, LimitRule{Rule: "many"}}, stint.ErrInvalid},
		"a pause without end":    {PauseLimit, &PausedLimit{LimitName{"smtp"}, LimitPause{For: "25h"}}, stint.ErrInvalid},
		"a pause in no unit":     {PauseLimit, &PausedLimit{LimitName{"smtp"}, LimitPause{For: "soon"}}, stint.ErrInvalid},
		"a schedule of no name":  {PauseSchedule, &ScheduleWhy{}, stint.ErrNoSchedule},
		"a wait without an end":  {ShowJob, &ShowInput{ID: 1, Wait: "1h"}, stint.ErrInvalid},
		"a wait in no unit":      {ShowJob, &ShowInput{ID: 1, Wait: "30"}, stint.ErrInvalid},
		"a wait of less":         {ShowJob, &ShowInput{ID: 1, Wait: "-1s"}, stint.ErrInvalid},
		"no jobs":                {CancelJobs, &CancelInput{}, stint.ErrInvalid},
		"jobs and a filter":      {DeleteJobs, &DeleteInput{Selection{IDs: []stint.ID{1}, Filter: &Filter{}}}, stint.ErrInvalid},
		"a state that is none":   {DeleteJobs, &DeleteInput{Selection{Filter: &Filter{States: []string{"odd"}}}}, stint.ErrInvalid},
		"a time that is none":    {RetryJobs, &RetryInput{Retrying{Selection{IDs: []stint.ID{1}}, Rerun{RunAt: "soon"}}}, stint.ErrInvalid},
		"a class that is no end": {ListJobs, &JobsQuery{Filter: Filter{Outcome: "odd"}}, stint.ErrInvalid},
	} {
		l := &Local{Store: &untouched{}, As: &guard.Identity{Role: guard.Admin}}
		if err := l.Call(t.Context(), c.op, c.in, c.op.Output()); !errors.Is(err, c.err) {
			t.Errorf("%s: the error is %v, want %v", name, err, c.err)
		}
	}
}

func TestAnOperationHasOneNameAndIsFoundByIt(t *testing.T) {
	names, places := map[string]bool{}, map[string]bool{}
	for _, op := range All {
		d := op.Describe()
		place := d.Method + " " + d.Path
		if names[d.Name] || places[place] || Find(d.Noun(), d.Verb()) != op {
			t.Errorf("%s at %s is there twice, or not found", d.Name, place)
		}
		names[d.Name], places[place] = true, true
		if last := d.Path[strings.LastIndexByte(d.Path, '/')+1:]; d.Method == "POST" && d.Verb() != last && d.Verb() != "enqueue" {
			t.Errorf("%s is at %s: a second name", d.Name, d.Path)
		}
		if d.Confirm && !d.Changes() {
			t.Errorf("%s changes nothing, and is to be confirmed", d.Name)
		}
	}
	if Find("queues", "burn") != nil || Find("", "") != nil {
		t.Error("there is an operation that nobody declared")
	}
	for _, op := range []Operation{RemoveSchedule, BuryEngine} {
		if !op.Describe().Confirm {
			t.Errorf("%s cannot be undone, and is not to be confirmed", op.Describe().Name)
		}
	}
}

func TestTallySaysHowManyJobsGotWhichAnswer(t *testing.T) {
	retried := Done[stint.RerunResult]{Answers: map[stint.ID]stint.RerunResult{1: {Answer: stint.RerunReady}, 2: {Answer: stint.RerunReady}, 3: {Answer: stint.RerunRecovered, ID: 9}}}
	for want, d := range map[string]Answered{
		"2 jobs due now, 1 job retried as a new job": retried,
		"1 job cancelled":             Done[stint.CancelStatus]{Answers: map[stint.ID]stint.CancelStatus{1: stint.CancelledNow}},
		"12 jobs kept: not ended yet": Done[store.DeleteStatus]{Counts: map[string]int{string(store.DeleteNotFinal): 12}},
		"no such job is left":         Done[stint.CancelStatus]{},
	} {
		if got := TallyText(d.Tally()); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
