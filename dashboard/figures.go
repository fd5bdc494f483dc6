package dashboard

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/report"
)

// figures are the samples that pages share.
type figures struct {
	store     Store
	readable  int // attempts that are read for what is not in the sums yet
	analytics *sample.Sample[lately]
	queued    *sample.Sample[[]report.DueGroup]
	health    *sample.Sample[health]
	rates     *sample.Sample[rates]          // of the last hour
	kinds     *sample.Sample[[]report.Stats] // of the last day
	byKinds   *sample.Sample[kindsLately]
	history   *sample.Sample[history]
	errors    *sample.Sample[report.ErrorReport]
	byKind    byKind
}

// What ended last is read only as far as it is little; else the figures are those of
// the sums, which lag behind by some minutes, and of a shorter time.
const (
	readable  = 20_000
	sumsBy    = 4 * time.Minute // after which what ended is in the sums
	shortSpan = 2 * time.Second
)

// much reports whether more ended of late than is read for a figure.
func (f *figures) much(ctx context.Context) (bool, error) {
	n, err := f.store.Unsummed(ctx, f.readable)
	return n == f.readable, err
}

// analyze tells how the work goes, of one kind or of all.
func (f *figures) analyze(ctx context.Context, kind string) (look lately, err error) {
	if look.lookedAt, err = f.lookedAt(ctx); err != nil {
		return look, err
	}
	look.Analytics, err = f.store.Analyze(ctx, report.AnalyticsFilter{Kind: kind, Span: look.Span})
	return look, err
}

// analyzeKinds tells how the attempts of each kind went.
func (f *figures) analyzeKinds(ctx context.Context) (look kindsLately, err error) {
	if look.lookedAt, err = f.lookedAt(ctx); err != nil {
		return look, err
	}
	look.Kinds, err = f.store.AnalyzeKinds(ctx, report.AnalyticsFilter{Span: look.Span})
	return look, err
}

// lookedAt is the time of which attempts are looked at one by one.
func (f *figures) lookedAt(ctx context.Context) (lookedAt, error) {
	much, err := f.much(ctx)
	if much {
		return lookedAt{shortSpan}, err
	}
	return lookedAt{report.MaxSpan}, err
}

// lately is how the work goes, and how much time that is about.
type lately struct {
	report.Analytics
	lookedAt
}

// kindsLately is how the attempts of each kind went, and how much time that is
// about.
type kindsLately struct {
	Kinds []report.KindAnalytics
	lookedAt
}

// lookedAt is how much time some figures are about.
type lookedAt struct{ Span time.Duration }

// Short reports whether it is less than a minute.
func (l lookedAt) Short() bool { return l.Span < report.MaxSpan }

// InLast says it in words, after "in the last".
func (l lookedAt) InLast() string {
	if l.Short() {
		return words.Rough(l.Span)
	}
	return "minute"
}

// stats tells how the attempts of a time up to now went; or, where much ended of
// late, of as long a time that is in the sums.
func (f *figures) stats(ctx context.Context, filter report.StatsFilter, span time.Duration) (list []report.Stats, end until, err error) {
	if end.at, err = view.Now(ctx, f.store); err != nil {
		return nil, end, err
	}
	if end.behind, err = f.much(ctx); err != nil {
		return nil, end, err
	}
	if filter.Settled = end.behind; end.behind {
		end.at = end.at.Add(-sumsBy)
	}
	filter.From = end.at.Add(-span)
	list, err = f.store.Stats(ctx, filter)
	return list, end, err
}

// until is the end of a time, which may be some minutes ago.
type until struct {
	at     time.Time
	behind bool
}

// maxQueues is how many queues pages show.
const maxQueues = 500

func newFigures(store Store, bounded []string) *figures {
	f := &figures{store: store, readable: readable, byKind: byKind{all: map[string]kindSamples{}}}
	f.analytics = sample.New(func(ctx context.Context) (lately, error) { return f.analyze(ctx, "") })
	f.byKinds = sample.New(f.analyzeKinds)
	f.queued = sample.New(func(ctx context.Context) ([]report.DueGroup, error) {
		return store.DueBy(ctx, report.FieldQueue, report.AnalyticsFilter{}, maxQueues)
	})
	f.health = sample.New(func(ctx context.Context) (h health, err error) {
		h.findings, err = report.Diagnose(ctx, examined{store, &h}, report.Options{Bounded: bounded})
		return h, err
	})
	f.rates = sample.New(func(ctx context.Context) (r rates, err error) {
		r.minutes, r.until, err = f.stats(ctx, report.StatsFilter{Every: time.Minute}, time.Hour)
		return r, err
	})
	f.kinds = sample.New(func(ctx context.Context) ([]report.Stats, error) {
		list, _, err := f.stats(ctx, report.StatsFilter{}, day)
		return list, err
	})
	f.errors = sample.New(func(ctx context.Context) (report.ErrorReport, error) {
		return store.Errors(ctx, report.ErrorFilter{})
	})
	f.history = sample.New(func(ctx context.Context) (history, error) { return f.historyOf(ctx, "") })
	return f
}

// health is how the store fares: what it tells of itself, and what is wrong with
// that.
type health struct {
	signs    report.Facts
	unknown  error // why there are none
	findings []report.Finding
}

// examined is a store whose signs are kept when it is asked for them.
type examined struct {
	Store
	*health
}

// Examine implements [report.Checker].
func (e examined) Examine(ctx context.Context, what report.Options) (report.Facts, error) {
	if x, ok := e.Store.(report.Checker); ok {
		e.signs, e.unknown = x.Examine(ctx, what)
	}
	return e.signs, e.unknown
}

// doctor tells how the store fared last.
func (f *figures) doctor(ctx context.Context) (sample.Seen[report.Facts], sample.Seen[[]report.Finding]) {
	h := f.health.Get(ctx)
	return sample.Seen[report.Facts]{Value: h.Value.signs, At: h.At, Err: cmp.Or(h.Err, h.Value.unknown)},
		sample.Seen[[]report.Finding]{Value: h.Value.findings, At: h.At, Err: h.Err}
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
