// Package api is the JSON API of a store: everything that people and programs of
// other languages do with jobs, queues, kinds, schedules, engines and leases, under
// /api/v1, described by an OpenAPI 3.1 document at /api/v1/openapi.json.
//
// Answers carry the language's own structs: what Go programs call [stint.JobInfo]
// is what the API calls a job. What is read can be written back: a timeout, a policy and
// a limit have one form in requests and answers, and a schedule can be declared as it is
// shown. Durations that people set are texts such as 1m30s; those that were measured are
// whole nanoseconds. Instants are RFC 3339; where a request says one, a duration says
// how long ago it is, and one with a plus how far ahead. Ids of engines have 64 bits and
// are strings; other ids are numbers below 2^53.
//
// Every list is an object with its items, and a next where it comes in pages. Lists are
// paged by keys and not by offsets, so that a page shows the same jobs whatever is
// enqueued meanwhile.
//
// What goes wrong is told as problem details (RFC 9457), with the path of each
// field that is wrong; so are paths and methods that there are not. No operation waits
// for ever for a database: a question is answered within ten seconds, and what counts all that there is, or changes
// something, within a minute, if only with 504. Who waits for a job to end says for
// how long, a minute at most. A [guard.Guard] stands before the API and tells it who
// asks: without one, nobody may do anything.
package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/gateway"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/seal"
	"github.com/stint-go/stint/store"
)

// Store is what the API needs of one.
type Store = ops.Store

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
	Bury func(ctx context.Context, engine store.EngineID, why string) (int, error)

	// Restricted are the kinds whose jobs only an admin enqueues and schedules,
	// since they do whatever their arguments say. Nil restricts those that stint
	// comes with, sh, http and steps; an empty list that is not nil lifts that.
	Restricted []string

	// CheckArgs reports what can never be right in the arguments of a job of a kind, so
	// that it is refused and not stored, unless it is forced. Nil accepts any.
	CheckArgs func(kind string, args json.RawMessage) error

	// Path is where the API is mounted, such as /stint, for the document; nothing
	// for the root. Requests come without it. A dashboard sets it to its own.
	Path string

	// HideArgs keeps from viewers what producers and handlers wrote: arguments,
	// metadata, results, values of signals, what runs log, and what errors say; and every question that would find
	// them out, one guess after the other. Names, tags, classes of errors and the
	// reasons for which jobs ended stay to be seen.
	HideArgs bool

	// Keys open what is sealed of a job for admins who ask for it: see [ops.OpenJob]. Who did is
	// in the log of changes. Nil opens nothing; engines have keys of their own.
	Keys seal.Keys

	// Bounded are the kinds that the doctor need not warn of: see
	// [report.Options].
	Bounded []string

	// Workers has workers in other languages take part. Nil leaves their calls out.
	Workers *gateway.Gateway

	// OnError is told of each error that nobody expected, with the operation
	// that it came of. A client is told only that there was one: the text may
	// be about the database. Nil drops them.
	OnError func(ctx context.Context, operation string, err error)
}

// doAsTheySay are the kinds of stint's own that do whatever their arguments say:
// those of the packages below jobs.
var doAsTheySay = []string{"sh", "http", "steps"}

// Blind reports whether who asks may not see what producers and handlers wrote.
func (c Config) Blind(ctx context.Context) bool {
	return c.HideArgs && guard.Of(ctx).Role < guard.Operator
}

// Handler serves an API.
type Handler struct {
	http.Handler
	document *huma.OpenAPI
}

// OpenAPI is the document that describes it. It must not be changed.
func (h *Handler) OpenAPI() *huma.OpenAPI { return h.document }

// New returns the handler of everything below [Prefix].
func New(st Store, c Config) *Handler {
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
	a := humago.New(mux, config)
	schemas := a.OpenAPI().Components.Schemas
	ops.Describe(schemas)
	problems := &huma.Response{Description: "Error", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: schemas.Schema(reflect.TypeFor[Problem](), true, "")},
	}}
	caller := bounded{&ops.Local{
		Store: st, Way: store.WayAPI, Limits: c.Limits, Bury: c.Bury, Restricted: c.Restricted, HideArgs: c.HideArgs, Keys: c.Keys, Bounded: c.Bounded, CheckArgs: c.CheckArgs, Told: c.told, Failed: c.OnError,
	}}
	for _, op := range ops.All {
		if op == ops.Operation(ops.BuryEngine) && c.Bury == nil {
			continue
		}
		d := op.Describe()
		op.Register(a, huma.Operation{
			OperationID: d.ID(), Method: d.Method, Path: Prefix + d.Path, Summary: d.Summary,
			Description: strings.TrimSpace(d.Doc + "\n\nFor the role " + d.Needs.String() + "."),
			Tags:        []string{cmp.Or(d.Tag, d.Noun())}, DefaultStatus: d.Status, MaxBodyBytes: maxBody,
			Responses: map[string]*huma.Response{"default": problems},
		}, caller)
	}
	c.registerOneJob(a, caller, problems)
	if c.Workers != nil {
		c.registerWorkers(a, problems)
	}
	delete(schemas.Map(), "ErrorModel") // the library's own, which a problem has all of
	// Its tag makes it a string, which the library does not know.
	schemas.Map()["Attempt"].Properties["engine"] = &huma.Schema{Type: huma.TypeString}
	for _, schema := range schemas.Map() {
		neverNull(schema)
	}
	for _, item := range a.OpenAPI().Paths {
		bodyMayBeLeftOut(item.Post, schemas)
		bodyMayBeLeftOut(item.Put, schemas)
	}
	return &Handler{withProblems(mux), a.OpenAPI()}
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

// bounded lets no operation wait for ever.
type bounded struct{ *ops.Local }

// Call implements [ops.Caller].
func (b bounded) Call(ctx context.Context, op ops.Operation, in, out any) error {
	within := questionTime
	if op.Describe().Changes() {
		within = changeTime
	}
	within = cmp.Or(op.Describe().Within, within)
	if w, ok := in.(interface{ Waits() time.Duration }); ok {
		within += w.Waits()
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return b.Local.Call(ctx, op, in, out)
}

// told is what a client is told of an error.
func (c Config) told(ctx context.Context, operation string, err error) error {
	_, unwritten := errors.AsType[*ops.UnwrittenError](err)
	denied := errors.Is(err, store.ErrDenied)
	told := cmp.Or(problem(err), problem(ctx.Err())) // whatever a store makes of the end of its time
	if told != nil && !unwritten && !denied {
		return told
	}
	if c.OnError != nil {
		c.OnError(ctx, operation, err)
	}
	if denied {
		return told
	}
	if unwritten {
		return errUnwritten
	}
	if errors.Is(err, store.ErrAway) {
		return errAway
	}
	return errUnexpected
}

// bodyMayBeLeftOut lets an operation be asked for without a body if no field of its body is
// required: that means the same as {}.
func bodyMayBeLeftOut(op *huma.Operation, schemas huma.Registry) {
	if op == nil || op.RequestBody == nil {
		return
	}
	schema := op.RequestBody.Content["application/json"].Schema
	if schema.Ref != "" {
		schema = schemas.SchemaFromRef(schema.Ref)
	}
	op.RequestBody.Required = len(schema.Required) > 0
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
