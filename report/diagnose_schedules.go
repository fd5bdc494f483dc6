package report

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint/store"
)

// What is wrong with schedules.
var (
	scheduleUnplanned = problem("schedule_unplanned", "the next occurrence is overdue, though engines run, for {since_seconds}",
		"see what the engines log, and whether they have the time zones of the schedules")
	scheduleNoEngine     = problem("schedule_unplanned", "no engine runs that could make its jobs, for {since_seconds}", "start one: stint work, or the program that has your kinds")
	scheduleNoRecurrence = problem("schedule_unplanned", "no engine that runs has the recurrence function {function}, or it fails there, for {since_seconds}",
		"start an engine whose mux has it (Mux.Recurrence)")
	scheduleUnknownKind = warning("schedule_unknown_kind", "{making} jobs of it, and no engine that runs performs it",
		"start an engine that does, or: stint schedules remove {first}")
	scheduleAhead = problem("schedule_ahead",
		"everything up to {until} counts as dealt with, {distance} from now: the database's clock was ahead, and nothing fires until then",
		"when the clock is right: stint schedules remove {first}, and add it again, or restart the programs that declare it")
)

// schedules judges those that are to fire, by which engines can fire them and
// perform what they make. Those with one reason are one finding.
func (d *diagnosis) schedules(ctx context.Context, running crew) error {
	keeper, ok := d.store.(store.ScheduleKeeper)
	if !ok {
		return nil
	}
	all, err := keeper.Schedules(ctx)
	unplanned, unknown, ahead := map[string][]string{}, map[string][]string{}, []string{}
	first := map[string]time.Time{} // by function, since when an engine is missing
	var farthest time.Time
	for _, s := range all {
		if s.State() != "active" {
			continue
		}
		since := s.Next
		if since.IsZero() { // to be computed
			since = latest(s.Declared, s.After) // declared or resumed then
		}
		if d.now.Sub(since) > deploying {
			f, _ := s.Recurrence.Func()
			unplanned[f] = append(unplanned[f], s.Name)
			if before, ok := first[f]; !ok || since.Before(before) {
				first[f] = since
			}
		}
		if s.Job.Kind != "" && len(running) > 0 && !running.performs(s.Job.Kind) {
			unknown[s.Job.Kind] = append(unknown[s.Job.Kind], s.Name)
		}
		if dealt := latest(s.After, s.LastOccurrence); dealt.Sub(d.now) > deploying {
			ahead = append(ahead, s.Name)
			farthest = latest(farthest, dealt)
		}
	}
	for function, names := range unplanned {
		rule := scheduleUnplanned
		figures := map[string]any{"schedules": names, "since": first[function].UTC(), "since_seconds": d.now.Sub(first[function]).Seconds()}
		switch {
		case function != "":
			rule, figures["function"] = scheduleNoRecurrence, function
		case len(running) == 0:
			rule = scheduleNoEngine
		}
		d.find(rule.Find(schedulesNamed(names), figures))
	}
	for kind, names := range unknown {
		making := schedulesNamed(names) + " make"
		if len(names) == 1 {
			making += "s"
		}
		d.find(scheduleUnknownKind.With("making", making, "first", names[0]).Find("kind "+kind, map[string]any{"schedules": names}))
	}
	if len(ahead) > 0 {
		d.find(scheduleAhead.With("distance", farthest.Sub(d.now).Round(time.Second).String(), "first", ahead[0]).
			Find(schedulesNamed(ahead), map[string]any{"schedules": ahead, "until": farthest.UTC()}))
	}
	return err
}

func schedulesNamed(names []string) string {
	if len(names) == 1 {
		return "schedule " + names[0]
	}
	return "schedules " + several(names)
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
