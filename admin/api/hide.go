package api

import (
	"context"
	"encoding/json"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
)

// Blind reports whether who asks may not see what producers and handlers wrote.
func (c Config) Blind(ctx context.Context) bool {
	return c.HideArgs && guard.Of(ctx).Role < guard.Operator
}

// seen are jobs as who asks may see them, [] rather than null.
func (a *api) seen(ctx context.Context, jobs []stint.JobInfo) []stint.JobInfo {
	all := append([]stint.JobInfo{}, jobs...)
	if !a.Blind(ctx) {
		return all
	}
	for i := range all {
		all[i].Args, all[i].Metadata = nil, nil
		for k := range all[i].Executions {
			x := &all[i].Executions[k]
			if x.Result = nil; x.Error != nil {
				x.Error.Message, x.Error.Stack, x.Error.Note = "", "", ""
			}
		}
	}
	return all
}

// seenSchedules are schedules as who asks may see them.
func (a *api) seenSchedules(ctx context.Context, schedules []stint.ScheduleInfo) []stint.ScheduleInfo {
	if !a.Blind(ctx) {
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
