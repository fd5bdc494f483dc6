package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
)

const doctorHelp = `doctor: Say what is wrong and how to fix it

Doctor looks for problems of the database, its schema, the engines and the jobs that
wait, and says how to fix them: clocks that differ, sessions that hold up vacuum,
engines that died, kinds, queues and schedules without an engine, kinds that fail more
than before, queues that are late, limits of which nothing runs, occurrences that were
missed, objects of the schema that were changed, settings that hurt.

It changes nothing, and takes about 5 seconds at most, also with many jobs and with
locked tables. It lists what it may not see: on PostgreSQL members of the roles viewer,
engine and owner of stint migrate roles may read stint's tables, and members of
pg_monitor as well see everything. --deep also checks each page of an SQLite file,
which takes longer the larger the file is.

Of PostgreSQL's sessions it names those with a transaction that has been idle for
more than 30 seconds (a note; a warning if it has a snapshot or a transaction
number, which hold up vacuum), or open for more than 5 minutes (a warning), and
the head of those that have waited for more than 1 second to lock one of stint's
tables, or 5 seconds for any other lock, with the session that holds it.

A problem means that jobs do not run or may be lost, a warning that this will happen
or that something is not as it should be. A note is worth knowing.

Exit codes: 0 no problem was found, 1 there is a problem, or something important could
not be checked (for example without the rights), or the database cannot be opened,
2 wrong usage.`

func (a *app) doctorCommand() *cobra.Command {
	var deep bool
	cmd := a.withJSON(a.does(page(doctorHelp), a.on(examining, func(ctx context.Context, db *database, _ []string) error {
		findings, err := ops.Items(ops.Diagnose.Call(ctx, db, ops.DoctorInput{Deep: deep}))
		if err != nil {
			return err
		}
		if a.json {
			err = a.printJSON(append([]report.Finding{}, findings...)) // [] rather than null
		} else {
			a.showFindings(findings)
			a.showUnseen(unseen(findings))
		}
		if err == nil && ailing(findings) {
			err = errReported
		}
		return err
	})))
	cmd.Flags().BoolVar(&deep, "deep", false, "also check an SQLite file page by page")
	return cmd
}

// boundedKinds are those that the command itself performs. A job of theirs says how long
// it may take, so a note about the kind could never be fixed.
func boundedKinds() []string {
	names := builtin.names()
	for _, k := range demoBasics {
		names = append(names, k.name)
	}
	return names
}

// ailing reports whether there is a problem, or something important was not checked.
func ailing(findings []report.Finding) bool {
	return len(unseen(findings)) > 0 || len(findings) > 0 && findings[0].Severity == report.SeverityProblem
}

// unseen lists important subjects that could not be checked.
func unseen(findings []report.Finding) []string {
	var what []string
	for _, f := range findings {
		if f.Code == report.CodeNotChecked && f.Severity != report.SeverityNote {
			what = append(what, f.Subject)
		}
	}
	return what
}

// showUnseen prints a last line with them: the list of findings is not complete.
func (a *app) showUnseen(what []string) {
	if len(what) > 0 {
		fmt.Fprintf(a.out, "not checked: %s; there may be more problems\n", words.Visible(strings.Join(what, ", ")))
	}
}

// showFindings groups them by severity. It wraps problems at a terminal only, and never a
// fix, which people paste.
func (a *app) showFindings(findings []report.Finding) {
	width := 0
	if a.outTerminal {
		width = 100
	}
	numbers := map[report.Severity]int{}
	for _, f := range findings {
		numbers[f.Severity]++
	}
	var group report.Severity
	for _, f := range findings {
		if f.Severity != group {
			group = f.Severity
			fmt.Fprintf(a.out, "%s\n\n", words.Counted(numbers[group], string(group)))
		}
		fmt.Fprintf(a.out, "  %s  [%s]\n", words.Visible(f.Subject), f.Code)
		fmt.Fprintln(a.out, indent(wrapped(words.Visible(f.Problem), width), "    "))
		fmt.Fprintf(a.out, "    fix: %s\n\n", words.Visible(f.Remedy))
	}
	if numbers[report.SeverityProblem]+numbers[report.SeverityWarning] == 0 {
		fmt.Fprintf(a.out, "nothing is wrong with %s\n", a.place())
	}
}

// wrapped breaks a text into lines of a width; 0 does not.
func wrapped(s string, width int) string {
	if width == 0 {
		return s
	}
	lines := strings.Split(text.WrapSoft(s, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
