package dashboard

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/link"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/observe/probes"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/remote"
	"github.com/stint-go/stint/store"
)

// Store is the part of a store that the dashboard needs.
type Store = api.Store

// Config says how a dashboard is served. With the zero value every request is refused.
type Config struct {
	// Guard decides who may use the dashboard, and with which role.
	Guard guard.Config

	// API says how the API works, and with it every form of the pages.
	API api.Config

	// WorkersOnly serves the calls of workers ([api.Config.Workers]), probes, links and callbacks, and no
	// pages.
	WorkersOnly bool

	// LinkKey signs links by which people answer a question without a login, and the URLs of callbacks to http
	// jobs: it is the secret of a [link.Key]. Empty refuses every one.
	LinkKey string

	// Path is where the dashboard is mounted, such as /stint; nothing for the
	// root. Requests come with it.
	Path string

	// Health answers /healthz and /readyz, without authentication. Nil reports whether
	// the database answers.
	Health probes.Engine

	// Metrics answers /metrics, to viewers. Nil is none.
	Metrics http.Handler

	// Log gets errors that the client did not cause. Nil is [slog.Default].
	Log *slog.Logger
}

// Dashboard is a dashboard.
type Dashboard struct {
	http.Handler
	config    Config
	guard     *guard.Guard
	store     ops.Shown
	api       *remote.Store                 // without a network
	templates map[string]*template.Template // by the page's name
	figures   *figures
	finder    *http.ServeMux
	pages     []page        // all of them: what a page shows must not name the list
	streams   chan struct{} // holds one for each live page that is open
	watches   watches
	link      link.Key
	answering *template.Template // the page of a link
}

// New returns the dashboard of a store. The error says what of the configuration
// is wrong.
func New(store Store, c Config) (*Dashboard, error) {
	if c.Path = strings.TrimSuffix(c.Path, "/"); c.Path != "" {
		if u, err := url.Parse(c.Path); err != nil || !strings.HasPrefix(c.Path, "/") || u.Path != c.Path || strings.Contains(c.Path, "//") {
			return nil, valid.Invalid("path", "%q is not the path of a URL", c.Path)
		}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.API.OnError == nil {
		c.API.OnError = func(ctx context.Context, operation string, err error) {
			c.Log.ErrorContext(ctx, "an operation of the API failed", "operation", operation, "error", err)
		}
	}
	g, err := guard.New(c.Guard)
	if err != nil {
		return nil, err
	}
	var key link.Key
	if c.LinkKey != "" {
		if key, err = link.NewKey(c.LinkKey); err != nil {
			return nil, err
		}
	}
	c.API.Path = c.Path
	handler := api.New(store, c.API)
	b := &Dashboard{config: c, guard: g, store: ops.Show(store), finder: finder(), pages: pages, streams: make(chan struct{}, maxStreams), link: key}
	if b.api, err = remote.Open("http://localhost", remote.Config{Client: &http.Client{Transport: inside{handler}}}); err != nil {
		return nil, err
	}
	b.watches.all = map[watched]*watch{}
	b.figures = newFigures(store, c.API.Bounded)
	if b.templates, err = parse(c.Path); err != nil {
		return nil, err
	}
	// The length of an answer tells less of a secret in it.
	compressed, err := gzhttp.NewWrapper(gzhttp.RandomJitter(32, 0, false))
	if err != nil {
		return nil, err
	}
	if b.answering, err = answeringTemplate(c.Path); err != nil {
		return nil, err
	}
	if c.Health == nil {
		c.Health = alone{store}
	}
	inner := http.NewServeMux()
	inner.Handle(api.Prefix+"/", handler)
	inner.Handle("GET "+api.Prefix+"/", compressed(handler))
	inner.Handle("GET /assets/", compressed(assets()))
	inner.HandleFunc("GET /events", b.events)
	if c.Metrics != nil {
		inner.Handle("GET /metrics", c.Metrics)
	}
	inner.Handle("GET /figures", http.RedirectHandler(c.Path+"/engines#metrics", http.StatusMovedPermanently)) // where the metrics were
	inner.Handle("GET /jobs.csv", compressed(http.HandlerFunc(b.csv)))
	for i := range pages {
		inner.Handle("GET "+pages[i].path, compressed(b.serve(&pages[i])))
	}
	for _, f := range forms() {
		inner.Handle("POST "+f.path, b.submit(&f))
	}
	inner.HandleFunc("/", b.nowhere)
	probe, outer := http.StripPrefix(c.Path, probes.Handler(c.Health)), http.NewServeMux()
	outer.Handle("GET "+c.Path+"/healthz", probe)
	outer.Handle("GET "+c.Path+"/readyz", probe)
	for _, name := range []string{"style.css", "icon.svg"} {
		outer.Handle("GET "+c.Path+link.Path+name, g.Shield(answeringAsset(name)))
	}
	outer.Handle("GET "+c.Path+link.Path+"{token}", g.Shield(b.answeringPage()))
	outer.Handle("POST "+c.Path+link.Path+"{token}", g.Shield(b.answeringPage()))
	outer.Handle("POST "+c.Path+link.CallbackPath+"{token}", g.Shield(http.HandlerFunc(b.callback)))
	if c.API.Workers != nil {
		work := g.WrapWork(http.StripPrefix(c.Path, inner))
		outer.Handle(c.Path+api.Prefix+api.WorkersPath, work)
		outer.Handle(c.Path+api.Prefix+api.WorkersPath+"/", work)
	}
	if c.WorkersOnly {
		outer.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			guard.WriteProblem(w, http.StatusNotFound, "this address serves workers only, at "+c.Path+api.Prefix+api.WorkersPath+
				": enqueue and look at jobs at the address of a dashboard (stint dashboard, stint work --dashboard)")
		})
		b.Handler = outer
		return b, nil
	}
	outer.Handle("/", g.Wrap(http.StripPrefix(c.Path, inner)))
	b.Handler = outer
	return b, nil
}

// Admit changes who may use the dashboard, for requests that come from then on, in the place of [Config].Guard.
// After an error nothing has changed. What is open, such as a live page, goes on.
func (b *Dashboard) Admit(c guard.Config) error { return b.guard.Change(c) }

// alone answers for a dashboard without an engine.
type alone struct{ store Store }

// Alive implements [probes.Engine].
func (alone) Alive() error { return nil }

// Ready implements [probes.Engine].
func (a alone) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := a.store.Paused(ctx)
	switch {
	case errors.Is(err, store.ErrSchema):
		return &event.UnreadyError{Condition: event.ConditionDatabase, Problem: "the schema is not installed, or does not fit"}
	case errors.Is(err, store.ErrLogin):
		return &event.UnreadyError{Condition: event.ConditionDatabase, Problem: "it refuses the login"}
	case err != nil:
		return &event.UnreadyError{Condition: event.ConditionDatabase, Problem: "it does not answer"}
	}
	return nil
}

// inside calls the API of this process without a network. A request has the identity of
// the context of the page's request.
type inside struct{ api http.Handler }

// RoundTrip implements [http.RoundTripper].
func (i inside) RoundTrip(r *http.Request) (*http.Response, error) {
	a := answer{header: http.Header{}, status: http.StatusOK}
	i.api.ServeHTTP(&a, r)
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(&a.Buffer), Request: r}, nil
}

// answer is an [http.ResponseWriter] that keeps what a handler writes.
type answer struct {
	header http.Header
	status int
	bytes.Buffer
}

// Header and WriteHeader implement [http.ResponseWriter].
func (a *answer) Header() http.Header    { return a.header }
func (a *answer) WriteHeader(status int) { a.status = status }
