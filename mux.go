package stint

import (
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

// Handler performs the jobs of one kind. The result that it returns is kept with the
// attempt, also when that failed; nil is none. The context is cancelled, with a cause,
// when the attempt must end: see [ErrTimeout], [ErrStopping], [ErrFenced]. It is also
// needed for [ClientFrom], [JobFrom], [Job.Previous] and [SetResult].
//
// A handler is called from many goroutines at once.
type Handler func(ctx context.Context, job *Job) (json.RawMessage, error)

// Mux has the handler of each kind, and the [Middleware] and [Hooks] around
// it. Fill it before an engine starts; after that it must not change. Make it with
// [NewMux].
type Mux struct {
	kinds      map[string]*Registration
	middleware []Middleware
	hooks      []Hooks
	retries    retry.Registry

	schedules   []Schedule
	scheduled   map[string]bool // their names
	recurrences cron.Registry
	limits      map[string]LimitRule

	mu   sync.Mutex // held while a kind is put together
	used atomic.Bool
}

// Registration is one kind in a [Mux]: what is added to it holds for the jobs of this
// kind.
type Registration struct {
	mux        *Mux
	decl       KindInfo
	handler    Handler
	middleware []Middleware
	hooks      []Hooks
	gathering  Gathering // zero for one job a call

	assembled func() assembly // with the mux's middleware and hooks; made once, when the kind is first used
}

// assembly is a kind's handler inside all of the middleware, and all hooks.
type assembly struct {
	handler Handler
	hooks   []Hooks
}

// NewMux returns a Mux without kinds.
func NewMux() *Mux { return &Mux{kinds: map[string]*Registration{}, scheduled: map[string]bool{}} }

// AnyKind is the name of a handler for all kinds that have none of their own: see [Mux.Add].
const AnyKind = "*"

// Add registers the handler of a kind. Like [net/http.ServeMux] it panics
// when the kind is already there or the declaration is wrong.
//
// Under the name [AnyKind] it registers the handler of all kinds that the mux does not have,
// declared or not. Of the declaration only the name counts: nothing is declared to the store.
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
	r.assembled = sync.OnceValue(r.assemble)
	m.kinds[d.Name] = r
	return r
}

// RetryFunc makes f decide about failures under policies made by
// [retry.Function] with that name, since policies are stored and functions cannot be.
// Without the function an engine leaves the decision to an engine that has it; the
// job waits for that. Like [Mux.Add] it panics when the name is taken or wrong.
func (m *Mux) RetryFunc(name string, f retry.Func) {
	if err := m.retries.Register(name, f); err != nil {
		panic("stint: " + err.Error())
	}
}

// RetryFuncs are the retry functions.
func (m *Mux) RetryFuncs() *retry.Registry { return &m.retries }

// Recurrence makes f compute the occurrences of schedules whose recurrence was made by
// [cron.Function] with that name, since recurrences are stored and functions cannot be.
// Without the function an engine leaves those schedules to an engine that has it. Like
// [Mux.Add] it panics when the name is taken or wrong.
func (m *Mux) Recurrence(name string, f cron.Func) {
	if err := m.recurrences.Register(name, f); err != nil {
		panic("stint: " + err.Error())
	}
}

// Recurrences are the recurrence functions.
func (m *Mux) Recurrences() *cron.Registry { return &m.recurrences }

// Schedule has every engine of the mux declare schedules when it joins: see
// [store.Scheduler]. A schedule that is no longer in the program stays in the store until
// it is removed. Like [Mux.Add] it panics when a schedule is wrong or its
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

// Handler returns the handler of a kind inside its middleware, or nil.
func (m *Mux) Handler(kind string) Handler {
	if r := m.registration(kind); r != nil {
		return r.assembled().handler
	}
	return nil
}

// registration returns what is registered for the jobs of a kind, or nil.
func (m *Mux) registration(kind string) *Registration {
	if r := m.kinds[kind]; r != nil {
		return r
	}
	return m.kinds[AnyKind]
}

// Hooks returns the hooks of a kind in the order of their calls. They must not be
// changed.
func (m *Mux) Hooks(kind string) []Hooks {
	if r := m.registration(kind); r != nil {
		return r.assembled().hooks
	}
	return nil
}

// Declaration returns what was declared of a kind; the zero KindInfo if nothing was.
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

func (r *Registration) assemble() assembly {
	r.mux.mu.Lock()
	defer r.mux.mu.Unlock()
	r.mux.used.Store(true)
	return assembly{handler: opening(r.decl, r.wrap()), hooks: slices.Concat(r.mux.hooks, r.hooks)}
}

// mustBeUnused panics when something is added too late, which would be ignored.
func (m *Mux) mustBeUnused(adding string) {
	if m.used.Load() {
		panic("stint: the mux is in use already: " + adding + " belong there before an engine runs")
	}
}
