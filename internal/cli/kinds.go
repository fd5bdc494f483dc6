package cli

import (
	"slices"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs/httpjob"
	"github.com/stint-go/stint/jobs/shelljob"
	"github.com/stint-go/stint/jobs/stepjob"
)

// builtinKind is a kind that the program itself can perform.
type builtinKind struct {
	declaration stint.KindInfo
	handler     func(o kindOptions) stint.Handler
	step        func(h stint.Handler) stepjob.Operation // the kind as a step; nil for none
}

// kindOptions is what operators may say about the built-in kinds.
type kindOptions struct {
	private bool                // requests may go to addresses that are not public
	steps   *stepjob.Operations // what steps may do: set by mux
}

type builtinKinds []builtinKind

// builtin lists the kinds by name.
var builtin = builtinKinds{
	{httpjob.Kind.Declaration(), func(o kindOptions) stint.Handler { return httpjob.Handler(httpjob.Config{AllowPrivate: o.private}) }, httpStep},
	{shelljob.Kind.Declaration(), func(kindOptions) stint.Handler { return shelljob.Handler(shelljob.Config{}) }, shStep},
	{stepjob.Kind.Declaration(), func(o kindOptions) stint.Handler { return stepjob.Handler(o.steps) }, nil},
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

// mux has the handlers of the kinds chosen. Steps may do what the others do:
// what an operator did not switch on is not to be had in this way either.
func (b builtinKinds) mux(chosen []string, o kindOptions) (*stint.Mux, error) {
	for _, name := range chosen {
		if !slices.Contains(b.names(), name) {
			return nil, withHint(settingf("kinds", "%q is not a built-in kind", name),
				"built in are %s; kinds of your own are Go functions in a program of your own", strings.Join(b.names(), ", "))
		}
	}
	o.steps = b.operations(chosen, o)
	if len(o.steps.Names()) == 0 && slices.Contains(chosen, stepjob.Kind.Declaration().Name) {
		return nil, withHint(settingf("kinds", "steps has nothing to do"), "its steps are jobs of the other built-in kinds: --kinds sh,steps")
	}
	m := stint.NewMux()
	for _, k := range b {
		if slices.Contains(chosen, k.declaration.Name) {
			m.Add(k.declaration, k.handler(o))
		}
	}
	return m, nil
}

// operations are what steps may do where some kinds are switched on.
func (b builtinKinds) operations(chosen []string, o kindOptions) *stepjob.Operations {
	ops := stepjob.NewOperations()
	for _, k := range b {
		if k.step != nil && slices.Contains(chosen, k.declaration.Name) {
			ops.Add(k.declaration.Name, k.step(k.handler(o)))
		}
	}
	return ops
}
