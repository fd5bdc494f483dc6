package guard_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/stint-go/stint/dashboard/guard"
)

const secret = "a-secret-of-many-characters"

func hash(t testing.TB, password string) string {
	t.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost+1)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

// everybody is a guard that knows one of each.
func everybody(t testing.TB) guard.Config {
	return guard.Config{
		Link:   secret,
		Tokens: []guard.Token{guard.NewToken("ci", guard.Operator, "token-of-the-pipeline-0001")},
		Users:  []guard.User{{Name: "ann", Role: guard.Viewer, Hash: hash(t, "correct horse")}},
		Proxy: guard.Proxy{
			Header: "X-Forwarded-User", Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			Roles: map[string]guard.Role{"root": guard.Admin}, Others: guard.Viewer,
		},
		Hosts: []string{"jobs.example.com"},
	}
}

// ask sends a request from an address and says who came through, or the status.
func ask(t testing.TB, h http.Handler, r *http.Request) (who string, res *http.Response) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	res = w.Result()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), res
}

func wrapped(t testing.TB, c guard.Config) http.Handler {
	t.Helper()
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := guard.Of(r.Context())
		io.WriteString(w, who.Name+" "+who.Role.String())
	}))
}

// request makes one; with is a list of header lines.
func request(method, target string, with ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = "192.0.2.1:1234"
	for _, line := range with {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

func TestWhoeverIsKnownPassesAsThemselves(t *testing.T) {
	h := wrapped(t, everybody(t))
	from := func(addr string, r *http.Request) *http.Request { r.RemoteAddr = addr; return r }
	basic := func(name, password string) *http.Request {
		r := request("GET", "http://localhost/")
		r.SetBasicAuth(name, password)
		return r
	}
	for name, c := range map[string]struct {
		r    *http.Request
		want string // who came through, or empty
		code int
	}{
		"the link's token":            {request("POST", "http://localhost/", "Authorization: Bearer "+secret), "link admin", 200},
		"a program's token":           {request("POST", "http://localhost/", "Authorization: bearer token-of-the-pipeline-0001"), "ci operator", 200},
		"a wrong token":               {request("GET", "http://localhost/", "Authorization: Bearer token-of-the-pipeline-0002"), "", 401},
		"an empty token":              {request("GET", "http://localhost/", "Authorization: Bearer "), "", 401},
		"a hash instead of the token": {request("GET", "http://localhost/", "Authorization: Bearer "+guard.NewToken("", 0, "token-of-the-pipeline-0001").Hash), "", 401},
		"a user":                      {basic("ann", "correct horse"), "ann viewer", 200},
		"a wrong password":            {basic("ann", "correct"), "", 401},
		"a user that there is not":    {basic("bob", "correct horse"), "", 401},
		"nobody's name":               {basic("", ""), "", 401},
		"a malformed user":            {request("GET", "http://localhost/", "Authorization: Basic !!"), "", 401},
		"a strange scheme":            {request("GET", "http://localhost/", "Authorization: Digest x"), "", 401},
		"a stranger":                  {request("GET", "http://localhost/"), "", 401},
		"a trusted proxy's person":    {from("10.1.2.3:99", request("GET", "http://localhost/", "X-Forwarded-User: ann")), "ann viewer", 200},
		"its administrator":           {from("10.1.2.3:99", request("DELETE", "http://localhost/", "X-Forwarded-User: root")), "root admin", 200},
		"the proxy mapped into IPv6":  {from("[::ffff:10.1.2.3]:99", request("GET", "http://localhost/", "X-Forwarded-User: ann")), "ann viewer", 200},
		"the same from elsewhere":     {request("GET", "http://localhost/", "X-Forwarded-User: root"), "", 401},
		"two names by the proxy":      {from("10.1.2.3:99", request("GET", "http://localhost/", "X-Forwarded-User: root", "X-Forwarded-User: ann")), "", 401},
		"a name with a line break":    {from("10.1.2.3:99", request("GET", "http://localhost/", "X-Forwarded-User: root\nx")), "", 401},
		"wrong, beside what is right": {from("10.1.2.3:99", request("GET", "http://localhost/", "X-Forwarded-User: root", "Authorization: Bearer x")), "", 401},
	} {
		t.Run(name, func(t *testing.T) {
			who, res := ask(t, h, c.r)
			if res.StatusCode != c.code || c.code == 200 && who != c.want {
				t.Errorf("answered with %d %q, want %d %q", res.StatusCode, who, c.code, c.want)
			}
			if c.code == 401 && len(res.Header.Values("WWW-Authenticate")) != 2 {
				t.Errorf("it does not say how to say who one is: %v", res.Header)
			}
		})
	}
}

func TestARoleReachesForWhatItIsFor(t *testing.T) {
	for _, c := range []struct {
		role   guard.Role
		method string
		code   int
	}{
		{guard.Viewer, "GET", 200}, {guard.Viewer, "HEAD", 200}, {guard.Viewer, "POST", 403}, {guard.Viewer, "PUT", 403},
		{guard.Viewer, "DELETE", 403}, {guard.Viewer, "PATCH", 403}, {guard.Viewer, "BREW", 403}, {guard.Operator, "DELETE", 200}, {guard.Nobody, "GET", 401},
	} {
		h := wrapped(t, guard.Config{Stranger: c.role})
		if _, res := ask(t, h, request(c.method, "http://localhost/")); res.StatusCode != c.code {
			t.Errorf("%v may %s: %d, want %d", c.role, c.method, res.StatusCode, c.code)
		}
	}
}

func TestNoForeignPageGetsIn(t *testing.T) {
	h := wrapped(t, guard.Config{Stranger: guard.Admin, Hosts: []string{"jobs.example.com"}})
	for name, c := range map[string]struct {
		r    *http.Request
		code int
	}{
		"a form of another site":       {request("POST", "http://localhost/", "Sec-Fetch-Site: cross-site"), 403},
		"of a neighbour":               {request("POST", "http://localhost/", "Sec-Fetch-Site: same-site"), 403},
		"of an old browser":            {request("POST", "http://localhost/", "Origin: http://evil.example"), 403},
		"of another port":              {request("POST", "http://localhost:8080/", "Origin: http://localhost:9090"), 403},
		"of a sandboxed frame":         {request("POST", "http://localhost/", "Origin: null"), 403},
		"its own form":                 {request("POST", "http://localhost/", "Sec-Fetch-Site: same-origin", "Origin: http://localhost"), 200},
		"a program":                    {request("POST", "http://localhost/"), 200},
		"a name bound to this address": {request("GET", "http://rebound.example/"), 421},
		"an address of this machine":   {request("GET", "http://192.168.1.7/"), 421},
		"a name in a name":             {request("GET", "http://localhost.evil.example/"), 421},
		"a host of the list":           {request("GET", "http://JOBS.example.com:8443/"), 200},
		"loopback":                     {request("GET", "http://127.0.0.1:8080/"), 200},
		"loopback of IPv6":             {request("GET", "http://[::1]:8080/"), 200},
	} {
		t.Run(name, func(t *testing.T) {
			if _, res := ask(t, h, c.r); res.StatusCode != c.code {
				t.Errorf("answered with %d, want %d", res.StatusCode, c.code)
			}
		})
	}
}

func TestTheLinkOpensASessionAndGoesFromTheAddress(t *testing.T) {
	h := wrapped(t, guard.Config{Link: secret, Stranger: guard.Viewer})
	_, res := ask(t, h, request("GET", "http://localhost/jobs?state=failed&token="+url.QueryEscape(secret)))
	if res.StatusCode != 303 || res.Header.Get("Location") != "/jobs?state=failed" {
		t.Fatalf("answered with %d to %q", res.StatusCode, res.Header.Get("Location"))
	}
	cookie := res.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || strings.Contains(cookie.Value, secret) {
		t.Errorf("the cookie is %+v", cookie)
	}
	r := request("POST", "http://localhost/")
	r.AddCookie(cookie)
	if who, _ := ask(t, h, r); who != "link admin" {
		t.Errorf("the session is %q's", who)
	}
	r = request("POST", "http://localhost/")
	cookie.Value = strings.Repeat("0", len(cookie.Value))
	r.AddCookie(cookie)
	if _, res := ask(t, h, r); res.StatusCode != 403 {
		t.Errorf("a made-up session is answered with %d", res.StatusCode)
	}
	if _, res := ask(t, h, request("GET", "http://localhost/?token=x")); res.StatusCode != 401 || len(res.Cookies()) > 0 {
		t.Errorf("a wrong link is answered with %d %v", res.StatusCode, res.Cookies())
	}
	if _, res := ask(t, h, request("GET", "http://localhost//evil.example/?token="+secret)); strings.HasPrefix(res.Header.Get("Location"), "//") {
		t.Errorf("the link leads to %s", res.Header.Get("Location"))
	}
}

func TestGuessingEndsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := wrapped(t, everybody(t))
		guess := func(from, name, password string) int {
			r := request("GET", "http://localhost/")
			r.RemoteAddr = from
			r.SetBasicAuth(name, password)
			_, res := ask(t, h, r)
			return res.StatusCode
		}
		if code := guess("192.0.2.9:1", "ann", "correct horse"); code != 200 {
			t.Fatalf("the right password is answered with %d", code)
		}
		for i := range 10 {
			if code := guess("192.0.2.1:1", "ann", "guess"); code != 401 {
				t.Fatalf("guess %d is answered with %d", i, code)
			}
		}
		if code := guess("192.0.2.1:2", "ann", "another guess"); code != 429 {
			t.Errorf("one more is answered with %d", code)
		}
		if code := guess("192.0.2.2:2", "ann", "guess"); code != 401 {
			t.Errorf("another address is answered with %d", code)
		}
		if code := guess("192.0.2.1:3", "ann", "correct horse"); code != 200 {
			t.Errorf("who was right before is answered with %d", code)
		}
		if _, res := ask(t, h, request("GET", "http://localhost/", "Authorization: Bearer token-of-the-pipeline-0001")); res.StatusCode != 200 {
			t.Errorf("a right token from there is answered with %d", res.StatusCode)
		}
		time.Sleep(61 * time.Second)
		if code := guess("192.0.2.1:2", "ann", "guess"); code != 401 {
			t.Errorf("after a minute a guess is answered with %d", code)
		}
	})
}

func TestAnswersTieABrowserToTheServer(t *testing.T) {
	h := wrapped(t, guard.Config{})
	_, res := ask(t, h, request("GET", "http://localhost/"))
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"X-Frame-Options": "DENY", "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin",
	} {
		if got := res.Header.Get(name); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q", name, got)
		}
	}
	if csp := res.Header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") {
		t.Errorf("the policy is %s", csp)
	}
}

func TestWhatCanNeverGuardIsRefused(t *testing.T) {
	good := hash(t, "x")
	cheap, err := bcrypt.GenerateFromPassword([]byte("x"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]guard.Config{
		"a short link":            {Link: "short"},
		"a token without a name":  {Tokens: []guard.Token{guard.NewToken("", guard.Admin, secret)}},
		"a token without a role":  {Tokens: []guard.Token{guard.NewToken("a", guard.Nobody, secret)}},
		"a token in clear":        {Tokens: []guard.Token{{Name: "a", Role: guard.Admin, Hash: secret}}},
		"a password in clear":     {Users: []guard.User{{Name: "a", Role: guard.Admin, Hash: "x"}}},
		"a cheap hash":            {Users: []guard.User{{Name: "a", Role: guard.Admin, Hash: string(cheap)}}},
		"a user twice":            {Users: []guard.User{{Name: "a", Role: guard.Admin, Hash: good}, {Name: "a", Role: guard.Viewer, Hash: good}}},
		"a user without a role":   {Users: []guard.User{{Name: "a", Hash: good}}},
		"a header from anybody":   {Proxy: guard.Proxy{Header: "X-User"}},
		"proxies without header":  {Proxy: guard.Proxy{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}},
		"an address for a host":   {Hosts: []string{"http://jobs.example.com"}},
		"an empty name of a host": {Hosts: []string{""}},
	} {
		if _, err := guard.New(c); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// Programs are told as the API does it, and browsers that ask for a page in a line of text.
func TestARefusalIsAProblemToPrograms(t *testing.T) {
	h := wrapped(t, everybody(t))
	for accept, want := range map[string]string{"": "application/problem+json", "*/*": "application/problem+json", "application/json": "application/problem+json", "text/html,*/*;q=0.8": "text/plain; charset=utf-8"} {
		r := httptest.NewRequest("GET", "http://127.0.0.1/", nil)
		r.Header.Set("Accept", accept)
		r.Header.Set("Authorization", "Bearer wrong")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); w.Code != 401 || got != want || !strings.Contains(w.Body.String(), "that is wrong") {
			t.Errorf("who accepts %q gets %d, %s: %s", accept, w.Code, got, w.Body)
		}
	}
}
