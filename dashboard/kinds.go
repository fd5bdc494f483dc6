package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// kindsPage lists the kinds.
type kindsPage struct {
	Rows   []kindRow
	Sort   string    // by what they are sorted: see kindOrders
	Since  time.Time // from when the failures count
	Known  sample.Seen[[]report.Stats]
	Rates  sample.Seen[ended]  `json:"-"` // of the last hour; it is in the rows
	Trends sample.Seen[trends] `json:"-"` // likewise
	Slow   []stint.JobInfo     // the newest with a long attempt
	Crew   view.Crew           // that may perform those that have not ended
}

func (kindsPage) frozen() {}

// kindRow is a kind: what was declared of it, how its attempts of the last day went, and how
// long those of the last hour took, and of the same hour before.
type kindRow struct {
	report.KindStats
	Hour     []float64 // attempts that ended in each minute of the last hour
	Ended    int64     // in that hour
	Trend    trend
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

// kindOrders are the columns that the kinds can be sorted by: the greatest first, then by
// name.
var kindOrders = []struct {
	name, Title string
	by          func(k kindRow) float64
}{
	{"ended", "Attempts, last hour", func(k kindRow) float64 { return float64(k.Ended) }},
	{"failed", "Failed, last day", kindRow.FailureRate},
	{"p50", "p50, last hour", func(k kindRow) float64 { return float64(k.Trend.Now.P50) }},
	{"p95", "p95", func(k kindRow) float64 { return float64(k.Trend.Now.P95) }},
	{"p99", "p99", func(k kindRow) float64 { return float64(k.Trend.Now.P99) }},
	{"slower", "p95, a day ago", func(k kindRow) float64 { return k.Trend.Slower(k.Trend.Yesterday) }},
	{"slower-week", "p95, a week ago", func(k kindRow) float64 { return k.Trend.Slower(k.Trend.LastWeek) }},
}

// sortKinds sorts by a column; by none, what needs attention comes first.
func sortKinds(rows []kindRow, column string) {
	by := func(k kindRow) float64 {
		switch slower := k.Trend.Slower(k.Trend.Yesterday); {
		case k.Bad() || slower >= muchSlower:
			return max(slower, k.FailureRate())
		default:
			return 0
		}
	}
	for _, o := range kindOrders {
		if o.name == column {
			by = o.by
		}
	}
	slices.SortFunc(rows, func(a, b kindRow) int {
		return cmp.Or(cmp.Compare(by(b), by(a)), cmp.Compare(a.Kind, b.Kind))
	})
}

// kindColumn is the head of one that the page can be sorted by.
type kindColumn struct {
	Name, Title string
	Sorted      bool
}

// Columns are the heads of those that the page can be sorted by.
func (p kindsPage) Columns() (all []kindColumn) {
	for _, o := range kindOrders {
		all = append(all, kindColumn{o.name, o.Title, o.name == p.Sort})
	}
	return all
}

// kinds shows how each kind does.
func (b *Dashboard) kinds(r *http.Request) (any, error) {
	ctx := r.Context()
	p := kindsPage{Sort: r.URL.Query().Get("sort")}
	if p.Sort != "" && !slices.ContainsFunc(p.Columns(), func(c kindColumn) bool { return c.Sorted }) {
		return nil, valid.Invalid("sort", "there is no column %q", p.Sort)
	}
	together(
		func() { p.Known = b.figures.kinds.Get(ctx) },
		func() { p.Rates = b.figures.rates.Get(ctx) },
		func() { p.Trends = b.figures.trends.Get(ctx) },
	)
	now, err := view.Now(ctx, b.store)
	if err != nil {
		return nil, err
	}
	p.Since = now.Add(-day).Truncate(time.Hour)
	if err := p.fill(ctx, b.store); err != nil {
		return nil, err
	}
	for _, s := range p.Rates.Value.Stats {
		row := p.row(s.Kind)
		row.Hour = p.Rates.Value.addTo(row.Hour, s)
		row.Ended += s.Attempts
	}
	for kind, t := range p.Trends.Value {
		p.row(kind).Trend = t
	}
	sortKinds(p.Rows, p.Sort)
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
	Known sample.Seen[[]report.Stats]
	partFigures
	Trends sample.Seen[trends] `json:"-"` // its own is in the row
	Failed []stint.JobInfo     // the newest
	Crew   view.Crew           `json:"-"` // heartbeats are no change of the page
}

func (p kindPage) title() string { return "Kind " + p.Kind }

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
	if zoomed(r) {
		return b.zoom(r, part{kind: name}, "Kind "+name)
	}
	p := kindPage{kindRow: *all.row(name), Known: all.Known}
	together(
		func() { p.Trends = b.figures.trends.Get(ctx) },
		func() { p.partFigures = b.lookAt(ctx, part{kind: name}) },
	)
	p.Trend = p.Trends.Value[name]
	if p.Failed, err = b.store.Jobs(ctx, store.Filter{Kind: name, States: []stint.State{stint.Failed}, Limit: 10}); err != nil {
		return nil, err
	}
	p.Crew, err = view.CrewFor(ctx, b.store, p.Failed...)
	return p, err
}
