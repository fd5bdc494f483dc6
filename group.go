package stint

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stint-go/stint/internal/valid"
)

// Group is a kind with several named operations. The operation "send" of the
// group "invoice" is the kind "invoice.send": it has its own arguments, its own
// handler and, beside what the group says, its own defaults. Operations are
// declared by [NewOperation].
//
// An operation that was not declared is refused where the declaration is
// known: by the group's own methods, by a client that knows the group
// ([Client.Declare]), and by the command line, which knows what engines
// declared. Elsewhere, as in SQL, any kind is accepted; its jobs wait for an
// engine that handles it.
type Group struct {
	name     string
	defaults []Option

	mu         sync.RWMutex
	operations map[string]KindInfo // by kind
}

// NewGroup declares a group. The options are the defaults of the jobs of all of
// its operations. Like [NewKind] it panics when one is invalid.
func NewGroup(name string, defaults ...Option) *Group {
	NewKind[struct{}](name, defaults...)
	return &Group{name: name, defaults: defaults, operations: map[string]KindInfo{}}
}

// NewOperation declares an operation of a group: the kind "group.operation".
// The options are the defaults of its jobs and override the group's. It panics
// when the operation was declared before or the declaration is invalid. The name has
// no dots.
func NewOperation[A any](g *Group, operation string, defaults ...Option) Kind[A] {
	if operation == "" || strings.Contains(operation, ".") {
		panic(fmt.Sprintf("stint: group %q: %q is no name for an operation", g.name, operation))
	}
	k := NewKind[A](g.name+"."+operation, slices.Concat(g.defaults, defaults)...)
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, twice := g.operations[k.decl.Name]; twice {
		panic(fmt.Sprintf("stint: group %q has the operation %q already", g.name, operation))
	}
	g.operations[k.decl.Name] = k.decl
	return k
}

// NewResultOperation declares an operation with a result. It is otherwise
// [NewOperation].
func NewResultOperation[A, R any](g *Group, operation string, defaults ...Option) ResultKind[A, R] {
	return ResultKind[A, R]{NewOperation[A](g, operation, defaults...)}
}

// Name is the group's name.
func (g *Group) Name() string { return g.name }

// Operations lists the names of the group's operations.
func (g *Group) Operations() []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	names := slices.Sorted(maps.Keys(g.operations))
	for i, kind := range names {
		names[i] = strings.TrimPrefix(kind, g.name+".")
	}
	return names
}

// New makes a job of an operation that is chosen by its name at run time. One that
// the group does not have is an [InvalidError]. Arguments of the wrong type fail when
// the job runs; where the operation is known when the program is built, use [Kind.New],
// which the compiler checks.
func (g *Group) New(operation string, args any, opts ...Option) (NewJob, error) {
	kind := g.name + "." + operation
	d, found := g.operation(kind)
	if !found {
		return NewJob{}, g.unknown(kind)
	}
	return d.encode(args, opts)
}

// Enqueue stores one job of an operation that is chosen by its name, as
// [Group.New] makes it, and returns its ID.
func (g *Group) Enqueue(ctx context.Context, c *Client, operation string, args any, opts ...Option) (ID, error) {
	job, err := g.New(operation, args, opts...)
	if err != nil {
		return 0, err
	}
	return c.Enqueue(ctx, job)
}

func (g *Group) operation(kind string) (d KindInfo, found bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	d, found = g.operations[kind]
	return d, found
}

// claims reports whether a kind has the form of the group's operations, or is the
// group itself, which is no kind.
func (g *Group) claims(kind string) bool {
	rest, ok := strings.CutPrefix(kind, g.name)
	return ok && (rest == "" || rest[0] == '.')
}

func (g *Group) unknown(kind string) error {
	have := strings.Join(g.Operations(), ", ")
	if have == "" {
		have = "none"
	}
	if kind == g.name {
		return valid.Invalid("kind", "%q is a group: name one of its operations (%s)", kind, have)
	}
	return valid.Invalid("kind", "%q is no operation of %s, which has: %s", kind, g.name, have)
}

// checkOperation refuses an operation that none of the groups has.
func checkOperation(groups []*Group, kind string) error {
	var of *Group
	for _, g := range groups {
		if g.claims(kind) {
			if _, found := g.operation(kind); found {
				return nil
			}
			// Of nested groups the innermost decides.
			if of == nil || len(g.name) > len(of.name) {
				of = g
			}
		}
	}
	if of == nil {
		return nil
	}
	return of.unknown(kind)
}
