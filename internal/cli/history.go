package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/archive"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

func (a *app) historyCommand() *cobra.Command {
	return a.group(page(`history: Keep what ended for longer than the database does`), a.historyExportCommand())
}

func (a *app) historyExportCommand() *cobra.Command {
	files := archive.Archive{Format: archive.NDJSON, Every: 24 * time.Hour}
	var since timeBound
	cmd := a.onDatabase(page(`export FOLDER: Write the jobs that ended to files, one for each day

Export writes a file for each day (UTC) that ended an hour ago or earlier, with the jobs
that ended in it, however they ended, each with its attempts. A file that is there is
left as it is, so call it once a day, before retention deletes what it has not seen:
each job is written once. It may be interrupted at any time, and called again; a file
is complete or not there.

ndjson has a line of JSON for each job, as stint jobs show --json prints it. csv and
parquet have a row for each, with its last attempt, and all of them as JSON. Arguments
are redacted as on pages, and what is sealed stays sealed.

It begins with the day of the oldest job that there is, or with that of --since. With
--every 1h there is a file for each hour. A folder has files of one length and format.

Examples:
  stint history export /var/archive --format parquet
  stint history export /var/archive --every 1h --since 2d`), a.on(looking, func(ctx context.Context, db *database, args []string) error {
		h, ok := ops.Show(db.roles).History()
		if !ok {
			return errors.New("the database has no history")
		}
		now, err := db.now(ctx)
		if err != nil {
			return err
		}
		from := since.at(now)
		if from.IsZero() {
			if from, err = h.Oldest(ctx); err != nil {
				return err
			} else if from.IsZero() {
				from = now // there is none
			}
		}
		files.Dir = args[0]
		gone, n := int64(0), 0
		err = files.Write(ctx, h, from, now.Add(-archive.Margin), func(f archive.File) error {
			n++
			fmt.Fprintf(a.out, "%s  %s\n", filepath.Base(f.Name), words.Counted(f.Jobs, "job"))
			completed, err := completedIn(ctx, db.roles, f.In)
			gone += max(int64(f.Gone), completed-int64(f.Completed))
			return err
		})
		switch {
		case err != nil:
			return err
		case n == 0:
			a.note("nothing to write yet: a file is written one hour after its period ends")
		case gone > 0:
			return withHint(errors.New(words.Counted(gone, "job")+" deleted before: no file has them"), "keep jobs for longer than the time of a file and an hour (--retention), or take shorter files (--every)")
		}
		return nil
	}))
	flags := cmd.Flags()
	format := syntax[archive.Format]{name: "word", parse: oneOf(archive.Formats...), format: archive.Format.String}
	flags.Var(format.in(&files.Format), "format", "what the files look like: "+listed(archive.Formats, ", "))
	flags.Var(durations.in(&files.Every), "every", "the time of one file, which divides a day: 1h, 6h, 24h")
	flags.Var(timeBounds.in(&since), "since", "begin with what ended at this time (default the oldest job)")
	return cmd
}

// completedIn is how many jobs completed within a time, also those that are deleted, by the sums of all attempts.
func completedIn(ctx context.Context, st report.StatsStore, in store.TimeRange) (n int64, err error) {
	filter := report.StatsFilter{From: in.From, To: in.To}
	if in.To.Sub(in.From) < time.Hour {
		filter.Every = time.Minute
	}
	all, err := st.Stats(ctx, filter)
	for _, s := range all {
		if s.Outcome == stint.OutcomeCompleted {
			n += s.Attempts
		}
	}
	return n, err
}
