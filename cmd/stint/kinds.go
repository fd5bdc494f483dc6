package main

import (
	"slices"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/httpjob"
	"github.com/stint-go/stint/shelljob"
)

// builtinKind is a kind that the program itself can perform.
type builtinKind struct {
	declaration stint.Declaration
	register    func(m *stint.Mux, o kindOptions)
}

// kindOptions is what operators may say about the built-in kinds.
type kindOptions struct {
	private bool // requests may go to addresses that are not public
}

type builtinKinds []builtinKind

// builtin lists the kinds by name.
var builtin = builtinKinds{
	{httpjob.Kind.Declaration(), func(m *stint.Mux, o kindOptions) { httpjob.Register(m, httpjob.Config{AllowPrivate: o.private}) }},
	{shelljob.Kind.Declaration(), func(m *stint.Mux, _ kindOptions) { shelljob.Register(m, shelljob.Config{}) }},
}

func (b builtinKinds) names() []string {
	var names []string
	for _, k := range b {
		names = append(names, k.declaration.Name)
	}
	return names
}

func (b builtinKinds) declarations() []stint.Declaration {
	var all []stint.Declaration
	for _, k := range b {
		all = append(all, k.declaration)
	}
	return all
}

// mux has the handlers of the kinds chosen.
func (b builtinKinds) mux(chosen []string, o kindOptions) (*stint.Mux, error) {
	for _, name := range chosen {
		if !slices.Contains(b.names(), name) {
			return nil, withHint(usagef("--kinds: %q is not a built-in kind", name),
				"built in are %s; kinds of your own are Go functions in a program of your own", strings.Join(b.names(), ", "))
		}
	}
	m := stint.NewMux()
	for _, k := range b {
		if slices.Contains(chosen, k.declaration.Name) {
			k.register(m, o)
		}
	}
	return m, nil
}
