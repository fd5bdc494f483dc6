package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

func (a *app) migrateCommand() *cobra.Command {
	return a.group(page(`migrate: Install, upgrade, print or remove the schema

Engines install the schema into a database that has none, and upgrade a local
file; a shared database that holds jobs is upgraded only by migrate up. Engines of
the version before go on working meanwhile. Engines that are too old for the new schema
finish what they run and stop.`),
		a.migrateStatusCommand(), a.migrateUpCommand(), a.migrateDownCommand(), a.migratePrintCommand(),
		a.migrateRolesCommand())
}

// grantCommand gives the roles of a schema their rights on what is there.
const grantCommand = `stint migrate roles | psql "$ADMIN_URL"`

func (a *app) migrateStatusCommand() *cobra.Command {
	return a.withJSON(a.onDatabase(page("status: Compare the database with this program"), a.on(migrating, func(ctx context.Context, db *database, _ []string) error {
		info, err := db.roles.Schema(ctx)
		if err != nil {
			return err
		}
		return a.printSchema(info)
	})))
}

func (a *app) migrateUpCommand() *cobra.Command {
	return a.withJSON(a.onDatabase(page(`up: Install the schema, or bring it up to this program's version

Up goes step by step, and work goes on meanwhile: a step that meets a lock gives up
after two seconds and tries again, for five minutes. After an interruption call it
again: it continues. Several may run at once. Connect to PostgreSQL itself and not to a
pooler.`), a.on(installing, func(ctx context.Context, db *database, _ []string) error {
		before, err := db.roles.Schema(ctx)
		if err != nil {
			return err
		}
		after, err := db.roles.Migrate(ctx)
		if before.Installed == 0 {
			err = a.mayNotInstall(err, before.Where)
		}
		if err != nil {
			return err
		}
		if s, ok := db.roles.(*postgres.Store); ok && before.Installed != after.Installed {
			if has, err := s.HasRoles(ctx); err == nil && has {
				a.note("hint: the roles of this schema have no rights on what is new: %s gives them", grantCommand)
			}
		}
		switch {
		case a.json:
			return a.printJSON(after)
		case before.Installed == after.Installed:
			return a.printSchema(after)
		case before.Installed == 0:
			fmt.Fprintf(a.out, "installed version %d of the schema %q in %s\n", after.Installed, after.Where, a.db.place())
		default:
			fmt.Fprintf(a.out, "upgraded the schema %q in %s from version %d to %d\n", after.Where, a.db.place(), before.Installed, after.Installed)
		}
		return nil
	})))
}

// mayNotInstall says what the schema needs that a server has not, or names the right that is missing when it refuses to make it.
// The owner of a schema that migrate down removed may lack it. Other errors pass
// through.
func (a *app) mayNotInstall(err error, schema string) error {
	if errors.Is(err, store.ErrSchema) {
		return withHint(err, "stint needs PostgreSQL 13 or newer, and a database in UTF8: createdb --encoding UTF8 --template template0 NAME")
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	c, parseErr := pgconn.ParseConfig(a.db.url)
	if !ok || refused.Code != "42501" || parseErr != nil {
		return err
	}
	return withHint(fmt.Errorf("the user %q lacks the right CREATE on the database %q, which is needed to make the schema %q", c.User, c.Database, schema),
		"have an administrator run grant create on database %s to %s, or run the script of stint migrate roles again, which makes the schema", c.Database, c.User)
}

func (a *app) migrateDownCommand() *cobra.Command {
	var yes bool
	cmd := a.onDatabase(page(`down: Remove the schema with all jobs in it

Down removes the schema for ever, with all jobs, schedules and statistics. It refuses
while engines work on it: stop them first. One that has died without a word counts as
such after its time to live.`), a.on(migrating, func(ctx context.Context, db *database, _ []string) error {
		info, err := db.roles.Schema(ctx)
		if err != nil {
			return err
		}
		if info.Installed == 0 {
			return fmt.Errorf("%s has no schema %q to remove", a.db.place(), info.Where)
		}
		working := atWork(ctx, db)
		what := fmt.Sprintf("the schema %q in %s%s", info.Where, a.db.place(), a.contents(ctx, db, len(working)))
		switch {
		case !yes:
			return withHint(usagef("this would remove %s for ever", what), "give --yes to do it")
		case len(working) > 0:
			return withHint(fmt.Errorf("the schema %q in %s is in use by %s: %s", info.Where, a.db.place(), words.Counted(len(working), "engine"), words.Several(working)),
				"stop the engines first; stint engines list shows them")
		}
		if err := db.roles.Uninstall(ctx); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "removed %s\n", what)
		return nil
	}))
	cmd.Flags().BoolVar(&yes, "yes", false, "really remove everything")
	return cmd
}

// contents says what a schema holds. It is empty if that cannot be read, as in a schema of
// another version.
func (a *app) contents(ctx context.Context, db *database, engines int) string {
	counts, err := db.Counts(ctx)
	if err != nil {
		return ""
	}
	var all, open int64
	for state, n := range counts {
		all += n
		if !state.Final() {
			open += n
		}
	}
	text := fmt.Sprintf(" with %s, %s of them unfinished", words.Counted(all, "job"), words.Count(open))
	if engines > 0 {
		text += fmt.Sprintf(" (and %s at work)", words.Counted(engines, "engine"))
	}
	return text
}

// atWork names the engines that are not dead. It is empty if they cannot be read, as in a schema of
// another version.
func atWork(ctx context.Context, db *database) (names []string) {
	engines, err := ops.Items(ops.ListEngines.Call(ctx, db, ops.None{}))
	if err != nil {
		return nil
	}
	for _, e := range engines {
		if e.State != view.Gone && e.State != view.Silent {
			names = append(names, fmt.Sprintf("%s (%s, pid %d)", e.Instance, e.Host, e.PID))
		}
	}
	return names
}

func (a *app) migratePrintCommand() *cobra.Command {
	var from int
	cmd := a.onDatabase(page(`print: Print the schema, for teams that run their own tool

Print writes the SQL of every step after --from to standard output, and says for each
whether to run it as one transaction or statement by statement. It changes nothing. The
schema is for SQLite, or for PostgreSQL if --db names one, which must be reachable. The
first line says which.

Examples:
  stint migrate print --db postgres://app@db/shop --schema stint >stint.sql`), func(ctx context.Context, _ *cobra.Command, _ []string) error {
		if from < 0 {
			return usagef("--from: %d is not a version", from)
		}
		if a.db.absent() {
			a.db.url = sqlite.Memory // the text does not depend on the file
		}
		db, err := a.open(ctx, migrating)
		if err != nil {
			return err
		}
		defer db.Close()
		info, err := db.roles.Schema(ctx)
		if err != nil {
			return err
		} else if from > info.Known {
			return usagef("--from: there is no version %d; this program knows %d", from, info.Known)
		}
		text, err := db.roles.PrintSchema(from)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(a.out, a.aboutSchema(info, from), strings.TrimRight(text, "\n"), "\n")
		return err
	})
	cmd.Flags().IntVar(&from, "from", 0, "the version that is installed already")
	return cmd
}

// aboutSchema says for which of the two databases the text is.
func (a *app) aboutSchema(info store.SchemaInfo, from int) string {
	store, other := "SQLite", "--db postgres://… prints that for PostgreSQL"
	if a.db.isPostgres() {
		store, other = "PostgreSQL", fmt.Sprintf("it goes into the schema %s", info.Where)
	}
	what := fmt.Sprintf("version %d", info.Known)
	switch {
	case from == info.Known:
		what += ", which is installed already: there is nothing to do"
	case from > 0:
		what += fmt.Sprintf(", on top of version %d", from)
	}
	return fmt.Sprintf("-- The schema of stint for %s (%s), %s.\n\n", store, other, what)
}

func (a *app) migrateRolesCommand() *cobra.Command {
	return a.onDatabase(page(`roles: Print a script that gives PostgreSQL roles their rights

Roles writes a script to standard output that makes six roles and gives each
what it needs: stint_owner installs and upgrades, stint_engine works,
stint_producer and stint_caller only enqueue, stint_worker performs jobs by SQL,
stint_viewer only reads. Run it with psql before the schema is installed, and
again after each upgrade:

  stint migrate roles | psql "$ADMIN_URL"`), func(context.Context, *cobra.Command, []string) error {
		if !a.db.isPostgres() && a.db.url != defaultFile {
			return withHint(usagef("%s is an SQLite file, which has no roles", a.db.url), "its permissions are those of the file and its directory")
		}
		text, err := postgres.Roles(a.db.schema)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(a.out, text)
		return err
	})
}

func (a *app) printSchema(info store.SchemaInfo) error {
	if a.json {
		return a.printJSON(info)
	}
	verdict := "it is up to date (stint doctor compares the objects in it)"
	switch {
	case info.Installed == 0:
		verdict = "it is not installed; stint migrate up installs it"
	case info.Oldest > info.Known:
		verdict = "it is too new for this program"
	case info.Installed > info.Known:
		verdict = "it is newer than this program, which may still work on it"
	case info.Installed < info.Known:
		verdict = "it is too old; stint migrate up upgrades it"
	}
	t := newTable(a.out)
	for _, line := range []row{{"database", a.db.place()}, {"schema", info.Where}, {"installed", info.Installed}, {"this program", info.Known}, {"verdict", verdict}} {
		addRow(t, line)
	}
	t.Render()
	return nil
}
