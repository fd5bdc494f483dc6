package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/chart"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/report"
)

// figures are the samples that pages share.
type figures struct {
	store    Store
	readable int // attempts that are read for what is not in the sums yet
	activity *sample.Sample[lately]
	waiting  *sample.Sample[report.Analytics]
	queued   *sample.Sample[[]report.DueGroup]
	health   *sample.Sample[health]
	rates    *sample.Sample[ended]          // of the last hour, by the minute
	kinds    *sample.Sample[[]report.Stats] // of the last day
	trends   *sample.Sample[trends]
	history  *sample.Sample[history]
	errors   *sample.Sample[report.ErrorReport]

	mu     sync.Mutex // guards byPart
	byPart map[part]partSamples
}

// part is a part of the work: a kind, or a queue. The zero value is all of it.
type part struct{ kind, queue string }

// partSamples are those of a part.
type partSamples struct {
	activity *sample.Sample[lately]
	waiting  *sample.Sample[report.Analytics]
	history  *sample.Sample[history]
}

// The attempts that ended last are read only if they are few. Otherwise figures are made
// of the sums, which are some minutes late, and of a shorter time.
const (
	shortSpan = 2 * time.Second
	day       = 24 * time.Hour

	maxQueues      = 500 // that pages show
	maxPartSamples = 50  // parts whose samples are kept
)

func newFigures(store Store, bounded []string) *figures {
	f := &figures{store: store, readable: report.FewUnsummed, byPart: map[part]partSamples{}}
	all := f.samplesOf(part{})
	f.activity, f.waiting, f.history = all.activity, all.waiting, all.history
	f.trends = sample.New(f.trendsOf)
	f.queued = sample.New(func(ctx context.Context) ([]report.DueGroup, error) {
		return store.DueBy(ctx, report.FieldQueue, report.AnalyticsFilter{}, maxQueues)
	})
	f.health = sample.New(func(ctx context.Context) (h health, err error) {
		h.findings, err = report.Diagnose(ctx, examined{store, &h}, report.Options{Bounded: bounded})
		return h, err
	})
	f.rates = sample.New(func(ctx context.Context) (ended, error) {
		return f.stats(ctx, report.StatsFilter{Every: time.Minute}, time.Hour)
	})
	f.kinds = sample.New(func(ctx context.Context) ([]report.Stats, error) {
		all, err := f.stats(ctx, report.StatsFilter{}, day)
		return all.Stats, err
	})
	f.errors = sample.New(func(ctx context.Context) (report.ErrorReport, error) {
		return store.Errors(ctx, report.ErrorFilter{State: report.ErrorsOpen})
	})
	return f
}

func (f *figures) samplesOf(p part) partSamples {
	return partSamples{
		sample.NewFresh(func(ctx context.Context) (lately, error) { return f.lately(ctx, p) }),
		sample.New(func(ctx context.Context) (report.Analytics, error) {
			return f.store.Analyze(ctx, report.AnalyticsFilter{Kind: p.kind, Queue: p.queue, Span: shortSpan})
		}),
		sample.New(func(ctx context.Context) (history, error) { return f.historyOf(ctx, p) }),
	}
}

// of returns the samples of a part.
func (f *figures) of(p part) partSamples {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok := f.byPart[p]; ok {
		return s
	}
	for other := range f.byPart {
		if len(f.byPart) < maxPartSamples {
			break
		}
		delete(f.byPart, other) // any one: it is read again when a page needs it
	}
	f.byPart[p] = f.samplesOf(p)
	return f.byPart[p]
}

// partFigures are what pages of a part show of it.
type partFigures struct {
	Active  sample.Seen[lately]
	Waiting sample.Seen[report.Analytics]
	History sample.Seen[history] `json:"-"` // its last minute is in the figures
	jobs    linkTo               // those of a time
}

// linkTo is the address of what a time is of.
type linkTo func(from, to time.Time) string

// jobsOf leads to the jobs of a part whose last attempt ended in a time.
func (b *Dashboard) jobsOf(p part) linkTo {
	return func(from, to time.Time) string {
		query, _ := query("kind", p.kind, "queue", p.queue, "finished_after", from.Format(time.RFC3339), "finished_before", to.Format(time.RFC3339)) // they are pairs
		return b.config.Path + "/jobs?" + string(query)
	}
}

// look takes what is shown of a part.
func (b *Dashboard) lookAt(ctx context.Context, of part) partFigures {
	s, p := b.figures.of(of), partFigures{jobs: b.jobsOf(of)}
	together(
		func() { p.Active = s.activity.Get(ctx) },
		func() { p.Waiting = s.waiting.Get(ctx) },
		func() { p.History = s.history.Get(ctx) },
	)
	return p
}

// LastHour and LastDay are the charts of the last hour and day.
func (p partFigures) LastHour() []template.HTML {
	return p.History.Value.figures(time.Minute, time.Hour, p.jobs)
}

func (p partFigures) LastDay() []template.HTML {
	return p.History.Value.figures(10*time.Minute, day, p.jobs)
}

// much reports whether more ended lately than is read for a figure.
func (f *figures) much(ctx context.Context) (bool, error) {
	n, err := f.store.Unsummed(ctx, f.readable)
	return n == f.readable, err
}

// lookedAt is the time whose attempts are read one by one.
type lookedAt struct{ Span time.Duration }

func (f *figures) lookedAt(ctx context.Context) (lookedAt, error) {
	much, err := f.much(ctx)
	if much {
		return lookedAt{shortSpan}, err
	}
	return lookedAt{report.MaxSpan}, err
}

// Short reports whether it is less than a minute.
func (l lookedAt) Short() bool { return l.Span < report.MaxSpan }

// InLast says it in words, after "in the last". Before the first look it is the usual time.
func (l lookedAt) InLast() string {
	if l.Span > 0 && l.Short() {
		return words.Rough(l.Span)
	}
	return "minute"
}

// lately says what runs and how attempts went.
type lately struct {
	report.Activity
	lookedAt
}

// lately finds it out of a part.
func (f *figures) lately(ctx context.Context, p part) (look lately, err error) {
	if look.lookedAt, err = f.lookedAt(ctx); err == nil {
		look.Activity, err = f.store.Activity(ctx, report.AnalyticsFilter{Kind: p.kind, Queue: p.queue, Span: look.Span})
	}
	return look, err
}

// ended says how the attempts went that ended before an instant.
type ended struct {
	Stats  []report.Stats
	End    time.Time
	Behind bool // so much ended that the last minutes are missing
}

// hour is how many minutes it has.
const hour = int(time.Hour / time.Minute)

// back is how many minutes before the end one was that began at an instant, and whether it is
// among those of the last hour: a minute that is there in part is not.
func (e ended) back(start time.Time) (minutes int, ok bool) {
	minutes = int(e.End.Sub(start) / time.Minute)
	return minutes, minutes >= 0 && minutes < hour // or the clocks differ by that much
}

// addTo adds the attempts of a minute to those of the last hour, the oldest minute first.
func (e ended) addTo(minutes []float64, s report.Stats) []float64 {
	if minutes == nil {
		minutes = make([]float64, hour)
	}
	if back, ok := e.back(s.Start); ok {
		minutes[hour-1-back] += float64(s.Attempts)
	}
	return minutes
}

// sparkline draws them.
func sparkline(minutes []float64) template.HTML {
	return template.HTML(chart.Sparkline{Title: "Attempts that ended, per minute of the last hour", Unit: chart.Count, Class: chart.Own, Values: minutes}.SVG()) // what it says is escaped by it
}

// stats finds out how the attempts of a time up to now went; or, where much ended lately,
// of an equally long time that is in the sums.
func (f *figures) stats(ctx context.Context, filter report.StatsFilter, span time.Duration) (e ended, err error) {
	if e.End, err = view.Now(ctx, f.store); err != nil {
		return e, err
	}
	if e.Behind, err = f.much(ctx); err != nil {
		return e, err
	}
	if filter.Settled = e.Behind; e.Behind {
		e.End = e.End.Add(-report.SummedBy)
	}
	filter.From = e.End.Add(-span)
	e.Stats, err = f.store.Stats(ctx, filter)
	return e, err
}

// history has the sums of the last day, by the minute.
type history struct {
	From    time.Time
	Minutes []minute
	Behind  bool // so much ended that the last minutes are missing

	Distributed bool // the minutes have histograms
}

// minute has the sums of the attempts that ended in one.
type minute struct {
	Ended        [4]int64      // by outcome, as in outcomeSeries
	Ran          int64         // how many have a duration
	Took, Waited time.Duration // of those, together

	TookBy, WaitedBy report.Histogram // the same, but where it is of all of the work
}

// outcomeSeries are the outcomes that charts tell apart. The last one stands for all others.
var outcomeSeries = [4]struct {
	outcome stint.Outcome
	name    string
	class   chart.Class
}{
	{stint.OutcomeCompleted, "completed", chart.OK}, {stint.OutcomeFailed, "failed", chart.Bad}, {stint.OutcomeLost, "lost", chart.Warn}, {0, "other", chart.Muted},
}

func (m *minute) add(o minute) {
	for i, n := range o.Ended {
		m.Ended[i] += n
	}
	m.Ran, m.Took, m.Waited = m.Ran+o.Ran, m.Took+o.Took, m.Waited+o.Waited
	m.TookBy, m.WaitedBy = m.TookBy.Plus(o.TookBy), m.WaitedBy.Plus(o.WaitedBy)
}

// historyOf reads it of a part.
func (f *figures) historyOf(ctx context.Context, p part) (h history, err error) {
	filter := report.StatsFilter{Kind: p.kind, Queue: p.queue, Every: time.Minute, Distributed: p != part{}}
	all, err := f.stats(ctx, filter, day)
	if err != nil {
		return h, err
	}
	h = history{all.End.Truncate(time.Minute).Add(time.Minute - day), make([]minute, day/time.Minute), all.Behind, filter.Distributed}
	for _, s := range all.Stats {
		i := int(s.Start.Sub(h.From) / time.Minute)
		if i < 0 || i >= len(h.Minutes) {
			continue // the clocks differ by that much
		}
		one := minute{Ran: s.Took.Count, Took: s.Took.Total, Waited: s.Waited, TookBy: s.TookBy, WaitedBy: s.WaitedBy}
		n := 0
		for n < len(outcomeSeries)-1 && outcomeSeries[n].outcome != s.Outcome {
			n++
		}
		one.Ended[n] = s.Attempts
		h.Minutes[i].add(one)
	}
	return h, nil
}

// figures draws the charts of the last span in steps of some minutes: how attempts ended,
// how late they began, and how long they took: percentiles, or averages where there are none.
func (h history) figures(step, span time.Duration, jobs linkTo) []template.HTML {
	from := max(0, len(h.Minutes)-int(span/time.Minute))
	c := chart.TimeSeries{From: h.From.Add(time.Duration(from) * time.Minute), Step: step, Series: make([]chart.Series, len(outcomeSeries))}
	times := c
	times.Title, times.Unit, times.Style = "Average queue latency and run time", chart.Duration, chart.Lines
	times.Series = []chart.Series{{Name: "waited"}, {Name: "took"}}
	took, waited := times, times
	took.Title, waited.Title = "Run time", "Queue latency"
	took.Series, waited.Series = percentileSeries(), percentileSeries()
	for minutes := range slices.Chunk(h.Minutes[from:], int(step/time.Minute)) {
		var sum minute
		for _, m := range minutes {
			sum.add(m)
		}
		for i, s := range outcomeSeries {
			c.Series[i] = chart.Series{Name: s.name, Class: s.class, Values: append(c.Series[i].Values, float64(sum.Ended[i]))}
		}
		for i, total := range []time.Duration{sum.Waited, sum.Took} {
			mean := math.NaN()
			if sum.Ran > 0 {
				mean = float64(total) / float64(sum.Ran)
			}
			times.Series[i].Values = append(times.Series[i].Values, mean)
		}
		for i, p := range charted {
			took.Series[i].Values = append(took.Series[i].Values, percentile(sum.TookBy, p))
			waited.Series[i].Values = append(waited.Series[i].Values, percentile(sum.WaitedBy, p))
		}
	}
	if c.Title = "Attempts that ended, per minute"; step != time.Minute {
		c.Title = "Attempts that ended, in ten minutes"
	}
	c.Link = jobs
	charts := []chart.TimeSeries{c, times}
	if h.Distributed {
		charts = []chart.TimeSeries{c, took, waited}
	}
	var all []template.HTML
	for _, c := range charts {
		all = append(all, template.HTML(c.Figure())) // charts escape what they say
	}
	return all
}

// charted are the percentiles that charts show.
var charted = []int{50, 95, 99}

func percentileSeries() (all []chart.Series) {
	for _, p := range charted {
		all = append(all, chart.Series{Name: fmt.Sprint("p", p)})
	}
	return all
}

// percentile is one of a histogram; not a number if that is of none.
func percentile(h report.Histogram, p int) float64 {
	if h.Count() == 0 {
		return math.NaN()
	}
	return float64(h.Percentile(p))
}

// health is the state of the store, and what is wrong with it.
type health struct {
	signs    report.Facts
	unknown  error // why there are none
	findings []report.Finding
}

// examined is a store that keeps the facts that it was asked for.
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

// doctor returns the facts and findings of the last look.
func (f *figures) doctor(ctx context.Context) (sample.Seen[report.Facts], sample.Seen[[]report.Finding]) {
	h := f.health.Get(ctx)
	signs := sample.Seen[report.Facts]{Value: h.Value.signs, At: h.At, Err: cmp.Or(h.Err, h.Value.unknown)}
	if h.Value.unknown != nil {
		signs.At = time.Time{} // there are none
	}
	return signs, sample.Seen[[]report.Finding]{Value: h.Value.findings, At: h.At, Err: h.Err}
}

// together takes several looks at once: a page waits for the slowest of them only.
func together(looks ...func()) {
	var all sync.WaitGroup
	for _, look := range looks {
		all.Go(look)
	}
	all.Wait()
}
