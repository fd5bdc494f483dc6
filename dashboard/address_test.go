package dashboard

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/stint-go/stint"
)

// elsewhere does to an address what a browser does before it reads it, and tells
// whether it would leave the server.
func elsewhere(to string) bool {
	to = strings.Trim(to, "\x00\x01\x02\x03\x04\x05\x06\x07\b\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f ")
	to = strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(to)
	return !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//")
}

func FuzzLocalAddresses(f *testing.F) {
	for _, to := range []string{"/", "/jobs?x=//y", "//evil.com", `/\evil.com`, "/\t/evil.com", "/\n\\evil.com", "\x01//evil.com", "", "jobs", "https://evil.com", "/%2f/evil.com"} {
		f.Add(to)
	}
	f.Fuzz(func(t *testing.T, to string) {
		if isLocal(to) && elsewhere(to) {
			t.Errorf("%q is taken for an address of this server", to)
		}
	})
}

// What a page behind a form says comes back as it was said; what somebody else
// put into the cookie shows nothing, or at least leads nowhere else.
func FuzzFlash(f *testing.F) {
	f.Add(true, "3 jobs are cancelled.", "/jobs/7", "job 7", "")
	f.Add(false, "", "//evil.com", "x", "eyJvayI6dHJ1ZX0")
	f.Add(false, "\xff\x00<b>", "", "", "%%%")
	f.Add(true, strings.Repeat("ü", 3000), "", "", "bnVsbA")
	f.Fuzz(func(t *testing.T, ok bool, text, link, word, cookie string) {
		b := &Dashboard{}
		take := func(value string) *flash {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.AddCookie(&http.Cookie{Name: flashCookie, Value: value})
			return b.takeFlash(httptest.NewRecorder(), r)
		}
		if got := take(cookie); got != nil && got.Link != "" && elsewhere(got.Link) {
			t.Errorf("the cookie %q leads to %q", cookie, got.Link)
		}
		w := httptest.NewRecorder()
		b.setFlash(w, httptest.NewRequest(http.MethodPost, "/", nil), flash{ok, text, link, word})
		got := take(w.Result().Cookies()[0].Value)
		switch {
		case link != "" && !isLocal(link):
			if got != nil {
				t.Errorf("%q is shown", link)
			}
		case got == nil:
			t.Errorf("nothing is shown of %q, %q", text, link)
		case got.OK != ok || len(text) <= maxFlash && got.Text != strings.ToValidUTF8(text, "\ufffd") && strings.ToValidUTF8(text, "") == text:
			t.Errorf("%q is shown as %q", text, got.Text)
		}
	})
}

// A filter in the address of a page is the same one when it is written there
// again, and each of its conditions can be taken back.
func FuzzFilterOfAPage(f *testing.F) {
	for _, q := range []string{"state=failed&state=running&kind=k", "attempts=x&faulty=maybe", "attempts=3&faulty=1", "kind=+&queue=%20a%20", "a=b;c", "state=%00&urn=%ff", "longer=5s&longer=6s"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, _ := url.ParseQuery(query)
		c := choice(values)
		again, err := url.ParseQuery(string(c.Encode()))
		if err != nil || !reflect.DeepEqual(choice(again).query, c.query) {
			t.Fatalf("%q is %q, which is %q: %v", query, c.query, again, err)
		}
		if parts := c.Parts(); len(parts) != len(c.query) || c.Any() != (len(parts) > 0) {
			t.Errorf("%q has %d conditions, and %d are shown", query, len(c.query), len(parts))
		}
		for _, p := range c.Parts() {
			if less, err := url.ParseQuery(string(p.Without)); err != nil || len(less) != len(c.query)-1 {
				t.Errorf("%q without %s is %q: %v", query, p.Label, less, err)
			}
		}
		filter, err := c.filter()
		if err != nil {
			if !errors.Is(err, stint.ErrInvalid) {
				t.Errorf("%q cannot be read: %v", query, err)
			}
			return
		}
		text, err := json.Marshal(filter)
		var body map[string]any
		if err != nil || json.Unmarshal(text, &body) != nil {
			t.Fatalf("%q is %s, %v", query, text, err)
		}
		for name := range body {
			if !c.query.Has(name) {
				t.Errorf("%q is %s for the API", query, text)
			}
		}
	})
}
