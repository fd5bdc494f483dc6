package httpjob

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/stint-go/stint/internal/valid"
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

	// Callback is the result that the receiver sent when it had done the work: see [Callback].
	Callback json.RawMessage `json:"callback,omitempty"`

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
		r.URL = valid.Clean(resp.Request.URL.Redacted())
	}
	for _, name := range keptHeaders {
		if value := resp.Header.Get(name); value != "" {
			if r.Headers == nil {
				r.Headers = map[string]string{}
			}
			r.Headers[name] = valid.Clean(firstLines(value, maxHeader))
		}
	}
	if len(body) > limit {
		r.Body, r.Truncated = valid.CleanCut(string(body[:limit])), true
	} else {
		r.Body = valid.Clean(string(body))
	}
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

// firstLines is the beginning of text for people, of at most max bytes.
func firstLines(text string, max int) string {
	text = strings.TrimSpace(text)
	if len(text) <= max {
		return text
	}
	return valid.CleanCut(text[:max]) + "[...]"
}
