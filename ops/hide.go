package ops

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/store"
)

// blind reports whether who asks may not see what producers and handlers wrote.
func (l *Local) blind(ctx context.Context) bool {
	return l.HideArgs && l.who(ctx).Role < guard.Operator
}

// seen are jobs as who asks may see them, [] rather than null.
func (l *Local) seen(ctx context.Context, jobs []stint.JobInfo) []stint.JobInfo {
	all := append([]stint.JobInfo{}, jobs...)
	if !l.blind(ctx) {
		return all
	}
	for i := range all {
		all[i].Args, all[i].Metadata = nil, nil
		all[i].Attempts = slices.Clone(all[i].Attempts) // others may be shown the same ones: see [store.Awaiter]
		for k := range all[i].Attempts {
			x := &all[i].Attempts[k]
			if x.Result = nil; x.Error != nil {
				x.Error = new(*x.Error)
				x.Error.Message, x.Error.Stack, x.Error.Note = "", "", ""
			}
		}
	}
	return all
}

// seenSteps hides in steps what who asks may not see.
func (l *Local) seenSteps(ctx context.Context, steps []view.Step) {
	if !l.blind(ctx) {
		return
	}
	for i := range steps {
		steps[i].Result, steps[i].Bytes = nil, 0
		if q := steps[i].Question; q != nil {
			steps[i].Question = &stint.Question{Until: q.Until, Job: q.Job}
		}
	}
}

// seenQuestions hides in questions what who asks may not see.
func (l *Local) seenQuestions(ctx context.Context, questions []store.OpenQuestion) {
	if !l.blind(ctx) {
		return
	}
	for i := range questions {
		questions[i].Question = stint.Question{Until: questions[i].Until}
	}
}

// seenSignals hides in signals what who asks may not see.
func (l *Local) seenSignals(ctx context.Context, signals []view.Signal) {
	if !l.blind(ctx) {
		return
	}
	for i := range signals {
		signals[i].Value, signals[i].Bytes = nil, 0
	}
}

// seenProgress hides in what runs said of their progress what who asks may not see.
func (l *Local) seenProgress(ctx context.Context, all []stint.Progress) {
	if !l.blind(ctx) {
		return
	}
	for i := range all {
		all[i].Text = ""
	}
}

// seenLog hides in what a job said what who asks may not see: all that was logged.
func (l *Local) seenLog(ctx context.Context, shown *view.Job) {
	if l.blind(ctx) {
		shown.Log = nil
	}
	l.seenProgress(ctx, shown.Progress)
}

// seenSchedules are schedules as who asks may see them.
func (l *Local) seenSchedules(ctx context.Context, schedules []store.ScheduleInfo) []store.ScheduleInfo {
	if !l.blind(ctx) {
		return schedules
	}
	for i := range schedules {
		s := &schedules[i]
		s.Job.Args, s.Job.Metadata = nil, nil
		s.Stored.Job = without(s.Stored.Job, "args", "metadata")
	}
	return schedules
}

// without leaves members out of an object; nothing is left of what is none.
func without(object json.RawMessage, names ...string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return json.RawMessage("{}")
	}
	for _, name := range names {
		delete(members, name)
	}
	rest, err := json.Marshal(members)
	if err != nil {
		return json.RawMessage("{}")
	}
	return rest
}
