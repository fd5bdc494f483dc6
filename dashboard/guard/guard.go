// Package guard authenticates and authorizes requests to an HTTP handler.
//
// A request is checked in this order: it names a host of the server, so that no foreign
// page reaches it by a name of its own (DNS rebinding); if it may change something, it
// does not come from a page of another origin (forgery); its sender is known, or there is
// a role for strangers; and the role suffices. The answer has headers that keep a browser
// from running, loading or framing anything that is not the server's own.
//
// Each role may do what those below it may: a viewer sees, an operator does what is done
// every day, an admin may do everything. Beside these, a worker performs jobs and sees no
// others.
package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stint-go/stint/internal/valid"
)

// Role says what a sender of requests may do.
type Role int

// The roles, each with what those before it may, but a viewer no work.
const (
	Nobody   Role = iota // nothing
	Worker               // take jobs and say how they ended, of some queues and kinds; nothing of what follows
	Viewer               // see everything, but arguments if they are hidden from viewers
	Operator             // do things to jobs, queues, schedules and engines; enqueue
	Admin                // also what does whatever its arguments say: shell commands, HTTP requests; release leases, bury engines
)

var roleNames = []string{"nobody", "worker", "viewer", "operator", "admin"}

// String is the role's name.
func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return "unknown"
	}
	return roleNames[r]
}

// UnmarshalText reads a name; nobody is none to be given.
func (r *Role) UnmarshalText(text []byte) error {
	i := slices.Index(roleNames, string(text))
	if i < 1 {
		return fmt.Errorf("%q is not one of %s", text, strings.Join(roleNames[1:], ", "))
	}
	*r = Role(i)
	return nil
}

// Identity is who sends a request.
type Identity struct {
	Name string // empty for a stranger
	Role Role

	// Queues and Kinds are what a worker may work on; none for all.
	Queues, Kinds []string
}

type identityKey struct{}

// With returns a context for a request of an identity.
func With(ctx context.Context, who Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

// Of returns the sender of the request of a context. Without a guard it is a stranger who
// may do nothing.
func Of(ctx context.Context) Identity {
	who, _ := ctx.Value(identityKey{}).(Identity)
	return who
}

// Config says whose requests a guard lets pass. The zero value refuses all.
type Config struct {
	// Stranger is the role of requests without credentials. A request with wrong ones is
	// refused.
	Stranger Role

	// Link is a secret for admins: as ?token= of any page, which a browser remembers as
	// a session, or as a bearer token. Empty means none.
	Link string

	Tokens []Token // of programs
	Users  []User  // of people without anything better in front
	Proxy  Proxy   // of people whom something better knows

	// Hosts are the names that the server is reached by, with or without a
	// port. Names of the loopback interface need not be among them.
	Hosts []string

	// OnRefused is called for each request that is refused, for a log. It may be nil.
	OnRefused func(r *http.Request, who Identity, status int, why string)
}

// Guard authenticates and authorizes requests. Make one with [New]. Its methods may be called at the same time.
type Guard struct {
	origins *http.CrossOriginProtection
	tries   *tries
	now     atomic.Pointer[admitted]
}

// admitted is whom a guard lets in.
type admitted struct {
	Config
	link  *link
	users *users
}

// New checks what is configured.
func New(c Config) (*Guard, error) {
	g := &Guard{origins: http.NewCrossOriginProtection(), tries: newTries()}
	if err := g.Change(c); err != nil {
		return nil, err
	}
	return g, nil
}

// Change puts another configuration in the place of the present one, for requests that come from then on. One
// that is wrong changes nothing.
func (g *Guard) Change(c Config) error {
	a := &admitted{Config: c}
	if c.Link != "" {
		if len(c.Link) < minSecret {
			return valid.Invalid("Link", "it has %d characters; at least %d are needed", len(c.Link), minSecret)
		}
		a.link = newLink(c.Link)
	}
	for _, t := range c.Tokens {
		if err := t.check(); err != nil {
			return err
		}
	}
	var err error
	if a.users, err = newUsers(c.Users); err != nil {
		return err
	}
	if err := c.Proxy.check(); err != nil {
		return err
	}
	for _, host := range c.Hosts {
		if host == "" || strings.ContainsAny(host, "/@ ") {
			return fmt.Errorf("%q is not the name of a host", host)
		}
	}
	g.now.Store(a)
	return nil
}

// Knows reports whether there is anybody whom the guard can know.
func (c Config) Knows() bool {
	return c.Link != "" || len(c.Tokens) > 0 || len(c.Users) > 0 || c.Proxy.Header != ""
}

// policy lets a page load what the server itself serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Shield does all of [Guard.Wrap] but to ask who sends a request: for pages that anybody may open, or that
// find out themselves who may.
func (g *Guard) Shield(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !g.now.Load().goesBy(r.Host) {
			g.refuse(w, r, Identity{}, http.StatusMisdirectedRequest, "the server does not go by the host "+fmt.Sprintf("%q", r.Host))
			return
		}
		if err := g.origins.Check(r); err != nil {
			g.refuse(w, r, Identity{}, http.StatusForbidden, "a page of another origin sent this")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Wrap puts the guard before a handler, which gets the sender of a request by [Of].
func (g *Guard) Wrap(next http.Handler) http.Handler { return g.wrap(next, needed) }

// WrapWork is Wrap for the requests of workers, which need the role worker, or operator and more.
func (g *Guard) WrapWork(next http.Handler) http.Handler {
	return g.wrap(next, func(*http.Request) Role { return Worker })
}

func (g *Guard) wrap(next http.Handler, needed func(*http.Request) Role) http.Handler {
	return g.Shield(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if g.openSession(w, r) {
			return
		}
		a := g.now.Load()
		who, err := a.identify(r, g.tries)
		switch {
		case errors.Is(err, errTooMany):
			h.Set("Retry-After", "60")
			g.refuse(w, r, who, http.StatusTooManyRequests, err.Error())
		case err != nil || who.Role == Nobody:
			for _, way := range a.ways() {
				h.Add("WWW-Authenticate", way)
			}
			g.refuse(w, r, who, http.StatusUnauthorized, cmp.Or(err, errUnknown).Error())
		case who.Role < needed(r), who.Role == Viewer && needed(r) == Worker:
			g.refuse(w, r, who, http.StatusForbidden, "this is for the role "+needed(r).String())
		default:
			next.ServeHTTP(w, r.WithContext(With(r.Context(), who)))
		}
	}))
}

// needed is the least role for a method. Handlers may require more.
func needed(r *http.Request) Role {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return Viewer
	}
	return Operator
}

// refuse refuses a request.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, who Identity, status int, why string) {
	if refused := g.now.Load().OnRefused; refused != nil {
		refused(r, who, status, why)
	}
	Refuse(w, r, status, why)
}

// Refuse answers with the reason: in a line of text to browsers that ask for a page, and else as a problem.
func Refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Error(w, why, status)
		return
	}
	WriteProblem(w, status, why)
}

// WriteProblem answers with a problem (RFC 9457), as the API does.
func WriteProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail}) // to a client that may be gone
}

var errUnknown = errors.New("say who you are")

// ways are those to authenticate.
func (a *admitted) ways() (ways []string) {
	if a.link != nil || len(a.Tokens) > 0 {
		ways = append(ways, `Bearer realm="stint"`)
	}
	if a.users != nil {
		ways = append(ways, `Basic realm="stint", charset="UTF-8"`)
	}
	return ways
}

// goesBy reports whether the server is reached by a host's name.
func (a *admitted) goesBy(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(a.Hosts, func(own string) bool {
		return strings.EqualFold(own, host) || strings.EqualFold(strings.Trim(own, "[]"), name)
	})
}

// identify finds out who sends a request.
func (a *admitted) identify(r *http.Request, tries *tries) (Identity, error) {
	scheme, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case r.Header.Get("Authorization") == "":
		if who, ok := a.link.session(r); ok {
			return who, nil
		}
		if who, ok := a.Proxy.identify(r); ok {
			return who, nil
		}
		return Identity{Role: a.Stranger}, nil
	case strings.EqualFold(scheme, "Bearer"):
		return tries.guarded(r, func() (Identity, bool) { return a.bearer(strings.TrimSpace(value)) }, nil)
	case strings.EqualFold(scheme, "Basic"):
		name, password, _ := r.BasicAuth() // both empty when it is malformed, and nobody has no name
		return tries.guarded(r,
			func() (Identity, bool) { return a.users.remembered(name, password) },
			func() (Identity, bool) { return a.users.compare(name, password) })
	}
	return Identity{}, fmt.Errorf("the scheme %q is not known here", scheme)
}
