package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/remote"
	"github.com/stint-go/stint/store"
)

// page is one of the dashboard.
type page struct {
	path  string     // pattern of its URL
	name  string     // of its template
	title string     // in the window's title, and on the page unless that has a better one
	Label string     // in the navigation; empty for pages that others lead to
	Key   string     // that leads there after a g
	needs guard.Role // [guard.Viewer] unless set

	// data returns what the template shows.
	data func(b *Dashboard, r *http.Request) (any, error)
}

// pages are all of them, in the order of the navigation.
var pages = []page{
	{path: "/{$}", name: "overview", title: "Overview", Label: "Overview", Key: "o", data: (*Dashboard).overview},
	{path: "/jobs", name: "jobs", title: "Jobs", Label: "Jobs", Key: "j", data: (*Dashboard).jobs},
	{path: "/jobs/bulk", name: "bulk", title: "Many jobs", needs: guard.Operator, data: (*Dashboard).bulk},
	{path: "/jobs/{id}", name: "job", title: "Job", data: (*Dashboard).job},
	{path: "/jobs/{id}/edit", name: "edit", title: "Edit and retry", needs: guard.Operator, data: (*Dashboard).edit},
	{path: "/search", name: "search", title: "Find", data: (*Dashboard).search},
	{path: "/questions", name: "questions", title: "Questions", data: (*Dashboard).questions},
	{path: "/queues", name: "queues", title: "Queues", Label: "Queues", Key: "q", data: (*Dashboard).queues},
	{path: "/queues/{queue}", name: "queue", title: "Queue", data: (*Dashboard).queue},
	{path: "/limits", name: "limits", title: "Limits", Label: "Limits", Key: "l", data: (*Dashboard).limits},
	{path: "/limits/{limit}", name: "limit", title: "Limit", data: (*Dashboard).limitPage},
	{path: "/kinds", name: "kinds", title: "Kinds", Label: "Kinds", Key: "k", data: (*Dashboard).kinds},
	{path: "/kinds/{kind}", name: "kind", title: "Kind", data: (*Dashboard).kind},
	{path: "/errors", name: "errors", title: "Errors", Label: "Errors", Key: "e", data: (*Dashboard).errors},
	{path: "/schedules", name: "schedules", title: "Schedules", Label: "Schedules", Key: "s", data: (*Dashboard).schedules},
	{path: "/schedules/{schedule}", name: "schedule", title: "Schedule", data: (*Dashboard).schedule},
	{path: "/engines", name: "engines", title: "Engines", Label: "Engines", Key: "n", data: (*Dashboard).engines},
	{path: "/engines/{token}", name: "engine", title: "Engine", data: (*Dashboard).engine},
	{path: "/database", name: "database", title: "Database", Label: "Database", Key: "d", data: (*Dashboard).database},
	{path: "/changes", name: "changes", title: "Changes", Label: "Changes", Key: "c", needs: guard.Operator, data: (*Dashboard).changes},
	{path: "/jobs/new", name: "edit", title: "New job", needs: guard.Operator, data: (*Dashboard).edit},
}

// shown is what every template gets.
type shown struct {
	*page
	Title string
	Here  string // the address of the page, below the path that the dashboard is mounted at
	Who   guard.Identity
	Now   time.Time // by the store's clock
	Flash *flash
	Nav   []*page
	Live  bool      // whether the page keeps itself up to date
	Made  int64     // when it was looked at, by this process' clock, in nanoseconds
	Sent  time.Time // when it is sent, by the same clock
	Data  any
}

// Can reports whether who looks at the page has a role.
func (s shown) Can(role string) (bool, error) {
	var needed guard.Role
	err := needed.UnmarshalText([]byte(role))
	return s.Who.Role >= needed, err
}

// fresh is how old figures are that do not say so.
const fresh = 10 * time.Second

// age is how old figures are, for people.
type age struct {
	Words  string // before the time
	At     time.Time
	Old    bool
	Failed bool // newer ones could not be read
	Beside bool // other figures stand there, too, and say that they are read for the first time
	Brief  bool // it is told only when they are old: the page tells the age of fresh ones elsewhere
}

// IfOld is the same, told only when the figures are old or newer ones could not be read.
func (a age) IfOld() age {
	a.Brief = !a.Failed
	return a
}

// Millis is when they were found, in milliseconds.
func (a age) Millis() int64 { return a.At.UnixMilli() }

// Age is that of figures when the page is sent. Words name figures that stand beside others.
func (s shown) Age(of interface{ Told() (time.Time, error) }, words ...string) age {
	at, err := of.Told()
	return age{
		Words: cmp.Or(strings.Join(words, " "), "As of"), At: at, Old: !at.IsZero() && s.Sent.Sub(at) > fresh,
		Failed: err != nil, Beside: len(words) > 0,
	}
}

// Clock is that of this process, in milliseconds.
func (s shown) Clock() int64 { return s.Sent.UnixMilli() }

// titled is data of a page that has a title of its own.
type titled interface{ title() string }

// drawnBy is data that another page than that of its address shows.
type drawnBy interface{ page() *page }

// frozen is data of a page that does not keep itself up to date.
type frozen interface{ frozen() }

// partial is the header by which an open page asks for a newer one of itself: it says
// when that page was made. A later look that another browser caused is new enough.
const partial = "X-Partial"

// limit bounds what a page may ask the database for.
const limit = 10 * time.Second

// serve answers requests for a page.
func (b *Dashboard) serve(p *page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if needs := max(p.needs, guard.Viewer); guard.Of(r.Context()).Role < needs {
			b.fail(w, r, http.StatusForbidden, "This is for the role "+needs.String()+".")
			return
		}
		if query, some := withoutEmpty(r.URL.Query()); some {
			http.Redirect(w, r, b.config.Path+address(r.URL.Path, query), http.StatusSeeOther)
			return
		}
		made := r.Header.Get(partial)
		l, known := b.watches.since(r, made)
		if !known {
			l = b.look(p, r)
		}
		if to, moved := errors.AsType[movedTo](l.err); moved {
			http.Redirect(w, r, b.config.Path+string(to), http.StatusSeeOther)
			return
		}
		if l.err != nil {
			b.failed(w, r, l.err)
			return
		}
		_, still := l.data.(frozen)
		s := shown{page: p, Title: p.title, Data: l.data, Now: l.now, Made: l.began.UnixNano(), Live: !still}
		if made == "" {
			s.Flash = b.takeFlash(w, r)
		}
		status := http.StatusOK
		if other, ok := l.data.(interface{ status() int }); ok {
			status = other.status()
		}
		b.render(w, r, status, s)
	}
}

// render writes a page.
func (b *Dashboard) render(w http.ResponseWriter, r *http.Request, status int, s shown) {
	s.Who, s.Here = guard.Of(r.Context()), r.URL.RequestURI()
	if s.Sent.IsZero() {
		s.Sent = time.Now()
	}
	if t, ok := s.Data.(titled); ok {
		s.Title = t.title()
	}
	if d, ok := s.Data.(drawnBy); ok {
		s.page = d.page()
	}
	for i := range pages {
		if pages[i].Label != "" && pages[i].needs <= s.Who.Role {
			s.Nav = append(s.Nav, &pages[i])
		}
	}
	var text bytes.Buffer
	if err := b.templates[s.name].ExecuteTemplate(&text, "layout.html", s); err != nil {
		b.config.Log.ErrorContext(r.Context(), "a page could not be made", "page", s.name, "error", err)
		http.Error(w, "This page could not be made; the server's log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes())
}

// Link is where a page of the navigation is.
func (p *page) Link() string { return strings.TrimSuffix(p.path, "{$}") }

// Holds reports whether an address is of this page, or of one below it.
func (p *page) Holds(here string) bool {
	path, _, _ := strings.Cut(here, "?")
	return path == p.Link() || p.Link() != "/" && strings.HasPrefix(path, p.Link()+"/")
}

// problem is the page that says what went wrong.
var problem = page{name: "problem", title: "Something went wrong"}

// trouble is the data of that page.
type trouble struct {
	Status int
	What   string
}

func (trouble) frozen() {}

// fail answers with a page that says what is wrong.
func (b *Dashboard) fail(w http.ResponseWriter, r *http.Request, status int, what string) {
	b.render(w, r, status, shown{page: &problem, Title: http.StatusText(status), Data: trouble{status, what}, Now: time.Now()})
}

// failed answers with an error: one that people can fix says what is wrong, any other only
// that something is.
func (b *Dashboard) failed(w http.ResponseWriter, r *http.Request, err error) {
	refused, _ := errors.AsType[*remote.Error](err)
	invalid, _ := errors.AsType[*stint.InvalidError](err)
	switch {
	case refused != nil:
		b.fail(w, r, refused.Status, sentence(refused.Error()))
	case invalid != nil:
		b.fail(w, r, http.StatusUnprocessableEntity, sentence(invalid.Error()))
	case errors.Is(err, stint.ErrNotFound):
		b.fail(w, r, http.StatusNotFound, "There is no such job. It may have been deleted, or retention has removed it.")
	case errors.Is(err, stint.ErrNoSchedule), errors.Is(err, store.ErrBuried), errors.Is(err, errNowhere):
		b.fail(w, r, http.StatusNotFound, "This does not exist, or no longer.")
	case errors.Is(err, context.Canceled):
		return // the client is gone
	case errors.Is(err, context.DeadlineExceeded):
		b.fail(w, r, http.StatusServiceUnavailable, "The database did not answer in time.")
	case errors.Is(err, store.ErrAway):
		b.config.Log.ErrorContext(r.Context(), "a page failed", "path", r.URL.Path, "error", err)
		b.fail(w, r, http.StatusServiceUnavailable, "The database does not answer. Try again in a moment.")
	default:
		b.config.Log.ErrorContext(r.Context(), "a page failed", "path", r.URL.Path, "error", err)
		b.fail(w, r, http.StatusInternalServerError, "The database reported an error; the server's log says which.")
	}
}

// sentence makes one of an error's text.
func sentence(text string) string {
	if text = strings.TrimPrefix(text, "stint: "); text != "" {
		text = strings.ToUpper(text[:1]) + text[1:] + "."
	}
	return text
}

// movedTo is an address that shows what a page was asked for.
type movedTo string

func (to movedTo) Error() string { return "it is at " + string(to) }

var errNowhere = errors.New("there is no such page")

func (b *Dashboard) nowhere(w http.ResponseWriter, r *http.Request) { b.failed(w, r, errNowhere) }

//go:embed templates assets
var files embed.FS

// parse reads the templates: every page has the layout and the parts that are
// shared.
func parse(path string) (map[string]*template.Template, error) {
	shared, err := template.New("").Funcs(functions(path)).ParseFS(files, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	all := map[string]*template.Template{}
	for _, p := range append(slices.Clone(pages), problem, zoomPage, openedPage) {
		t, err := shared.Clone()
		if err == nil {
			t, err = t.ParseFS(files, "templates/"+p.name+".html")
		}
		if err != nil {
			return nil, fmt.Errorf("the page %s: %w", p.name, err)
		}
		all[p.name] = t
	}
	return all, nil
}

// assets serves style, scripts and the icon. Their addresses contain a hash of all of
// them, so browsers may keep them.
func assets() http.Handler {
	tree, _ := fs.Sub(files, "assets") // it is embedded
	server := http.StripPrefix("/assets/"+assetsHash+"/", http.FileServerFS(tree))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
		server.ServeHTTP(w, r)
	})
}

// withoutEmpty leaves out what a form sends of fields in which nothing was entered, and reports whether there was any:
// the address of a page is to be read, and sent to others.
func withoutEmpty(query url.Values) (url.Values, bool) {
	some := false
	for name, values := range query {
		full := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
		if some = some || len(full) < len(values); len(full) == 0 {
			delete(query, name)
		} else {
			query[name] = full
		}
	}
	return query, some
}

// address appends a query to a path.
func address(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
