// Package httpjob is the built-in kind http: a job that sends one HTTP request.
//
//	{"method": "POST", "url": "https://example.com/hook", "json": {"paid": true}, "expect": [200, 202]}
//
// The request carries Stint-Job and Stint-Attempt, the job's number and which
// attempt this is, and Stint-May-Have-Run: true after an engine died with the job. A job may be sent more than once, since an answer can be
// lost; the first of the two lets the receiver tell a repeat.
//
// # What is kept
//
// The result holds the status, a few headers and the beginning of the body,
// whether the attempt failed or not. A status that is not expected is a
// failure, and its message shows the beginning of the body.
//
// # What is tried again
//
// Almost everything, as the job's retry policy says: an endpoint that
// is not found or not allowed today is deployed or permitted tomorrow. Final
// are invalid arguments, refused addresses, and the few statuses by which a
// server says that this very request can never be right: 400, 405, 410, 411,
// 413, 414, 415, 422 and 431, unless they are expected. A Retry-After header
// is kept in the result and otherwise left alone: it is the sender's policy
// that decides, not the receiver.
//
// # Who sent it
//
// With a [Secret] for the receiver, requests are signed, so that it can tell who sent them, and when.
//
// # Work that takes longer than a request
//
// With a time in [Args.Callback] the receiver may answer 202 at once, and do the work later. The header
// Stint-Callback has the URL to which it then sends a [Callback]. Meanwhile the job waits without a slot, as
// for any signal ([stint.Await]). A callback that is an error, or does not come in time, is a failure.
//
// # Where requests go
//
// Whoever may enqueue could otherwise reach whatever the engine can reach: the
// machine itself, its neighbours, the metadata service of the cloud. So
// addresses that are not public are refused, unless [Config] allows them:
//
//	url ──▶ resolve ──▶ address ──▶ guard ──▶ connect
//	 ▲                                           │
//	 └────────────── redirect ◀──────────────────┘
//
// The guard looks at the address in the moment of connecting to it. A name that
// resolves differently the second time, and a redirect, do not get round it.
// For the same reason no proxy is taken from the environment.
//
// At most five redirects are followed. One that leads to another server gets
// none of the job's headers but a harmless few. One that would turn a POST
// into a GET, other than by 303 See Other, is not followed, and so
// is a failure; one from https to http is refused.
package httpjob

import (
	"cmp"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs"
)

// Kind is the kind http. It has no timeout of its own because each request
// has one.
var Kind = stint.NewResultKind[Args, Result]("http")

// Config says how requests are sent. The zero value works.
type Config struct {
	// AllowPrivate lets requests go to addresses that are not public:
	// loopback, private networks, link-local ones with the metadata service
	// of a cloud, and all other special ranges.
	AllowPrivate bool

	// Proxy is where all requests are sent through. It then decides what may
	// be reached: the addresses are known to nobody else. Nil means none,
	// whatever the environment says.
	Proxy *url.URL

	// Timeout bounds a request whose arguments set no timeout, from the
	// first look for the address to the end of the body. Default 30 s.
	Timeout time.Duration

	// ResponseLimit is how many bytes of a body are kept; no more is read.
	// Default 64 KiB.
	ResponseLimit int

	// Secrets sign requests, by the server that they are sent to: its host, or host:port, in lower case;
	// "*" is for all others. Give each receiver a secret of its own, since who has one can sign with it.
	Secrets map[string]Secret

	// Callback makes the URL that a receiver tells later what came of a request, until it expires. Package
	// dashboard/link has it. It is called from many goroutines. Without it a job with a callback fails.
	Callback func(job stint.ID, attempt int, expires time.Time) (string, error)
}

// Register adds the kind to a mux. Like [stint.Mux.Add] it panics when the
// mux has it already.
func Register(m *stint.Mux, c Config) { m.Add(Kind.Declaration(), Handler(c)) }

// Handler sends requests. Programs that want the kind under another name, or
// one with other defaults, add it to their mux themselves.
func Handler(c Config) stint.Handler { return jobs.Strict(newSender(c).send) }

// sender shares its connections between attempts.
type sender struct {
	transport *http.Transport
	timeout   time.Duration
	limit     int
	secrets   map[string]Secret
	callback  func(job stint.ID, attempt int, expires time.Time) (string, error)
}

func newSender(c Config) *sender {
	guard := refuse
	if c.AllowPrivate || c.Proxy != nil {
		guard = func(netip.AddrPort) error { return nil }
	}
	s := &sender{
		transport: transport(guard, net.DefaultResolver),
		timeout:   cmp.Or(c.Timeout, 30*time.Second),
		limit:     cmp.Or(c.ResponseLimit, 64<<10),
		secrets:   maps.Clone(c.Secrets),
		callback:  c.Callback,
	}
	if c.Proxy != nil {
		s.transport.Proxy = http.ProxyURL(c.Proxy)
	}
	return s
}
