// Package remote does over the API of a server ([api]) what people do with a store:
// it looks, enqueues, cancels, retries, pauses, and so on, without a way to the
// database.
//
//	server, err := remote.Open("https://jobs.example.com", remote.Config{Token: token})
//	id, err := SendInvoice.Enqueue(ctx, stint.NewClient(server), Invoice{42})
//	if errors.Is(err, stint.ErrInvalid) { … } // errors are those of a store
//
//	command ──▶ Store ──HTTPS, token──▶ guard ──▶ api ──▶ store ──▶ database
//
// What only engines do is not there: they need a database.
package remote

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/internal/valid"
)

// ErrInClear says that a token would go over the network in clear: see
// [Config.TokenInClear].
var ErrInClear = errors.New("the token would go over the network in clear, for whoever listens on the way")

// Config says how a server is asked. The zero value asks as a stranger.
type Config struct {
	// Token says who asks. It goes to the server of the address only, and is
	// in no error.
	Token string

	// TokenInClear lets the token go over http to other machines than this one.
	TokenInClear bool

	// Client sends the requests; redirects are not followed, whatever it says
	// of them. Nil is one that waits 10 seconds for a connection, and 5 minutes
	// for an answer to begin.
	Client *http.Client
}

// Store is a server's store, as far as people use one. All methods may be called
// concurrently. A request that only reads is sent up to three times when the
// connection breaks; one that changes something is sent once, but for a declaration
// of a schedule, and after an error it may have been done. [Store.Await] asks until it
// has an answer.
type Store struct {
	base   string // in front of each path
	token  string
	client *http.Client
}

// Open returns the store of a server. The address is where its API is served, without
// [api.Prefix]: https://jobs.example.com, or with a path if a proxy adds one.
// Nothing is asked yet. An error that matches [stint.ErrInvalid] says what is
// wrong with the address or the token; [ErrInClear] that the token would be told
// to others.
func Open(address string, c Config) (*Store, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, valid.Invalid("token", "it has other characters than tokens have, such as a space or the end of a line")
	}
	if c.Token != "" && !c.TokenInClear && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, ErrInClear
	}
	client := *cmp.Or(c.Client, newClient())
	// Whoever leads a request elsewhere does not get the token.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Store{strings.TrimRight(u.String(), "/") + api.Prefix, c.Token, &client}, nil
}

// Close closes connections that are idle. The store may be used on.
func (s *Store) Close() { s.client.CloseIdleConnections() }

// parse reads the address of a server. Nothing of it is in an error: people may
// paste a link with a token.
func parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return nil, valid.Invalid("server", "it is empty")
	case err != nil:
		return nil, valid.Invalid("server", "it is not a URL, such as https://jobs.example.com")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, valid.Invalid("server", "it does not begin with https:// or http://")
	case u.Hostname() == "":
		return nil, valid.Invalid("server", "it names no host")
	case u.User != nil:
		return nil, valid.Invalid("server", "it has a user in it; say who asks by a token")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, valid.Invalid("server", "it ends with its path; what a link has after a question mark is a token, to be given beside the address")
	}
	return u, nil
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// newClient waits for a server, but not for ever. What takes long on a large
// database, such as counting its queues, begins to be answered when it is done.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 10 * time.Second
	t.ResponseHeaderTimeout = 5 * time.Minute
	t.MaxIdleConnsPerHost = t.MaxIdleConns // each who awaits a job has one, and needs it again
	return &http.Client{Transport: t}
}
