package api

import (
	"context"
	"net/http"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
)

func (a *api) figures() {
	register(a, operation{
		method: http.MethodGet, path: "/analytics", id: "analytics", tag: "figures", summary: "Tell how the work goes",
		description: "What is queued, postponed, running and held by engines that are dead; and of the attempts that ended in the last minute how many, how late they started, and how long they took. Durations are nanoseconds.",
	}, a.analyze)
	register(a, operation{
		method: http.MethodGet, path: "/analytics/kinds", id: "analytics-kinds", tag: "figures", summary: "Tell how the attempts of each kind went lately",
		description: "How many ended in the last minute, how late they started, and how long they took; sorted by kind. A kind of which none ended is left out. Durations are nanoseconds.",
	}, a.analyzeKinds)
	register(a, operation{
		method: http.MethodGet, path: "/analytics/due", id: "due-by", tag: "figures", summary: "Group what is due by a field", within: changeTime,
	}, a.dueBy)
	register(a, operation{
		method: http.MethodGet, path: "/errors", id: "list-errors", tag: "figures", summary: "Group what went wrong by class, place and kind",
		description: "Attempts that failed or were lost, also those of jobs that were tried again: the newest 10,000 that fit. `cut_off` says that there may be more. A panic has a place, the function that panicked.",
	}, a.listErrors)
	register(a, operation{
		method: http.MethodGet, path: "/stats", id: "stats", tag: "figures", summary: "Tell how the attempts of each kind went",
		description: "All that ever began, also those of jobs that are gone. Whole hours of UTC are counted, or whole minutes when each is told; minutes are told of the last two days.",
	}, a.stats)
}

// AnalyticsFilter chooses jobs for figures.
type AnalyticsFilter struct {
	Queue string    `query:"queue" maxLength:"255"`
	Kind  string    `query:"kind" maxLength:"255"`
	Tag   string    `query:"tag" maxLength:"255"`
	At    time.Time `query:"at" doc:"The instant by which jobs are due or not, and at which the minute ends; now unless given"`
}

func (f AnalyticsFilter) filter() (stint.AnalyticsFilter, error) {
	for _, name := range []struct{ field, value string }{{"queue", f.Queue}, {"kind", f.Kind}, {"tag", f.Tag}} {
		if name.value == "" {
			continue
		}
		if err := stint.CheckName(name.field, name.value); err != nil {
			return stint.AnalyticsFilter{}, &at{"query", err}
		}
	}
	return stint.AnalyticsFilter{Queue: f.Queue, Kind: f.Kind, Tag: f.Tag, At: f.At}, nil
}

func (a *api) analyze(ctx context.Context, in *AnalyticsFilter) (*answer[stint.Analytics], error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	figures, err := a.store.Analyze(ctx, f)
	if err != nil {
		return nil, err
	}
	return &answer[stint.Analytics]{figures}, nil
}

func (a *api) analyzeKinds(ctx context.Context, in *AnalyticsFilter) (*answer[[]stint.KindAnalytics], error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	return list(a.store.AnalyzeKinds(ctx, f))
}

func (a *api) dueBy(ctx context.Context, in *struct {
	AnalyticsFilter
	By    string `query:"by" required:"true" maxLength:"1000" doc:"queue, kind, priority, urn, source, tag, correlation, or a path into the JSON: args.customer, metadata.region.code"`
	Limit int    `query:"limit" minimum:"1" maximum:"10000" default:"100"`
}) (*answer[[]stint.DueGroup], error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	field := stint.Field(in.By)
	if err := field.Check(); err != nil {
		return nil, &at{"query", stint.Invalid("by", "%v", err)}
	}
	if in, _ := field.Path(); in != "" && a.Blind(ctx) {
		return nil, forbidden(guard.Operator)
	}
	return list(a.store.DueBy(ctx, field, f, in.Limit))
}

func (a *api) listErrors(ctx context.Context, in *struct {
	Kind  string    `query:"kind" maxLength:"255"`
	Queue string    `query:"queue" maxLength:"255" doc:"Where the attempt was"`
	Since time.Time `query:"since" doc:"Only what ended at this instant or later"`
}) (*answer[stint.ErrorReport], error) {
	report, err := a.store.Errors(ctx, stint.ErrorFilter{Kind: in.Kind, Queue: in.Queue, Since: in.Since})
	if err != nil {
		return nil, err
	}
	if a.Blind(ctx) {
		for i := range report.Groups {
			report.Groups[i].Message = ""
		}
	}
	return &answer[stint.ErrorReport]{report}, nil
}

func (a *api) stats(ctx context.Context, in *struct {
	Kind  string    `query:"kind" maxLength:"255"`
	Queue string    `query:"queue" maxLength:"255"`
	Since time.Time `query:"since" doc:"Only what ended in the hour, or minute, of this instant or later"`
	Until time.Time `query:"until" doc:"Only what ended up to the end of this instant's hour, or minute"`
	Every string    `query:"every" enum:"hour,minute" doc:"Tell each hour or minute by itself"`
}) (*answer[[]stint.KindStats], error) {
	if !in.Since.IsZero() && !in.Until.IsZero() && in.Until.Before(in.Since) {
		return nil, &at{"query", stint.Invalid("until", "it is before since")}
	}
	f := stint.StatsFilter{Kind: in.Kind, Queue: in.Queue, From: in.Since, To: in.Until}
	switch in.Every {
	case "minute":
		f.Every = time.Minute
	case "hour":
		f.Every = time.Hour
	}
	all, err := a.store.Stats(ctx, f)
	if err != nil {
		return nil, err
	}
	return list(stint.StatsByKind(all), nil)
}

// Durations is how [stint.Durations] are written.
type Durations struct {
	Count   int64         `json:"count"`
	Last    time.Duration `json:"last" doc:"0 where nobody knows which was the last"`
	Fastest time.Duration `json:"fastest"`
	Longest time.Duration `json:"longest"`
	Total   time.Duration `json:"total"`
	Mean    time.Duration `json:"mean"`
}
