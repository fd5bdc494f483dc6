package dashboard

import (
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/stint-go/stint/dashboard/chart"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// overviewPage shows the state of everything.
type overviewPage struct {
	Active   sample.Seen[lately]
	Waiting  sample.Seen[report.Analytics]
	Backlog  sample.Seen[[]report.DueGroup]
	Oldest   sample.Seen[report.Facts] `json:"-"` // which takes a moment
	Findings sample.Seen[[]report.Finding]
	History  sample.Seen[history] `json:"-"` // its last minute is in the figures
	Zoom     zoom                 `json:"-"`
	jobs     linkTo               // those of a time
	Engines  []engineRow
	seldom
}

// engineRow is an engine in a list.
type engineRow struct {
	store.EngineInfo
	Condition view.Condition
}

// overview looks at everything.
func (b *Dashboard) overview(r *http.Request) (any, error) {
	ctx := r.Context()
	if zoomed(r) {
		return b.zoom(r, part{}, "Overview")
	}
	p := overviewPage{jobs: b.jobsOf(part{}), Zoom: zoom{Path: b.config.Path + part{}.path()}}
	together(
		func() { p.Active = b.figures.activity.Get(ctx) },
		func() { p.Waiting = b.figures.waiting.Get(ctx) },
		func() { p.Backlog = b.figures.queued.Get(ctx) },
		func() { p.Oldest, p.Findings = b.figures.doctor(ctx) },
		func() { p.History = b.figures.history.Get(ctx) },
	)
	var err error
	if p.Engines, err = b.roster(r); err != nil {
		return nil, err
	}
	p.seldom, err = b.figures.seldomOf(ctx)
	return p, err
}

// roster lists the engines, the oldest first.
func (b *Dashboard) roster(r *http.Request) ([]engineRow, error) {
	now, err := view.Now(r.Context(), b.store)
	if err != nil {
		return nil, err
	}
	all, err := b.store.Engines(r.Context())
	if err != nil {
		return nil, err
	}
	rows := make([]engineRow, len(all))
	for i, e := range all {
		rows[i] = engineRow{e, view.ConditionOf(e, now)}
	}
	return rows, nil
}

// AskedInWords says how many questions are open.
func (p overviewPage) AskedInWords() string {
	if p.Asked >= mostCounted {
		return words.Counted(p.Asked, "question") + " or more wait for an answer"
	} else if p.Asked == 1 {
		return "1 question waits for an answer"
	}
	return words.Counted(p.Asked, "question") + " wait for an answer"
}

// LastHour are the charts of the last hour.
func (p overviewPage) LastHour() []template.HTML { return p.History.Value.figures(p.jobs, p.Zoom.Path) }

// Attention are the findings that are more than notes.
func (p overviewPage) Attention() []report.Finding {
	return slices.DeleteFunc(slices.Clone(p.Findings.Value), func(f report.Finding) bool { return f.Severity == report.SeverityNote })
}

// Ranking draws the longest backlogs; nothing where there is little to compare.
func (p overviewPage) Ranking() template.HTML {
	if len(p.Backlog.Value) < 2 {
		return ""
	}
	c := chart.Ranking{Title: "Jobs that are due and not claimed, by queue", Unit: chart.Count}
	for _, g := range p.Backlog.Value[:min(10, len(p.Backlog.Value))] {
		if g.Value != nil {
			c.Rows = append(c.Rows, chart.Row{Name: words.Visible(*g.Value), Class: chart.Own, Value: float64(g.Jobs)})
		}
	}
	return template.HTML(c.SVG()) // what it says is escaped by it
}

// Since is when the oldest job of a queue became ready that waits for an engine; zero if
// that is not known.
func (p overviewPage) Since(queue string) time.Time { return oldest(p.Oldest.Value, queue) }

func oldest(facts report.Facts, queue string) (at time.Time) {
	for _, b := range facts.Backlogs {
		if b.Queue == queue && (at.IsZero() || b.Oldest.Before(at)) {
			at = b.Oldest
		}
	}
	return at
}
