package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/chart"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

// jobPage shows a job with all that is known of it.
type jobPage struct {
	view.Job
	Crew          view.Crew       `json:"-"` // heartbeats are no change of the page
	InUse         []gateRow       // of its limits, while it is available
	Earlier       int             // how many of its steps are not shown
	SignalsBefore int             // how many of its signals are not shown
	Questions     []question      // those that are open
	History       []attempt       // its attempts, the last one first
	Related       []stint.JobInfo // that come from each other, without this one
	More          bool            // of these there are more
	Graph         *flowGraph      // if it is a flow
	Holder        *holder         `json:"-"` // the engine that performs it
	Opens         bool            // there are keys to open what is sealed of it
}

// holder is an engine with how many jobs it holds.
type holder struct {
	view.Runner
	Holding int
}

func (p jobPage) title() string { return p.Kind + " " + p.ID.String() }

// Record is an attempt, under a name that leaves .Attempt to its number.
type Record = stint.Attempt

// attempt is one as the page shows it.
type attempt struct {
	Record
	Name   string // "2", or "2, run 3" if the runs before did not count
	Result view.Result
}

func historyOf(j *stint.JobInfo) (history []attempt) {
	for i, x := range slices.Backward(j.Attempts) {
		history = append(history, attempt{x, runName(j.Attempts, i, ", run "), view.ResultOf(j.Kind, x.Result)})
	}
	return history
}

// Completed reports whether it completed the job.
func (a attempt) Completed() bool { return a.Record.Outcome == stint.OutcomeCompleted }

// LastError is the last attempt if it ended with an error; nil if not, and of a job that was cancelled.
func (p jobPage) LastError() *attempt {
	if len(p.History) == 0 || p.History[0].Error == nil || p.State == stint.Cancelled {
		return nil
	}
	return &p.History[0]
}

// Outcome is what the job came to, if that is anything.
func (p jobPage) Outcome() *view.Result {
	if len(p.History) == 0 || !p.History[0].Completed() {
		return nil
	}
	if r := &p.History[0].Result; len(r.Facts) > 0 || r.Output != "" || len(r.JSON) > 0 {
		return r
	}
	return nil
}

const (
	relatedJobs   = 20 // of a correlation, on the page of one of its jobs
	shownAttempts = 30 // in a timeline: the last ones
	shownSteps    = 50 // the last ones
	shownSignals  = 50 // the same
)

// Words say its state with what follows from it.
func (p jobPage) Words(now time.Time) told {
	return tell(p.StateInWords(p.Crew, now), *p.JobInfo, now)
}

// Awaited says which signals it awaits; empty for none.
func (p jobPage) Awaited() string { return view.AwaitsInWords(*p.JobInfo) }

// Needs says which jobs it waits for; empty for none.
func (p jobPage) Needs() string { return view.NeedsInWords(*p.JobInfo) }

// job shows a job.
func (b *Dashboard) job(r *http.Request) (any, error) {
	j, err := b.jobOf(r)
	if err != nil {
		return nil, err
	}
	p := jobPage{Job: j, InUse: gatesOf(j.Gates), Opens: b.config.API.Keys != nil && isSealed(j)}
	if p.Crew, err = view.CrewFor(r.Context(), b.store, *j.JobInfo); err != nil {
		return nil, err
	}
	if j.IsFlow {
		if p.Graph, err = b.flowOf(r, j.ID); err != nil {
			return nil, err
		}
	}
	if j.RunsOn != nil && guard.Of(r.Context()).Role >= guard.Operator {
		switch e, err := view.EngineOf(r.Context(), b.store, j.RunsOn.Token); {
		case err == nil:
			p.Holder = &holder{*j.RunsOn, len(e.Holds)}
		case !errors.Is(err, store.ErrBuried): // or it is gone by now
			return nil, err
		}
	}
	p.Crew.Gates, p.Gates = j.Gates, nil
	p.Questions = questionsOf(&p.Job)
	p.Earlier = max(0, len(p.Steps)-shownSteps)
	p.Steps = p.Steps[p.Earlier:]
	p.SignalsBefore = max(0, len(p.Signals)-shownSignals)
	p.Signals = p.Signals[p.SignalsBefore:]
	p.History = historyOf(j.JobInfo)
	related, err := b.store.Jobs(r.Context(), store.Filter{Correlation: j.Correlation, Limit: relatedJobs + 2})
	if err != nil {
		return nil, err
	}
	for _, other := range related {
		if other.ID != j.ID {
			p.Related = append(p.Related, other)
		}
	}
	if p.More = len(p.Related) > relatedJobs; p.More {
		p.Related = p.Related[:relatedJobs]
	}
	return p, nil
}

// jobOf asks the API for the job that the address names. The API hides what the role may not see.
func (b *Dashboard) jobOf(r *http.Request) (view.Job, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return view.Job{}, errNowhere
	}
	return ops.ShowJob.Call(r.Context(), b.api, ops.ShowInput{ID: id})
}

// EditedFrom is the job that this one was made of by editing; 0 for none.
func (p jobPage) EditedFrom() (id stint.ID) {
	var of map[string]json.RawMessage
	if json.Unmarshal(p.Metadata, &of) == nil {
		_ = json.Unmarshal(of[editedFrom], &id) // programs may use the key for something else
	}
	return id
}

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
		took := unknownStart(x.Outcome)
		if view.Unbegun(x) || view.NeverTaken(x) && x.Outcome == stint.OutcomeCancelled {
			took = "(did not begin)"
		}
		lane := chart.Lane{Name: runName(p.Attempts, i, ".")}
		if began.After(from) {
			lane.Segments = append(lane.Segments, waited(i, from, began))
		}
		lane.Segments = append(lane.Segments, chart.Segment{Name: x.Outcome.String(), Class: classOf(x.Outcome), From: began, To: later(began, x.Finished), Note: view.Outcome(x), Took: took})
		t.Lanes = append(t.Lanes, lane)
		from = later(from, x.Finished)
	}
	next := runName(append(slices.Clip(p.Attempts), Record{Attempt: p.Attempt}), len(p.Attempts), ".")
	switch {
	case p.State.Final():
	case p.State == stint.Running:
		lane, began, name := chart.Lane{Name: next}, p.RunsSince(), "running"
		if began.IsZero() {
			began, name = p.readyAt(now), "ready, then running"
		}
		if began.After(from) {
			lane.Segments = append(lane.Segments, waited(len(p.Attempts), from, began))
		}
		lane.Segments = append(lane.Segments, chart.Segment{Name: name, Class: chart.Own, From: later(from, began)})
		t.Lanes = append(t.Lanes, lane)
	default:
		t.Lanes = append(t.Lanes, chart.Lane{Name: next, Segments: []chart.Segment{waited(len(p.Attempts), from, time.Time{})}})
	}
	if n := len(t.Lanes) - shownAttempts; n > 0 {
		t.Lanes = t.Lanes[n:]
	}
	return template.HTML(t.Figure()) // what it says is escaped by it
}

// runName is the number of an attempt, and behind it which run of that number it is, if there were others: those that
// are not charged leave the number to the next.
func runName(all []Record, i int, run string) string {
	before := 0
	for _, x := range all[:i] {
		if x.Attempt == all[i].Attempt {
			before++
		}
	}
	if before == 0 {
		return strconv.Itoa(all[i].Attempt)
	}
	return fmt.Sprint(all[i].Attempt, run, before+1)
}

// RunsSince is when the attempt began that goes on; zero until its engine has said so.
func (p jobPage) RunsSince() time.Time {
	if p.RunsOn == nil {
		return time.Time{}
	}
	return p.RunsOn.Started
}

// readyAt is when the attempt was ready that goes on: it did not begin before.
func (p jobPage) readyAt(now time.Time) time.Time {
	ready := p.Due
	if n := len(p.Attempts); n > 0 {
		ready = later(ready, p.Attempts[n-1].Finished)
	}
	if ready.After(now) {
		return now // it was run before it was due
	}
	return ready
}

// waited is the time before an attempt: the first, or a later one.
func waited(before int, from, to time.Time) chart.Segment {
	s := chart.Segment{Name: "waited", Class: chart.Muted, From: from, To: to}
	if before > 0 {
		s.Name, s.Class = "waited for the next attempt", chart.Own
	}
	return s
}

// unknownStart is said of a lost attempt in place of how long it took: what is recorded is when the loss was found.
func unknownStart(o stint.Outcome) string {
	if o == stint.OutcomeLost {
		return "(start unknown)"
	}
	return ""
}

func classOf(o stint.Outcome) chart.Class {
	for _, s := range outcomeSeries {
		if s.outcome == o {
			return s.class
		}
	}
	return chart.Own
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
