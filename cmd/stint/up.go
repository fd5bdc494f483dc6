package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"
)

const upLong = `Up is the quickest start: an engine on the local file stint.db, which it creates,
with the built-in kinds on and a log line for each job. It takes the same flags
as work, and stops in the same way: Ctrl-C lets what runs finish.`

const upExample = `  stint up
  stint up --db /var/lib/stint/jobs.db --slots 2`

const upNext = `
In a second terminal, in the same directory:

  stint sh%[1]s -- echo hello
  stint jobs list%[1]s
  stint jobs show ID%[1]s

Ctrl-C stops it when what runs has finished.

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
		return a.work(ctx, &flags, slog.LevelInfo, func(w *worker) {
			verb := "Working on"
			if created {
				verb = "Created and working on"
			}
			kinds := w.kinds
			if w.demo {
				kinds = append(slices.Clone(kinds), "demo.*")
			}
			fmt.Fprintf(a.out, "%s %s, kinds %s.\n", verb, a.db.place(), listed(kinds))
			fmt.Fprintf(a.out, upNext, a.sameDatabase())
		})
	})
	flags.add(cmd.Flags())
	return cmd
}
