package cli

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/jobs/shelljob"
)

const shLong = `Sh enqueues a job of the built-in kind sh: a command that an engine runs. Its
output is kept with each attempt; an exit code other than 0 is a failure.

The command runs without a shell, with its arguments as they are; for pipes and the
like there is --shell. It gets only the variables of the engine's environment that
programs need (PATH, HOME, LANG …); add others with --env.`

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
		// A relative directory counts from here, wherever the engine runs.
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

const httpLong = `Http enqueues a job of the built-in kind http: a request that an engine sends.
Status and body are kept with each attempt; a status that is not expected is a
failure.

An engine on a shared database sends requests to public addresses only, unless it
was started with --http-private. A request may take 30 seconds, or as long as
--timeout says.`

const httpExample = `  stint http POST https://example.com/hook --json-body '{"paid": true}' --expect 200,202
  stint http GET https://example.com/health --retry none`

func (a *app) httpCommand() *cobra.Command {
	var (
		flags      jobFlags
		request    httpjob.Args
		body, data string
	)
	cmd := a.withJSON(a.does(&cobra.Command{
		Use:     "http METHOD URL",
		Short:   "Enqueue an HTTP request",
		Long:    httpLong,
		Example: httpExample,
	}, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		request.Method, request.URL = args[0], args[1]
		request.Timeout = httpjob.Duration(flags.timeout)
		if body != "" && data != "" {
			return usagef("--body and --json-body exclude each other")
		}
		if data != "" {
			raw, err := a.jsonArgument([]string{data})
			if err != nil {
				return err
			}
			if !json.Valid(raw) {
				return usagef("--json-body: it is not JSON")
			}
			request.JSON = raw
		}
		if request.Body = body; body == "-" {
			raw, err := io.ReadAll(io.LimitReader(a.in, maxInput))
			if err != nil {
				return err
			}
			request.Body = string(raw)
		}
		if err := request.Check(); err != nil {
			return err
		}
		opts, err := flags.options(cmd.Flags())
		if err != nil {
			return err
		}
		raw, err := encode(request)
		if err != nil {
			return err
		}
		return a.enqueue(ctx, "http", raw, flags.force, opts)
	}))
	flags.add(cmd.Flags())
	cmd.Flags().Var(pairValue{&request.Headers, ":", "'Accept: text/plain'"}, "header", "'NAME: VALUE' to send; may be given many times")
	cmd.Flags().StringVar(&body, "body", "", "the body, or - for standard input")
	cmd.Flags().StringVar(&data, "json-body", "", "a JSON value as the body, or - for standard input")
	cmd.Flags().IntSliceVar(&request.Expect, "expect", nil, "the statuses that are a success: 200,202 (default 200 to 299)")
	return cmd
}
