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
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

func (a *app) schedulesShowCommand() *cobra.Command {
	return a.asks(&cobra.Command{
		Use:   "show SCHEDULE",
		Short: "Show a schedule with what comes next and what it made",
		Long: `Show prints what a schedule does, its next ten occurrences by the clock of its zone
and in UTC, and its last jobs.`,
		Args: arguments(1, "SCHEDULE"),
	}, func(ctx context.Context, db *database, args []string) (any, func(), error) {
		told, err := ops.ShowSchedule.Call(ctx, db, scheduleName(args[0]))
		return told, func() {
			shown := told.Shown()
			a.showSchedule(shown.Schedule, time.Now())
			a.showUpcoming(shown.Schedule, shown.Upcoming, shown.Problem)
			a.showMade(shown.Jobs)
		}, hintName(err)
	})
}

func (a *app) showSchedule(s *store.ScheduleInfo, now time.Time) {
	fmt.Fprintf(a.out, "schedule %s is %s\n\n", words.Visible(s.Name), stateOfSchedule(s, now))
	t := newTable(a.out)
	field := func(name, value string) {
		if value != "" {
			t.AppendRow([]any{"  " + name, value})
		}
	}
	field("when", view.WhenInWords(s))
	field("recurrence", words.Visible(s.Stored.Recurrence))
	field("zone", s.Zone)
	bound := func(name string, at time.Time) {
		if !at.IsZero() {
			field(name, moment(at))
		}
	}
	bound("not before", s.NotBefore)
	bound("not after", s.NotAfter)
	if s.Problem == nil {
		showTemplate(field, s.Job)
	} else {
		field("problem", s.Problem.Error())
	}
	if s.Unique {
		field("unique", "not while the job before has not ended")
	}
	field("missed", s.Stored.Missed)
	fired := words.Counted(s.Fired, "job")
	if s.Skipped > 0 {
		fired += ", " + words.Count(s.Skipped) + " skipped to not overlap"
	}
	if s.Passed > 0 {
		fired += ", " + words.Count(s.Passed) + " missed"
	}
	field("fired", fired)
	if !s.LastOccurrence.IsZero() {
		field("last", moment(s.LastOccurrence)+" ("+words.Ago(s.LastOccurrence, now)+")")
	}
	field("created", moment(s.Created)+" ("+words.Ago(s.Created, now)+")")
	field("declared", declaredInWords(s, now))
	t.Render()
}

// showTemplate shows what is made.
func showTemplate(field func(name, value string), j stint.NewJob) {
	field("kind", words.Visible(j.Kind))
	field("args", cut(words.Visible(string(j.Args)), 2000))
	field("queue", words.Visible(j.Queue))
	if j.Priority != 0 {
		field("priority", fmt.Sprint(j.Priority))
	}
	field("tags", words.Visible(strings.Join(j.Tags, ", ")))
	field("urn", words.Visible(j.URN))
	field("source", words.Visible(j.Source))
	field("correlation", words.Visible(j.Correlation))
	field("metadata", cut(words.Visible(string(j.Metadata)), 2000))
	field("retry", j.Retry.String())
	if j.Timeout > 0 {
		field("timeout", retry.FormatDuration(j.Timeout))
	}
	if j.StartWithin > 0 {
		field("start within", retry.FormatDuration(j.StartWithin))
	}
}

func (a *app) showUpcoming(s *store.ScheduleInfo, times []time.Time, problem error) {
	fmt.Fprintln(a.out)
	switch {
	case errors.Is(problem, cron.ErrUnknownFunc):
		fmt.Fprintln(a.out, "what comes next is known by programs that have its function")
	case problem != nil:
		fmt.Fprintln(a.out, "what comes next cannot be told here:", words.Visible(problem.Error()))
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
	t := newTable(a.out, "number", "job", "occurrence", "state", "started", "took", "reason")
	for _, j := range jobs {
		of, began, long := "out of turn", "-", "-"
		if !j.Origin.Occurrence.IsZero() {
			of = moment(j.Origin.Occurrence)
		}
		if !j.Started.IsZero() {
			began, long = moment(j.Started), words.Took(max(0, j.Finished.Sub(j.Started)))
		}
		t.AppendRow([]any{j.Origin.Nth, j.ID, of, string(j.State), began, long, cut(words.Visible(view.Why(j)), 60)})
	}
	t.Render()
}
