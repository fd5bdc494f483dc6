package admin

import (
	"context"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/internal/sample"
)

// figures are the samples that pages share.
type figures struct {
	store     Store
	analytics *sample.Sample[stint.Analytics]
	queued    *sample.Sample[[]stint.DueGroup]
	signs     *sample.Sample[stint.Signs]
	findings  *sample.Sample[[]stint.Finding]
	rates     *sample.Sample[[]stint.Stats] // of the last few minutes
	kinds     *sample.Sample[[]stint.Stats] // of the last day
	history   *sample.Sample[history]
	errors    *sample.Sample[stint.ErrorReport]
	byKind    byKind
}

// maxQueues is how many queues pages show.
const maxQueues = 500

func newFigures(store Store, bounded []string) *figures {
	return &figures{
		store:  store,
		byKind: byKind{all: map[string]kindSamples{}},
		analytics: sample.New(func(ctx context.Context) (stint.Analytics, error) {
			return store.Analyze(ctx, stint.AnalyticsFilter{})
		}),
		queued: sample.New(func(ctx context.Context) ([]stint.DueGroup, error) {
			return store.DueBy(ctx, stint.FieldQueue, stint.AnalyticsFilter{}, maxQueues)
		}),
		signs: sample.New(func(ctx context.Context) (stint.Signs, error) {
			x, ok := store.(stint.Examiner)
			if !ok {
				return stint.Signs{}, nil
			}
			return x.Examine(ctx, stint.Examination{})
		}),
		findings: sample.New(func(ctx context.Context) ([]stint.Finding, error) {
			return stint.Diagnose(ctx, store, stint.Examination{Bounded: bounded})
		}),
		rates: sample.New(func(ctx context.Context) ([]stint.Stats, error) {
			now, err := view.Now(ctx, store)
			if err != nil {
				return nil, err
			}
			return store.Stats(ctx, stint.StatsFilter{From: now.Add(-rateSpan), Every: time.Minute})
		}),
		kinds: sample.New(func(ctx context.Context) ([]stint.Stats, error) {
			now, err := view.Now(ctx, store)
			if err != nil {
				return nil, err
			}
			return store.Stats(ctx, stint.StatsFilter{From: now.Add(-day)})
		}),
		errors: sample.New(func(ctx context.Context) (stint.ErrorReport, error) {
			return store.Errors(ctx, stint.ErrorFilter{})
		}),
		history: sample.New(func(ctx context.Context) (history, error) {
			now, err := view.Now(ctx, store)
			if err != nil {
				return history{}, err
			}
			return historyOf(ctx, store, now, "")
		}),
	}
}

// together takes several looks at once: a page waits for the slowest of them, and
// not for all in turn.
func together(looks ...func()) {
	var all sync.WaitGroup
	for _, look := range looks {
		all.Go(look)
	}
	all.Wait()
}
