package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

const jobsLogHelp = `log ID: Show what the runs of a job logged

Log prints the lines that a job's handler logged, or that its command printed, in all of
its runs, also while one goes on: about a second after they were logged. Of each run the
first 16 KiB and the last 48 KiB are kept. Stint jobs watch --follow prints them as they
come.

Examples:
  stint jobs log 12
  stint jobs log 12 --last 20
  stint jobs log 12 --json | jq -r '.[] | select(.level == "ERROR").text'`

func (a *app) jobsLogCommand() *cobra.Command {
	var (
		id   stint.ID
		last int
	)
	cmd := a.asks(page(jobsLogHelp), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		f := store.LogFilter{Limit: last, Last: last > 0}
		lines, err := db.Log(ctx, id, f)
		if err == nil && len(lines) == 0 {
			_, err = db.Job(ctx, id)
		}
		return append([]stint.LogLine{}, lines...), func(time.Time) { a.printLog(id, lines) }, err
	}, func(_ *cobra.Command, args []string) (err error) {
		id, err = jobID(args[0])
		return err
	})
	countFlag(cmd.Flags(), &last, "last", 0, "only so many of the last lines", "")
	return cmd
}

func (a *app) printLog(id stint.ID, lines []stint.LogLine) {
	if len(lines) == 0 {
		a.note("job %d has logged nothing", id)
	}
	for i, l := range lines {
		if i == 0 || l.Run != lines[i-1].Run {
			fmt.Fprintf(a.out, "attempt %d\n", l.Attempt)
		}
		a.printLine("  ", lines, i)
	}
}

// printLine prints a line, after a word about those before it that were left out.
func (a *app) printLine(before string, lines []stint.LogLine, i int) {
	if n := view.LeftOut(lines, i); n > 0 {
		fmt.Fprintf(a.out, "%s[%s left out]\n", before, words.Counted(n, "line"))
	}
	l := lines[i]
	fmt.Fprintf(a.out, "%s%s%s %s\n", before, l.At.Local().Format(time.TimeOnly), levelInWords(l.Level), words.Visible(l.Text))
}

// levelInWords is the level of a line, where it is more than the usual one.
func levelInWords(l slog.Level) string {
	if l == slog.LevelInfo {
		return ""
	}
	return " " + l.String()
}

// showLog prints how far the last run of a job is and the last lines of its runs.
func (a *app) showLog(shown view.Job) {
	if len(shown.Log) == 0 {
		return
	}
	fmt.Fprintln(a.out)
	fmt.Fprintf(a.out, "log; stint jobs log %d shows all of it\n", shown.ID)
	last := shown.Log[max(0, len(shown.Log)-shownLines):]
	for i := range last {
		a.printLine("  ", last, i)
	}
}

// shownLines is how many lines stint jobs show prints.
const shownLines = 10

// followed is what was printed of a job that is followed.
type followed struct {
	line store.LogFilter
	last []stint.LogLine // the last line
	said string          // its progress
}

// follow prints what the runs of a job said since the last call, and reports whether there was anything.
func (a *app) follow(ctx context.Context, db *database, id stint.ID, all map[stint.ID]followed) (more bool, err error) {
	f := all[id]
	defer func() {
		if all[id] = f; ctx.Err() != nil {
			err = errors.New("interrupted before the jobs had ended")
		}
	}()
	f.line.Limit = 1000
	for {
		lines, err := db.Log(ctx, id, f.line)
		if err != nil {
			return more, err
		}
		known := append(f.last, lines...)
		for i := len(f.last); i < len(known); i++ {
			a.printLine(fmt.Sprintf("job %d | ", id), known, i)
		}
		if n := len(lines); n > 0 {
			more = true
			f.last = lines[n-1:]
			f.line.Run, f.line.N = lines[n-1].Run, lines[n-1].N
		}
		if len(lines) < f.line.Limit {
			break
		}
	}
	progress, err := db.Progress(ctx, id)
	if n := len(progress); err == nil && n > 0 {
		if said := fmt.Sprint(progress[n-1].Run, view.ProgressInWords(progress[n-1])); said != f.said {
			f.said, more = said, true
			fmt.Fprintf(a.out, "%s  job %d is at %s\n", time.Now().Format(time.TimeOnly), id, view.ProgressInWords(progress[n-1]))
		}
	}
	return more, err
}
