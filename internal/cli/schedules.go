package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

func (a *app) schedulesCommand() *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "schedules",
		Aliases: []string{"schedule"},
		Short:   "List, add, pause, run and remove schedules",
	},
		a.schedulesListCommand(),
		a.schedulesShowCommand(),
		a.schedulesAddCommand(),
		a.schedulesPauseCommand(),
		a.schedulesResumeCommand(),
		a.schedulesRunCommand(),
		a.schedulesRemoveCommand(),
	)
}

func (a *app) schedulesListCommand() *cobra.Command {
	return lists(a, &cobra.Command{
		Long: `List shows every schedule by its name, who declared it last and when. One that a
program or a file does not declare any more stays until it is removed.`,
	}, ops.ListSchedules, a.listSchedules)
}

func (a *app) listSchedules(schedules []store.ScheduleInfo) {
	if len(schedules) == 0 {
		a.note("no schedules")
		return
	}
	now := time.Now()
	t := newTable(a.out, "schedule", "when", "kind", "next", "fired", "state", "declared")
	for _, s := range schedules {
		t.AppendRow([]any{words.Visible(s.Name), cut(view.WhenInWords(&s), 60), words.Visible(kindOf(&s)), nextInWords(&s, now), words.Count(s.Fired),
			stateOfSchedule(&s, now), declaredInWords(&s, now)})
	}
	t.Render()
}

func kindOf(s *store.ScheduleInfo) string {
	if s.Problem != nil {
		return "?"
	}
	return s.Job.Kind
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

// stateOfSchedule says whether it fires, and if not why.
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

const schedulesPauseLong = `Pause lets nothing of schedules be fired, on every engine and at once. Jobs that
they made go on. What comes while they are paused is not made up for.`

func (a *app) schedulesPauseCommand() *cobra.Command {
	var why, by string
	cmd := a.withJSON(eachName(a, &cobra.Command{
		Use:     "pause SCHEDULE...",
		Short:   "Let nothing of schedules be fired",
		Long:    schedulesPauseLong,
		Example: `  stint schedules pause nightly --why "the archive is full"`,
		Args:    arguments(1, "SCHEDULE..."),
	}, ops.PauseSchedule, func(name string) ops.ScheduleWhy {
		return ops.ScheduleWhy{ScheduleName: ops.ScheduleName{Schedule: name}, Body: ops.Why{Why: why}}
	}, a.scheduleChanged))
	reasonFlags(cmd, &why, &by, "the reason that is kept with the schedule", "who pauses it")
	return cmd
}

func (a *app) schedulesResumeCommand() *cobra.Command {
	return a.withJSON(eachName(a, &cobra.Command{
		Use:   "resume SCHEDULE...",
		Short: "Let paused schedules fire again, from now on",
		Args:  arguments(1, "SCHEDULE..."),
	}, ops.ResumeSchedule, scheduleName, a.scheduleChanged))
}

func scheduleName(name string) ops.ScheduleName { return ops.ScheduleName{Schedule: name} }

// scheduleChanged says what came of a change; with --json, how the schedule is then.
func (a *app) scheduleChanged(ctx context.Context, db *database, name, said string, _ ops.Changed) error {
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

const schedulesRunLong = `Run-now makes a job of schedules at once and prints its id, also of one that is
paused or has ended. The job has a number as any other of the schedule, but is of no
occurrence, and the next one stays. A unique schedule refuses while the job before has
not ended.`

func (a *app) schedulesRunCommand() *cobra.Command {
	return a.withJSON(eachName(a, &cobra.Command{
		Use:   "run-now SCHEDULE...",
		Short: "Make a job of schedules now, out of turn",
		Long:  schedulesRunLong,
		Args:  arguments(1, "SCHEDULE..."),
	}, ops.RunSchedule, scheduleName, func(_ context.Context, _ *database, _, _ string, made stint.Receipt) error {
		return a.printReceipt(made)
	}))
}

const schedulesRemoveLong = `Remove forgets schedules with their counters, and cancels those of their jobs that have
not begun, or are to be tried again. What runs goes on. One that a program or a file
still declares comes back when an engine starts: take it out there first, or pause it.`

func (a *app) schedulesRemoveCommand() *cobra.Command {
	return a.does(&cobra.Command{
		Use:     "remove SCHEDULE...",
		Aliases: []string{"rm"},
		Short:   "Forget schedules, and cancel what has not begun of them",
		Long:    schedulesRemoveLong,
		Args:    arguments(1, "SCHEDULE..."),
	}, func(ctx context.Context, _ *cobra.Command, names []string) error {
		db, err := a.open(ctx, changing)
		if err != nil {
			return err
		}
		defer db.Close()
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
			a.noteDeclared(before)
			fmt.Fprintln(a.out, ops.RemoveSchedule.Said(&in, &cancelled))
		}
		return nil
	})
}

// noteDeclared says of a schedule that was removed that it comes back: when the
// file at hand has it, or an engine declared it last. People declare by a name with
// an @: see whoami.
func (a *app) noteDeclared(s *store.ScheduleInfo) {
	for _, f := range a.schedules {
		if f.schedule.Name == s.Name {
			a.note("%s still declares the schedule %s: it comes back when an engine starts with it", f.place, words.Visible(s.Name))
			return
		}
	}
	if s.By != "" && !strings.Contains(s.By, "@") {
		a.note("the schedule %s was declared by %s: it comes back when an engine starts whose program or file still declares it", words.Visible(s.Name), words.Visible(s.By))
	}
}
