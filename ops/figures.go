package ops

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/report"
)

const figures = "figures" // the tag

// Analyze tells how the work goes.
var Analyze = declare(&Op[AnalyticsFilter, report.Analytics]{
	Decl: Decl{
		Name: "analytics", Method: http.MethodGet, Path: "/analytics", Tag: figures, Summary: "Tell how the work goes",
		Doc: "What is queued, how much of that limits let not start now, and what is postponed, running and held by engines that are dead; and of the attempts that ended in the last minute, or in `span`, how many, how late they started, and how long they took. Durations are nanoseconds.",
	},
	do: func(ctx context.Context, l *Local, in *AnalyticsFilter) (report.Analytics, error) {
		f, err := in.filter(ctx, l)
		if err != nil {
			return report.Analytics{}, err
		}
		return l.Store.Analyze(ctx, f)
	},
})

// AnalyzeKinds tells how the attempts of each kind went lately.
var AnalyzeKinds = declare(&Op[AnalyticsFilter, List[report.KindAnalytics]]{
	Decl: Decl{
		Name: "analytics kinds", Method: http.MethodGet, Path: "/analytics/kinds", Tag: figures, Summary: "Tell how the attempts of each kind went lately",
		Doc: "How many ended in the last minute, or in `span`, how late they started, and how long they took; sorted by kind. A kind of which none ended is left out. Durations are nanoseconds.",
	},
	do: func(ctx context.Context, l *Local, in *AnalyticsFilter) (all List[report.KindAnalytics], err error) {
		f, err := in.filter(ctx, l)
		if err != nil {
			return all, err
		}
		return listed(l.Store.AnalyzeKinds(ctx, f))
	},
})

// DueBy groups what is due by a field.
var DueBy = declare(&Op[DueInput, List[report.DueGroup]]{
	Decl: Decl{Name: "analytics due", Method: http.MethodGet, Path: "/analytics/due", Tag: figures, Summary: "Group what is due by a field", Within: changeTime},
	do: func(ctx context.Context, l *Local, in *DueInput) (all List[report.DueGroup], err error) {
		f, err := in.filter(ctx, l)
		if err != nil {
			return all, err
		}
		field := report.Field(in.By)
		if err := field.Check(); err != nil {
			return all, &InError{"query", valid.Invalid("by", "%v", err)}
		}
		if in, _ := field.Path(); in != "" && l.blind(ctx) {
			return all, &ForbiddenError{Needs: guard.Operator}
		}
		return listed(l.Store.DueBy(ctx, field, f, cmp.Or(in.Limit, 100)))
	},
})

// DueInput says what is grouped, and by what.
type DueInput struct {
	AnalyticsFilter
	By    string `query:"by" required:"true" maxLength:"1000" doc:"queue, kind, priority, urn, source, tag, correlation, or a path into the JSON: args.customer, metadata.region.code"`
	Limit int    `query:"limit" minimum:"1" maximum:"10000" default:"100"`
}

// AnalyticsFilter chooses jobs for figures.
type AnalyticsFilter struct {
	Queue string `query:"queue" maxLength:"255"`
	Kind  string `query:"kind" maxLength:"255"`
	Tag   string `query:"tag" maxLength:"255"`
	At    When   `query:"at" doc:"The instant by which jobs are due or not, and at which the minute ends; now unless given"`
	Span  string `query:"span" maxLength:"50" doc:"How long the time is whose attempts are told of, in place of a minute: 5s"`
}

// AnalyticsOf is a filter as a request has it.
func AnalyticsOf(f report.AnalyticsFilter) AnalyticsFilter {
	return AnalyticsFilter{Queue: f.Queue, Kind: f.Kind, Tag: f.Tag, At: At(f.At), Span: durationText(f.Span)}
}

func (f AnalyticsFilter) filter(ctx context.Context, l *Local) (report.AnalyticsFilter, error) {
	g := report.AnalyticsFilter{Queue: f.Queue, Kind: f.Kind, Tag: f.Tag}
	err := checkNames("query", "queue", f.Queue, "kind", f.Kind, "tag", f.Tag)
	if err == nil {
		err = l.read(ctx, "query", moment{"at", f.At, &g.At})
	}
	if err == nil {
		g.Span, err = ReadDuration("span", f.Span)
		err = inError("query", err)
	}
	return g, err
}

// Stats tells how the attempts of each kind went.
var Stats = declare(&Op[StatsInput, List[report.KindStats]]{
	Decl: Decl{
		Name: "stats", Method: http.MethodGet, Path: "/stats", Tag: figures, Summary: "Tell how the attempts of each kind went",
		Doc: "All that ever began, also those of jobs that are gone. Whole hours of UTC are counted, or whole minutes when each is told; minutes are told of the last two days.",
	},
	do: func(ctx context.Context, l *Local, in *StatsInput) (all List[report.KindStats], err error) {
		f := report.StatsFilter{Kind: in.Kind, Queue: in.Queue, Settled: in.Settled, Distributed: in.Percentiles}
		f.Every = map[string]time.Duration{"hour": time.Hour, "minute": time.Minute}[in.Every]
		if err := l.read(ctx, "query", moment{"since", in.Since, &f.From}, moment{"until", in.Until, &f.To}); err != nil {
			return all, err
		}
		if !f.From.IsZero() && !f.To.IsZero() && f.To.Before(f.From) {
			return all, &InError{"query", valid.Invalid("until", "it is before since")}
		}
		stats, err := l.Store.Stats(ctx, f)
		if err != nil {
			return all, err
		}
		return listed(report.StatsByKind(stats), nil)
	},
})

// StatsInput chooses statistics.
type StatsInput struct {
	Kind    string `query:"kind" maxLength:"255"`
	Queue   string `query:"queue" maxLength:"255"`
	Since   When   `query:"since" doc:"Only what ended in the hour, or minute, of this instant or later"`
	Until   When   `query:"until" doc:"Only what ended up to the end of this instant's hour, or minute"`
	Every   string `query:"every" enum:"hour,minute" doc:"Tell each hour or minute by itself"`
	Settled bool   `query:"settled" doc:"Leave out what ended so lately that it is not summed up yet: the answer costs less, and is up to some seconds old"`

	Percentiles bool `query:"percentiles" doc:"Also tell percentiles of how long attempts took, in execution, and of how long they had been due before, in latency: estimates from histograms, off by a quarter at most"`
}

// StatsOf is a filter as a request has it, or what is wrong with it.
func StatsOf(f report.StatsFilter) (StatsInput, error) {
	every, ok := map[time.Duration]string{0: "", time.Hour: "hour", time.Minute: "minute"}[f.Every]
	in := StatsInput{Kind: f.Kind, Queue: f.Queue, Since: At(f.From), Until: At(f.To), Every: every, Settled: f.Settled, Percentiles: f.Distributed}
	if !ok {
		return in, f.Check()
	}
	return in, nil
}

// ScaleEngines says how many engines would keep up.
var ScaleEngines = declare(&Op[ScaleInput, report.Scaling]{
	Decl: Decl{
		Name: "scale", Method: http.MethodGet, Path: "/scale", Tag: figures, Summary: "Say how many engines would keep up with the work",
		Doc: "What arrives and what waits, times how long attempts take, by what fits into the target. It leaves out what more engines could not run: jobs of paused queues, beyond what limits let run, of kinds that no engine performs, and retries of a kind most of whose attempts fail; `why` says so. It comes from the store alone, so it is there before the first engine is, and costs little however much waits. All numbers are there, and 0 if there is nothing to do. Durations are nanoseconds, and rates of a second.",
	},
	do: func(ctx context.Context, l *Local, in *ScaleInput) (report.Scaling, error) {
		f := report.ScaleFilter{Queues: in.Queues, Slots: in.Slots, Min: in.Min, Max: in.Max}
		var err error
		if f.Target, err = ReadDuration("target", in.Target); err == nil {
			f.Startup, err = ReadDuration("startup", in.Startup)
		}
		if err != nil {
			return report.Scaling{}, inError("query", err)
		}
		for _, k := range l.Builtin {
			f.Kinds = append(f.Kinds, k.Name)
		}
		if err := f.Check(); err != nil {
			return report.Scaling{}, inError("query", err)
		}
		return report.Scale(ctx, inClear(l.Store), f)
	},
})

// ScaleInput says for what engines are counted.
type ScaleInput struct {
	Queues  []string `query:"queues" maxItems:"100" doc:"The queues that the engines work on; all unless given"`
	Target  string   `query:"target" maxLength:"50" doc:"How long a job may wait for a slot, and in what time a backlog is to be cleared, from a second to a day: 30s unless given"`
	Startup string   `query:"startup" maxLength:"50" doc:"How long it takes until a new engine works: what becomes due meanwhile counts; 30s unless given"`
	Slots   int      `query:"slots_per_engine" minimum:"1" maximum:"1000000" doc:"How many slots an engine has; as many as those that run have unless given"`
	Min     int      `query:"min" minimum:"0" maximum:"1000000" doc:"How many engines it says at least"`
	Max     int      `query:"max" minimum:"1" maximum:"1000000" doc:"How many engines it says at most"`
}

// Diagnose says what is wrong with a store.
var Diagnose = declare(&Op[DoctorInput, List[report.Finding]]{
	Decl: Decl{
		Name: "doctor", Method: http.MethodGet, Path: "/doctor", Tag: figures, Summary: "Say what is wrong and how to fix it",
		Doc: "It changes nothing, and takes some seconds at most, however many jobs there are. `deep` also checks an SQLite file page by page, which takes as long as the file is large, and a minute at most; that is for the role operator.", Within: changeTime,
	},
	do: func(ctx context.Context, l *Local, in *DoctorInput) (all List[report.Finding], err error) {
		if in.Deep && l.who(ctx).Role < guard.Operator {
			return all, &ForbiddenError{Needs: guard.Operator}
		}
		return listed(report.Diagnose(ctx, inClear(l.Store), report.Options{Deep: in.Deep, Bounded: l.Bounded}))
	},
})

// DoctorInput says how closely the doctor looks.
type DoctorInput struct {
	Deep bool `query:"deep" doc:"Also check an SQLite file page by page"`
}

// ReadClock tells the time by the clock that decides.
var ReadClock = declare(&Op[None, Clock]{
	Decl: Decl{
		Name: "clock", Method: http.MethodGet, Path: "/clock", Tag: figures, Summary: "Tell the time by the clock that decides",
		Doc: "The database's, where it has one, or else the server's. Whoever means a while ago counts from here.",
	},
	do: func(ctx context.Context, l *Local, _ *None) (Clock, error) {
		now, err := view.Now(ctx, l.Store)
		return Clock{now}, err
	},
})

// Clock is what the clock that decides shows.
type Clock struct {
	Now time.Time `json:"now"`
}

// Durations is how [report.Durations] are written.
type Durations struct {
	Count   int64         `json:"count"`
	Last    time.Duration `json:"last" doc:"0 where nobody knows which was the last"`
	Fastest time.Duration `json:"fastest"`
	Longest time.Duration `json:"longest"`
	Total   time.Duration `json:"total"`
	Mean    time.Duration `json:"mean"`
}
