// Package ops declares each operation that people do on jobs, queues, kinds, schedules,
// engines and leases, once: its name, who may do it, what it takes, what it answers, and
// what it does. The command line, the JSON API, the API's client and the forms of the
// dashboard are made from these declarations.
//
//	command ──┐              ┌─▶ Local ──▶ store
//	page ─────┼─▶ operation ─┤
//	program ──┘              └─▶ remote.Store ──HTTP──▶ api ──▶ Local ──▶ store
//
// An input is a struct whose tags say where its fields stand in a request: path, query,
// or json within the field Body. An operation that changes something is written into the
// log of changes under its name, before it is done.
//
// How to add an operation is in CONTRIBUTING.md.
package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/seal"
	"github.com/stint-go/stint/store"
)

// Decl is what is said of an operation, whatever it takes and answers.
type Decl struct {
	// Name is a noun and a verb, as in "queues pause": the command, and the name in
	// the log of changes.
	Name    string
	Summary string // one line
	Doc     string // the rest, for the document of the API; may be empty

	Method, Path string        // of the API, below its prefix
	Status       int           // of success there; 0 is 200
	Needs        guard.Role    // who may; the zero value is [guard.Viewer]
	Tag          string        // of the document of the API; empty is the noun
	Within       time.Duration // how long the API waits for the database; 0 is 10 seconds for questions and a minute for changes

	// Confirm says that the form of a page has to confirm it, by the verb.
	Confirm bool
}

// Changes reports whether it is more than a question.
func (d *Decl) Changes() bool { return d.Method != http.MethodGet }

// ID is its name as one word: "queues-pause".
func (d *Decl) ID() string { return strings.ReplaceAll(d.Name, " ", "-") }

// Noun is what it is about, and Verb what it does.
func (d *Decl) Noun() string { noun, _, _ := strings.Cut(d.Name, " "); return noun }
func (d *Decl) Verb() string { _, verb, _ := strings.Cut(d.Name, " "); return verb }

// Describe returns the declaration.
func (d *Decl) Describe() *Decl { return d }

// Op is an operation that takes an I and answers with an O.
type Op[I, O any] struct {
	Decl
	do func(ctx context.Context, l *Local, in *I) (O, error)

	// said tells people what came of it, as in "queue mail is paused". Nil says the
	// tally of an [Answered], and nothing of other answers.
	said func(in *I, out O) string
}

// Operation is any [Op].
type Operation interface {
	Describe() *Decl

	// Register adds it to an API as it is described there. A caller does it.
	Register(api huma.API, as huma.Operation, c Caller)

	// Input returns a pointer to an input without content, and Output one to an answer.
	Input() any
	Output() any

	// Said tells people what came of it; input and answer are as Input and Output
	// return them. It is empty where there is more to show than a sentence.
	Said(in, out any) string

	run(ctx context.Context, l *Local, in, out any) error
}

// Caller has operations done: a [Local] does them on a store, and a server of package
// remote has them done there. In and out are pointers as an operation's Input and Output
// return them. [Op.Call] is the way to call one.
type Caller interface {
	Call(ctx context.Context, op Operation, in, out any) error
}

// All are the operations. It must not be changed.
var All []Operation

func declare[I, O any](o *Op[I, O]) *Op[I, O] {
	o.Needs = max(o.Needs, guard.Viewer)
	All = append(All, o)
	return o
}

// Find returns the operation of a noun and a verb; nil when there is none.
func Find(noun, verb string) Operation {
	for _, o := range All {
		if d := o.Describe(); d.Noun() == noun && d.Verb() == verb {
			return o
		}
	}
	return nil
}

// List is an answer that is a list. Those that come in pages have a next beside it.
type List[T any] struct {
	Items []T `json:"items"`
}

// Items are those of an answer that is a list.
func Items[T any](l List[T], err error) ([]T, error) { return l.Items, err }

// listed is a list as an answer: an empty one is [] in JSON, and not null.
func listed[T any](all []T, err error) (List[T], error) {
	all, err = list(all, err)
	return List[T]{all}, err
}

// lists declares an operation that lists all that there is.
func lists[T any](d Decl, all func(Store, context.Context) ([]T, error)) *Op[None, List[T]] {
	d.Method = http.MethodGet
	return declare(&Op[None, List[T]]{Decl: d, do: func(ctx context.Context, l *Local, _ *None) (List[T], error) {
		return listed(all(l.Store, ctx))
	}})
}

// Call has the operation done.
func (o *Op[I, O]) Call(ctx context.Context, c Caller, in I) (O, error) {
	var out O
	err := c.Call(ctx, o, &in, &out)
	return out, err
}

// Said tells people what came of it.
func (o *Op[I, O]) Said(in, out any) string {
	if o.said != nil {
		return o.said(in.(*I), *out.(*O))
	}
	if a, ok := out.(Answered); ok {
		return TallyText(a.Tally())
	}
	return ""
}

// Input returns a pointer to an input without content.
func (o *Op[I, O]) Input() any { return new(I) }

// Output returns a pointer to an answer without content.
func (o *Op[I, O]) Output() any { return new(O) }

// answer is one that has nothing but a body.
type answer[T any] struct {
	Body T
}

// Register adds the operation to an API. A caller does it.
func (o *Op[I, O]) Register(api huma.API, as huma.Operation, c Caller) {
	huma.Register(api, as, func(ctx context.Context, in *I) (*answer[O], error) {
		var out answer[O]
		if err := c.Call(ctx, o, in, &out.Body); err != nil {
			return nil, err
		}
		return &out, nil
	})
}

func (o *Op[I, O]) run(ctx context.Context, l *Local, in, out any) error {
	if l.who(ctx).Role < o.Needs {
		return l.told(ctx, o.Name, &ForbiddenError{Needs: o.Needs})
	}
	end, err := func(error) {}, error(nil)
	if o.Changes() {
		end, err = l.record(ctx, o.Name, in)
	}
	if err != nil {
		return l.told(ctx, o.Name, err)
	}
	if err = Check(in); err == nil {
		*out.(*O), err = o.do(ctx, l, in.(*I))
	}
	err = l.told(ctx, o.Name, err)
	end(err)
	return err
}

// Store is what operations need of one: what people do, and nothing of what engines do.
type Store interface {
	stint.Enqueuer
	store.Awaiter
	store.Inspector
	store.Canceller
	store.Operator
	store.Pauser
	store.ChangeKeeper
	store.ScheduleKeeper
	store.Scheduler
	store.Leaser
	store.Limiter
	store.Signaler
	store.Questioner
	store.LogReader
	store.FlowGrapher
	report.LiveStats
	report.ActivityStats
	report.ErrorAnalyst
	report.ErrorMarker
	store.FilterKeeper
	report.StatsStore
	report.DemandStore
	report.MetricsKeeper
	report.Source
	view.Store
}

// Local does operations on a store. The fields must not be changed once it is used.
type Local struct {
	Store Store // operations show of it what [Show] does

	// Way is how changes come: [store.WayAPI] or [store.WayCommand].
	Way string

	// As is who asks. Nil is who the context says: see [guard.Of].
	As *guard.Identity

	// Limits bound what is enqueued.
	Limits stint.Limits

	// Bury frees what an engine holds: engine.Bury, of this store.
	Bury func(ctx context.Context, engine store.EngineID, why string) (int, error)

	// Restricted are the kinds whose jobs only an admin enqueues and schedules.
	Restricted []string

	// Builtin are kinds that are known although no engine declared them.
	Builtin []stint.KindInfo

	// CheckArgs reports what can never be right in the arguments of a kind. Nil accepts any.
	CheckArgs func(kind string, args json.RawMessage) error

	// HideArgs hides what producers and handlers wrote from viewers.
	HideArgs bool

	// Keys open what is sealed, for admins who ask for a job: see [OpenJob]. Nil opens nothing.
	Keys seal.Keys

	// Bounded are the kinds that the doctor need not warn of: see [report.Options].
	Bounded []string

	// Told translates an error into the one that is returned, and kept in the log of
	// changes. Nil keeps it as it is.
	Told func(ctx context.Context, operation string, err error) error

	// Failed is called when the result of a change could not be written down. It may
	// be nil.
	Failed func(ctx context.Context, operation string, err error)
}

// Call implements [Caller].
func (l *Local) Call(ctx context.Context, op Operation, in, out any) error {
	shown := *l
	shown.Store = Show(l.Store)
	return op.run(ctx, &shown, in, out)
}

// who asks.
func (l *Local) who(ctx context.Context) guard.Identity {
	if l.As != nil {
		return *l.As
	}
	return guard.Of(ctx)
}

func (l *Local) told(ctx context.Context, operation string, err error) error {
	if err == nil || l.Told == nil {
		return err
	}
	return l.Told(ctx, operation, err)
}

// ForbiddenError says that an operation is for another role.
type ForbiddenError struct {
	Needs guard.Role
	Kind  string // whose jobs are restricted; empty otherwise
	Place string // of the kind in the request
}

// Error says for which role it is.
func (e *ForbiddenError) Error() string {
	if e.Kind != "" {
		return fmt.Sprintf("jobs of the kind %s do whatever they say: this is for the role %s", e.Kind, e.Needs)
	}
	return "this is for the role " + e.Needs.String()
}

// InError is an error about a part of a request.
type InError struct {
	Place string // such as body.jobs[3]
	Err   error
}

// inError says where in a request an error is; nil stays nil.
func inError(place string, err error) error {
	if err == nil {
		return nil
	}
	return &InError{place, err}
}

// checkNames checks names, each after the field that has it. Empty ones are not there.
func checkNames(place string, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if err := valid.Name(pairs[i], pairs[i+1]); err != nil {
			return inError(place, err)
		}
	}
	return nil
}

// Error is the error itself.
func (e *InError) Error() string { return e.Err.Error() }

// Unwrap is the error itself.
func (e *InError) Unwrap() error { return e.Err }

// list makes an empty list one that is not nil: [] rather than null in JSON.
func list[T any](all []T, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return append([]T{}, all...), nil
}

// None is the input of an operation that takes nothing.
type None struct{}

// Changed says whether something is another than before.
type Changed struct {
	Changed bool `json:"changed"`
}

func changed(is bool, err error) (Changed, error) { return Changed{is}, err }

// either is one text when something was changed, and another one when it was not.
func (c Changed) either(is, was string) string {
	if c.Changed {
		return is
	}
	return was
}

// Why is a reason that is kept.
type Why struct {
	Why string `json:"why,omitempty" maxLength:"1000" doc:"The reason that is kept, for those who wonder"`
}

const changeTime = time.Minute // of questions that count all that there is
