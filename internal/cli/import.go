package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/takeover"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
)

const importRiverHelp = `river: Take over the jobs that wait in River

River imports the jobs that are available, scheduled or retryable, with their arguments,
tags, metadata, queue, priority, time, and the attempts that they have left. Running jobs
are left to River's workers, which may go on meanwhile. Pending jobs wait for a program to
release them, and are left too unless --pending imports them, to run when they are due.
What has ended stays where it is.

An imported job is cancelled in River, and stint_job in its metadata is its id in stint.
River's cleaner deletes it after a day; --delete does at once. Do not retry it in River.

River's tables are in the database of --db, or in that of --from. In one database a job
moves in one transaction. Between two, an import that was interrupted holds jobs, pending
in River: import again within 23 hours, with the same flags. Importing again is harmless.

A job that stint cannot accept stays in River and is listed; the exit code is 1 then.
docs/guide/from-river.md says how to move without a stop.

Examples:
  stint import river --db postgres://app@db/shop --dry-run
  stint import river --db jobs.db --from postgres://app@db/shop --queue mail`

func (a *app) importCommand() *cobra.Command {
	return a.group(page("import: Take over the jobs of another job queue"), a.importRiverCommand())
}

func (a *app) importRiverCommand() *cobra.Command {
	var (
		r      takeover.River
		from   string
		rename = map[string]string{}
		dry    bool
	)
	cmd := a.withJSON(a.onDatabase(page(importRiverHelp), func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		r.Rename, r.Apart = rename, from != ""
		end, err := a.openRiver(ctx, &r, from)
		if err != nil {
			return err
		}
		defer end()
		if dry {
			report, err := r.Plan(ctx)
			if err != nil {
				return withHint(err, "the user needs select on river_job and river_queue")
			}
			return a.showImport(report, "to import")
		}
		db, err := a.open(ctx, changing)
		if err != nil {
			return err
		}
		defer db.Close()
		report, err := r.Import(ctx, stint.NewClient(db.roles))
		if shown := a.showImport(report, "imported"); err == nil {
			return shown
		}
		return withHint(err, "import again to go on; the user needs select and update on river_job, and select on river_queue")
	}))
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "the PostgreSQL database that River works on (default that of --db)")
	nameFlag(flags, &r.Schema, "river-schema", "the schema of River's tables (default that of the search path)")
	flags.Var(nameList(&r.Queues, "queue"), "queue", "only these queues, after commas (default all)")
	flags.Var(nameList(&r.Kinds, "kind"), "kind", "only these kinds, after commas (default all)")
	flags.Var(listValue[string]{new([]string), "names", func(text string) (string, error) {
		old, name, ok := strings.Cut(text, "=")
		if !ok {
			return "", fmt.Errorf("%q is not as OLD=NEW", text)
		}
		rename[old] = name
		return text, cmp.Or(valid.Name("kind", old), valid.Name("kind", name))
	}}, "rename", "kinds that have another name in stint, as OLD=NEW, after commas")
	flags.BoolVar(&r.Pending, "pending", false, "also import pending jobs, to run when they are due")
	flags.BoolVar(&r.Delete, "delete", false, "delete imported jobs in River, in place of cancelling them")
	countFlag(flags, &r.Batch, "batch", 1000, "jobs of one transaction", "")
	flags.BoolVar(&dry, "dry-run", false, "say what would be imported, and change nothing")
	return cmd
}

// openRiver connects to the database of River's.
func (a *app) openRiver(ctx context.Context, r *takeover.River, from string) (end func(), err error) {
	f, flag := a.db, "db"
	if from != "" {
		f, flag = databaseFlags{url: from}, "from"
	}
	if !f.isPostgres() {
		return nil, withHint(usagef("%s is no PostgreSQL database", f.place()), "name that of River with --from postgres://…, or with --db if it is the same")
	}
	f.connections = 2
	config, err := pgxpool.ParseConfig(f.withDefaults())
	if err == nil {
		r.Pool, err = pgxpool.NewWithConfig(ctx, config)
	}
	if err != nil {
		return nil, settingf(flag, "%w", err)
	}
	if err = r.Check(ctx); err != nil {
		r.Pool.Close()
		if !errors.Is(err, takeover.ErrNoRiver) {
			err = innermost(err) // the driver's message names every address that it tried
		}
		return nil, withHint(fmt.Errorf("look for River in %s: %w", f.place(), err), "--from names its database, and --river-schema the schema of its tables")
	}
	last := time.Now()
	r.Progress = func(jobs int64) {
		if time.Since(last) > 10*time.Second {
			last = time.Now()
			a.note("%s so far", words.Counted(jobs, "job"))
		}
	}
	return r.Pool.Close, nil
}

// showImport prints a report. The error is that of jobs that were refused.
func (a *app) showImport(r *takeover.Report, done string) error {
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.out, "%s %s\n", words.Counted(r.Jobs, "job"), done)
		a.countImport(done, r.Taken)
		a.countImport("left in River", r.Left)
		if r.Refused > 0 {
			fmt.Fprintf(a.out, "\nnot acceptable, left in River: %s\n", words.Counted(r.Refused, "job"))
			printTable(a, r.Refusals, "", row{"id", "queue", "kind", "why"}, func(one takeover.Refusal) row { return row{one.ID, one.Queue, one.Kind, cut(one.Why, 200)} })
		}
		a.noteImport(r)
	}
	if r.Refused > 0 {
		return errReported
	}
	return nil
}

func (a *app) countImport(title string, all []takeover.Count) {
	if len(all) > 0 {
		fmt.Fprintf(a.out, "\n%s:\n", title)
		printTable(a, all, "", row{"queue", "kind", "state", "jobs"}, func(c takeover.Count) row { return row{c.Queue, c.Kind, c.State, c.Jobs} })
	}
}

// noteImport says what has no place in stint, and what to do.
func (a *app) noteImport(r *takeover.Report) {
	for _, n := range []struct {
		jobs int64
		text string
	}{
		{r.Known, "in stint already, from an import that was interrupted"},
		{r.Failed, "with errors of earlier attempts, which stay in River"},
		{r.Unique, "unique in River, and with no unique key in stint"},
	} {
		if n.jobs > 0 {
			a.note("%s %s", words.Counted(n.jobs, "job"), n.text)
		}
	}
	for _, queue := range r.Paused {
		a.note("the queue %s is paused in River: stint queues pause %s pauses it in stint", words.Visible(queue), shellQuote(queue))
	}
}
