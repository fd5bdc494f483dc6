package main

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/engine"
)

// people is what people do with jobs, queues, schedules, engines and leases: with a
// store at hand ([local]), or over a server (package admin/remote). Commands do not
// know which. What is done by whom a server knows better, and does not take from here.
type people interface {
	stint.Enqueuer
	stint.Inspector
	stint.Operator
	stint.Pauser
	stint.ScheduleKeeper
	stint.Analyst
	stint.Clock

	// Parts of roles that are otherwise for engines.
	Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.Cancellation, error)
	Engines(ctx context.Context) ([]stint.EngineInfo, error)
	Drain(ctx context.Context, token stint.Token) error
	EngineMetrics(ctx context.Context) ([]stint.Metrics, error)
	Leases(ctx context.Context) ([]stint.Lease, error)
	Depose(ctx context.Context, name, by, why string) (stint.Deposition, bool, error)

	// What takes several roles.
	ShowJob(ctx context.Context, id stint.ID) (view.Job, error)
	ShowEngine(ctx context.Context, token stint.Token) (view.Engine, error)
	ShowSchedule(ctx context.Context, name string) (view.Schedule, error)
	Declare(ctx context.Context, by string, s stint.Schedule) error
	Bury(ctx context.Context, token stint.Token, why string) (int, error)
	KindStats(ctx context.Context, f stint.StatsFilter) ([]stint.KindStats, error)
	Diagnose(ctx context.Context, deep bool) ([]stint.Finding, error)
	Changes(ctx context.Context, f stint.ChangeFilter) ([]stint.Change, error)

	// The same as with jobs that are named, with those that a filter chooses: they
	// yield what came of some at a time.
	CancelChosen(ctx context.Context, f stint.Filter, why string) iter.Seq2[map[stint.ID]stint.Cancellation, error]
	RetryChosen(ctx context.Context, f stint.Filter, again stint.Again) iter.Seq2[map[stint.ID]stint.Retried, error]
	DeleteChosen(ctx context.Context, f stint.Filter) iter.Seq2[map[stint.ID]stint.Deletion, error]
}

// local is what people do with a store at hand.
type local struct{ roles }

func (l local) Now(ctx context.Context) (time.Time, error) { return view.Now(ctx, l.roles) }

func (l local) ShowJob(ctx context.Context, id stint.ID) (view.Job, error) {
	return view.JobOf(ctx, l.roles, id)
}

func (l local) ShowEngine(ctx context.Context, token stint.Token) (view.Engine, error) {
	return view.EngineOf(ctx, l.roles, token)
}

func (l local) ShowSchedule(ctx context.Context, name string) (view.Schedule, error) {
	return view.ScheduleOf(ctx, l.roles, name)
}

func (l local) Declare(ctx context.Context, by string, s stint.Schedule) error {
	return stint.NewClient(l.roles).Schedule(ctx, by, s)
}

func (l local) ResumeSchedule(ctx context.Context, name string) (bool, error) {
	return view.ResumeSchedule(ctx, l.roles, name)
}

func (l local) Bury(ctx context.Context, token stint.Token, why string) (int, error) {
	return engine.Bury(ctx, l.roles, token, strings.TrimSuffix("buried by hand: "+why, ": "))
}

func (l local) KindStats(ctx context.Context, f stint.StatsFilter) ([]stint.KindStats, error) {
	all, err := l.Stats(ctx, f)
	return stint.StatsByKind(all), err
}

func (l local) Diagnose(ctx context.Context, deep bool) ([]stint.Finding, error) {
	return stint.Diagnose(ctx, l.roles, stint.Examination{Deep: deep, Bounded: boundedKinds()})
}

func (l local) CancelChosen(ctx context.Context, f stint.Filter, why string) iter.Seq2[map[stint.ID]stint.Cancellation, error] {
	return toChosen(ctx, l, f, func(ids []stint.ID) (map[stint.ID]stint.Cancellation, error) { return l.Cancel(ctx, ids, why) })
}

func (l local) RetryChosen(ctx context.Context, f stint.Filter, again stint.Again) iter.Seq2[map[stint.ID]stint.Retried, error] {
	again.Once = true
	return toChosen(ctx, l, f, func(ids []stint.ID) (map[stint.ID]stint.Retried, error) { return l.Retry(ctx, ids, again) })
}

func (l local) DeleteChosen(ctx context.Context, f stint.Filter) iter.Seq2[map[stint.ID]stint.Deletion, error] {
	return toChosen(ctx, l, f, func(ids []stint.ID) (map[stint.ID]stint.Deletion, error) { return l.Delete(ctx, ids) })
}

// bulkSize is how many jobs are changed at a time: enough to be quick, and few enough
// that nobody waits long for the transaction.
const bulkSize = 500

// toChosen does something to the jobs that a filter chooses.
func toChosen[A any](ctx context.Context, l local, f stint.Filter, do func(ids []stint.ID) (map[stint.ID]A, error)) iter.Seq2[map[stint.ID]A, error] {
	return func(yield func(map[stint.ID]A, error) bool) {
		for ids, err := range stint.Selected(ctx, l, f, bulkSize) {
			var got map[stint.ID]A
			if err == nil {
				got, err = do(ids)
			}
			if !yield(got, err) || err != nil {
				return
			}
		}
	}
}
