package stint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/retry"
)

// Handler performs the jobs of one kind. What it returns beside an error is
// kept with the execution, also when the attempt failed; nil is nothing. The
// context is cancelled, with a cause, when the attempt must end: see
// [ErrTimeout], [ErrStopping], [ErrFenced]. It also leads to the job's engine:
// see [ClientFrom], [JobFrom], [Job.Previous] and [SetResult].
//
// A handler is called from many goroutines at once.
type Handler func(ctx context.Context, job *Job) (json.RawMessage, error)

// Mux knows the handler of each kind, and the [Middleware] and [Hooks] around
// it. Fill it before an engine starts; after that it must not change. The zero
// value is not ready: use [NewMux].
type Mux struct {
	kinds      map[string]*Registration
	middleware []Middleware
	hooks      []Hooks
	retries    retry.Registry

	schedules   []Schedule
	scheduled   map[string]bool // their names
	recurrences cron.Registry

	mu   sync.Mutex // held while a kind is put together
	used atomic.Bool
}

// Registration is the place of one kind in a [Mux]: what is added to it holds
// for the jobs of this kind.
type Registration struct {
	mux        *Mux
	decl       KindInfo
	handler    Handler
	middleware []Middleware
	hooks      []Hooks

	ready atomic.Pointer[assembly]
}

// assembly is a kind put together: its handler inside all of the middleware,
// and all hooks. It is made once, when the kind is first asked for.
type assembly struct {
	handler Handler
	hooks   []Hooks
}

// NewMux returns a Mux that knows no kind.
func NewMux() *Mux { return &Mux{kinds: map[string]*Registration{}, scheduled: map[string]bool{}} }

// Add registers the handler of a kind. Like [net/http.ServeMux] it panics
// when the kind is already there or the declaration is wrong.
func (m *Mux) Add(d KindInfo, h Handler) *Registration {
	if err := d.Check(); err != nil {
		panic(fmt.Sprintf("stint: kind %q: %v", d.Name, err))
	}
	if h == nil {
		panic(fmt.Sprintf("stint: kind %q: the handler is nil", d.Name))
	}
	if _, twice := m.kinds[d.Name]; twice {
		panic(fmt.Sprintf("stint: kind %q has a handler already", d.Name))
	}
	r := &Registration{mux: m, decl: d, handler: h}
	m.kinds[d.Name] = r
	return r
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

// Recurrence makes f say when the schedules recur whose recurrence was made by
// [cron.Function] with that name: recurrences are stored, functions cannot be. An
// engine without the function leaves those schedules to one that has it. Like
// [Mux.Add] it panics when the name is taken or wrong.
func (m *Mux) Recurrence(name string, f cron.Func) {
	if err := m.recurrences.Register(name, f); err != nil {
		panic("stint: " + err.Error())
	}
}

// Recurrences are the recurrence functions.
func (m *Mux) Recurrences() *cron.Registry { return &m.recurrences }

// Schedule has every engine of the mux declare schedules when it joins: see
// [store.Scheduler]. One that is taken out of the program stays in the store until
// somebody removes it. Like [Mux.Add] it panics when a schedule is wrong or its
// name is taken.
func (m *Mux) Schedule(schedules ...Schedule) {
	ready, err := readySchedules(schedules, Limits{}, m.scheduled)
	if err != nil {
		panic("stint: " + err.Error())
	}
	for _, s := range ready {
		m.scheduled[s.Name] = true
	}
	m.schedules = append(m.schedules, ready...)
}

// Schedules are the schedules that engines declare.
func (m *Mux) Schedules() []Schedule { return slices.Clone(m.schedules) }

// Handler is the handler of a kind inside its middleware, or nil.
func (m *Mux) Handler(kind string) Handler {
	r := m.kinds[kind]
	if r == nil {
		return nil
	}
	return r.assembled().handler
}

// Hooks are the hooks of a kind in the order of their adding, the mux's own
// first. They are not to be written to.
func (m *Mux) Hooks(kind string) []Hooks {
	r := m.kinds[kind]
	if r == nil {
		return nil
	}
	return r.assembled().hooks
}

// KindInfo is what was declared of a kind; the zero one if nothing was.
func (m *Mux) Declaration(kind string) KindInfo {
	if r := m.kinds[kind]; r != nil {
		return r.decl
	}
	return KindInfo{}
}

// Declarations lists the kinds by name.
func (m *Mux) Declarations() []KindInfo {
	all := make([]KindInfo, 0, len(m.kinds))
	for _, name := range slices.Sorted(maps.Keys(m.kinds)) {
		all = append(all, m.kinds[name].decl)
	}
	return all
}

func (r *Registration) assembled() *assembly {
	if a := r.ready.Load(); a != nil {
		return a
	}
	r.mux.mu.Lock()
	defer r.mux.mu.Unlock()
	if a := r.ready.Load(); a != nil {
		return a
	}
	r.mux.used.Store(true)
	a := &assembly{handler: r.wrap(), hooks: slices.Concat(r.mux.hooks, r.hooks)}
	r.ready.Store(a)
	return a
}

// mustBeUnused keeps what is added too late from being ignored in silence.
func (m *Mux) mustBeUnused(adding string) {
	if m.used.Load() {
		panic("stint: the mux is in use already: " + adding + " belong there before an engine runs")
	}
}

// Handle registers a function for a kind. Arguments that do not decode into A
// fail the attempt before the function is called.
func Handle[A any](m *Mux, k Kind[A], f func(ctx context.Context, job *Job, args A) error) *Registration {
	return m.Add(k.decl, func(ctx context.Context, job *Job) (json.RawMessage, error) {
		args, err := decode[A](job.Args)
		if err != nil {
			return nil, err
		}
		return nil, f(ctx, job, args)
	})
}

// HandleResult registers a function that returns a result. The result of a
// failed attempt is not kept.
func HandleResult[A, R any](m *Mux, k ResultKind[A, R], f func(ctx context.Context, job *Job, args A) (R, error)) *Registration {
	return m.Add(k.decl, func(ctx context.Context, job *Job) (json.RawMessage, error) {
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
