// Package cli is the command line of stint: the command itself only calls [Main].
//
//	Main ─▶ app ─▶ root command ─▶ one constructor per subcommand
//	         │                              │
//	         │ streams, environment         ├─▶ flags    values that check themselves
//	         └ explain: error ─▶ hint       └─▶ database every role of a store, for either kind
//
// A flag that was not given is set from the environment or from a file of
// settings before its command begins; the flag's value reads all three.
//
// Each subcommand has a constructor that takes the [app], through which it reaches
// everything outside. Commands return errors; only the app prints
// them, with a hint where one helps, and turns them into an exit code.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	_ "time/tzdata" // zones of schedules on machines that have none installed

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint/retry"
)

// Main runs the command line of this process and returns the exit code.
func Main() int { return newApp().run(os.Args[1:]) }

// app is one run of the program: its streams and environment, and what all commands
// share.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	exit     func(code int) // at a second signal

	outTerminal, errTerminal bool

	config  string            // the file of settings, if any
	origins map[string]origin // of flags that do not have their default

	schedules []fileSchedule // of the file
	limits    []fileLimit    // of the file
	admission admission      // of the file, to the dashboard
	webhooks  webhooks       // of the file

	db      databaseFlags
	server  serverFlags
	log     *slog.Logger // of an engine; other commands have none
	json    bool
	started bool // a command began: a later error is not one of usage

	cmd *cobra.Command // the one that began
}

func newApp() *app {
	return &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, exit: os.Exit,
		outTerminal: isTerminal(os.Stdout), errTerminal: isTerminal(os.Stderr),
	}
}

// isTerminal is also true of /dev/null, where text for people does no harm.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

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

// page makes a command of its help: "NAME|ALIAS ARGUMENTS: what it does in a line", and, each
// after an empty line, a text and "Examples:".
func page(help string) *cobra.Command {
	help, examples, _ := strings.Cut(help, "\n\nExamples:\n")
	head, long, _ := strings.Cut(help, "\n\n")
	use, short, _ := strings.Cut(head, ": ")
	name, args, _ := strings.Cut(use, " ")
	names := strings.Split(name, "|")
	return &cobra.Command{Use: strings.TrimSpace(names[0] + " " + args), Aliases: names[1:], Short: short, Long: long, Example: examples}
}

type action func(ctx context.Context, cmd *cobra.Command, args []string) error

// does gives a command its action. Flags that were not given are looked for in
// the environment and in a file first.
func (a *app) does(cmd *cobra.Command, do action) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = arguments
	}
	cmd.Flags().SortFlags = false
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.readSettings(cmd.Flags()); err != nil {
			return err
		}
		a.db.schemaGiven = cmd.Flags().Changed("schema")
		if err := a.choosePlace(cmd); err != nil {
			return err
		}
		a.started, a.cmd = true, cmd
		return do(context.Background(), cmd, args)
	}
	return cmd
}

// arguments checks how many there are, by the names in the use of the command:
// [NAME] may be left out, and NAME... stands for any number.
func arguments(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	needed := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name[0] == '[' })
	var err error
	switch {
	case len(args) < len(needed):
		err = usagef("%s is missing", strings.TrimSuffix(needed[len(args)], "..."))
	case len(args) > len(names) && !strings.HasSuffix(cmd.Use, "..."):
		err = usagef("%q is one argument too many", args[len(names)])
		if took := tookForArgument(cmd.Flags().Lookup("log-sql"), args); took != "" {
			return withHint(err, "the time follows an equals sign: --log-sql=%s", took)
		}
	default:
		return nil
	}
	return withHint(err, "it is used as: %s", cmd.UseLine())
}

// tookForArgument finds the argument that was meant as the value of a flag. A flag whose
// value is optional takes it only after an equals sign.
func tookForArgument(f *pflag.Flag, args []string) string {
	if f == nil || !f.Changed || f.Value.String() != f.NoOptDefVal {
		return ""
	}
	for _, arg := range args {
		if _, err := retry.ParseDuration(arg); err == nil {
			return arg
		}
	}
	return ""
}

// onDatabase is does for a command that needs a database itself: a server does not
// offer it.
func (a *app) onDatabase(cmd *cobra.Command, do action) *cobra.Command {
	cmd.Annotations = map[string]string{databaseMark: "true"}
	return a.does(cmd, do)
}

// on opens the database for an action.
func (a *app) on(how access, do func(ctx context.Context, db *database, args []string) error) action {
	return func(ctx context.Context, _ *cobra.Command, args []string) error {
		db, err := a.open(ctx, how)
		if err != nil {
			return err
		}
		defer db.Close()
		return do(ctx, db, args)
	}
}

func (a *app) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return cmd
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
		if verb := verbElsewhere(cmd, args[0]); verb != "" {
			return withHint(err, "did you mean %s?", verb)
		}
		if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
			return withHint(err, "did you mean %s %s?", cmd.CommandPath(), similar[0])
		}
		return withHint(err, "%s --help lists the commands", cmd.CommandPath())
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(members...)
	return cmd
}

// verbElsewhere finds the command of a verb without its noun: stint retry is stint
// jobs retry. Nouns are tried in the order in which they are listed.
func verbElsewhere(root *cobra.Command, verb string) string {
	if root.HasParent() {
		return ""
	}
	if verb == "status" {
		verb = "list"
	}
	for _, noun := range root.Commands() {
		for _, c := range noun.Commands() {
			if c.Name() == verb || c.HasAlias(verb) {
				return c.CommandPath()
			}
		}
	}
	return ""
}

// noun is a group that runs its first member, the list, when no verb is given.
func (a *app) noun(cmd, list *cobra.Command, others ...*cobra.Command) *cobra.Command {
	a.group(cmd, append([]*cobra.Command{list}, others...)...)
	cmd.Annotations = nil // it can be run
	cmd.Long = fmt.Sprintf("%s.\nWithout a verb it is stint %s %s.", cmd.Short, cmd.Name(), list.Name())
	cmd.Flags().AddFlagSet(list.Flags())
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		list.InheritedFlags() // which makes its flags know the root's
		return list.RunE(list, args)
	}
	return cmd
}

// note prints a line for people, beside the data.
func (a *app) note(format string, args ...any) {
	fmt.Fprintf(a.err, format+"\n", args...)
}

const rootLong = `stint runs background jobs durably on the database that you have already:
PostgreSQL, shared by any number of machines, or a single SQLite file.

Begin with

  stint up                       an engine on the file stint.db
  stint sh -- echo hello         in a second terminal: enqueue a command
  stint jobs list                see its state

The database is chosen by --db or STINT_DB: a path is an SQLite file,
postgres://user@host/name or "host=… dbname=…" is PostgreSQL. Flags win over
the environment, and that wins over the file of --config or STINT_CONFIG, if one is
given; stint config explains it. Durations are a number and a unit: 250ms, 90s, 1h30m, 2d.
In what --json prints they are nanoseconds, and instants are as in RFC 3339.

With --server or STINT_SERVER a command asks a stint server, over its API, in place of
a database. The token in STINT_TOKEN, or in the file of --token-file, says on whose
behalf. All commands about jobs, queues, schedules and engines can ask a server; up,
work, migrate, import, bench, config and history export need a database itself.

Exit codes: 0 ok, 1 failed, 2 wrong usage or input that can never be right,
3 stopped while handlers were still running, 4 stopped because of --memory-limit:
start it again.`

// Commands are listed in the order in which they are added. Cobra has one setting for
// the whole process.
func init() { cobra.EnableCommandSorting = false }

func (a *app) rootCommand() *cobra.Command {
	root := a.group(&cobra.Command{
		Use:           "stint",
		Short:         "A durable job engine on PostgreSQL or SQLite",
		Long:          rootLong,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	for _, chapter := range a.chapters() {
		root.AddGroup(&cobra.Group{ID: chapter.title, Title: chapter.title + ":"})
		for _, c := range chapter.commands {
			c.GroupID = chapter.title
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID(programChapter)
	root.SetCompletionCommandGroupID(programChapter)
	// A group can be run, to find misspelt names, but its usage does not say so.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", `{{if and .Runnable (not (index .Annotations "`+groupMark+`"))}}`, 1))
	root.SetVersionTemplate("stint {{.Version}}\n")
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	flags := root.PersistentFlags()
	flags.SortFlags = false
	a.db.add(flags)
	a.server.add(flags)
	flags.StringVar(&a.config, "config", "", "a TOML file with settings: see stint config")
	orEnv(flags, "STINT_CONFIG", "config")
	_ = root.MarkPersistentFlagFilename("config", "toml")
	return root
}

// chapter is a group of commands in the help of the program and on the page of commands.
type chapter struct {
	title    string
	commands []*cobra.Command
}

const programChapter = "The program"

func (a *app) chapters() []chapter {
	return []chapter{
		{"Run engines and the dashboard", []*cobra.Command{a.upCommand(), a.workCommand(), a.dashboardCommand()}},
		{"Enqueue", []*cobra.Command{a.enqueueCommand(), a.shCommand(), a.httpCommand()}},
		{"Jobs", []*cobra.Command{a.jobsCommand(), a.flowsCommand(), a.questionsCommand()}},
		{"What decides when jobs run", []*cobra.Command{a.queuesCommand(), a.limitsCommand(), a.keysCommand(), a.schedulesCommand(), a.kindsCommand()}},
		{"Engines", []*cobra.Command{a.enginesCommand(), a.leasesCommand(), a.scaleCommand()}},
		{"How the work goes", []*cobra.Command{a.analyticsCommand(), a.statsCommand(), a.errorsCommand(), a.changesCommand(), a.doctorCommand(), a.healthCommand()}},
		{"The database", []*cobra.Command{a.migrateCommand(), a.importCommand(), a.historyCommand()}},
		{programChapter, []*cobra.Command{a.configCommand(), a.docsCommand(), a.benchCommand(), a.demoCommand(), a.versionCommand()}},
	}
}

func (a *app) versionCommand() *cobra.Command {
	return a.withJSON(a.does(page("version: Print the version of the program"), func(context.Context, *cobra.Command, []string) error {
		if a.json {
			return a.printJSON(map[string]string{"version": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
		}
		fmt.Fprintf(a.out, "stint %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return nil
	}))
}

// version is the module's version, which names the commit if it was built from a
// checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(strings.Trim(info.Main.Version, "()"), "devel")
}
