package httpjob

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs"
)

func TestOnlyPublicAddressesPass(t *testing.T) {
	for addr, public := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "172.15.255.255": true, "172.32.0.0": true, "100.63.255.255": true,
		"100.128.0.0": true, "192.167.255.255": true, "223.255.255.255": true, "168.63.129.17": true,
		"2606:4700:4700::1111": true, "2a00:1450::1": true, "64:ff9b::8.8.8.8": true, "::ffff:8.8.8.8": true,

		"127.0.0.1": false, "127.255.255.254": false, "0.0.0.0": false, "0.1.2.3": false,
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.100.100.200": false, "100.127.255.255": false,
		"192.0.0.192": false, "192.0.2.1": false, "198.18.0.1": false, "198.19.255.255": false,
		"198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "239.255.255.255": false,
		"240.0.0.1": false, "255.255.255.255": false, "168.63.129.16": false,

		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false,
		"fec0::1": false, "ff02::1": false, "2001:db8::1": false, "2001::1": false, "2002:7f00:1::": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false, "::ffff:0:127.0.0.1": false,
		"64:ff9b::127.0.0.1": false, "64:ff9b::10.0.0.1": false, "64:ff9b:1::1": false, "100::1": false, "5f00::1": false,
	} {
		err := refuse(netip.AddrPortFrom(netip.MustParseAddr(addr), 80))
		if (err == nil) != public {
			t.Errorf("%s: got %v", addr, err)
		}
	}
}

// careful is a handler with the guard of the default configuration, apart
// from one server that the test itself needs.
func careful(but *httptest.Server, names *net.Resolver) stint.Handler {
	s := newSender(Config{Timeout: 20 * time.Second})
	s.transport = transport(func(to netip.AddrPort) error {
		if but != nil && to.String() == but.Listener.Addr().String() {
			return nil
		}
		return refuse(to)
	}, names)
	return jobs.Strict(s.send)
}

// victim is a private server that must never be asked.
func victim(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a private server was asked for %s", r.URL)
	}))
	t.Cleanup(server.Close)
	return server
}

func expectRefused(t *testing.T, err error) {
	t.Helper()
	refused, ok := errors.AsType[*AddressError](err)
	if !ok || !refused.Addr.IsLoopback() {
		t.Fatalf("got %v", err)
	}
	if !isFinal(err) {
		t.Error("it would be tried again, and again")
	}
	if !strings.Contains(err.Error(), "--http-private or Config.AllowPrivate") {
		t.Errorf("nothing says how to allow it: %v", err)
	}
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	private, _ := url.Parse(victim(t).URL)
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"} {
		u := "http://" + host + ":" + private.Port()
		_, err := perform(t, t.Context(), Handler(Config{Timeout: 20 * time.Second}), Args{URL: u})
		if _, refused := errors.AsType[*AddressError](err); !refused || !isFinal(err) {
			t.Errorf("%s: got %v", u, err)
		}
	}
}

func TestPrivateAddressesAreRefusedAlsoAfterARedirect(t *testing.T) {
	target := victim(t)
	front := httptest.NewServer(http.RedirectHandler(target.URL+"/inside", http.StatusTemporaryRedirect))
	defer front.Close()
	_, err := perform(t, t.Context(), careful(front, net.DefaultResolver), Args{URL: front.URL})
	expectRefused(t, err)
}

func TestPrivateAddressesAreRefusedAlsoWhenANameChangesItsMind(t *testing.T) {
	var asked atomic.Int32
	names := nameServer(t, func() [4]byte {
		if asked.Add(1) == 1 {
			return [4]byte{93, 184, 215, 14}
		}
		return [4]byte{127, 0, 0, 1}
	})
	// The look that a check before the request would take sees a public one.
	first, err := names.LookupNetIP(t.Context(), "ip4", "rebind.test.")
	if err != nil || len(first) != 1 || notPublic(first[0]) != "" {
		t.Fatalf("got %v, %v", first, err)
	}
	u, _ := url.Parse(victim(t).URL)
	_, err = perform(t, t.Context(), careful(nil, names), Args{URL: "http://rebind.test.:" + u.Port()})
	expectRefused(t, err)
}

// nameServer answers every question for an IPv4 address, and no other.
func nameServer(t *testing.T, answer func() [4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(reply(buf[:n], answer), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// reply is the answer to a query, in the format of RFC 1035.
func reply(query []byte, answer func() [4]byte) []byte {
	end := 12 // behind the header: the name, label by label
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5
	out := append([]byte(nil), query[:end]...)
	binary.BigEndian.PutUint16(out[2:], 0x8180) // a response without error
	binary.BigEndian.PutUint16(out[10:], 0)     // nothing additional
	if kind := binary.BigEndian.Uint16(query[end-4:]); kind != 1 {
		return out
	}
	binary.BigEndian.PutUint16(out[6:], 1) // one answer, about the name at offset 12
	out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
	ip := answer()
	return append(out, ip[:]...)
}

func TestNoProxyIsTakenFromTheEnvironment(t *testing.T) {
	proxy := victim(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	if newSender(Config{}).transport.Proxy != nil {
		t.Error("there is a proxy")
	}
}

func TestAConfiguredProxyGetsEveryRequest(t *testing.T) {
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked = r.URL.String() }))
	defer proxy.Close()
	u, _ := url.Parse(proxy.URL)
	_, err := perform(t, t.Context(), Handler(Config{Proxy: u}), Args{URL: "http://example.test/x"})
	if err != nil || !strings.HasSuffix(asked, "//example.test/x") {
		t.Errorf("the proxy was asked for %q, %v", asked, err)
	}
}
