package cli

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint/jobs/httpjob"
)

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
		Args:    arguments(2, "METHOD", "URL"),
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
