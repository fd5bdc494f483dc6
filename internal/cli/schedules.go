package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

const schedulesShowHelp = `show SCHEDULE: Show a schedule with what comes next and what it made

Show prints what a schedule does, its next ten occurrences by the clock of its zone
and in UTC, and its last jobs.`

const schedulesPauseHelp = `pause SCHEDULE...: Stop schedules from making jobs

Pause stops schedules from making jobs, on all engines and at once. Jobs that they
made go on. Occurrences during the pause are not made up for.

Examples:
  stint schedules pause nightly --why "the archive is full"`

const schedulesRunHelp = `run-now SCHEDULE...: Make a job of schedules now, out of turn

Run-now makes a job of each schedule at once and prints its id, also if the schedule is
paused or has ended. The job has the next number of the schedule but no occurrence, and
the next occurrence stays. A unique schedule refuses while the job before has not ended.`

const schedulesRemoveHelp = `remove|rm SCHEDULE...: Remove schedules, and cancel their jobs that have not begun

Remove deletes schedules with their counters, and cancels those of their jobs that have
not begun, or wait to be tried again. Jobs that run go on. A schedule that a program or a
file still declares comes back when an engine starts: take it out there first, or pause
it.`

func (a *app) schedulesCommand() *cobra.Command {
	var why, by string
	pause := a.withJSON(eachName(a, page(schedulesPauseHelp), ops.PauseSchedule, func(name string) ops.ScheduleWhy {
		return ops.ScheduleWhy{ScheduleName: scheduleName(name), Body: ops.Why{Why: why}}
	}, func(ctx context.Context, db *database, in ops.ScheduleWhy, said string, _ ops.Changed) error {
		return a.scheduleChanged(ctx, db, in.Schedule, said)
	}))
	reasonFlags(pause, &why, &by, "the reason that is kept with the schedule", "the person or program that pauses it")
	resumed := func(ctx context.Context, db *database, in ops.ScheduleName, said string, _ ops.Changed) error {
		return a.scheduleChanged(ctx, db, in.Schedule, said)
	}
	ran := func(_ context.Context, _ *database, _ ops.ScheduleName, _ string, made stint.Receipt) error {
		return a.printReceipt(made)
	}
	return a.noun(page("schedules|schedule: List, add, pause, run and remove schedules"),
		lists(a, `List shows every schedule by its name, with when it was declared last and by whom. A
schedule that no program or file declares any more stays until it is removed.`, ops.ListSchedules, a.listSchedules),
		a.asks(page(schedulesShowHelp), a.scheduleShown),
		a.schedulesAddCommand(),
		pause,
		a.withJSON(eachName(a, page("resume SCHEDULE...: Let paused schedules make jobs again, from now on"), ops.ResumeSchedule, scheduleName, resumed)),
		a.withJSON(eachName(a, page(schedulesRunHelp), ops.RunSchedule, scheduleName, ran)),
		a.does(page(schedulesRemoveHelp), a.on(changing, a.removeSchedules)),
	)
}

func (a *app) listSchedules(schedules []store.ScheduleInfo, now time.Time) {
	printTable(a, schedules, "no schedules", row{"schedule", "when", "kind", "next", "fired", "state", "declared"}, func(s store.ScheduleInfo) row {
		kind := "?"
		if s.Problem == nil {
			kind = s.Job.Kind
		}
		return row{s.Name, cut(view.WhenInWords(&s), 60), kind, nextInWords(&s, now), s.Fired, stateOfSchedule(&s, now), declaredInWords(&s, now)}
	})
}

func nextInWords(s *store.ScheduleInfo, now time.Time) string {
	switch {
	case s.State() != "active":
		return "-"
	case s.Next.IsZero():
		return "to be found"
	default:
		return moment(s.Next) + " (" + words.Ago(s.Next, now) + ")"
	}
}

// stateOfSchedule says whether it fires, and if not, why.
func stateOfSchedule(s *store.ScheduleInfo, now time.Time) string {
	switch s.State() {
	case "ended":
		return "ended " + words.Ago(s.Ended, now)
	case "paused":
		return pausedInWords(s.Paused, s.PausedBy, s.PausedWhy, now)
	}
	if s.Problem != nil {
		return "of a newer program"
	}
	return "active"
}

func declaredInWords(s *store.ScheduleInfo, now time.Time) string {
	text := words.Ago(s.Declared, now)
	if s.By != "" {
		text += " by " + words.Visible(s.By)
	}
	return text
}

func (a *app) scheduleShown(ctx context.Context, db *database, args []string) (any, shower, error) {
	shown, err := ops.ShowSchedule.Call(ctx, db, scheduleName(args[0]))
	return shown, func(now time.Time) {
		shown := shown.Shown()
		a.showSchedule(shown.Schedule, now)
		a.showUpcoming(shown.Schedule, shown.Upcoming, shown.Problem)
		a.showMade(shown.Jobs)
	}, hintName(err)
}

func (a *app) showSchedule(s *store.ScheduleInfo, now time.Time) {
	fmt.Fprintf(a.out, "schedule %s is %s\n\n", words.Visible(s.Name), stateOfSchedule(s, now))
	d := a.newDetails(now)
	d.add("when", view.WhenInWords(s))
	d.add("recurrence", s.Stored.Recurrence)
	d.add("zone", s.Zone)
	bound := func(name string, at time.Time) {
		if !at.IsZero() {
			d.add(name, moment(at))
		}
	}
	bound("not before", s.NotBefore)
	bound("not after", s.NotAfter)
	if s.Problem == nil {
		showTemplate(d, s.Job)
	} else {
		d.add("problem", s.Problem.Error())
	}
	if s.Unique {
		d.add("unique", "not while the job before has not ended")
	}
	d.add("missed", s.Stored.Missed)
	fired := words.Counted(s.Fired, "job")
	if s.Skipped > 0 {
		fired += ", " + words.Count(s.Skipped) + " skipped to not overlap"
	}
	if s.Passed > 0 {
		fired += ", " + words.Count(s.Passed) + " missed"
	}
	d.add("fired", fired)
	d.add("last", s.LastOccurrence)
	d.add("created", s.Created)
	d.add("declared", declaredInWords(s, now))
	d.Render()
}

func showTemplate(d details, j stint.NewJob) {
	d.add("kind", j.Kind)
	d.add("args", j.Args)
	d.add("queue", j.Queue)
	d.add("priority", j.Priority)
	d.add("tags", j.Tags)
	d.add("urn", j.URN)
	d.add("source", j.Source)
	d.add("correlation", j.Correlation)
	d.add("metadata", j.Metadata)
	d.add("limits", j.Limits)
	d.add("retry", strings.Join(j.Retry.Lines(), "\n"))
	d.add("timeout", j.Timeout)
	d.add("start within", j.StartWithin)
}

func (a *app) showUpcoming(s *store.ScheduleInfo, times []time.Time, problem error) {
	fmt.Fprintln(a.out)
	switch {
	case errors.Is(problem, cron.ErrUnknownFunc):
		fmt.Fprintln(a.out, "only programs that have its function know what comes next")
	case problem != nil:
		fmt.Fprintln(a.out, "what comes next is not known here:", words.Visible(problem.Error()))
	case len(times) == 0:
		fmt.Fprintln(a.out, "nothing comes next")
	default:
		t := newTable(a.out, "next in "+s.Zone, "utc")
		for _, at := range times {
			t.AppendRow([]any{at.Format("Mon 2006-01-02 15:04:05 -07:00"), at.UTC().Format("2006-01-02 15:04:05")})
		}
		t.Render()
	}
}

func (a *app) showMade(jobs []stint.JobInfo) {
	if len(jobs) == 0 {
		return
	}
	fmt.Fprintln(a.out)
	printTable(a, jobs, "", row{"number", "job", "occurrence", "state", "started", "took", "reason"}, func(j stint.JobInfo) row {
		of, began, long := "out of turn", "-", "-"
		if !j.Origin.Occurrence.IsZero() {
			of = moment(j.Origin.Occurrence)
		}
		if !j.Started.IsZero() {
			began, long = moment(j.Started), words.Took(max(0, j.Finished.Sub(j.Started)))
		}
		return row{int(j.Origin.Nth), j.ID, of, j.State, began, long, cut(view.Why(j), 60)}
	})
}

func scheduleName(name string) ops.ScheduleName { return ops.ScheduleName{Schedule: name} }

// scheduleChanged prints the result of a change; with --json the schedule.
func (a *app) scheduleChanged(ctx context.Context, db *database, name, said string) error {
	if !a.json {
		fmt.Fprintln(a.out, said)
		return nil
	}
	info, err := db.Schedule(ctx, name)
	if err != nil {
		return err
	}
	return a.printJSON(info)
}

func (a *app) removeSchedules(ctx context.Context, db *database, names []string) error {
	for _, name := range names {
		before, err := db.Schedule(ctx, name)
		if err != nil {
			return hintName(err)
		}
		in := ops.RemovedSchedule{ScheduleName: scheduleName(name), Why: "its schedule was removed"}
		cancelled, err := ops.RemoveSchedule.Call(ctx, db, in)
		if err != nil {
			return hintName(err)
		}
		a.noteDeclared(before, "it comes back")
		fmt.Fprintln(a.out, ops.RemoveSchedule.Said(&in, &cancelled))
	}
	return nil
}

// noteDeclared warns of what becomes of a schedule that was removed or changed, if the file has it or an
// engine declared it last. People declare by a name with an @: see whoami.
func (a *app) noteDeclared(s *store.ScheduleInfo, becomes string) {
	for _, f := range a.schedules {
		if f.schedule.Name == s.Name {
			a.note("%s still declares the schedule %s: %s when an engine starts with it", f.place, words.Visible(s.Name), becomes)
			return
		}
	}
	if s.By != "" && !strings.Contains(s.By, "@") {
		a.note("the schedule %s was declared by %s: %s when an engine starts whose program or file still declares it", words.Visible(s.Name), words.Visible(s.By), becomes)
	}
}
