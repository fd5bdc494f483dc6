package dashboard

import (
	"context"
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// kindsPage lists the kinds.
type kindsPage struct {
	Rows  []kindRow
	Since time.Time // from when the figures count
	Known sample.Seen[[]report.Stats]
	Took  sample.Seen[kindsLately]
	Slow  []stint.JobInfo // the newest with a long attempt
	Crew  view.Crew       // that may perform those that have not ended
}

func (kindsPage) frozen() {}

// kindRow is a kind: what was declared of it, and how its attempts of the last day
// went, and those that ended lately.
type kindRow struct {
	report.KindStats
	Lately   report.AttemptFigures
	Declared *stint.KindInfo // nil if no engine declared it
}

// FailureRate is the percentage of attempts that failed or were lost.
func (k kindRow) FailureRate() float64 {
	if k.Attempts == 0 {
		return 0
	}
	return 100 * float64(k.Failed()+k.Outcomes[stint.OutcomeLost]) / float64(k.Attempts)
}

// Bad reports whether so many fail that the page points at it.
func (k kindRow) Bad() bool { return k.FailureRate() >= 5 }

// kinds shows how each kind did in the last day.
func (b *Dashboard) kinds(r *http.Request) (any, error) {
	ctx := r.Context()
	var p kindsPage
	together(
		func() { p.Known = b.figures.kinds.Get(ctx) },
		func() { p.Took = b.figures.byKinds.Get(ctx) },
	)
	now, err := view.Now(ctx, b.store)
	if err != nil {
		return nil, err
	}
	p.Since = now.Add(-day).Truncate(time.Hour)
	if err := p.fill(ctx, b.store); err != nil {
		return nil, err
	}
	for _, k := range p.Took.Value.Kinds {
		p.row(k.Kind).Lately = k.AttemptFigures
	}
	if p.Slow, err = b.store.Jobs(ctx, store.Filter{Longer: store.LongAttempt, Limit: 10}); err != nil {
		return nil, err
	}
	p.Crew, err = view.CrewFor(ctx, b.store, p.Slow...)
	return p, err
}

// fill adds the rows of the kinds that are known or declared.
func (p *kindsPage) fill(ctx context.Context, st Store) error {
	declared, err := st.Kinds(ctx)
	for _, k := range report.StatsByKind(p.Known.Value) {
		p.Rows = append(p.Rows, kindRow{KindStats: k})
	}
	for i := range declared {
		p.row(declared[i].Name).Declared = &declared[i]
	}
	return err
}

// row returns that of a kind, which it adds if there is none.
func (p *kindsPage) row(kind string) *kindRow {
	i := slices.IndexFunc(p.Rows, func(row kindRow) bool { return row.Kind == kind })
	if i < 0 {
		i = len(p.Rows)
		p.Rows = append(p.Rows, kindRow{KindStats: report.KindStats{Kind: kind}})
	}
	return &p.Rows[i]
}

// kindPage shows how one kind did.
type kindPage struct {
	kindRow
	Known   sample.Seen[[]report.Stats]
	Active  sample.Seen[lately]
	Waiting sample.Seen[report.Analytics]
	History sample.Seen[history] `json:"-"` // its last minute is in the figures
	Failed  []stint.JobInfo      // the newest
	Crew    view.Crew            `json:"-"` // heartbeats are no change of the page
}

func (p kindPage) title() string { return "Kind " + p.Kind }

// Hour are the charts of the last hour.
func (p kindPage) Hour() []template.HTML { return p.History.Value.figures(time.Minute, time.Hour) }

// kind shows one that was declared, or that attempts are known of.
func (b *Dashboard) kind(r *http.Request) (any, error) {
	ctx, name := r.Context(), r.PathValue("kind")
	all := kindsPage{Known: b.figures.kinds.Get(ctx)}
	err := all.fill(ctx, b.store)
	if err != nil {
		return nil, err
	}
	known := slices.ContainsFunc(all.Rows, func(row kindRow) bool { return row.Kind == name })
	if !known && !all.Known.At.IsZero() {
		return nil, errNowhere
	}
	p := kindPage{kindRow: *all.row(name), Known: all.Known}
	look := b.figures.ofKind(name)
	together(
		func() { p.Active = look.activity.Get(ctx) },
		func() { p.Waiting = look.waiting.Get(ctx) },
		func() { p.History = look.history.Get(ctx) },
	)
	if p.Failed, err = b.store.Jobs(ctx, store.Filter{Kind: name, States: []stint.State{stint.Failed}, Limit: 10}); err != nil {
		return nil, err
	}
	p.Crew, err = view.CrewFor(ctx, b.store, p.Failed...)
	return p, err
}
