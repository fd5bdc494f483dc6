package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs"
	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/jobs/shelljob"
)

const enqueueHelp = `enqueue KIND [ARGS]: Enqueue a job of any kind

Enqueue stores one job and prints its id. The arguments are one JSON value,
{} when there are none, or - to read them from standard input.

An engine must have declared the kind at some time, so that a misspelt name does not
wait for ever; --force enqueues it anyway. On a local SQLite file the built-in kinds
sh, http and steps are always known. Arguments that these can never perform are
refused, unless --force is given.

A job of the kind steps is a list of sh and http jobs that run one after the other,
in one job. Each gets the result of the one before: sh on standard input, unless it
has one of its own, and http as the JSON body of a POST, PUT or PATCH without a body.

Options that are not given are those of the kind's declaration.

With --idempotency-key a command that may have failed half-way can be repeated: the
first one stores the job, and a repetition prints its id, and "duplicate" on standard
error. The same key with another kind or other arguments is an error. Keys
are shared by the whole database, and remembered for at least a day, and for as long
as the job is kept.

With --unique the job is stored only if no other one of the same kind and arguments is
unfinished, or was enqueued within a period. by= says which arguments count. Otherwise
the id of that one is printed, and "duplicate" with its state on standard error.

Examples:
  stint enqueue sh '{"argv": ["pg_dump", "shop"]}' --retry fixed:3:10s --timeout 10m
  stint enqueue send_invoice '{"customer": 42}' --tag customer:42 --delay 1h
  stint enqueue close_books --idempotency-key "books $(date +%Y-%m)"
  stint enqueue reindex '{"id": 7, "n": 2}' --unique until-ended,by=/id,replace
  stint enqueue clean_up '{"batch": 500}' --unique until-ended,by=none
  stint enqueue steps '{"steps": [{"do": "sh", "args": {"argv": ["du", "-s", "/home"]}},
      {"do": "http", "args": {"method": "POST", "url": "https://example.com/usage"}}]}'
  jq -c .order order.json | stint enqueue import_order - --queue imports --priority -10`

func (a *app) enqueueCommand() *cobra.Command {
	var flags jobFlags
	cmd := a.withJSON(a.does(page(enqueueHelp), func(ctx context.Context, cmd *cobra.Command, args []string) error {
		raw, err := a.jsonArgument("args", args[1:])
		if err != nil {
			return err
		}
		opts, err := flags.options(cmd.Flags())
		if err == nil {
			err = a.enqueue(ctx, args[0], raw, flags.force, opts)
		}
		return byFlag(cmd.Flags(), err)
	}))
	flags.add(cmd.Flags())
	return cmd
}

// maxInput is far above what a client accepts, so that people see the client's own
// message about the size.
const maxInput = 64 << 20

// jsonArgument is the JSON of a field in the first of the arguments, or on standard
// input for "-".
func (a *app) jsonArgument(field string, args []string) (json.RawMessage, error) {
	if len(args) == 0 {
		return nil, nil
	}
	text := args[0]
	if text == "-" {
		raw, err := io.ReadAll(io.LimitReader(a.in, maxInput))
		if err != nil {
			return nil, fmt.Errorf("read %s from standard input: %w", field, err)
		}
		text = string(raw)
	}
	if strings.TrimSpace(text) == "" {
		return nil, withHint(usagef("%s: nothing is there", field), "leave the argument out for none")
	}
	return json.RawMessage(text), nil
}

func (a *app) enqueue(ctx context.Context, kind string, args json.RawMessage, force bool, opts []stint.Option) error {
	return a.accept(ctx, kind, args, force, opts, func(db *database, job stint.NewJob) error {
		receipt, err := stint.NewClient(db).EnqueueReceipt(ctx, job)
		if err != nil {
			return err
		}
		return a.printReceipt(receipt)
	})
}

// accept checks a job, opens the database, and does something with the job. Mistakes are
// found before anything is opened or created.
func (a *app) accept(ctx context.Context, kind string, args json.RawMessage, force bool, opts []stint.Option, do func(*database, stint.NewJob) error) error {
	if err := (stint.KindInfo{Name: kind}).Job(args, opts...).Check(stint.Limits{}); err != nil {
		return hintInput(err)
	}
	if !force {
		if err := checkArgs(kind, args); err != nil {
			return err
		}
	}
	how := creating
	if a.shared() && !force {
		how = looking // where there is no schema, no engine declared a kind
	}
	if a.absent() && !force {
		if err := knows(builtin.declarations(), kind); err != nil {
			return err
		}
	}
	created := a.absent()
	db, err := a.open(ctx, how)
	if err != nil {
		return err
	}
	defer db.Close()
	declared, err := a.declaration(ctx, db, kind, force)
	if err != nil {
		return err
	}
	if created {
		a.note("created %s", a.db.url)
	}
	if err := do(db, declared.Job(args, opts...)); err != nil {
		return hintInput(err)
	}
	a.noteIfIdle(ctx, db)
	return nil
}

func (a *app) declaration(ctx context.Context, db *database, kind string, force bool) (stint.KindInfo, error) {
	known, err := db.Kinds(ctx)
	if err != nil {
		return stint.KindInfo{}, err
	}
	if !a.shared() {
		for _, d := range builtin.declarations() {
			if knows(known, d.Name) != nil {
				known = append(known, d)
			}
		}
	}
	if i := slices.IndexFunc(known, func(d stint.KindInfo) bool { return d.Name == kind }); i >= 0 {
		return known[i], nil
	}
	if force {
		return stint.KindInfo{Name: kind}, nil
	}
	return stint.KindInfo{}, knows(known, kind)
}

// knows returns an error with a hint unless the kind is among the known ones.
func knows(known []stint.KindInfo, kind string) error {
	names := make([]string, len(known))
	for i, d := range known {
		names[i] = d.Name
	}
	if slices.Contains(names, kind) {
		return nil
	}
	slices.Sort(names)
	err := usagef("no engine ever declared the kind %q", kind)
	// A kind with operations is a prefix of theirs.
	group, _, _ := strings.Cut(kind, ".")
	operations := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, group+".") })
	switch {
	case group == "demo":
		return withHint(err, "engines know the demo kinds when they are started by: stint work --demo (or give --force)")
	case len(operations) > 0:
		return withHint(err, "the operations of %s are %s; --force enqueues it anyway", group, strings.Join(operations, ", "))
	case slices.Contains(builtin.names(), kind):
		return withHint(err, "on a shared database built-in kinds are switched on: stint work --kinds %s (or give --force)", kind)
	case len(names) == 0:
		return withHint(err, "none is declared yet: start an engine first, or give --force")
	}
	return withHint(err, "known are %s; --force enqueues it anyway", strings.Join(names, ", "))
}

func hintInput(err error) error {
	var conflict *stint.KeyConflictError
	if errors.As(err, &conflict) {
		return withHint(err, "see the job of the key: stint jobs show %d", conflict.ID)
	}
	var invalid *stint.InvalidError
	if errors.As(err, &invalid) && (invalid.Field == "args" || invalid.Field == "value") && strings.HasPrefix(invalid.Problem, "malformed JSON") {
		return withHint(err, `quote the whole value for the shell: '{"name": "value"}'`)
	}
	return err
}

// printReceipt prints the id. The word duplicate goes to standard error, so that a script
// gets the id alone.
func (a *app) printReceipt(r stint.Receipt) error {
	if a.json {
		return a.printJSON(r)
	}
	switch {
	case r.Duplicate && r.State != "":
		a.note("duplicate: the job is %s", r.State)
	case r.Duplicate:
		a.note("duplicate")
	case r.Replaced != 0:
		a.note("job %d is replaced", r.Replaced)
	case r.Cancelled != 0:
		a.note("job %d is cancelled", r.Cancelled)
	}
	_, err := fmt.Fprintln(a.out, r.ID)
	return err
}

// noteIfIdle says at a terminal that no engine runs. It ignores errors.
func (a *app) noteIfIdle(ctx context.Context, db *database) {
	if !a.errTerminal {
		return
	}
	if engines, err := db.Engines(ctx); err == nil && len(engines) == 0 {
		command := "stint up"
		if a.shared() {
			command = "stint work"
		}
		a.note("no engine is running: %s", a.startOne(command))
	}
}

// startOne says how to start an engine on this database.
func (a *app) startOne(command string) string {
	if a.server.asked {
		return fmt.Sprintf("start one on the database of %s with %s", a.server.url, command)
	}
	return fmt.Sprintf("start one with %s%s", command, a.sameDatabase())
}

// sameDatabase is the flag, if one is needed, by which another command finds this one's database.
func (a *app) sameDatabase() string {
	switch db := a.origins["db"]; {
	case db.rank == fromFile && a.origins["config"].from == "STINT_CONFIG":
		return ""
	case db.rank == fromFile:
		return " --config " + shellQuote(a.config)
	case a.db.url == defaultFile && a.config == "", a.env("STINT_DB") == a.db.url:
		return ""
	case a.db.isPostgres():
		return " --db …" // it may hold a password
	}
	return " --db " + shellQuote(a.db.url)
}

// shellQuote makes one word of a path, for people to copy.
func shellQuote(s string) string {
	if strings.ContainsAny(s, " '\"\\$&;|<>()*?!`") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// encode is JSON as people would write it, without escapes for web pages.
func encode(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	return plainJSON(raw), err
}

// enqueueBuiltin stores a job of a built-in kind.
func (a *app) enqueueBuiltin(ctx context.Context, kind string, args jobs.Checked, force bool, opts []stint.Option) error {
	if err := args.Check(); err != nil {
		return err
	}
	raw, err := encode(args)
	if err != nil {
		return err
	}
	return a.enqueue(ctx, kind, raw, force, opts)
}

const shHelp = `sh [flags] -- COMMAND [ARG]...: Enqueue a shell command

Sh enqueues a job of the built-in kind sh: a command that an engine runs. Its
output is kept with each attempt; an exit code other than 0 is a failure.

The command runs without a shell, with its arguments as they are; for pipes and the
like there is --shell. It gets only the variables of the engine's environment that
programs need (PATH, HOME, LANG …); add others with --env.

Examples:
  stint sh -- echo hello
  stint sh --retry none --timeout 10m -- pg_dump --file /backup/shop.sql shop
  stint sh --shell 'du -s /home/* | sort -n | tail -3' --delay 1h`

func (a *app) shCommand() *cobra.Command {
	var (
		flags   jobFlags
		command shelljob.Args
	)
	cmd := page(shHelp)
	cmd.Args = cobra.ArbitraryArgs
	a.withJSON(a.does(cmd, func(ctx context.Context, cmd *cobra.Command, args []string) (err error) {
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
		opts, err := flags.options(cmd.Flags())
		if err != nil {
			return err
		}
		return a.enqueueBuiltin(ctx, "sh", command, flags.force, opts)
	}))
	cmd.Flags().SetInterspersed(false) // what follows the command's name is the command's
	flags.add(cmd.Flags())
	cmd.Flags().StringVar(&command.Shell, "shell", "", "a line for the engine's shell, in place of a command")
	cmd.Flags().StringVar(&command.Dir, "dir", "", "the directory to run it in; a relative one counts from here (default: the engine's own)")
	cmd.Flags().Var(pairValue{&command.Env, "=", "LANG=C"}, "env", "NAME=VALUE for its environment; may be given many times")
	return cmd
}

const httpHelp = `http METHOD URL: Enqueue an HTTP request

Http enqueues a job of the built-in kind http: a request that an engine sends.
Status and body are kept with each attempt; a status that is not expected is a
failure.

With --callback 24h the receiver may answer 202, and say within 24 hours what came of
it, by a POST to the URL in the header Stint-Callback. The job waits without a slot. The
engine needs --http-callback for that.

An engine on a shared database sends requests to public addresses only, unless it
was started with --http-private. A request may take 30 seconds, or as long as
--timeout says.

Examples:
  stint http POST https://example.com/hook --json-body '{"paid": true}' --expect 200,202
  stint http GET https://example.com/health --retry none`

func (a *app) httpCommand() *cobra.Command {
	var (
		flags      jobFlags
		request    httpjob.Args
		body, data string
		callback   time.Duration
	)
	cmd := a.withJSON(a.does(page(httpHelp), func(ctx context.Context, cmd *cobra.Command, args []string) error {
		request.Method, request.URL, request.Callback = args[0], args[1], httpjob.Duration(callback)
		opts, err := flags.options(cmd.Flags())
		if err != nil {
			return err
		}
		request.Timeout = httpjob.Duration(stint.KindInfo{}.Job(nil, opts...).Timeout)
		if body != "" && data != "" {
			return usagef("--body and --json-body exclude each other")
		}
		if data != "" {
			raw, err := a.jsonArgument("args", []string{data})
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
		return a.enqueueBuiltin(ctx, "http", request, flags.force, opts)
	}))
	flags.add(cmd.Flags())
	cmd.Flags().Var(pairValue{&request.Headers, ":", "'Accept: text/plain'"}, "header", "'NAME: VALUE' to send; may be given many times")
	cmd.Flags().StringVar(&body, "body", "", "the body, or - for standard input")
	cmd.Flags().StringVar(&data, "json-body", "", "a JSON value as the body, or - for standard input")
	cmd.Flags().IntSliceVar(&request.Expect, "expect", nil, "the statuses that are a success: 200,202 (default 200 to 299)")
	durationFlag(cmd.Flags(), &callback, "callback", 0, "after status 202, how long to wait for the receiver to say what came of it")
	return cmd
}
