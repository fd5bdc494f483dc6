package dashboard

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
)

// zoom is the form by which a page with charts chooses the time that it shows.
type zoom struct {
	Path     string            // of the page, which shows the time up to now without parameters
	From, To string            // as they were entered
	Wrong    map[string]string // what is wrong, by the field
}

// zoomPage is the page of a time that was chosen, in place of that of the time up to now.
var zoomPage = page{name: "zoom", title: "A time"}

// longestZoom is the longest time that is shown, and distributedZoom the longest whose minutes are read with
// histograms where it is of all of the work.
const (
	longestZoom     = 31 * day
	distributedZoom = 6 * time.Hour
	mostSteps       = 150 // of a chart of minutes
)

// preset is a time that the form offers.
type preset struct {
	Label, From string
	Chosen      bool
}

// Presets are the times that people look at most.
func (z zoom) Presets() []preset {
	all := []preset{{Label: "Last hour"}, {Label: "Last 6 hours", From: "6h"}, {Label: "Last day", From: "1d"}, {Label: "Last week", From: "7d"}}
	for i := range all {
		all[i].Chosen = all[i].From == z.From && z.To == ""
	}
	return all
}

// zoomed reports whether the address of a page has a time.
func zoomed(r *http.Request) bool {
	q := r.URL.Query()
	return q.Has("from") || q.Has("to")
}

// read reads what was entered: an instant, or how long ago. Without an end the time ends now, and without a beginning
// it is an hour.
func (z *zoom) read(now time.Time) (from, to time.Time) {
	z.Wrong = map[string]string{}
	at := func(field, entered string, otherwise time.Time) time.Time {
		if entered == "" {
			return otherwise
		}
		if d, err := retry.ParseDuration(entered); err == nil {
			return now.Add(-d)
		}
		if t, ok := inUTC(entered); ok {
			return t
		}
		t, err := time.Parse(time.RFC3339, entered)
		if err != nil {
			z.Wrong[field] = "neither a time such as 2026-03-01 09:00 nor a duration such as 1h, for an hour ago"
		}
		return t
	}
	to = at("to", z.To, now)
	from = at("from", z.From, to.Add(-time.Hour))
	switch {
	case len(z.Wrong) > 0:
	case !from.Before(now):
		z.Wrong["from"] = "it is later than now"
	case !to.After(from):
		z.Wrong["to"] = "it is not later than the beginning"
	case to.Sub(from) > longestZoom:
		z.Wrong["from"] = "it is more than 31 days before the end"
	}
	if to.After(now) {
		to = now
	}
	return from, to
}

// zoomData is what such a page shows: all of it is of that time.
type zoomData struct {
	Heading string
	Zoom    zoom
	part
	history
	Kinds []zoomKind
	here  string // where the dashboard is mounted
	now   time.Time
	jobs  linkTo
}

func (zoomData) frozen()         {}
func (zoomData) page() *page     { return &zoomPage }
func (p zoomData) title() string { return p.Heading }

// status is 422 for a time that means nothing.
func (p zoomData) status() int {
	if len(p.Zoom.Wrong) > 0 {
		return http.StatusUnprocessableEntity
	}
	return http.StatusOK
}

// zoomKind is how the attempts of a kind went in that time, and how many there were in the time before.
type zoomKind struct {
	kindRow
	Before int64
}

// zoom shows how the attempts of a part of the work went in the time that the address of a page says.
func (b *Dashboard) zoom(r *http.Request, of part, heading string) (any, error) {
	ctx, q := r.Context(), r.URL.Query()
	now, err := view.Now(ctx, b.store)
	if err != nil {
		return nil, err
	}
	p := zoomData{Heading: heading, part: of, here: b.config.Path, now: now, jobs: b.jobsOf(of)}
	p.Zoom = zoom{Path: b.config.Path + of.path(), From: strings.TrimSpace(q.Get("from")), To: strings.TrimSpace(q.Get("to"))}
	from, to := p.Zoom.read(now)
	if len(p.Zoom.Wrong) > 0 {
		return p, nil
	}
	var stats []report.Stats
	if p.history, stats, err = b.figures.historyIn(ctx, of, from, to, now); err != nil {
		return nil, err
	}
	before := map[string]int64{}
	for _, k := range report.StatsByKind(inTime(stats, p.history.From.Add(-p.span()), p.history.From)) {
		before[k.Kind] = k.Attempts
	}
	for _, k := range report.StatsByKind(inTime(stats, p.history.From, p.history.To())) {
		p.Kinds = append(p.Kinds, zoomKind{kindRow{KindStats: k}, before[k.Kind]})
	}
	slices.SortStableFunc(p.Kinds, func(a, b zoomKind) int { return cmp.Compare(b.Attempts, a.Attempts) })
	return p, nil
}

// inTime are the statistics of a time, all of it together.
func inTime(all []report.Stats, from, to time.Time) (some []report.Stats) {
	for _, s := range all {
		if !s.Start.Before(from) && s.Start.Before(to) {
			s.Start = time.Time{}
			some = append(some, s)
		}
	}
	return some
}

// historyIn reads the sums of a time, with the statistics that they were made of: minutes where they are kept, or else
// hours.
func (f *figures) historyIn(ctx context.Context, p part, from, to, now time.Time) (h history, all []report.Stats, err error) {
	filter := report.StatsFilter{Kind: p.kind, Queue: p.queue, Every: time.Minute, Distributed: true}
	if settled := now.Add(-report.SummedBy); to.After(settled) {
		if filter.Settled, err = f.much(ctx); err != nil {
			return h, nil, err
		}
		if h.Behind = filter.Settled; h.Behind {
			to = settled
		}
	}
	steps := []time.Duration{1, 2, 5, 10, 15, 30, 60}
	most := mostSteps
	kept := report.FirstMinute(now)
	if from.Before(kept) {
		filter.Every, steps, most = time.Hour, []time.Duration{1, 2, 3, 6}, 7*24
	} else if (p == part{}) && to.Sub(from) > distributedZoom {
		filter.Distributed = false
	}
	from, end := from.Truncate(filter.Every), to.Truncate(filter.Every)
	if end.Before(to) || !end.After(from) {
		end = end.Add(filter.Every)
	}
	i := 0
	for i < len(steps)-1 && end.Sub(from) > time.Duration(most)*steps[i]*filter.Every {
		i++
	}
	step := steps[i] * filter.Every
	n := max(1, int((end.Sub(from)+step-1)/step)) // the time may begin a little earlier than was asked
	behind := h.Behind
	h = newHistory(end.Add(-time.Duration(n)*step), step, n)
	h.Behind, h.Distributed = behind, filter.Distributed
	filter.From, filter.To = h.From.Add(-h.span()), end
	if filter.Every == time.Minute && filter.From.Before(kept) {
		h.Before, filter.From = nil, h.From // minutes before that are not kept
	}
	if all, err = f.store.Stats(ctx, filter); err != nil {
		return h, nil, err
	}
	h.add(all)
	return h, all, nil
}

// All is the sum of that time.
func (p zoomData) All() (all sums) {
	for _, s := range p.Steps {
		all.add(s)
	}
	return all
}

// Compared reports whether the time before is known, and Earlier is its sum.
func (p zoomData) Compared() bool { return len(p.Before) > 0 }

func (p zoomData) Earlier() (all sums) {
	for _, s := range p.Before {
		all.add(s)
	}
	return all
}

// Count is how many attempts ended, and Failed how many of them failed or were lost.
func (m sums) Count() int64  { return m.ended() }
func (m sums) Failed() int64 { return m.Ended[1] + m.Ended[2] }

// MeanTook and MeanWaited are averages of those that ran.
func (m sums) MeanTook() time.Duration   { return time.Duration(m.mean(m.Took)) }
func (m sums) MeanWaited() time.Duration { return time.Duration(m.mean(m.Waited)) }

// Charts are those of that time.
func (p zoomData) Charts() []template.HTML { return p.figures(p.jobs, p.Zoom.Path) }

// Jobs leads to the jobs whose last attempt ended then, and Failures to those that failed.
func (p zoomData) Jobs() string { return p.jobs(p.From, p.To()) }
func (p zoomData) Failures() string {
	return p.Jobs() + "&" + url.Values{"state": {string(stint.Failed)}}.Encode()
}

// Out, Earlier and Later are the same page of other times: three times as long, and the neighbours. One that would
// end later than now is empty.
func (p zoomData) Out() string  { return p.at(p.From.Add(-p.span()), p.To().Add(p.span())) }
func (p zoomData) Back() string { return p.at(p.From.Add(-p.span()), p.From) }
func (p zoomData) Onward() string {
	if !p.To().Before(p.now) {
		return ""
	}
	return p.at(p.To(), p.To().Add(p.span()))
}

func (p zoomData) at(from, to time.Time) string {
	return inTimeOf(p.Zoom.Path, from, to, p.now)
}

// OfKind is the page of a kind of that time.
func (p zoomData) OfKind(kind string) string {
	return inTimeOf(p.here+part{kind: kind}.path(), p.From, p.To(), p.now)
}

// inTimeOf is the address of a page with a time, which is no longer than may be shown and not later than now.
func inTimeOf(path string, from, to, now time.Time) string {
	if to.After(now) {
		to = now
	}
	if from.Before(to.Add(-longestZoom)) {
		from = to.Add(-longestZoom)
	}
	return address(path, url.Values{"from": {from.UTC().Format(time.RFC3339)}, "to": {to.UTC().Format(time.RFC3339)}})
}
