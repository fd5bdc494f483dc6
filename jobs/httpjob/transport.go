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
	"Stint-Job", "Stint-Attempt",
}

func dropSecrets(h http.Header) {
	for name := range h {
		if !slices.Contains(harmless, name) {
			delete(h, name)
		}
	}
}
