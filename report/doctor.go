// Package report has what people ask of a store: the doctor's findings ([Diagnose]), statistics
// of all attempts ([Stats]), how the work goes at a moment ([Analytics]), failures by their
// causes ([ErrorReport]), and what each engine counted ([Metrics]).
//
// Each has a role that a store plays where it can.
package report

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// Severity says how much a [Finding] matters.
type Severity string

// The severities, the worst first.
const (
	// SeverityProblem: jobs do not run, or could be lost, until it is fixed.
	SeverityProblem Severity = "problem"

	// SeverityWarning: it works, and will not for ever, or not as it should.
	SeverityWarning Severity = "warning"

	// SeverityNote: worth knowing.
	SeverityNote Severity = "note"
)

// Finding is one thing that is wrong, or worth knowing, and how to fix it.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`    // what it is, in a word that does not change: clock_difference, engine_dead, …
	Subject  string   `json:"subject"` // what it is about: an engine, a table, a setting
	Problem  string   `json:"problem"` // a sentence
	Remedy   string   `json:"remedy"`  // a sentence, or a command to paste

	// Page is where the dashboard shows what it is about: a path below its address. Of what has no page of its own it
	// is empty.
	Page string `json:"page,omitempty"`

	// Figures are what was measured. Names that end in _seconds and _bytes say
	// their unit; instants are in UTC.
	Figures map[string]any `json:"figures,omitempty"`
}

// Rule is a thing that can be wrong: the table of what a doctor knows is made of
// these.
type Rule struct {
	Severity Severity
	Code     string

	// Problem and Remedy are as in a [Finding], but {name} stands for the figure
	// of that name: a span of time where the name ends in _seconds, megabytes where
	// it ends in _bytes.
	Problem, Remedy string

	with []string
}

// Rule makes one of this severity.
func (s Severity) Rule(code, problem, remedy string) Rule { return Rule{s, code, problem, remedy, nil} }

// With fills in texts that are not figures: names and what to write for them, in turn.
func (r Rule) With(pairs ...string) Rule {
	r.with = slices.Clip(r.with)
	for i := 0; i < len(pairs); i += 2 {
		r.with = append(r.with, "{"+pairs[i]+"}", pairs[i+1])
	}
	return r
}

// Find is the finding that a subject breaks the rule.
func (r Rule) Find(subject string, figures map[string]any) Finding {
	texts := slices.Concat(r.with, []string{"{subject}", subject})
	for name, value := range figures {
		texts = append(texts, "{"+name+"}", figureText(name, value))
	}
	fill := strings.NewReplacer(texts...)
	return Finding{Severity: r.Severity, Code: r.Code, Subject: subject, Problem: fill.Replace(r.Problem), Remedy: fill.Replace(r.Remedy), Figures: figures}
}

// At is the finding with its page: the parts of its path, or a path and a query.
func (f Finding) At(noun string, names ...string) Finding {
	for _, name := range names {
		noun += "/" + url.PathEscape(name)
	}
	f.Page = "/" + noun
	return f
}

// figureText is a figure as it stands in a sentence.
func figureText(name string, value any) string {
	switch v := value.(type) {
	case float64:
		if strings.HasSuffix(name, "_seconds") {
			return Roughly(time.Duration(v * float64(time.Second))).String()
		}
	case int64:
		if strings.HasSuffix(name, "_bytes") {
			return fmt.Sprint(v>>20, " MB")
		}
	case time.Time:
		return v.UTC().Format(time.DateTime) + " UTC"
	case []string:
		return words.Several(v)
	}
	return fmt.Sprint(value)
}

// Roughly rounds a duration for people: to seconds if it is longer than ten of them,
// otherwise to milliseconds.
func Roughly(d time.Duration) time.Duration {
	if d.Abs() > 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// CodeNotChecked is the code of findings which say that something could not be
// found out, as by a role that may not see it.
const CodeNotChecked = "not_looked_at"

// NotChecked is a finding with that code: what could not be looked at, why, and
// what to do.
func NotChecked(what, why, remedy string) Finding {
	return SeverityWarning.Rule(CodeNotChecked, "it could not be looked at: "+why, remedy).Find(what, nil)
}

// Checker is a store that examines itself, for [Diagnose]. It only reads,
// takes a few seconds for all its looks together, and asks for no more rows than
// a fixed number, however long the history is. What it may not see, or not
// find out in time, is a finding of its own and no error. It works on a database
// in trouble: one that may only be read, or that has another version of the
// schema or none.
type Checker interface {
	Examine(ctx context.Context, e Options) (Facts, error)
}

// CodeBlocked is the code of findings about sessions that wait for a lock.
const CodeBlocked = "blocked"

// Hinter is a store that knows what to do about an error of its own, for the
// remedy of what could not be looked at.
type Hinter interface {
	// Advise is a sentence, or a command to paste, about any error.
	Advise(err error) string
}

// Options says what to look at.
type Options struct {
	// Deep also checks what takes as long as the data is large: an SQLite
	// file page by page. Without it, a schema that was as it should be within
	// the minute before is not compared again.
	Deep bool

	// Bounded are kinds that need no timeout of their own, since each of their jobs
	// gets one when it is enqueued.
	Bounded []string
}

// Facts are what a store finds out about itself: facts, which [Diagnose] judges in
// the same way for every store, and findings that only this kind of store can have.
type Facts struct {
	Backlogs  []Backlog
	Undecided []UndecidedBacklog
	Flows     FlowFacts

	// Holds counts the entries without an outcome of engines that have
	// not beaten within their time to live, up to [HoldsLimit] each. It begins at
	// the bound that the engine's last beat told.
	Holds map[store.EngineID]int

	// Sizes are what the store takes on its disk, by its parts: tables with their
	// indexes, or files.
	Sizes []Size

	Findings []Finding
}

// Size is the size of a part of a store.
type Size struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Rows  int64  `json:"rows,omitempty"` // as far as the database guesses; 0 where it does not
}

// BacklogLimit is how many entries of a lane an [Checker] counts, and HoldsLimit
// how many an engine holds: fewer, since each of these is looked up by itself.
const (
	BacklogLimit = 10_000
	HoldsLimit   = 2_500
)

// Backlog is what is ready of one kind in one lane, among the first
// [BacklogLimit] entries of that lane.
type Backlog struct {
	Queue    string
	Priority int
	Kind     string
	Jobs     int
	Late     int       // of these, how many did not begin by the time that was set for it
	Oldest   time.Time // when the first of them became ready
	Limited  bool      // whether they wait for limits

	Paused  time.Time // since when the queue is paused; zero when it is not
	By, Why string    // who paused it
}

// FlowsLimit is how many jobs that wait for others a [Checker] counts.
const FlowsLimit = 100_000

// FlowFacts are about flows and their jobs, and about what jobs wait for.
type FlowFacts struct {
	Open    int // flows with jobs that have not ended, among the first [FlowsLimit] that wait for others
	Blocked int // jobs that wait for others, among the same

	// Noted is since when a store has known of a change for which somebody may wait, another job or a signal, and
	// nobody has looked who does. Engines do that at once, so it is zero nearly always.
	Noted time.Time
}

// UndecidedBacklog is what waits for one retry function, among the first
// [BacklogLimit] jobs that wait for any.
type UndecidedBacklog struct {
	Func   string
	Jobs   int
	Oldest time.Time // when the first of them failed
}
