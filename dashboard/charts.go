package dashboard

import (
	"context"
	"html/template"
	"math"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/chart"
	"github.com/stint-go/stint/report"
)

// history are the sums of the last day, by the minute, of all queues.
type history struct {
	From    time.Time
	Minutes []minute
	Behind  bool // so much ended that the last minutes are missing
}

// minute is what the attempts came to that ended in one.
type minute struct {
	Completed, Failed, Lost, Other int64
	Ran                            int64         // how many of them have a duration
	Took, Waited                   time.Duration // of those, together
	Slowest                        time.Duration
}

const day = 24 * time.Hour

// historyOf reads it, of one kind or of all.
func (f *figures) historyOf(ctx context.Context, kind string) (h history, err error) {
	all, until, err := f.stats(ctx, report.StatsFilter{Kind: kind, Every: time.Minute}, day)
	if err != nil {
		return h, err
	}
	h.From = until.at.Truncate(time.Minute).Add(time.Minute - day)
	h.Behind = until.behind
	h.Minutes = make([]minute, day/time.Minute)
	for _, s := range all {
		i := int(s.Start.Sub(h.From) / time.Minute)
		if i < 0 || i >= len(h.Minutes) {
			continue // the clocks differ by that much
		}
		m := &h.Minutes[i]
		switch s.Outcome {
		case stint.OutcomeCompleted:
			m.Completed += s.Attempts
		case stint.OutcomeFailed:
			m.Failed += s.Attempts
		case stint.OutcomeLost:
			m.Lost += s.Attempts
		default:
			m.Other += s.Attempts
		}
		m.Ran += s.Took.Count
		m.Took += s.Took.Total
		m.Waited += s.Waited
		m.Slowest = max(m.Slowest, s.Took.Longest)
	}
	return h, nil
}

// in puts minutes together to steps of several, of which the last ones fill a
// span.
func (h history) in(step, span time.Duration) history {
	n, from := int(step/time.Minute), max(0, len(h.Minutes)-int(span/time.Minute))
	rough := history{From: h.From.Add(time.Duration(from) * time.Minute)}
	for i := from; i < len(h.Minutes); i += n {
		var sum minute
		for _, m := range h.Minutes[i:min(i+n, len(h.Minutes))] {
			sum.Completed += m.Completed
			sum.Failed += m.Failed
			sum.Lost += m.Lost
			sum.Other += m.Other
			sum.Ran += m.Ran
			sum.Took += m.Took
			sum.Waited += m.Waited
			sum.Slowest = max(sum.Slowest, m.Slowest)
		}
		rough.Minutes = append(rough.Minutes, sum)
	}
	return rough
}

// series reads one value of each step.
func (h history) series(name string, class chart.Class, of func(m minute) float64) chart.Series {
	s := chart.Series{Name: name, Class: class}
	for _, m := range h.Minutes {
		s.Values = append(s.Values, of(m))
	}
	return s
}

// figures draws the charts of a span in steps: how attempts ended, how late they
// began, and how long they took.
func (h history) figures(step, span time.Duration) []template.HTML {
	h = h.in(step, span)
	per := "per minute"
	if step != time.Minute {
		per = "in ten minutes"
	}
	mean := func(of func(m minute) time.Duration) func(m minute) float64 {
		return func(m minute) float64 {
			if m.Ran == 0 {
				return math.NaN()
			}
			return float64(of(m)) / float64(m.Ran)
		}
	}
	// What a chart says is escaped by it.
	return []template.HTML{
		template.HTML(chart.TimeSeries{
			Title: "Attempts that ended, " + per, Unit: chart.Count, Style: chart.Bars, From: h.From, Step: step,
			Series: []chart.Series{
				h.series("completed", chart.OK, func(m minute) float64 { return float64(m.Completed) }),
				h.series("failed", chart.Bad, func(m minute) float64 { return float64(m.Failed) }),
				h.series("lost", chart.Warn, func(m minute) float64 { return float64(m.Lost) }),
				h.series("other", chart.Muted, func(m minute) float64 { return float64(m.Other) }),
			},
		}.Figure()),
		template.HTML(chart.TimeSeries{
			Title: "Average delay and run time", Unit: chart.Duration, Style: chart.Lines, From: h.From, Step: step,
			Series: []chart.Series{
				h.series("waited", chart.Own, mean(func(m minute) time.Duration { return m.Waited })),
				h.series("took", chart.Own, mean(func(m minute) time.Duration { return m.Took })),
			},
		}.Figure()),
	}
}
