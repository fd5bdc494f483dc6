// Package api is the JSON API of a store: everything that people and programs of
// other languages do with jobs, queues, kinds, schedules, engines and leases, under
// /api/v1, described by an OpenAPI 3.1 document at /api/v1/openapi.json.
//
// Answers carry the language's own structs: what Go programs call [stint.JobInfo]
// is what the API calls a job. Durations are whole nanoseconds, instants are
// RFC 3339, tokens of 64 bits are strings, and ids are numbers below 2^53. Lists
// are paged by keys and not by offsets, so that a page shows the same jobs
// whatever is enqueued meanwhile.
//
// What goes wrong is told as problem details (RFC 9457), with the path of each
// field that is wrong. No operation waits for ever for a database: a question is
// answered within ten seconds, and what counts all that there is, or changes
// something, within a minute, if only with 504. A [guard.Guard] stands before the
// API and tells it who asks: without one, nobody may do anything.
package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/retry"
)

// Store is what the API needs of one: what people do, and nothing of what
// engines do.
type Store interface {
	stint.Enqueuer
	stint.Inspector
	stint.Canceller
	stint.Operator
	stint.Pauser
	stint.ChangeKeeper
	stint.ScheduleKeeper
	stint.Scheduler
	stint.Leaser
	stint.Analyst
	stint.ErrorAnalyst
	stint.Statistician
	stint.MetricsKeeper
	stint.Patient
	view.Store
}

// Prefix is where the API is.
const Prefix = "/api/v1"

// Config says how an API is served. The zero value works.
type Config struct {
	// Version is the program's, for the document.
	Version string

	// Limits bound what is enqueued.
	Limits stint.Limits

	// Bury frees what an engine holds: engine.Bury, of this store. Nil leaves that
	// to the command line.
	Bury func(ctx context.Context, engine stint.Token, why string) (int, error)

	// Restricted are the kinds whose jobs only an admin enqueues and schedules,
	// since they do whatever their arguments say. Nil restricts those that stint
	// comes with, sh, http and steps; an empty list that is not nil lifts that.
	Restricted []string

	// Path is where the API is mounted, such as /stint, for the document; nothing
	// for the root. Requests come without it. A dashboard sets it to its own.
	Path string

	// HideArgs keeps from viewers what producers and handlers wrote: arguments,
	// metadata, results, and what errors say; and every question that would find
	// them out, one guess after the other. Names, tags, classes of errors and the
	// reasons for which jobs ended stay to be seen.
	HideArgs bool

	// Bounded are the kinds that the doctor need not warn of: see
	// [stint.Examination].
	Bounded []string

	// OnError is told of each error that nobody expected, with the operation
	// that it came of. A client is told only that there was one: the text may
	// be about the database. Nil drops them.
	OnError func(ctx context.Context, operation string, err error)
}

// doAsTheySay are the kinds of stint's own that do whatever their arguments say:
// those of the packages shelljob, httpjob and stepjob.
var doAsTheySay = []string{"sh", "http", "steps"}

// api is what the operations share.
type api struct {
	huma.API
	Config
	store    Store
	client   *stint.Client
	problems *huma.Response
}

// by names who asks, for what is kept of changes.
func by(ctx context.Context) string { return guard.Of(ctx).Name }

// Handler serves an API.
type Handler struct {
	http.Handler
	api *api
}

// OpenAPI is the document that describes it. It must not be changed.
func (h *Handler) OpenAPI() *huma.OpenAPI { return h.api.OpenAPI() }

// New returns the handler of everything below [Prefix].
func New(store Store, c Config) *Handler {
	if c.Restricted == nil {
		c.Restricted = doAsTheySay
	}
	mux := http.NewServeMux()
	config := huma.DefaultConfig("stint", c.Version)
	config.Info.Description = "Durable background jobs on the database a team already has."
	config.OpenAPIPath, config.SchemasPath = Prefix+"/openapi", Prefix+"/schemas"
	config.DocsPath = ""     // the renderers would be loaded from another host
	config.CreateHooks = nil // no links to schemas in answers
	config.Servers = []*huma.Server{{URL: cmp.Or(strings.TrimSuffix(c.Path, "/"), "/")}}
	config.Components.SecuritySchemes, config.Security = ways, []map[string][]string{{"token": {}}, {"password": {}}}
	a := &api{API: humago.New(mux, config), Config: c, store: store, client: stint.NewClient(store).Limit(c.Limits)}
	// What writes itself is described by what it writes. Tokens are written as
	// strings wherever they stand.
	schemas := a.OpenAPI().Components.Schemas
	schemas.RegisterTypeAlias(reflect.TypeFor[stint.Token](), reflect.TypeFor[string]())
	schemas.RegisterTypeAlias(reflect.TypeFor[stint.ScheduleInfo](), reflect.TypeFor[Schedule]())
	schemas.RegisterTypeAlias(reflect.TypeFor[stint.Durations](), reflect.TypeFor[Durations]())
	schemas.RegisterTypeAlias(reflect.TypeFor[retry.Policy](), reflect.TypeFor[Policy]())
	a.problems = &huma.Response{Description: "Error", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: schemas.Schema(reflect.TypeFor[Problem](), true, "")},
	}}
	for _, part := range []func(){a.jobs, a.verbs, a.queues, a.kinds, a.schedules, a.engines, a.leases, a.figures, a.doctor, a.clock, a.changes} {
		part()
	}
	delete(schemas.Map(), "ErrorModel") // the library's own, which a problem has all of
	for _, schema := range schemas.Map() {
		neverNull(schema)
	}
	return &Handler{mux, a}
}

// ways are those in which one can say who one is, as far as a [guard.Guard] is told
// of people and programs. Sessions and proxies are for browsers.
var ways = map[string]*huma.SecurityScheme{
	"token":    {Type: "http", Scheme: "bearer", Description: "A program's token, or the secret of the link that the server printed"},
	"password": {Type: "http", Scheme: "basic", Description: "A person's name and password"},
}

// maxBody bounds what is read of a request: a bulk of jobs with arguments.
const maxBody = 32 << 20

// For how long an operation may wait for the database: less than pages and programs
// wait for an answer, so that they are told what took so long.
const (
	questionTime = 10 * time.Second
	changeTime   = time.Minute // also of questions that count all that there is
)

// operation describes one of the API's.
type operation struct {
	method, path string // below the prefix
	id           string
	summary      string
	description  string
	tag          string
	status       int // of success, 200 unless set

	needs  guard.Role    // [guard.Viewer] unless set
	within time.Duration // [questionTime] or [changeTime] unless set
}

// changes reports whether it is more than a question.
func (o operation) changes() bool { return o.method != http.MethodGet }

// register adds an operation. Whatever else it may answer with is a problem. What
// changes something is written down before.
func register[I, O any](a *api, op operation, do func(ctx context.Context, in *I) (*O, error)) {
	op.needs = max(op.needs, guard.Viewer)
	if op.within == 0 && op.changes() {
		op.within = changeTime
	}
	op.within = cmp.Or(op.within, questionTime)
	huma.Register(a.API, huma.Operation{
		OperationID: op.id, Method: op.method, Path: Prefix + op.path, Summary: op.summary,
		Description: strings.TrimSpace(op.description + "\n\nFor the role " + op.needs.String() + "."),
		Tags:        []string{op.tag}, DefaultStatus: op.status, MaxBodyBytes: maxBody,
		Responses: map[string]*huma.Response{"default": a.problems},
	}, func(ctx context.Context, in *I) (*O, error) {
		if guard.Of(ctx).Role < op.needs {
			return nil, forbidden(op.needs)
		}
		ctx, cancel := context.WithTimeout(ctx, op.within)
		defer cancel()
		end := func(error) {}
		if op.changes() {
			var err error
			if end, err = a.change(ctx, op.id, in); err != nil {
				return nil, a.told(ctx, op.id, err)
			}
		}
		out, err := do(ctx, in)
		told := a.told(ctx, op.id, err)
		end(told)
		return out, told
	})
}

// told is what a client is told of an error, nil of none.
func (a *api) told(ctx context.Context, operation string, err error) error {
	if err == nil {
		return nil
	}
	_, unwritten := errors.AsType[*unwrittenError](err)
	if told := cmp.Or(problem(err), problem(ctx.Err())); told != nil && !unwritten {
		return told // whatever a store makes of the end of its time
	}
	if a.OnError != nil {
		a.OnError(ctx, operation, err)
	}
	if unwritten {
		return errUnwritten
	}
	return errUnexpected
}

// answer is one that has nothing but a body.
type answer[T any] struct {
	Body T
}

// list answers with all that there is, [] rather than null.
func list[T any](all []T, err error) (*answer[[]T], error) {
	if err != nil {
		return nil, err
	}
	return &answer[[]T]{append([]T{}, all...)}, nil
}

// Changed says whether something is another than before.
type Changed struct {
	Changed bool `json:"changed"`
}

// Why is a reason that is kept.
type Why struct {
	Why string `json:"why,omitempty" maxLength:"1000" doc:"The reason that is kept, for those who wonder"`
}

// changed answers that.
func changed(is bool, err error) (*answer[Changed], error) {
	if err != nil {
		return nil, err
	}
	return &answer[Changed]{Changed{is}}, nil
}

// neverNull says that lists are lists: an empty one is written as [], or is absent.
func neverNull(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	for _, p := range s.Properties {
		neverNull(p)
	}
	neverNull(s.Items)
}
