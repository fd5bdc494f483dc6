package dashboard

import (
	"context"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// kindPage is how one kind did.
type kindPage struct {
	kindRow
	Known   sample.Seen[[]report.Stats]
	Figures sample.Seen[lately]
	History sample.Seen[history] `json:"-"` // its last minute is in the figures
	Failed  []stint.JobInfo      // the newest
	Crew    view.Crew            `json:"-"` // whose beats are no news
}

func (p kindPage) title() string { return "Kind " + p.Kind }

// Hour are the charts of the last hour.
func (p kindPage) Hour() []template.HTML { return p.History.Value.figures(time.Minute, time.Hour) }

// failedShown is how many jobs that failed the page of a kind shows.
const failedShown = 10

// kind shows one that was declared, or that attempts are known of.
func (b *Dashboard) kind(r *http.Request) (any, error) {
	ctx, name := r.Context(), r.PathValue("kind")
	p := kindPage{Known: b.figures.kinds.Get(ctx)}
	for _, k := range report.StatsByKind(p.Known.Value) {
		if k.Kind == name {
			p.KindStats = k
		}
	}
	declared, err := b.store.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(declared, func(d stint.KindInfo) bool { return d.Name == name }); i >= 0 {
		p.Declared = &declared[i]
	}
	if p.Declared == nil && p.Kind == "" {
		return nil, errNowhere
	}
	p.Kind = name
	look := b.figures.ofKind(name)
	together(
		func() { p.Figures = look.analytics.Get(ctx) },
		func() { p.History = look.history.Get(ctx) },
	)
	if p.Failed, err = b.store.Jobs(ctx, store.Filter{Kind: name, States: []stint.State{stint.Failed}, Limit: failedShown}); err != nil {
		return nil, err
	}
	p.Crew, err = view.CrewFor(ctx, b.store, p.Failed...)
	return p, err
}

// kindSamples are those of one kind.
type kindSamples struct {
	analytics *sample.Sample[lately]
	history   *sample.Sample[history]
}

// maxKindSamples is of how many kinds samples are kept: somebody looks at a few.
const maxKindSamples = 50

// byKind keeps the samples of kinds that somebody looked at.
type byKind struct {
	mu  sync.Mutex
	all map[string]kindSamples
}

// ofKind returns the samples of a kind.
func (f *figures) ofKind(name string) kindSamples {
	f.byKind.mu.Lock()
	defer f.byKind.mu.Unlock()
	if s, ok := f.byKind.all[name]; ok {
		return s
	}
	for other := range f.byKind.all {
		if len(f.byKind.all) < maxKindSamples {
			break
		}
		delete(f.byKind.all, other) // whichever: it is read again when a page needs it
	}
	s := kindSamples{
		sample.New(func(ctx context.Context) (lately, error) { return f.analyze(ctx, name) }),
		sample.New(func(ctx context.Context) (history, error) { return f.historyOf(ctx, name) }),
	}
	f.byKind.all[name] = s
	return s
}
