package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/chart"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// figures are the samples that pages share.
type figures struct {
	store    Store
	muchAt   atomic.Int64 // when more of these were found, by this process' clock, in nanoseconds
	readable int          // attempts that are read for what is not in the sums yet
	activity *sample.Sample[lately]
	waiting  *sample.Sample[report.Analytics]
	queued   *sample.Sample[[]report.DueGroup]
	health   *sample.Sample[health]
	rates    *sample.Sample[ended]          // of the last hour, by the minute
	kinds    *sample.Sample[[]report.Stats] // of the last day
	trends   *sample.Sample[trends]
	history  *sample.Sample[history]
	errors   *sample.Sample[report.ErrorReport]

	mu       sync.Mutex // guards the rest
	byPart   map[part]partSamples
	seldom   seldom
	seldomAt time.Time // when that was read
}

// part is a part of the work: a kind, or a queue. The zero value is all of it.
type part struct{ kind, queue string }

// path is that of the page that shows it.
func (p part) path() string {
	switch {
	case p.kind != "":
		return "/kinds/" + ops.Segment(p.kind)
	case p.queue != "":
		return "/queues/" + ops.Segment(p.queue)
	}
	return "/"
}

// seldom is what changes seldom, and what an open overview asks for seldom.
type seldom struct {
	Asked int  // how many questions are open, up to mostCounted
	Empty bool // whether there is no job
}

// seldomOf reads it; for an open page, which asks again, what was read in the last ten seconds will do.
func (f *figures) seldomOf(ctx context.Context) (seldom, error) {
	f.mu.Lock()
	last, at := f.seldom, f.seldomAt
	f.mu.Unlock()
	if sample.IsHurried(ctx) && time.Since(at) < seldomLook {
		return last, nil
	}
	began := time.Now()
	open, err := f.store.Questions(ctx, store.QuestionFilter{Limit: mostCounted})
	if err != nil {
		return seldom{}, err
	}
	newest, err := f.store.Find(ctx, store.Filter{Limit: 1})
	if err != nil {
		return seldom{}, err
	}
	now := seldom{min(len(open), mostCounted), len(newest) == 0}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seldom, f.seldomAt = now, began
	return now, nil
}

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
	seldomLook     = 10 * time.Second
	maxPartSamples = 50 // parts whose samples are kept
)

func newFigures(st Store, bounded []string) *figures {
	f := &figures{store: st, readable: report.FewUnsummed, byPart: map[part]partSamples{}}
	all := f.samplesOf(part{})
	f.activity, f.waiting, f.history = all.activity, all.waiting, all.history
	f.trends = sample.New(f.trendsOf)
	f.queued = sample.New(func(ctx context.Context) ([]report.DueGroup, error) {
		return st.DueBy(ctx, report.FieldQueue, report.AnalyticsFilter{}, maxQueues)
	})
	f.health = sample.New(func(ctx context.Context) (h health, err error) {
		h.findings, err = report.Diagnose(ctx, examined{st, &h}, report.Options{Bounded: bounded})
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
		return st.Errors(ctx, report.ErrorFilter{State: report.ErrorsOpen})
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
	Zoom    zoom                 `json:"-"`
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
	s, p := b.figures.of(of), partFigures{jobs: b.jobsOf(of), Zoom: zoom{Path: b.config.Path + of.path()}}
	together(
		func() { p.Active = s.activity.Get(ctx) },
		func() { p.Waiting = s.waiting.Get(ctx) },
		func() { p.History = s.history.Get(ctx) },
	)
	return p
}

// LastHour are the charts of the last hour.
func (p partFigures) LastHour() []template.HTML { return p.History.Value.figures(p.jobs, p.Zoom.Path) }

// much reports whether more ended lately than is read for a figure. To find out that it did is to count all that is
// read at most, so that is believed for a while.
func (f *figures) much(ctx context.Context) (bool, error) {
	if time.Since(time.Unix(0, f.muchAt.Load())) < seldomLook {
		return true, nil
	}
	n, err := f.store.Unsummed(ctx, f.readable)
	if err == nil && n == f.readable {
		f.muchAt.Store(time.Now().UnixNano())
	}
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

// history has the sums of a time, in equal steps, with those of the time before.
type history struct {
	From          time.Time
	Step          time.Duration
	Steps, Before []sums // Before is empty where that is not known
	Behind        bool   // so much ended that the last minutes are missing

	Distributed bool // the sums have histograms
}

// sums are of the attempts that ended in a step of a time.
type sums struct {
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

func (m *sums) add(o sums) {
	for i, n := range o.Ended {
		m.Ended[i] += n
	}
	m.Ran, m.Took, m.Waited = m.Ran+o.Ran, m.Took+o.Took, m.Waited+o.Waited
	m.TookBy, m.WaitedBy = m.TookBy.Plus(o.TookBy), m.WaitedBy.Plus(o.WaitedBy)
}

// newHistory is one without sums.
func newHistory(from time.Time, step time.Duration, steps int) history {
	return history{From: from, Step: step, Steps: make([]sums, steps), Before: make([]sums, steps)}
}

// To is the end of its time, and span how long that is.
func (h history) To() time.Time       { return h.From.Add(h.span()) }
func (h history) span() time.Duration { return time.Duration(len(h.Steps)) * h.Step }

// add adds what ended in its time, or in the time before.
func (h *history) add(all []report.Stats) {
	for _, s := range all {
		in, from := h.Steps, h.From
		if s.Start.Before(from) {
			in, from = h.Before, from.Add(-h.span())
		}
		i := int(s.Start.Sub(from) / h.Step)
		if s.Start.Before(from) || i >= len(in) {
			continue // of another time, or the clocks differ by that much
		}
		one := sums{Ran: s.Took.Count, Took: s.Took.Total, Waited: s.Waited, TookBy: s.TookBy, WaitedBy: s.WaitedBy}
		n := 0
		for n < len(outcomeSeries)-1 && outcomeSeries[n].outcome != s.Outcome {
			n++
		}
		one.Ended[n] = s.Attempts
		in[i].add(one)
	}
}

// historyOf reads that of the last hour of a part, by the minute.
func (f *figures) historyOf(ctx context.Context, p part) (h history, err error) {
	filter := report.StatsFilter{Kind: p.kind, Queue: p.queue, Every: time.Minute, Distributed: p != part{}}
	all, err := f.stats(ctx, filter, 2*time.Hour)
	if err != nil {
		return h, err
	}
	h = newHistory(all.End.Truncate(time.Minute).Add(time.Minute-time.Hour), time.Minute, hour)
	h.Behind, h.Distributed = all.Behind, filter.Distributed
	h.add(all.Stats)
	return h, nil
}

// figures draws the charts: how attempts ended, how late they began, and how long they took: percentiles, or averages
// where there are none. The page at a path zooms into them.
func (h history) figures(jobs linkTo, path string) []template.HTML {
	const before = "the time before"
	c := chart.TimeSeries{From: h.From, Step: h.Step, Zoom: path, Series: make([]chart.Series, len(outcomeSeries)), Before: chart.Series{Name: before, Class: "s1"}}
	times := c
	times.Title, times.Unit, times.Style = "Average queue latency and run time", chart.Duration, chart.Lines
	times.Series, times.Before = []chart.Series{{Name: "waited"}, {Name: "took"}}, chart.Series{Name: "took, " + before, Class: "s2"}
	took, waited := times, times
	took.Title, waited.Title = "Run time", "Queue latency"
	took.Series, waited.Series = percentileSeries(), percentileSeries()
	took.Before.Name = "p95, " + before
	waited.Before.Name = took.Before.Name
	for _, sum := range h.Steps {
		for i, s := range outcomeSeries {
			c.Series[i] = chart.Series{Name: s.name, Class: s.class, Values: append(c.Series[i].Values, float64(sum.Ended[i]))}
		}
		for i, total := range []time.Duration{sum.Waited, sum.Took} {
			times.Series[i].Values = append(times.Series[i].Values, sum.mean(total))
		}
		for i, p := range charted {
			took.Series[i].Values = append(took.Series[i].Values, percentile(sum.TookBy, p))
			waited.Series[i].Values = append(waited.Series[i].Values, percentile(sum.WaitedBy, p))
		}
	}
	for _, sum := range h.Before {
		c.Before.Values = append(c.Before.Values, float64(sum.ended()))
		times.Before.Values = append(times.Before.Values, sum.mean(sum.Took))
		took.Before.Values = append(took.Before.Values, percentile(sum.TookBy, 95))
		waited.Before.Values = append(waited.Before.Values, percentile(sum.WaitedBy, 95))
	}
	if c.Title = "Attempts that ended, per minute"; h.Step != time.Minute {
		c.Title = "Attempts that ended, in steps of " + words.Rough(h.Step)
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

// ended is how many attempts did.
func (m sums) ended() (n int64) {
	for _, of := range m.Ended {
		n += of
	}
	return n
}

// mean is the average of a total of them; not a number if none ran.
func (m sums) mean(total time.Duration) float64 {
	if m.Ran == 0 {
		return math.NaN()
	}
	return float64(total) / float64(m.Ran)
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
