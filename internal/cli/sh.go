package cli

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/jobs/shelljob"
)

const shLong = `Sh enqueues a job of the built-in kind sh: a command that an engine runs. Its
output is kept with each attempt; an exit code other than 0 is a failure.

The command and its arguments are passed on as they are, and no shell sees them;
for pipes and the like there is --shell. The engine's environment is withheld
except for what programs need (PATH, HOME, LANG …); give others by --env.`

const shExample = `  stint sh -- echo hello
  stint sh --retry none --timeout 10m -- pg_dump --file /backup/shop.sql shop
  stint sh --shell 'du -s /home/* | sort -n | tail -3' --delay 1h`

func (a *app) shCommand() *cobra.Command {
	var (
		flags   jobFlags
		command shelljob.Args
	)
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "sh [flags] -- COMMAND [ARG]...",
		Short:   "Enqueue a shell command",
		Long:    shLong,
		Example: shExample,
		Args:    cobra.ArbitraryArgs,
	}, func(ctx context.Context, cmd *cobra.Command, args []string) (err error) {
		switch {
		case len(args) == 0 && command.Shell == "":
			return withHint(usagef("there is no command"), "write for example: stint sh -- echo hello")
		case len(args) > 0 && command.Shell != "":
			return usagef("a command and --shell exclude each other")
		}
		command.Argv = args
		// A relative directory means what it means here, wherever the engine
		// runs.
		if command.Dir != "" {
			if command.Dir, err = filepath.Abs(command.Dir); err != nil {
				return err
			}
		}
		if err := command.Check(); err != nil {
			return err
		}
		opts, err := flags.options(cmd.Flags())
		if err != nil {
			return err
		}
		raw, err := encode(command)
		if err != nil {
			return err
		}
		return a.enqueue(ctx, "sh", raw, flags.force, opts)
	}))
	cmd.Flags().SetInterspersed(false) // what follows the command's name is the command's
	flags.add(cmd.Flags())
	cmd.Flags().StringVar(&command.Shell, "shell", "", "a line for the engine's shell, in place of a command")
	cmd.Flags().StringVar(&command.Dir, "dir", "", "the directory to run it in; a relative one counts from here (default: the engine's own)")
	cmd.Flags().Var(pairValue{&command.Env, "=", "LANG=C"}, "env", "NAME=VALUE for its environment; may be given many times")
	return cmd
}
