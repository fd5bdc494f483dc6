package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/internal/words"
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
		Short: "List the schedules with when they fire next",
		Long: `List shows every schedule by its name, who declared it last and when. One that a
program or a file does not declare any more stays until it is removed.`,
	}, (*database).Schedules, a.listSchedules)
}

func (a *app) listSchedules(schedules []stint.ScheduleInfo) {
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

func kindOf(s *stint.ScheduleInfo) string {
	if s.Problem != nil {
		return "?"
	}
	return s.Job.Kind
}

func nextInWords(s *stint.ScheduleInfo, now time.Time) string {
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
func stateOfSchedule(s *stint.ScheduleInfo, now time.Time) string {
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

func declaredInWords(s *stint.ScheduleInfo, now time.Time) string {
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
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "pause SCHEDULE...",
		Short:   "Let nothing of schedules be fired",
		Long:    schedulesPauseLong,
		Example: `  stint schedules pause nightly --why "the archive is full"`,
		Args:    arguments(1, "SCHEDULE..."),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		return a.eachSchedule(ctx, args, func(db *database, name string) (string, error) {
			changed, err := db.PauseSchedule(ctx, name, by, why)
			if changed {
				return "is paused", err
			}
			return "was paused already", err
		})
	}))
	reasonFlags(cmd, &why, &by, "the reason that is kept with the schedule", "who pauses it")
	return cmd
}

func (a *app) schedulesResumeCommand() *cobra.Command {
	return a.withJSON(a.does(&cobra.Command{
		Use:   "resume SCHEDULE...",
		Short: "Let paused schedules fire again, from now on",
		Args:  arguments(1, "SCHEDULE..."),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		return a.eachSchedule(ctx, args, func(db *database, name string) (string, error) {
			changed, err := db.ResumeSchedule(ctx, name)
			if changed {
				return "is resumed", err
			}
			return "was not paused", err
		})
	}))
}

const schedulesRunLong = `Run-now makes a job of schedules at once and prints its id, also of one that is
paused or has ended. The job has a number as any other of the schedule, but is of no
occurrence, and the next one stays. A unique schedule refuses while the job before has
not ended.`

func (a *app) schedulesRunCommand() *cobra.Command {
	return a.withJSON(a.does(&cobra.Command{
		Use:   "run-now SCHEDULE...",
		Short: "Make a job of schedules now, out of turn",
		Long:  schedulesRunLong,
		Args:  arguments(1, "SCHEDULE..."),
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		return a.withSchedules(ctx, args, func(db *database, name string) error {
			id, err := db.RunSchedule(ctx, name)
			if err != nil {
				return err
			}
			return a.printReceipt(stint.Receipt{ID: id})
		})
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
	}, func(ctx context.Context, _ *cobra.Command, args []string) error {
		return a.eachSchedule(ctx, args, func(db *database, name string) (string, error) {
			before, err := db.Schedule(ctx, name)
			if err != nil {
				return "", err
			}
			ids, err := db.RemoveSchedule(ctx, name, "its schedule was removed")
			if err != nil {
				return "", err
			}
			a.noteDeclared(before)
			if len(ids) == 0 {
				return "is removed; no job of it was pending", nil
			}
			var list []string
			for _, id := range ids {
				list = append(list, id.String())
			}
			return fmt.Sprintf("is removed, and cancelled %s: %s", words.Counted(len(ids), "pending job"), strings.Join(list, " ")), nil
		})
	})
}

// noteDeclared says of a schedule that was removed that it comes back: when the
// file at hand has it, or an engine declared it last. People declare by a name with
// an @: see whoami.
func (a *app) noteDeclared(s *stint.ScheduleInfo) {
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

// eachSchedule does something to each schedule and says what came of it; with
// --json, how it is then.
func (a *app) eachSchedule(ctx context.Context, names []string, do func(db *database, name string) (string, error)) error {
	return a.withSchedules(ctx, names, func(db *database, name string) error {
		came, err := do(db, name)
		if err != nil {
			return err
		}
		if a.json {
			info, err := db.Schedule(ctx, name)
			if err != nil {
				return err
			}
			return a.printJSON(info)
		}
		fmt.Fprintf(a.out, "schedule %s %s\n", words.Visible(name), came)
		return nil
	})
}

// withSchedules does something with each schedule, and leaves it to that to say
// what came of it.
func (a *app) withSchedules(ctx context.Context, names []string, do func(db *database, name string) error) error {
	check := func(name string) error { return stint.CheckName("schedule", name) }
	return a.eachName(ctx, names, check, func(db *database, name string) error { return hintSchedule(do(db, name)) })
}
