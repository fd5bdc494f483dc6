package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/internal/words"
)

const upLong = `Up is the quickest start: an engine on the local file stint.db, which it creates,
with the built-in kinds on and a log line for each job, and the dashboard at the link
that it prints. It takes the same flags as work, and stops in the same way: Ctrl-C
lets what runs finish.

On this machine everybody may look at the dashboard; whoever has the link may do
everything. See stint dashboard --help.`

const upExample = `  stint up
  stint up --demo                and in another terminal: stint demo
  stint up --db /var/lib/stint/jobs.db --slots 2`

const upNext = `
In a second terminal, in the same directory:

%[2]s  stint sh%[1]s -- echo hello
  stint jobs list%[1]s
  stint jobs show ID%[1]s

Ctrl-C stops it when what runs has finished.

`

const upLink = `
The dashboard is at

  %s
`

func (a *app) upCommand() *cobra.Command {
	var flags engineFlags
	cmd := a.onDatabase(&cobra.Command{
		Use:     "up",
		Short:   "Run an engine on a local file: the quickest start",
		Long:    upLong,
		Example: upExample,
		Args:    arguments(0),
	}, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		created := a.db.absent()
		flags.board.byDefault()
		return a.work(ctx, &flags, slog.LevelInfo, func(w *worker) {
			verb := "Working on"
			if created {
				verb = "Created and working on"
			}
			kinds := w.kinds
			if w.demo {
				kinds = append(slices.Clone(kinds), "demo.*")
			}
			fmt.Fprintf(a.out, "%s %s, kinds %s.\n", verb, a.db.place(), words.Listed(kinds))
			if w.board != nil {
				fmt.Fprintf(a.out, upLink, w.board.link())
			}
			first := ""
			if w.demo {
				first = "  stint demo" + a.sameDatabase() + "\n"
			}
			fmt.Fprintf(a.out, upNext, a.sameDatabase(), first)
		})
	})
	flags.add(cmd.Flags())
	return cmd
}
