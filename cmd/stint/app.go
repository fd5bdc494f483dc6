package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
)

// app is one run of the program: the world that it lives in, and what every
// command shares.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	exit     func(code int) // of a second signal, which waits for nothing

	outTerminal, errTerminal bool

	config  string            // the file of settings, if there is one
	origins map[string]origin // of flags that have not their default

	schedules []fileSchedule // of the file
	admission admission      // of the file, to the dashboard

	db      databaseFlags
	server  serverFlags
	log     *slog.Logger // of an engine; others have none
	json    bool
	started bool // a command began: what fails from here on is not its use

	cmd   *cobra.Command // that began
	args  []string       // of it
	ended func(error)    // what is to be told what came of the change that it makes; nil when it makes none
}

func newApp() *app {
	return &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, exit: os.Exit,
		outTerminal: isTerminal(os.Stdout), errTerminal: isTerminal(os.Stderr),
	}
}

// isTerminal is also true of /dev/null, where what is written for people does
// no harm.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// run executes a command line and returns the exit code.
func (a *app) run(args []string) int {
	root := a.rootCommand()
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exitOK
	}
	if !a.started {
		err = asUsage(err, cmd)
	}
	err = a.explain(a.placed(err))
	a.report(err)
	return exitCode(err)
}

// action is what a command does.
type action func(ctx context.Context, cmd *cobra.Command, args []string) error

// does gives a command its action. Flags that were not given are looked for in
// the environment and in a file first.
func (a *app) does(cmd *cobra.Command, do action) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.readSettings(cmd.Flags()); err != nil {
			return err
		}
		a.db.schemaGiven = cmd.Flags().Changed("schema")
		if err := a.choosePlace(cmd); err != nil {
			return err
		}
		a.started, a.cmd, a.args = true, cmd, args
		err := do(context.Background(), cmd, args)
		if a.ended != nil {
			a.ended(err)
		}
		return err
	}
	return cmd
}

// onDatabase is does for a command that works on a database itself, which a server
// does not let anybody do.
func (a *app) onDatabase(cmd *cobra.Command, do action) *cobra.Command {
	cmd.Annotations = map[string]string{databaseMark: "true"}
	return a.does(cmd, do)
}

// withJSON offers --json.
func (a *app) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}

// lists makes a command the one that lists all there is of something: as a table,
// or with --json as it is found.
func lists[T any](a *app, cmd *cobra.Command, find func(*database, context.Context) ([]T, error), show func([]T)) *cobra.Command {
	cmd.Use, cmd.Aliases, cmd.Args = "list", []string{"ls"}, arguments(0)
	return a.withJSON(a.does(cmd, func(ctx context.Context, _ *cobra.Command, _ []string) error {
		db, err := a.open(ctx, looking)
		if err != nil {
			return err
		}
		defer db.Close()
		all, err := find(db, ctx)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(append([]T{}, all...)) // [] rather than null
		}
		show(all)
		return nil
	}))
}

// groupMark is on commands that only hold others.
const groupMark = "stint_group"

// group is a command that only holds others.
func (a *app) group(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Annotations = map[string]string{groupMark: "yes"}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		err := usagef("there is no command %q", cmd.CommandPath()+" "+args[0])
		if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
			return withHint(err, "did you mean %s %s?", cmd.CommandPath(), similar[0])
		}
		return withHint(err, "%s --help lists the commands", cmd.CommandPath())
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(members...)
	return cmd
}

// note tells people something beside the data.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.err, format+"\n", args...)
}
