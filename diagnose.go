package stint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Patient is what [Diagnose] asks of every store. Of one that is also a [Clock]
// or an [Examiner] it learns more.
type Patient interface {
	Inspector
	Roster
	Migrator
}

// What is normal for a while.
const (
	clockTolerance = 2 * time.Second // between this machine and the database
	strangeFor     = time.Minute     // for jobs that nobody comes for: a deployment may be under way
	undecidedFor   = time.Minute     // engines that have the function look every few seconds
	lookLimit      = 3 * time.Second // for each question to the store
	lookBlocked    = time.Second / 2 // the same, when it is known that something has to wait
)

// Diagnose says what is wrong with a store and how to mend it, the worst first.
// A database that is healthy has nothing above [SeverityNote]. It reads only. What
// cannot be found out is a finding too, so there is an error only when the
// context ends.
func Diagnose(ctx context.Context, store Patient, e Examination) ([]Finding, error) {
	d := &diagnosis{store: store, now: time.Now(), patience: lookLimit}
	d.clock(ctx)
	var signs Signs
	if x, ok := store.(Examiner); ok {
		var err error
		if signs, err = x.Examine(ctx, e); err != nil {
			d.notLookedAt("the store", err)
		}
		d.found = append(d.found, signs.Findings...)
	}
	d.blocked()
	if d.schema(ctx) {
		d.engines(ctx, signs)
		d.kinds(ctx, e.Bounded)
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
	store Patient
	now   time.Time // by the store's clock
	found []Finding

	patience time.Duration // with the next question; it wears off
	stuck    []string      // who waits for a lock
}

// blocked notes who waits for a lock. Where somebody does, or something could not
// be looked at, little more is waited for in vain.
func (d *diagnosis) blocked() {
	for _, f := range d.found {
		if f.Code == CodeBlocked {
			d.stuck = append(d.stuck, f.Subject)
		}
		if f.Code == CodeBlocked || f.Code == CodeNotLookedAt && f.Severity != SeverityNote {
			d.patience = lookBlocked
		}
	}
}

// limited is the time for one question. One that was in vain leaves less for
// the next.
func (d *diagnosis) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	return ctx, func() {
		if ctx.Err() != nil {
			d.patience /= 2
		}
		cancel()
	}
}

// advice is what to do about an error.
func (d *diagnosis) advice(err error) string {
	if d.stuck != nil && errors.Is(err, context.DeadlineExceeded) {
		return "mend what is said of " + several(d.stuck) + " (blocked), and look again"
	}
	if a, ok := d.store.(Adviser); ok {
		return a.Advise(err)
	}
	return "see whether the database answers, and look again"
}

func (d *diagnosis) find(f Finding) { d.found = append(d.found, f) }

// notLookedAt tells that a question was not answered.
func (d *diagnosis) notLookedAt(what string, err error) {
	if err == nil {
		return
	}
	d.find(Finding{
		Severity: SeverityWarning, Code: CodeNotLookedAt, Subject: what,
		Problem: "it could not be looked at: " + err.Error(), Remedy: d.advice(err),
	})
}

// clock compares the two clocks. The best of a few answers counts: the server
// read its clock somewhere between the question and the answer.
func (d *diagnosis) clock(ctx context.Context) {
	c, ok := d.store.(Clock)
	if !ok {
		return
	}
	ctx, cancel := d.limited(ctx)
	defer cancel()
	var ahead, trip time.Duration
	for i := range 5 {
		asked := time.Now()
		theirs, err := c.Now(ctx)
		if err != nil {
			d.notLookedAt("the database's clock", err)
			return
		}
		if took := time.Since(asked); i == 0 || took < trip {
			ahead, trip = asked.Add(took/2).Sub(theirs), took
		}
		d.now = theirs
	}
	off := ahead.Abs() - trip/2
	if off <= clockTolerance {
		return
	}
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	d.find(Finding{
		Severity: SeverityWarning, Code: "clock_difference", Subject: "this machine",
		Problem: fmt.Sprintf("its clock is %v %s the database's, give or take %v; stint goes by the database's, but dates that programs reckon here, and logs, are off by as much",
			ahead.Abs().Round(time.Millisecond), direction, (trip / 2).Round(time.Microsecond)),
		Remedy: "have both machines keep time by NTP (timedatectl set-ntp true); if the database's clock is the wrong one, mend that one first",
		Figures: map[string]any{
			"ahead_seconds": ahead.Seconds(), "uncertainty_seconds": (trip / 2).Seconds(),
		},
	})
}

// schema compares versions, and reports whether there is something to look at.
func (d *diagnosis) schema(ctx context.Context) bool {
	ctx, cancel := d.limited(ctx)
	defer cancel()
	info, err := d.store.Schema(ctx)
	if err != nil {
		d.find(Finding{
			Severity: SeverityProblem, Code: "schema_unreadable", Subject: "the schema",
			Problem: "its version cannot be read: " + err.Error(), Remedy: d.unreadable(err),
		})
		return false
	}
	f := Finding{
		Severity: SeverityProblem, Subject: "schema " + info.Where,
		Figures: map[string]any{"installed": info.Installed, "known": info.Known, "oldest": info.Oldest},
	}
	switch {
	case info.Installed == 0:
		f.Code, f.Problem, f.Remedy = "schema_missing", "it is not installed: nothing can be enqueued or worked on", "stint migrate up"
	case info.Oldest > info.Known:
		f.Code, f.Problem, f.Remedy = "schema_too_new", fmt.Sprintf("it has version %d and refuses programs that know version %d only", info.Installed, info.Known), "use a newer stint"
	case info.Installed < info.Known:
		f.Code, f.Problem, f.Remedy = "schema_too_old", fmt.Sprintf("it has version %d and this program needs %d", info.Installed, info.Known), "stint migrate up"
	case info.Installed > info.Known:
		f.Severity, f.Code = SeverityNote, "schema_newer"
		f.Problem = fmt.Sprintf("it has version %d; this program knows %d and may still work on it", info.Installed, info.Known)
		f.Remedy = "use a newer stint when that suits you; whether single objects were changed is compared by one that knows this version"
	default:
		return true
	}
	d.find(f)
	return f.Severity == SeverityNote
}

// unreadable is what to do about an error in reading the version.
func (d *diagnosis) unreadable(err error) string {
	return d.advice(err) + "; see also whether this is stint's database"
}

// kinds tells of those whose jobs may run for ever.
func (d *diagnosis) kinds(ctx context.Context, bounded []string) {
	ctx, cancel := d.limited(ctx)
	defer cancel()
	kinds, err := d.store.Kinds(ctx)
	if err != nil {
		d.notLookedAt("the kinds", err)
		return
	}
	var names []string
	for _, k := range kinds {
		if k.Timeout == 0 && !slices.Contains(bounded, k.Name) {
			names = append(names, k.Name)
		}
	}
	if len(names) > 0 {
		d.find(Finding{
			Severity: SeverityNote, Code: "kind_without_timeout", Subject: "kinds " + several(names),
			Problem: "an attempt of theirs that hangs holds its slot until its engine stops, unless the job was given a time-out",
			Remedy:  "declare them with stint.Timeout; in the command, enqueue with --timeout",
			Figures: map[string]any{"kinds": names},
		})
	}
}

// several names a few, and says how many more there are.
func several(names []string) string {
	const few = 8
	if len(names) > few {
		return strings.Join(names[:few], ", ") + fmt.Sprintf(" and %d more", len(names)-few)
	}
	return strings.Join(names, ", ")
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

// engines judges the roster, and what is ready, by who is there to do it.
func (d *diagnosis) engines(ctx context.Context, signs Signs) {
	asked, cancel := d.limited(ctx)
	defer cancel()
	roster, err := d.store.Engines(asked)
	if err != nil {
		d.notLookedAt("the roster of engines", err)
		return
	}
	var alive crew
	for _, e := range roster {
		if e.Silent(d.now) {
			d.silent(e, signs.Holds)
			continue
		}
		alive = append(alive, e)
		if e.Draining {
			d.find(Finding{
				Severity: SeverityNote, Code: "engine_draining", Subject: e.known(),
				Problem: fmt.Sprintf("it was asked to leave, takes no more jobs, and still runs %s", counted(len(e.Running), math.MaxInt, "job")),
				Remedy:  fmt.Sprintf("wait for these, or free them: stint engines bury %d", e.Token),
				Figures: map[string]any{"running": len(e.Running)},
			})
		}
	}
	alive.versions(d)
	alive.backlogs(d, signs.Backlogs)
	d.undecided(signs.Undecided)
	d.schedules(ctx, alive)
}

func (e EngineInfo) known() string { return fmt.Sprintf("engine %s (%d)", e.Instance, e.Token) }

// silent tells of an engine that does not beat.
func (d *diagnosis) silent(e EngineInfo, holds map[Token]int) {
	quiet := d.now.Sub(e.Beat)
	f := Finding{
		Severity: SeverityWarning, Code: "engine_dead", Subject: e.known(),
		Remedy:  fmt.Sprintf("any engine that runs buries it in a moment; by hand, stint engines bury %d frees what it holds", e.Token),
		Figures: map[string]any{"token": fmt.Sprint(int64(e.Token)), "silent_seconds": quiet.Seconds(), "host": e.Host, "pid": e.PID},
	}
	what := "it has not beaten for"
	switch {
	case e.Held:
		f.Code, what = "engine_stuck", "its process lives, but it has not beaten for"
		f.Remedy = fmt.Sprintf("see whether process %d on %s was stopped, or whether something keeps the database from being written to; stint engines bury %d frees what it holds", e.PID, e.Host, e.Token)
	case e.Gone:
		what = "its process is gone; it last beat"
	}
	f.Problem = fmt.Sprintf("%s %v (its time to live is %v)", what, quiet.Round(100*time.Millisecond), e.TimeToLive)
	if e.Gone {
		f.Problem = fmt.Sprintf("%s %v ago", what, quiet.Round(100*time.Millisecond))
	}
	n, told := holds[e.Token]
	if told && n > 0 {
		f.Problem += fmt.Sprintf(", and it holds %s", counted(n, HoldsLimit, "job"))
		f.Figures["holds"] = n
	}
	// Others bury it after twice its time to live at most. Longer, and nobody is there to.
	if quiet > 3*e.TimeToLive && n > 0 {
		f.Severity = SeverityProblem
	}
	d.find(f)
}

// undecided tells of failures that nobody comes to decide about.
func (d *diagnosis) undecided(all []UndecidedBacklog) {
	for _, u := range all {
		age := d.now.Sub(u.Oldest)
		if age < undecidedFor {
			continue
		}
		d.find(Finding{
			Severity: SeverityProblem, Code: "retry_function_missing", Subject: "retry function " + u.Func,
			Problem: fmt.Sprintf("no engine that runs has it, and it is to decide about %s, the first for %v", counted(u.Jobs, BacklogLimit, "failed job"), age.Round(time.Second)),
			Remedy:  "start an engine whose mux has it (Mux.RetryFunc); stint jobs retry runs such a job without being asked",
			Figures: map[string]any{"jobs": u.Jobs, "oldest": u.Oldest.UTC(), "oldest_seconds": age.Seconds()},
		})
	}
}
