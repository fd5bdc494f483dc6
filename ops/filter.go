package ops

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Filter chooses jobs, as [store.Filter] does: those that fit all of its fields. It
// is a query when jobs are listed, and a part of the body when something is done
// to them.
type Filter struct {
	States      []string `query:"state" json:"state,omitempty" enum:"scheduled,retrying,blocked,available,running,completed,failed,cancelled" nullable:"false" doc:"Any of these states"`
	Kind        string   `query:"kind" json:"kind,omitempty" maxLength:"255"`
	Queue       string   `query:"queue" json:"queue,omitempty" maxLength:"255" doc:"Where the job is, or was last"`
	Tag         string   `query:"tag" json:"tag,omitempty" maxLength:"255"`
	URN         string   `query:"urn" json:"urn,omitempty" maxLength:"255" doc:"What they are about; with an asterisk at its end, what that begins with: order:47*"`
	Source      string   `query:"source" json:"source,omitempty" maxLength:"255"`
	Correlation string   `query:"correlation" json:"correlation,omitempty" maxLength:"255" doc:"Jobs that come from each other: an id that they were given, or the first one's own"`
	Schedule    string   `query:"schedule" json:"schedule,omitempty" maxLength:"255" doc:"The schedule that made them"`
	Flow        stint.ID `query:"flow" json:"flow,omitempty" minimum:"1" doc:"The flow that they belong to"`
	Flows       bool     `query:"flows" json:"flows,omitempty" doc:"Only flows"`
	Faulty      bool     `query:"faulty" json:"faulty,omitempty" doc:"Only jobs that failed so often that people should look"`
	NotRetried  bool     `query:"not_retried" json:"not_retried,omitempty" doc:"Leave out jobs that ended and that a newer job repeats"`
	Outcome     string   `query:"outcome" json:"outcome,omitempty" enum:"completed,failed,snoozed,returned,lost,cancelled,expired,skipped" doc:"How one of their attempts ended"`
	Class       string   `query:"error_class" json:"error_class,omitempty" maxLength:"255" doc:"The class of an attempt's error"`
	Error       string   `query:"error" json:"error,omitempty" maxLength:"1000" doc:"Part of an attempt's error message"`
	Attempts    int      `query:"attempts" json:"attempts,omitempty" minimum:"0" doc:"More attempts than this"`
	Longer      string   `query:"longer" json:"longer,omitempty" maxLength:"50" doc:"An attempt that took longer than this: 5s, 1m30s"`
	CreatedFrom When     `query:"created_after" json:"created_after,omitempty" doc:"Enqueued at this instant or later"`
	CreatedTo   When     `query:"created_before" json:"created_before,omitempty" doc:"Enqueued before this instant"`
	DueFrom     When     `query:"due_after" json:"due_after,omitempty"`
	DueTo       When     `query:"due_before" json:"due_before,omitempty"`
	EndedFrom   When     `query:"finished_after" json:"finished_after,omitempty" doc:"Ended their last attempt at this instant or later"`
	EndedTo     When     `query:"finished_before" json:"finished_before,omitempty"`
	After       stint.ID `query:"after" json:"after,omitempty" doc:"Only jobs with a higher id"`
}

// filter reads a filter; prefix is where it stands in the request. It is the only way
// to one, so that no operation finds jobs by what is hidden from who asks: an answer
// of ids alone tells a text as well, one guess after the other.
func (l *Local) filter(ctx context.Context, f Filter, prefix string) (store.Filter, error) {
	err := checkNames(prefix, "kind", f.Kind, "queue", f.Queue, "tag", f.Tag, "urn", f.URN, "source", f.Source, "correlation", f.Correlation, "schedule", f.Schedule)
	if err != nil {
		return store.Filter{}, err
	}
	g, err := f.read()
	if err = inError(prefix, err); err == nil {
		err = l.read(ctx, prefix,
			moment{"created_after", f.CreatedFrom, &g.Created.From}, moment{"created_before", f.CreatedTo, &g.Created.To},
			moment{"due_after", f.DueFrom, &g.Due.From}, moment{"due_before", f.DueTo, &g.Due.To},
			moment{"finished_after", f.EndedFrom, &g.Finished.From}, moment{"finished_before", f.EndedTo, &g.Finished.To})
	}
	if err == nil {
		err = inError(prefix, checkRanges(g))
	}
	if err == nil && g.Error != "" && l.blind(ctx) {
		err = &ForbiddenError{Needs: guard.Operator}
	}
	return g, err
}

// read reads all but the names and the times.
func (f Filter) read() (store.Filter, error) {
	g := store.Filter{
		Kind: f.Kind, Queue: f.Queue, Tag: f.Tag, URN: f.URN, Source: f.Source, Correlation: f.Correlation, Schedule: f.Schedule,
		Flow: f.Flow, Flows: f.Flows, Faulty: f.Faulty, NotRetried: f.NotRetried, Class: f.Class, Error: f.Error, Attempts: f.Attempts, After: f.After,
	}
	for _, name := range f.States {
		if !slices.Contains(store.States, stint.State(name)) {
			return g, valid.Invalid("state", "there is no state %q", name)
		}
		if s := stint.State(name); !slices.Contains(g.States, s) {
			g.States = append(g.States, s)
		}
	}
	if f.Outcome != "" {
		if err := g.Outcome.UnmarshalText([]byte(f.Outcome)); err != nil {
			return g, err
		}
	}
	var err error
	g.Longer, err = ReadDuration("longer", f.Longer)
	return g, err
}

// checkRanges finds a time range without any time in it.
func checkRanges(f store.Filter) error {
	for _, span := range []struct {
		field string
		store.TimeRange
	}{{"created_before", f.Created}, {"due_before", f.Due}, {"finished_before", f.Finished}} {
		if !span.From.IsZero() && !span.To.IsZero() && !span.To.After(span.From) {
			return valid.Invalid(span.field, "it is not later than the beginning")
		}
	}
	return nil
}

// FilterOf is a filter as a request has it, but for its page.
func FilterOf(f store.Filter) Filter {
	g := Filter{
		Kind: f.Kind, Queue: f.Queue, Tag: f.Tag, URN: f.URN, Source: f.Source, Correlation: f.Correlation, Schedule: f.Schedule,
		Flow: f.Flow, Flows: f.Flows, Faulty: f.Faulty, NotRetried: f.NotRetried, Class: f.Class, Error: f.Error, Attempts: f.Attempts, Longer: durationText(f.Longer), After: f.After,
		CreatedFrom: At(f.Created.From), CreatedTo: At(f.Created.To), DueFrom: At(f.Due.From), DueTo: At(f.Due.To),
		EndedFrom: At(f.Finished.From), EndedTo: At(f.Finished.To),
	}
	for _, s := range f.States {
		g.States = append(g.States, string(s))
	}
	if f.Outcome != 0 {
		g.Outcome = f.Outcome.String()
	}
	return g
}

// ReadDuration reads a duration of a request; none is 0.
func ReadDuration(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := retry.ParseDuration(text)
	if err != nil {
		return 0, valid.Invalid(field, "%v", err)
	}
	return d, nil
}

// durationText is a duration as a request has it; empty for none.
func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return retry.FormatDuration(d)
}

// Page is a part of what fits, by falling ids.
type Page struct {
	Before int64 `query:"before" minimum:"1" doc:"Only jobs with a lower id: the next of the page before"`
	Limit  int   `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many at most"`
}
