package dashboard

import (
	"fmt"
	"html/template"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/chart"
	"github.com/stint-go/stint/dashboard/view"
)

// shownAttempts is how many attempts a timeline shows: the last ones.
const shownAttempts = 30

// Timeline draws what the job went through: of each attempt how long it was
// waited for, and how long it took.
func (p jobPage) Timeline(now time.Time) template.HTML {
	t := chart.Timeline{Title: "Attempts of job " + p.ID.String(), Now: now}
	from := p.Created
	for i, x := range p.Attempts {
		began := x.Started
		if x.Slot == 0 || began.Before(from) {
			began = x.Finished // it never began, or nobody knows when
		}
		lane := chart.Lane{Name: fmt.Sprint(x.Attempt)}
		if began.After(from) {
			lane.Segments = append(lane.Segments, waited(i, from, began))
		}
		lane.Segments = append(lane.Segments, chart.Segment{Name: x.Outcome.String(), Class: classOf(x.Outcome), From: began, To: later(began, x.Finished), Note: view.Outcome(x)})
		t.Lanes = append(t.Lanes, lane)
		from = later(from, x.Finished)
	}
	switch {
	case p.State.Final():
	case p.State == stint.Running:
		lane, ready := chart.Lane{Name: fmt.Sprint(p.Attempt)}, p.RunsFrom(now)
		if ready.After(from) {
			lane.Segments = append(lane.Segments, waited(len(p.Attempts), from, ready))
		}
		lane.Segments = append(lane.Segments, chart.Segment{Name: "ready, then running", Class: chart.Own, From: later(from, ready)})
		t.Lanes = append(t.Lanes, lane)
	default:
		t.Lanes = append(t.Lanes, chart.Lane{Name: fmt.Sprint(p.Attempt), Segments: []chart.Segment{waited(len(p.Attempts), from, time.Time{})}})
	}
	if n := len(t.Lanes) - shownAttempts; n > 0 {
		t.Lanes = t.Lanes[n:]
	}
	return template.HTML(t.Figure()) // what it says is escaped by it
}

// RunsFrom is the earliest that the attempt began which goes on: when it was
// ready. No store knows better before the engine records how it ended.
func (p jobPage) RunsFrom(now time.Time) time.Time {
	ready := p.Due
	if n := len(p.Attempts); n > 0 {
		ready = later(ready, p.Attempts[n-1].Finished)
	}
	if ready.After(now) {
		return now // it was run before it was due
	}
	return ready
}

// waited is the time before an attempt: the first, or one that others went before.
func waited(before int, from, to time.Time) chart.Segment {
	s := chart.Segment{Name: "waited", Class: chart.Muted, From: from, To: to}
	if before > 0 {
		s.Name = "waited for the next attempt"
	}
	return s
}

func classOf(o stint.Outcome) chart.Class {
	switch o {
	case stint.OutcomeCompleted:
		return chart.OK
	case stint.OutcomeFailed:
		return chart.Bad
	case stint.OutcomeLost:
		return chart.Warn
	}
	return chart.Muted
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
