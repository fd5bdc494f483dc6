package dashboard

import (
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
	Since time.Time // what the figures are about
	Known sample.Seen[[]report.Stats]
	Took  sample.Seen[kindsLately]
	Slow  []stint.JobInfo // the newest with a long attempt
	Crew  view.Crew       // who may perform those that have not ended
}

func (kindsPage) frozen() {}

// kindRow is a kind: what was declared of it, and how its attempts of the last day
// went, and those that ended lately.
type kindRow struct {
	report.KindStats
	Lately   report.AttemptFigures
	Declared *stint.KindInfo // nil for one that nobody declared
}

// FailureRate is how many of a hundred attempts failed or were lost.
func (k kindRow) FailureRate() float64 {
	if k.Attempts == 0 {
		return 0
	}
	return 100 * float64(k.Failed()+k.Outcomes[stint.OutcomeLost]) / float64(k.Attempts)
}

// Bad reports whether so many fail that somebody should look.
func (k kindRow) Bad() bool { return k.FailureRate() >= 5 }

// kinds shows how each kind did in the last day.
func (b *Dashboard) kinds(r *http.Request) (any, error) {
	ctx := r.Context()
	p := kindsPage{Since: time.Now().Add(-day).Truncate(time.Hour)}
	together(
		func() { p.Known = b.figures.kinds.Get(ctx) },
		func() { p.Took = b.figures.byKinds.Get(ctx) },
	)
	declared, err := b.store.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range report.StatsByKind(p.Known.Value) {
		p.Rows = append(p.Rows, kindRow{KindStats: k})
	}
	for i := range declared {
		p.row(declared[i].Name).Declared = &declared[i]
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

// row is that of a kind.
func (p *kindsPage) row(kind string) *kindRow {
	i := slices.IndexFunc(p.Rows, func(row kindRow) bool { return row.Kind == kind })
	if i < 0 {
		i = len(p.Rows)
		p.Rows = append(p.Rows, kindRow{KindStats: report.KindStats{Kind: kind}})
	}
	return &p.Rows[i]
}
