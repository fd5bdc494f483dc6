package stint

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// crew are the engines that live, as those who may perform what is ready.
type crew []EngineInfo

// performs reports whether an engine knows the kind.
func (c crew) performs(kind string) bool {
	return slices.ContainsFunc(c, func(e EngineInfo) bool { return e.Performs(kind) })
}

// attends reports whether an engine that knows the kind works on the queue.
func (c crew) attends(queue, kind string) bool {
	return slices.ContainsFunc(c, func(e EngineInfo) bool { return e.Performs(kind) && e.WorksOn(queue) })
}

// versions tells of engines of several versions side by side.
func (c crew) versions(d *diagnosis) {
	by := map[string][]string{}
	var all []string
	for _, e := range c {
		if by[e.Version] == nil {
			all = append(all, e.Version)
		}
		by[e.Version] = append(by[e.Version], e.Instance)
	}
	if len(all) < 2 {
		return
	}
	slices.Sort(all)
	text := make([]string, len(all))
	for i, v := range all {
		text[i] = fmt.Sprintf("%s (%s)", v, several(by[v]))
	}
	d.find(Finding{
		Severity: SeverityNote, Code: "engine_versions", Subject: "the engines that run",
		Problem: "they are of different versions: " + strings.Join(text, ", "),
		Remedy:  "that is right while a new version is rolled out; otherwise restart the older ones",
		Figures: map[string]any{"versions": all},
	})
}

// idle is why ready jobs do not begin; the subject names what it is about.
type idle struct {
	code, subject, problem, remedy string
}

// why says why jobs do not begin, if there is a reason beside those before them.
func (c crew) why(b Backlog) (idle, bool) {
	switch {
	case !b.Paused.IsZero():
		return idle{"queue_paused", "queue " + b.Queue, pausedBy(b), "stint queues resume " + b.Queue}, true
	case len(c) == 0:
		return idle{"no_engine", "the roster", "no engine runs", "start one: stint work"}, true
	case !c.performs(b.Kind):
		return idle{"kind_unknown", "kind " + b.Kind, "no engine that runs performs it",
			"start an engine that does, or end them: stint jobs cancel --state available --kind " + b.Kind}, true
	case !c.attends(b.Queue, b.Kind):
		return idle{"queue_unattended", "queue " + b.Queue, "no engine that performs " + b.Kind + " works on it",
			"start one that does: stint work --queues " + b.Queue}, true
	}
	return idle{}, false
}

func pausedBy(b Backlog) string {
	text := "it is paused since " + b.Paused.UTC().Format(time.DateTime) + " UTC"
	if b.By != "" {
		text += " by " + b.By
	}
	if b.Why != "" {
		text += " (" + b.Why + ")"
	}
	return text
}

// backlogs tells what is ready and does not begin, and what began too late.
func (c crew) backlogs(d *diagnosis, all []Backlog) {
	sums := map[idle]Backlog{}
	for _, b := range all {
		if why, ok := c.why(b); ok {
			sums[why] = sums[why].and(b)
		}
		if b.Late > 0 {
			d.find(Finding{
				Severity: SeverityWarning, Code: "start_by_missed", Subject: "queue " + b.Queue,
				Problem: fmt.Sprintf("%s of kind %s did not begin by the time that was set for it; what is not begun in time has failed when an engine comes to it", counted(b.Late, BacklogLimit, "job"), b.Kind),
				Remedy:  "see why the queue is not worked off; more engines or slots, or a longer start_within",
				Figures: map[string]any{"jobs": b.Late, "kind": b.Kind},
			})
		}
	}
	for why, sum := range sums {
		age := d.now.Sub(sum.Oldest)
		f := Finding{
			Severity: SeverityProblem, Code: why.code, Subject: why.subject,
			Problem: fmt.Sprintf("%s; ready and not begun: %s, the first for %v", why.problem, counted(sum.Jobs, BacklogLimit, "job"), max(0, age.Round(time.Second))),
			Remedy:  why.remedy,
			Figures: map[string]any{"jobs": sum.Jobs, "oldest": sum.Oldest.UTC(), "oldest_seconds": age.Seconds()},
		}
		switch {
		case why.code == "queue_paused": // somebody meant it
			f.Severity = SeverityNote
		case age < strangeFor: // a deployment may be under way
			f.Severity = SeverityWarning
		}
		d.find(f)
	}
}

// and adds up what waits for one reason.
func (b Backlog) and(more Backlog) Backlog {
	b.Jobs += more.Jobs
	if b.Oldest.IsZero() || more.Oldest.Before(b.Oldest) {
		b.Oldest = more.Oldest
	}
	return b
}
