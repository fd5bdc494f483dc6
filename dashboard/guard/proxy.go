package guard

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/stint-go/stint/internal/valid"
)

// Proxy is something in front of the server that knows people and names them in a
// header. The zero value is none.
type Proxy struct {
	// Header names the person, such as X-Forwarded-User. Empty means that no
	// proxy is believed.
	Header string

	// Trusted are the addresses of the proxies. From any other the header means
	// nothing.
	Trusted []netip.Prefix

	// Roles are those of some people, by name; Others is everybody else's.
	Roles  map[string]Role
	Others Role
}

func (p Proxy) check() error {
	switch {
	case p.Header == "" && len(p.Trusted) > 0:
		return fmt.Errorf("proxies are trusted, but no header names the person")
	case p.Header != "" && len(p.Trusted) == 0:
		return fmt.Errorf("the header %s is believed from no address: say which proxies are trusted", p.Header)
	}
	return nil
}

// identify believes what a trusted proxy says.
func (p Proxy) identify(r *http.Request) (Identity, bool) {
	if p.Header == "" || !p.trusts(r.RemoteAddr) {
		return Identity{}, false
	}
	names := r.Header.Values(p.Header)
	if len(names) != 1 || valid.Name("name", names[0]) != nil {
		return Identity{}, false // none, or one that a client added
	}
	role, ok := p.Roles[names[0]]
	if !ok {
		role = p.Others
	}
	return Identity{Name: names[0], Role: role}, true
}

func (p Proxy) trusts(remote string) bool {
	addr, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(p.Trusted, func(prefix netip.Prefix) bool { return prefix.Contains(addr.Addr().Unmap()) })
}
