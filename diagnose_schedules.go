package stint

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// schedules judges those that are to fire, by who is there to fire them and to
// perform what they make. Of many with one reason it is one finding.
func (d *diagnosis) schedules(ctx context.Context, alive crew) {
	keeper, ok := d.store.(ScheduleKeeper)
	if !ok {
		return
	}
	ctx, cancel := d.limited(ctx)
	defer cancel()
	all, err := keeper.Schedules(ctx)
	if err != nil {
		d.notLookedAt("the schedules", err)
		return
	}
	all = slices.DeleteFunc(all, func(s ScheduleInfo) bool { return s.State() != "active" })
	unplanned, unknown, ahead := map[string][]string{}, map[string][]string{}, []string{}
	first := map[string]time.Time{} // by function, since when somebody is missing
	var farthest time.Time
	for _, s := range all {
		if since, late := d.unplanned(s); late {
			f, _ := s.Recurrence.Func()
			unplanned[f] = append(unplanned[f], s.Name)
			if before, ok := first[f]; !ok || since.Before(before) {
				first[f] = since
			}
		}
		if s.Job.Kind != "" && len(alive) > 0 && !alive.performs(s.Job.Kind) {
			unknown[s.Job.Kind] = append(unknown[s.Job.Kind], s.Name)
		}
		if dealt := latestOf(s.After, s.LastOccurrence); dealt.Sub(d.now) > strangeFor {
			ahead = append(ahead, s.Name)
			farthest = latestOf(farthest, dealt)
		}
	}
	for function, names := range unplanned {
		d.find(d.noPlan(function, names, first[function], alive))
	}
	for kind, names := range unknown {
		d.find(Finding{
			Severity: SeverityWarning, Code: "schedule_unknown_kind", Subject: "kind " + kind,
			Problem: fmt.Sprintf("%s jobs of it, and no engine that runs performs it", making(names)),
			Remedy:  "start an engine that does, or: stint schedules remove " + names[0],
			Figures: map[string]any{"schedules": names},
		})
	}
	if len(ahead) > 0 {
		d.find(Finding{
			Severity: SeverityProblem, Code: "schedule_ahead", Subject: scheduled(ahead),
			Problem: fmt.Sprintf("all up to %s UTC counts as dealt with, %v from now: the database's clock was ahead, and nothing fires until then",
				farthest.UTC().Format(time.DateTime), farthest.Sub(d.now).Round(time.Second)),
			Remedy:  fmt.Sprintf("when the clock is right: stint schedules remove %s, and add it again, or restart the programs that declare it", ahead[0]),
			Figures: map[string]any{"schedules": ahead, "until": farthest.UTC()},
		})
	}
}

// unplanned reports whether nobody came to a schedule whose next occurrence is to
// be computed, or which is due, and since when.
func (d *diagnosis) unplanned(s ScheduleInfo) (time.Time, bool) {
	since := s.Next
	if since.IsZero() {
		since = latestOf(s.Declared, s.After) // declared or resumed then
	}
	return since, d.now.Sub(since) > strangeFor
}

// noPlan is about schedules that nobody comes to.
func (d *diagnosis) noPlan(function string, names []string, since time.Time, alive crew) Finding {
	f := Finding{
		Severity: SeverityProblem, Code: "schedule_unplanned", Subject: scheduled(names),
		Problem: "the next occurrence is overdue, though engines run", Remedy: "see what the engines log, and whether they have the time zones of the schedules",
		Figures: map[string]any{"schedules": names, "since": since.UTC(), "since_seconds": d.now.Sub(since).Seconds()},
	}
	if len(alive) == 0 {
		f.Problem, f.Remedy = "no engine runs that could make its jobs", "start one: stint work"
	}
	if function != "" {
		f.Problem = "no engine that runs has the recurrence function " + function + ", or it fails there"
		f.Remedy = "start an engine whose mux has it (Mux.Recurrence)"
		f.Figures["function"] = function
	}
	f.Problem += fmt.Sprintf(", for %v", d.now.Sub(since).Round(time.Second))
	return f
}

// scheduled names schedules.
func scheduled(names []string) string {
	if len(names) == 1 {
		return "schedule " + names[0]
	}
	return "schedules " + several(names)
}

// making is what schedules do.
func making(names []string) string {
	if len(names) == 1 {
		return scheduled(names) + " makes"
	}
	return scheduled(names) + " make"
}

func latestOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
