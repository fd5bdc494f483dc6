package storetest_test

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

// mayCall is why a job may not call others.
func (d *database) mayCall(in *modelTx, id stint.ID) error {
	_, marked := d.cancelled[id]
	switch {
	case d.seenIn(in, id) == nil:
		return stint.ErrNotFound
	case (d.ended(id) || marked) && !d.is("calls for a job that has ended"):
		return stint.ErrEnded
	}
	return nil
}

// tellCallers records how jobs ended as the steps that called them.
func (d *database) tellCallers() {
	for key, s := range d.steps {
		if s.Question == nil || s.Question.Job == 0 || s.Result != nil || d.is("does not tell who called") {
			continue
		}
		end := stint.CalledJob{Job: s.Question.Job}
		x, ended := d.lastOf(end.Job)
		switch {
		case !ended && d.jobRow(end.Job) != nil:
			continue
		case !ended:
			end.State, end.Reason = stint.Cancelled, "it was deleted"
		case x.Outcome == stint.OutcomeCompleted:
			end.State, end.Result = stint.Completed, x.Result
		case x.Outcome == stint.OutcomeCancelled, x.Outcome == stint.OutcomeSkipped:
			end.State, end.Reason = stint.Cancelled, x.Reason
		default:
			end.State, end.Reason = stint.Failed, x.Reason
		}
		if end.State != stint.Completed && ended && !d.is("tells nothing of a failure") {
			end.Failure = d.lastFailure(end.Job)
		}
		if d.is("says that all have completed") {
			end.State = stint.Completed
		}
		if d.is("forgets the result of what was called") {
			end.Result = nil
		}
		s.Result, _ = json.Marshal(end)
		s.Ended = time.Now()
		d.steps[key] = s
	}
}

// lastOf is the attempt that a job ended with.
func (d *database) lastOf(id stint.ID) (x *record, is bool) {
	for _, x := range d.done {
		if x.Job == id && x.Final {
			return x, true
		}
	}
	return nil, false
}

// lastFailure is the error of the last attempt of a job that failed, without its stack.
func (d *database) lastFailure(id stint.ID) *stint.Failure {
	for _, pos := range slices.Backward(slices.Sorted(maps.Keys(d.done))) {
		if x := d.done[pos]; x.Job == id && x.Error != nil {
			f := *x.Error
			f.Stack = ""
			return &f
		}
	}
	return nil
}

// cancelCalls cancels what a job has called that is cancelled.
func (d *database) cancelCalls(caller *row, why string) {
	if caller.isFlow || d.is("leaves what a cancelled job has called") {
		return
	}
	text := d.whyWith(caller.id, why)
	for _, r := range d.visible(func(r *row) bool { return r.job != nil && r.flow == caller.id }) {
		if _, twice := d.cancelled[r.id]; !twice && !d.ended(r.id) {
			d.cancel(r.id, text)
		}
	}
}

// showCalls shows of a job that waits for those that it called the first of them, which are no questions.
func (d *database) showCalls(i *stint.JobInfo) {
	i.Asks = slices.DeleteFunc(i.Asks, func(name string) bool {
		s := d.steps[d.stepOf(i.ID, name)]
		return s.Question != nil && s.Question.Job != 0
	})
	if len(i.Asks) == 0 {
		i.Asks = nil
	}
	for key, s := range d.steps {
		if key.job == i.ID && s.Result == nil && s.Question.Job != 0 && (i.NeedsFirst == 0 || s.Question.Job < i.NeedsFirst) && i.State == stint.Blocked && !d.is("shows no job that was called") {
			i.NeedsFirst = s.Question.Job
		}
	}
}

// completed reports whether a job that was called completed.
func completed(result json.RawMessage) bool {
	var c stint.CalledJob
	return json.Unmarshal(result, &c) == nil && c.State == stint.Completed
}
