package guard_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stint-go/stint/dashboard/guard"
)

// FuzzWhoAsks sends headers of all kinds: only who presents the secret, or comes
// from the proxy with one name, is anybody.
func FuzzWhoAsks(f *testing.F) {
	const token = "another-secret-of-many-characters"
	f.Add("Bearer "+token, "ann", "10.0.0.5:99", "localhost")
	f.Add("bearer  "+token+" ", "", "[::1]:1", "127.0.0.1:7070")
	f.Add("Basic YW5uOg==", "ann", "10.0.0.5:1", "jobs.example.com")
	f.Add("Basic "+token, "", "10.0.0.5", "[::1]")
	f.Add("", "ann", "[::ffff:10.0.0.5]:1", "JOBS.example.com:443")
	f.Add("", "ann", "10.0.0.55:1", "evil.com")
	f.Add("", "a\x00b", "10.0.0.5:1", "jobs.example.com.")
	f.Add("Digest x", " ", "", "")
	const person = "X-Forwarded-User"
	g, err := guard.New(guard.Config{
		Link:  secret,
		Hosts: []string{"jobs.example.com"},
		Proxy: guard.Proxy{Header: person, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.5/32")}, Others: guard.Viewer},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, authorization, name, from, host string) {
		var who *guard.Identity
		h := g.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { found := guard.Of(r.Context()); who = &found }))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["Authorization"], r.Header[person] = []string{authorization}, []string{name}
		r.RemoteAddr, r.Host = from, host
		h.ServeHTTP(httptest.NewRecorder(), r)
		if who == nil {
			return
		}
		addr, err := netip.ParseAddrPort(from)
		proxied := err == nil && addr.Addr().Unmap() == netip.MustParseAddr("10.0.0.5")
		if authorization != "" || !proxied || who.Name != name || who.Role != guard.Viewer {
			t.Errorf("authorization %q, name %q, from %q, host %q is %+v", authorization, name, from, host, *who)
		}
	})
}

func FuzzRoles(f *testing.F) {
	for _, text := range []string{"nobody", "viewer", "operator", "admin", "", "Admin", "unknown"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r guard.Role
		if r.UnmarshalText([]byte(text)) != nil {
			if r != guard.Nobody {
				t.Errorf("%q is refused and gives the role %s", text, r)
			}
		} else if r.String() != text || r == guard.Nobody {
			t.Errorf("%q is read as %s", text, r)
		}
	})
}
