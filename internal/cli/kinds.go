package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/jobs"
	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/jobs/shelljob"
	"github.com/stint-go/stint/jobs/stepjob"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/retry"
)

func (a *app) kindsCommand() *cobra.Command {
	return a.noun(page("kinds|kind: List the kinds of jobs that engines know"),
		lists(a, `List shows the kinds that engines declared when they joined, also of engines that do
not run now, with the default options of their jobs.`, ops.ListKinds, a.listKinds))
}

func (a *app) listKinds(kinds []stint.KindInfo, now time.Time) {
	if len(kinds) == 0 {
		a.note("no engine ever declared a kind")
		return
	}
	t := newTable(a.out, "kind", "queue", "priority", "retry", "timeout", "tags", "limits", "declared")
	t.SuppressEmptyColumns() // a list of kinds with few defaults fits 80 columns
	for _, k := range kinds {
		priority, timeout := "", ""
		if k.Priority != 0 {
			priority = strconv.Itoa(k.Priority)
		}
		if k.Timeout > 0 {
			timeout = retry.FormatDuration(k.Timeout)
		}
		addRow(t, row{k.Name, cmp.Or(k.Queue, stint.DefaultQueue), priority, strings.Join(k.Retry.Lines(), "; "), timeout, strings.Join(k.Tags, " "), strings.Join(k.Limits, ", "), words.Ago(k.Declared, now)})
	}
	t.Render()
}

// builtinKind is a kind that the program itself can perform.
type builtinKind struct {
	declaration stint.KindInfo
	handler     func(o kindOptions) stint.Handler
	check       func(args json.RawMessage) error        // what can never be right
	step        func(h stint.Handler) stepjob.Operation // the kind as a step; nil for none
}

// kindOptions are what operators may choose for the built-in kinds.
type kindOptions struct {
	http  httpjob.Config
	steps *stepjob.Operations // of the kind steps: set by mux
}

type builtinKinds []builtinKind

// builtin lists the kinds by name.
var builtin = builtinKinds{
	{httpjob.Kind.Declaration(), func(o kindOptions) stint.Handler { return httpjob.Handler(o.http) }, strictly[httpjob.Args], httpStep},
	{shelljob.Kind.Declaration(), func(kindOptions) stint.Handler { return shelljob.Handler(shelljob.Config{}) }, strictly[shelljob.Args], shStep},
	{stepjob.Kind.Declaration(), func(o kindOptions) stint.Handler { return stepjob.Handler(o.steps) }, strictly[stepjob.Args], nil},
}

func (b builtinKinds) names() []string {
	var names []string
	for _, k := range b {
		names = append(names, k.declaration.Name)
	}
	return names
}

func (b builtinKinds) declarations() []stint.KindInfo {
	var all []stint.KindInfo
	for _, k := range b {
		all = append(all, k.declaration)
	}
	return all
}

// mux has the handlers of the chosen kinds. Steps may use the chosen kinds only: a kind
// that is off is off as a step, too.
func (b builtinKinds) mux(chosen []string, o kindOptions) (*stint.Mux, error) {
	for _, name := range chosen {
		if !slices.Contains(b.names(), name) {
			return nil, withHint(settingf("kinds", "%q is not a built-in kind", name),
				"built in are %s; kinds of your own are Go functions in a program of your own", strings.Join(b.names(), ", "))
		}
	}
	o.steps = b.operations(chosen, o)
	if len(o.steps.Names()) == 0 && slices.Contains(chosen, stepjob.Kind.Declaration().Name) {
		return nil, withHint(settingf("kinds", "steps has no kind to use"), "its steps are jobs of the other built-in kinds: --kinds sh,steps")
	}
	m := stint.NewMux()
	for _, k := range b {
		if slices.Contains(chosen, k.declaration.Name) {
			m.Add(k.declaration, k.handler(o))
		}
	}
	return m, nil
}

// operations are what steps may do with the chosen kinds.
func (b builtinKinds) operations(chosen []string, o kindOptions) *stepjob.Operations {
	ops := stepjob.NewOperations()
	for _, k := range b {
		if k.step != nil && slices.Contains(chosen, k.declaration.Name) {
			ops.Add(k.declaration.Name, k.step(k.handler(o)))
		}
	}
	return ops
}

// shStep is the kind sh as a step. The command reads the result of the step before, as
// JSON, on its standard input, unless its arguments have another one.
func shStep(h stint.Handler) stepjob.Operation {
	return kindStep(h, func(args *shelljob.Args, previous json.RawMessage) {
		args.Stdin = cmp.Or(args.Stdin, string(previous))
	})
}

// httpStep is the kind http as a step. A POST, PUT or PATCH without a body sends the result
// of the step before.
func httpStep(h stint.Handler) stepjob.Operation {
	step := kindStep(h, func(args *httpjob.Args, previous json.RawMessage) {
		switch args.Method {
		case http.MethodPost, http.MethodPut, http.MethodPatch:
			if args.Body == "" && args.JSON == nil {
				args.JSON = previous
			}
		}
	})
	check := step.Check
	step.Check = func(raw json.RawMessage) error {
		args, err := jobs.Decode[httpjob.Args](raw)
		if err == nil && args.Callback != 0 {
			return valid.Invalid("args.callback", "a step cannot wait for one: make it a job of its own, in a flow")
		}
		return check(raw)
	}
	return step
}

// kindStep makes a step of a kind whose arguments are of type A. Feed puts the result of the
// step before into them.
func kindStep[A jobs.Checked](h stint.Handler, feed func(args *A, previous json.RawMessage)) stepjob.Operation {
	return stepjob.Operation{
		Check: strictly[A],
		Run: func(ctx context.Context, in stepjob.Input) (json.RawMessage, error) {
			args, err := jobs.Decode[A](in.Args)
			if err != nil {
				return nil, stint.NoRetry(err)
			}
			if in.Previous != nil {
				feed(&args, in.Previous)
			}
			if in.Args, err = encode(args); err != nil {
				return nil, stint.NoRetry(err)
			}
			return stepjob.Of(h).Run(ctx, in)
		},
	}
}

// strictly checks arguments as the handler of a built-in kind does.
func strictly[A jobs.Checked](raw json.RawMessage) error {
	_, err := jobs.Decode[A](raw)
	return err
}

// check finds in the arguments of a built-in kind what can never be right, before they
// are stored.
func (b builtinKinds) check(kind string, raw json.RawMessage) error {
	for _, k := range b {
		if k.declaration.Name == kind {
			if raw == nil {
				raw = json.RawMessage("{}")
			}
			return k.check(raw)
		}
	}
	return nil
}

// checkArgs is check, with steps that no engine of this program can do.
func checkArgs(kind string, raw json.RawMessage) error {
	err := builtin.check(kind, raw)
	if err == nil && kind == stepjob.Kind.Declaration().Name {
		var args stepjob.Args
		if args, err = jobs.Decode[stepjob.Args](raw); err == nil {
			err = builtin.operations(builtin.names(), kindOptions{}).Check(args)
		}
	}
	if err != nil {
		return withHint(err, "engines of your own programs may have this kind with other arguments or steps: --force enqueues it anyway")
	}
	return nil
}
