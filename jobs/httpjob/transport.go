package httpjob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

const maxRedirects = 5

// transport connects to addresses that the guard lets pass, and to no others.
func transport(guard func(netip.AddrPort) error, names *net.Resolver) *http.Transport {
	dialer := &net.Dialer{
		Timeout:  30 * time.Second,
		Resolver: names,
		// Called when the name is resolved and the socket is made, for each
		// address that is tried.
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("connect to %s: %w", address, err)
			}
			return guard(to)
		},
	}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    30 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    8,
		MaxIdleConns:           64,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

var (
	errRedirects = fmt.Errorf("more than %d redirects", maxRedirects)
	errDowngrade = errors.New("a redirect leads from https to http")
)

// client follows the redirects of one request.
func (s *sender) client(expect []int) *http.Client {
	return &http.Client{
		Transport: s.transport,
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			last, status := via[len(via)-1], next.Response.StatusCode
			switch {
			case slices.Contains(expect, status):
				return http.ErrUseLastResponse
			case next.Method != last.Method && status != http.StatusSeeOther:
				// A POST would go on as a GET without its body, and look
				// like a success.
				return http.ErrUseLastResponse
			case len(via) > maxRedirects:
				return errRedirects
			case next.URL.Scheme == "http" && last.URL.Scheme == "https":
				return errDowngrade
			}
			// Once another server was on the way, nobody gets the secrets.
			elsewhere := func(r *http.Request) bool { return !sameOrigin(r.URL, via[0].URL) }
			if elsewhere(next) || slices.ContainsFunc(via, elsewhere) {
				dropSecrets(next.Header)
			}
			return nil
		},
	}
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// harmless headers may be sent to whomever a redirect leads to. Any other may
// hold a key, whatever its name.
var harmless = []string{
	"Accept", "Accept-Language", "Content-Type", "Content-Encoding", "Content-Language", "User-Agent",
	"Stint-Job", "Stint-Attempt", "Stint-May-Have-Run",
}

func dropSecrets(h http.Header) {
	for name := range h {
		if !slices.Contains(harmless, name) {
			delete(h, name)
		}
	}
}

// AddressError says that a request was about to go to an address that is not
// public.
type AddressError struct {
	Addr netip.Addr
	What string // which range it is in
}

// Error names the address and what it is.
func (e *AddressError) Error() string {
	return fmt.Sprintf("%s is refused: %s, not a public address (an engine with --http-private or Config.AllowPrivate allows it)", e.Addr, e.What)
}

// special are the ranges of IPv4 that are not the public internet, after
// IANA's registry of special-purpose addresses (RFC 6890), and one address of
// a cloud's own services that lies outside of them.
var special = ranges(
	"0.0.0.0/8", "this network",
	"10.0.0.0/8", "private",
	"100.64.0.0/10", "shared by a provider",
	"127.0.0.0/8", "loopback",
	"169.254.0.0/16", "link-local, as metadata services are",
	"172.16.0.0/12", "private",
	"192.0.0.0/24", "reserved for protocols",
	"192.0.2.0/24", "for documentation",
	"192.88.99.0/24", "a relay",
	"192.168.0.0/16", "private",
	"198.18.0.0/15", "for benchmarks",
	"198.51.100.0/24", "for documentation",
	"203.0.113.0/24", "for documentation",
	"224.0.0.0/4", "multicast",
	"240.0.0.0/4", "reserved",
	"168.63.129.16/32", "a service of the cloud's host",
)

// special6 does the same for IPv6, inside and outside of global unicast.
var special6 = ranges(
	"::/128", "unspecified",
	"::1/128", "loopback",
	"fc00::/7", "private",
	"fe80::/10", "link-local",
	"fec0::/10", "site-local",
	"ff00::/8", "multicast",
	"2001::/23", "reserved for protocols",
	"2001:db8::/32", "for documentation",
	"2002::/16", "a tunnel to IPv4",
	"3fff::/20", "for documentation",
)

var (
	global6 = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052: the last four bytes are an IPv4 address
)

type namedRange struct {
	prefix netip.Prefix
	name   string
}

func ranges(pairs ...string) []namedRange {
	var all []namedRange
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, namedRange{netip.MustParsePrefix(pairs[i]), pairs[i+1]})
	}
	return all
}

// refuse returns an [AddressError] for what is not a public address.
func refuse(to netip.AddrPort) error {
	if what := notPublic(to.Addr()); what != "" {
		return &AddressError{to.Addr(), what}
	}
	return nil
}

// notPublic says what an address is, or "" when it is public. Of IPv4
// everything is public that is not listed. Of IPv6 only global unicast is, so
// that forms nobody thought of are refused; and the IPv4 address inside
// a translated one is judged by itself.
func notPublic(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	list := special
	if a.Is6() {
		list = special6
	}
	for _, r := range list {
		if r.prefix.Contains(a) {
			return r.name
		}
	}
	if a.Is6() && !global6.Contains(a) {
		return "reserved"
	}
	return ""
}
