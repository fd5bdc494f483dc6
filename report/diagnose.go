package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// Source is what [Diagnose] needs of every store. Of one that is also a [store.Clock]
// or an [Checker] it learns more.
type Source interface {
	store.Inspector
	store.Roster
	store.Migrator
}

// What is normal for a while.
const (
	clockTolerance = 2 * time.Second  // between this machine and the database
	deploying      = time.Minute      // without an engine for some work: a deployment may be under way, or a decision
	lateAfter      = 10 * time.Minute // that a job waits which could begin, or that somebody keeps from beginning
	lookLimit      = 3 * time.Second  // for each question to the store
	lookBlocked    = time.Second / 2  // the same, when it is known that something has to wait
)

var problem, warning, note = SeverityProblem.Rule, SeverityWarning.Rule, SeverityNote.Rule

// What is wrong with any store.
var (
	clockDifference = warning("clock_difference",
		"its clock is {off} the database's, give or take {uncertainty}; stint goes by the database's, but dates that programs compute here, and logs, are off by as much",
		"have both machines keep time by NTP (timedatectl set-ntp true); if the database's clock is the wrong one, fix that one first")
	schemaUnreadable = problem("schema_unreadable", "its version cannot be read: {error}", "{advice}; see also whether this is stint's database")
	schemaMissing    = problem("schema_missing", "it is not installed: nothing can be enqueued or worked on", "stint migrate up")
	schemaTooNew     = problem("schema_too_new", "it has version {installed} and refuses programs that know version {known} only", "use a newer stint")
	schemaTooOld     = problem("schema_too_old", "it has version {installed} and this program needs {known}", "stint migrate up")
	schemaNewer      = note("schema_newer", "it has version {installed}; this program knows {known} and may still work on it",
		"use a newer stint when that suits you; only one that knows this version can tell whether single objects were changed")
	kindWithoutTimeout = note("kind_without_timeout",
		"an attempt of theirs that hangs holds its slot until its engine stops, unless the job was given a timeout",
		"declare them with stint.Timeout; in the command, enqueue with --timeout")
)

// Diagnose says what is wrong with a store and how to fix it, the worst first.
// A database that is healthy has nothing above [SeverityNote]. It only reads. What
// cannot be found out is a finding too, so there is an error only when the
// context ends.
func Diagnose(ctx context.Context, store Source, e Options) ([]Finding, error) {
	d := &diagnosis{store: store, now: time.Now(), patience: lookLimit}
	d.ask(ctx, "the database's clock", d.clock)
	var signs Facts
	if x, ok := store.(Checker); ok {
		var err error
		if signs, err = x.Examine(ctx, e); err != nil {
			d.notLookedAt("the store", err)
		}
		d.find(signs.Findings...)
	}
	d.blocked()
	if d.schema(ctx) {
		var running crew
		if d.ask(ctx, "the roster of engines", func(ctx context.Context) (err error) { running, err = d.engines(ctx, signs.Holds); return err }) {
			d.versions(running)
			d.backlogs(running, signs.Backlogs)
			d.undecided(signs.Undecided)
			d.notes(running, signs.Flows)
			d.ask(ctx, "the metrics of engines", func(ctx context.Context) error { return d.metrics(ctx, running) })
			d.ask(ctx, "the limits", func(ctx context.Context) error { return d.limits(ctx, running, signs.Backlogs) })
			d.ask(ctx, "the schedules", func(ctx context.Context) error { return d.schedules(ctx, running) })
			d.ask(ctx, "how attempts go", d.failing)
		}
		d.ask(ctx, "the kinds", func(ctx context.Context) error { return d.kinds(ctx, e.Bounded) })
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(d.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), strings.Compare(a.Code, b.Code), strings.Compare(a.Subject, b.Subject))
	})
	return d.found, nil
}

func (s Severity) rank() int {
	return slices.Index([]Severity{SeverityProblem, SeverityWarning, SeverityNote}, s)
}

// diagnosis is one run of Diagnose.
type diagnosis struct {
	store Source
	now   time.Time // by the store's clock
	found []Finding

	patience time.Duration // with the next question; it wears off
	stuck    []string      // the sessions that wait for a lock
}

func (d *diagnosis) find(f ...Finding) { d.found = append(d.found, f...) }

// blocked notes which sessions wait for a lock. When one does, or something could not
// be looked at, the next questions get little time.
func (d *diagnosis) blocked() {
	for _, f := range d.found {
		if f.Code == CodeBlocked {
			d.stuck = append(d.stuck, f.Subject)
		}
		if f.Code == CodeBlocked || f.Code == CodeNotChecked && f.Severity != SeverityNote {
			d.patience = lookBlocked
		}
	}
}

// ask puts one question to the store, and reports whether it was answered. One
// that runs out of time leaves less for the next.
func (d *diagnosis) ask(ctx context.Context, about string, question func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	err := question(ctx)
	if ctx.Err() != nil {
		d.patience /= 2
	}
	if err != nil {
		d.notLookedAt(about, err)
	}
	return err == nil
}

func (d *diagnosis) notLookedAt(what string, err error) {
	d.find(NotChecked(what, err.Error(), d.advice(err)))
}

// advice says what to do about an error.
func (d *diagnosis) advice(err error) string {
	if d.stuck != nil && errors.Is(err, context.DeadlineExceeded) {
		return "fix what is said of " + words.Several(d.stuck) + " (blocked), and look again"
	}
	if a, ok := d.store.(Hinter); ok {
		return a.Advise(err)
	}
	return "see whether the database answers, and look again"
}

// clock compares the two clocks. The best of a few answers counts: the server
// read its clock somewhere between the question and the answer.
func (d *diagnosis) clock(ctx context.Context) error {
	c, ok := d.store.(store.Clock)
	if !ok {
		return nil
	}
	var ahead, trip time.Duration
	for i := range 5 {
		asked := time.Now()
		theirs, err := c.Now(ctx)
		if err != nil {
			return err
		}
		if took := time.Since(asked); i == 0 || took < trip {
			ahead, trip = asked.Add(took/2).Sub(theirs), took
		}
		d.now = theirs
	}
	if ahead.Abs()-trip/2 <= clockTolerance {
		return nil
	}
	off := fmt.Sprint(ahead.Abs().Round(time.Millisecond), " ahead of")
	if ahead < 0 {
		off = fmt.Sprint(ahead.Abs().Round(time.Millisecond), " behind")
	}
	d.find(clockDifference.With("off", off, "uncertainty", (trip/2).Round(time.Microsecond).String()).
		Find("this machine", map[string]any{"ahead_seconds": ahead.Seconds(), "uncertainty_seconds": (trip / 2).Seconds()}))
	return nil
}

// schema compares versions, and reports whether there is something to look at.
func (d *diagnosis) schema(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	info, err := d.store.Schema(ctx)
	var rule Rule
	switch {
	case err != nil:
		d.find(schemaUnreadable.With("error", err.Error(), "advice", d.advice(err)).Find("the schema", nil))
		return false
	case info.Installed == 0:
		rule = schemaMissing
	case info.Oldest > info.Known:
		rule = schemaTooNew
	case info.Installed < info.Known:
		rule = schemaTooOld
	case info.Installed > info.Known:
		rule = schemaNewer
	default:
		return true
	}
	d.find(rule.Find("schema "+info.Where, map[string]any{"installed": info.Installed, "known": info.Known, "oldest": info.Oldest}))
	return rule.Severity == SeverityNote
}

// kinds looks for those whose jobs may run for ever.
func (d *diagnosis) kinds(ctx context.Context, bounded []string) error {
	kinds, err := d.store.Kinds(ctx)
	var names []string
	for _, k := range kinds {
		if k.Timeout == 0 && !slices.Contains(bounded, k.Name) {
			names = append(names, k.Name)
		}
	}
	if err == nil && len(names) > 0 {
		d.find(kindWithoutTimeout.Find("kinds "+words.Several(names), map[string]any{"kinds": names}).At("kinds"))
	}
	return err
}

// counted is a number of things; at the limit of counting it says so.
func counted(n, limit int, thing string) string {
	text := fmt.Sprint(n, " ", thing)
	if n >= limit {
		text = "at least " + text
	}
	if n != 1 {
		text += "s"
	}
	return text
}
