package httpjob

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/stint-go/stint"
)

// Result is what is kept of an attempt that was answered, of a failed one too.
type Result struct {
	Status int `json:"status"`

	// URL is where the answer came from, when redirects were followed.
	URL string `json:"url,omitempty"`

	// Headers are the few that explain the rest: Content-Type, Location,
	// Retry-After and X-Request-Id.
	Headers map[string]string `json:"headers,omitempty"`

	// Body is the beginning of the body, decompressed and made storable.
	Body string `json:"body,omitempty"`

	// Truncated says that the body went on.
	Truncated bool `json:"truncated,omitzero"`

	// Duration is the time from the start of the request to the end of what
	// was read, rounded to milliseconds.
	Duration Duration `json:"duration"`
}

var keptHeaders = []string{"Content-Type", "Location", "Retry-After", "X-Request-Id"}

const (
	maxHeader = 1 << 10 // bytes that are kept of a header's value
	shownBody = 1 << 10 // bytes of a body that an error shows
)

// newResult keeps at most limit bytes of the body, of which one more may have
// been read to see whether it goes on.
func newResult(resp *http.Response, body []byte, limit int) *Result {
	r := &Result{Status: resp.StatusCode}
	if resp.Request != nil && resp.Request.Response != nil {
		r.URL = storable(resp.Request.URL.Redacted())
	}
	for _, name := range keptHeaders {
		if value := resp.Header.Get(name); value != "" {
			if r.Headers == nil {
				r.Headers = map[string]string{}
			}
			r.Headers[name] = storable(firstLines(value, maxHeader))
		}
	}
	text := string(body)
	if len(text) > limit {
		text, r.Truncated = wholeRunes(text[:limit]), true
	}
	r.Body = storable(text)
	return r
}

// StatusError says that a server answered, but not as expected.
type StatusError struct {
	Status   int
	Location string // where it points to, of a redirect that was not followed
	Body     string // the beginning of the body, about 1 KiB
}

// Error shows the status and the beginning of the body.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("status %d", e.Status)
	if name := http.StatusText(e.Status); name != "" {
		text += " " + name
	}
	if e.Location != "" {
		text += " to " + e.Location
	}
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// storable replaces what no database keeps. One byte becomes three at most,
// so nothing is cut.
func storable(s string) string { return stint.CleanText(s, 3*len(s)) }

// firstLines is the beginning of text for people, of at most max bytes.
func firstLines(text string, max int) string {
	text = strings.TrimSpace(text)
	if len(text) <= max {
		return text
	}
	return wholeRunes(text[:max]) + "[...]"
}

// wholeRunes drops a character at the end of s that was cut in two.
func wholeRunes(s string) string {
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		if c := s[len(s)-i:]; utf8.RuneStart(c[0]) {
			if !utf8.FullRuneInString(c) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}
