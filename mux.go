package stint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/stint-go/stint/retry"
)

// Handler performs the jobs of one kind. What it returns beside an error is
// kept with the execution, also when the attempt failed; nil is nothing. The
// context is cancelled, with a cause, when the attempt must end: see
// [ErrTimeout], [ErrStopping], [ErrFenced].
//
// A handler is called from many goroutines at once.
type Handler func(ctx context.Context, job *Job) (json.RawMessage, error)

// Mux knows the handler of each kind. Fill it before an engine starts; after
// that it must not change. The zero value is not ready: use [NewMux].
type Mux struct {
	kinds   map[string]muxEntry
	retries retry.Registry
}

type muxEntry struct {
	decl    Declaration
	handler Handler
}

// NewMux returns a Mux that knows no kind.
func NewMux() *Mux { return &Mux{kinds: map[string]muxEntry{}} }

// Add registers the handler of a kind. Like [net/http.ServeMux] it panics
// when the kind is already there or the declaration is wrong.
func (m *Mux) Add(d Declaration, h Handler) {
	if err := d.Check(); err != nil {
		panic(fmt.Sprintf("stint: kind %q: %v", d.Name, err))
	}
	if h == nil {
		panic(fmt.Sprintf("stint: kind %q: the handler is nil", d.Name))
	}
	if _, twice := m.kinds[d.Name]; twice {
		panic(fmt.Sprintf("stint: kind %q has a handler already", d.Name))
	}
	m.kinds[d.Name] = muxEntry{d, h}
}

// RetryFunc makes f decide about failures under policies made by
// [retry.Function] with that name: policies are stored, functions cannot be. An
// engine without the function leaves the decision to one that has it, and the
// job waits for that. Like [Mux.Add] it panics when the name is taken or wrong.
func (m *Mux) RetryFunc(name string, f retry.Func) {
	if err := m.retries.Register(name, f); err != nil {
		panic("stint: " + err.Error())
	}
}

// RetryFuncs are the retry functions.
func (m *Mux) RetryFuncs() *retry.Registry { return &m.retries }

// Handler is the handler of a kind, or nil.
func (m *Mux) Handler(kind string) Handler { return m.kinds[kind].handler }

// Declaration is what was declared of a kind; the zero one if nothing was.
func (m *Mux) Declaration(kind string) Declaration { return m.kinds[kind].decl }

// Declarations lists the kinds by name.
func (m *Mux) Declarations() []Declaration {
	all := make([]Declaration, 0, len(m.kinds))
	for _, name := range slices.Sorted(maps.Keys(m.kinds)) {
		all = append(all, m.kinds[name].decl)
	}
	return all
}

// Handle registers a function for a kind. Arguments that do not decode into A
// fail the attempt before the function is called.
func Handle[A any](m *Mux, k Kind[A], f func(ctx context.Context, job *Job, args A) error) {
	m.Add(k.decl, func(ctx context.Context, job *Job) (json.RawMessage, error) {
		args, err := decode[A](job.Args)
		if err != nil {
			return nil, err
		}
		return nil, f(ctx, job, args)
	})
}

// HandleResult registers a function that returns a result. The result of a
// failed attempt is not kept.
func HandleResult[A, R any](m *Mux, k ResultKind[A, R], f func(ctx context.Context, job *Job, args A) (R, error)) {
	m.Add(k.decl, func(ctx context.Context, job *Job) (json.RawMessage, error) {
		args, err := decode[A](job.Args)
		if err != nil {
			return nil, err
		}
		result, err := f(ctx, job, args)
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(result)
		if err != nil {
			// The work is done; running it again would not make the result
			// any more encodable.
			return nil, NoRetry(fmt.Errorf("encode the result: %w", err))
		}
		return raw, nil
	})
}

// decode keeps numbers exact where A has room for them: an untyped number
// becomes a [json.Number], never a float that lost digits.
func decode[A any](raw json.RawMessage) (A, error) {
	var args A
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&args); err != nil {
		return args, fmt.Errorf("decode the arguments: %w", err)
	}
	return args, nil
}
