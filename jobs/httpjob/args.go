package httpjob

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// Args are the arguments of a job. Only the URL is needed.
type Args struct {
	// Method is GET when empty.
	Method string `json:"method,omitempty"`

	// URL is absolute, http or https.
	URL string `json:"url"`

	// Headers are sent beside stint's own.
	Headers map[string]string `json:"headers,omitempty"`

	// Body is sent as it is, JSON as JSON with a fitting Content-Type. At
	// most one of them may be there.
	Body string          `json:"body,omitempty"`
	JSON json.RawMessage `json:"json,omitempty"`

	// Expect lists the statuses that are a success. Empty means 200 to 299.
	// A redirect that is listed is not followed.
	Expect []int `json:"expect,omitempty"`

	// Timeout bounds the whole request. Zero means the engine's default.
	Timeout Duration `json:"timeout,omitzero"`
}

// Duration is a time with its unit in JSON: "10s", "1m30s", "250ms".
type Duration time.Duration

// MarshalText writes the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) {
	return []byte(retry.FormatDuration(time.Duration(d))), nil
}

// UnmarshalJSON reads a duration as [retry.ParseDuration] does. Its errors name
// the argument, since encoding/json does not.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return invalid("args.timeout", `got %s, want a time with its unit, such as "10s"`, raw)
	}
	v, err := retry.ParseDuration(text)
	if err != nil {
		return invalid("args.timeout", "%v", err)
	}
	*d = Duration(v)
	return nil
}

// Check reports the first thing that can never be right, as a
// [stint.InvalidError], or nil.
func (a Args) Check() error {
	if a.Method != "" && !isToken(a.Method) {
		return invalid("args.method", "%q is not a method", a.Method)
	}
	if a.Method == http.MethodConnect {
		return invalid("args.method", "CONNECT is for proxies")
	}
	if err := checkURL(a.URL); err != nil {
		return err
	}
	if err := checkHeaders(a.Headers); err != nil {
		return err
	}
	if a.Body != "" && a.JSON != nil {
		return invalid("args", "body and json exclude each other")
	}
	for _, status := range a.Expect {
		if status < 200 || status > 599 {
			return invalid("args.expect", "%d is not a status from 200 to 599", status)
		}
	}
	if a.Timeout < 0 {
		return invalid("args.timeout", "%v is negative", time.Duration(a.Timeout))
	}
	return nil
}

func checkURL(raw string) error {
	if raw == "" {
		return invalid("args.url", "a URL is needed")
	}
	u, err := url.Parse(raw)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL, which may hold a password
		}
		return invalid("args.url", "%v", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return invalid("args.url", "the scheme is %q, not http or https", u.Scheme)
	case u.Hostname() == "":
		return invalid("args.url", "the host is missing")
	}
	return nil
}

func checkHeaders(headers map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if !isToken(name) {
			return invalid("args.headers", "%q is not a header's name", name)
		}
		switch key := http.CanonicalHeaderKey(name); key {
		case "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade", "Stint-Job", "Stint-Attempt":
			return invalid("args.headers", "%s is set by the engine", key)
		}
		for _, c := range []byte(headers[name]) {
			if c < ' ' && c != '\t' || c == 0x7f {
				return invalid("args.headers", "the value of %s has a control character", name)
			}
		}
	}
	return nil
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func invalid(field, format string, args ...any) error {
	return &stint.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
