package remote

import (
	"net/http"
	"net/url"
	"testing"
	"unicode/utf8"
)

// FuzzRefusals makes sure that whatever answers in a server's place, what is told
// of it is a text, and the place that it leads to has no name, query or fragment.
func FuzzRefusals(f *testing.F) {
	for _, c := range []struct {
		status               int
		kind, location, text string
	}{
		{404, "application/problem+json", "", `{"type":"about:blank","title":"Not Found","detail":"no job","status":200,"errors":[{"location":"id"}]}`},
		{502, "text/plain", "", "bad gateway\n"}, {302, "text/html", "https://u:p@login/?next=secret#x", "<html>"}, {307, "", "//[::1", ""}, {400, "application/problem+json", "", `[]`},
	} {
		f.Add(c.status, c.kind, c.location, []byte(c.text))
	}
	f.Fuzz(func(t *testing.T, status int, kind, location string, text []byte) {
		err := refused(&http.Response{StatusCode: status, Header: http.Header{"Location": {location}}}, kind, text)
		if err.Status != status || !utf8.ValidString(err.Error()) || err.Error() == "" {
			t.Errorf("%d, %s, %q: %q", status, kind, text, err)
		}
		if to, bad := url.Parse(err.Location); bad != nil || to.User != nil || to.RawQuery != "" || to.Fragment != "" {
			t.Errorf("%q leads to %q", location, err.Location)
		}
	})
}
