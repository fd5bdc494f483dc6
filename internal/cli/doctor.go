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

const doctorLong = `Doctor looks for what is wrong with the database, its schema, the engines and the
jobs that wait, and says how to fix it: clocks that differ, what pins the
database's horizon, engines that died, kinds, queues and schedules that nobody works on,
objects of the schema that somebody changed, settings that hurt.

It changes nothing, and takes some 5 seconds at most, however many jobs there are
and whoever locks what. What it may not see is listed too: on PostgreSQL members of
the roles viewer, engine and owner of stint migrate roles may read stint's tables,
and those that are granted pg_monitor besides see all. --deep also checks an SQLite
file page by page, which takes as long as the file is large.

Of PostgreSQL's sessions it names those with a transaction that has been idle for
more than 30 seconds (a note; a warning if it has a snapshot or a transaction
number, which hold up vacuum), or open for more than 5 minutes (a warning), and
the head of those that have waited for more than 1 second to lock one of stint's
tables, or 5 seconds for any other lock, with who holds it.

A problem means that jobs do not run or may be lost, a warning that this will be
so or that something is not as it should be, a note that it is worth to be known.

Exit codes: 0 no problem was found, 1 there is one, or something that matters could
not be looked at, as by a role without the rights, or the database cannot be opened,
2 wrong usage.`

func (a *app) doctorCommand() *cobra.Command {
	var deep bool
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong and how to fix it",
		Long:  doctorLong,
	}, a.on(examining, func(ctx context.Context, db *database, _ []string) error {
		findings, err := ops.Diagnose.Call(ctx, db, ops.DoctorInput{Deep: deep})
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

// boundedKinds are those that the command itself performs: what a job of theirs
// does, and how long that may take, is said with the job. A note about them could
// never be fixed.
func boundedKinds() []string {
	names := builtin.names()
	for _, k := range demoBasics {
		names = append(names, k.name)
	}
	return names
}

// ailing reports whether something is wrong, or nobody can say that nothing is.
func ailing(findings []report.Finding) bool {
	return len(unseen(findings)) > 0 || len(findings) > 0 && findings[0].Severity == report.SeverityProblem
}

// unseen is what matters and could not be looked at: nobody knows whether
// something is wrong there.
func unseen(findings []report.Finding) []string {
	var what []string
	for _, f := range findings {
		if f.Code == report.CodeNotChecked && f.Severity != report.SeverityNote {
			what = append(what, f.Subject)
		}
	}
	return what
}

// showUnseen ends the text with it, so that nobody takes the list for a whole one.
func (a *app) showUnseen(what []string) {
	if len(what) > 0 {
		fmt.Fprintf(a.out, "not looked at: %s; there may be more that is wrong\n", words.Visible(strings.Join(what, ", ")))
	}
}

// showFindings groups them by how much they matter. What is to be pasted is
// never broken into lines, and nothing is where programs read it.
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

// wrapped breaks a text into lines of a width; 0 leaves it as it is.
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
