package httpjob

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/stint-go/stint/internal/valid"
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

	// Callback lets the receiver answer 202 and say later what came of it: see [Callback]. The job waits for
	// that so long, at most [retry.MaxWait], without a slot. Any other status ends the attempt as always.
	// A job waits for one callback: it is not for a handler that sends several requests.
	Callback Duration `json:"callback,omitzero"`
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
		return valid.Invalid("args", `got %s, want a time with its unit, such as "10s"`, raw)
	}
	v, err := retry.ParseDuration(text)
	if err != nil {
		return valid.Invalid("args", "%v", err)
	}
	*d = Duration(v)
	return nil
}

// Check reports the first thing that can never be right, as a
// [stint.InvalidError], or nil.
func (a Args) Check() error {
	if a.Method != "" && !httpguts.ValidHeaderFieldName(a.Method) {
		return valid.Invalid("args.method", "%q is not a method", a.Method)
	}
	if a.Method == http.MethodConnect {
		return valid.Invalid("args.method", "CONNECT is for proxies")
	}
	if err := checkURL(a.URL); err != nil {
		return err
	}
	if err := checkHeaders(a.Headers); err != nil {
		return err
	}
	if a.Body != "" && a.JSON != nil {
		return valid.Invalid("args", "body and json exclude each other")
	}
	for _, status := range a.Expect {
		if status < 200 || status > 599 {
			return valid.Invalid("args.expect", "%d is not a status from 200 to 599", status)
		}
	}
	if a.Timeout < 0 {
		return valid.Invalid("args.timeout", "%v is negative", time.Duration(a.Timeout))
	}
	if d := time.Duration(a.Callback); d < 0 || d > retry.MaxWait {
		return valid.Invalid("args.callback", "%s is not a time from 0 to %s", retry.FormatDuration(d), retry.FormatDuration(retry.MaxWait))
	}
	return nil
}

func checkURL(raw string) error {
	if raw == "" {
		return valid.Invalid("args.url", "a URL is needed")
	}
	u, err := url.Parse(raw)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL, which may hold a password
		}
		return valid.Invalid("args.url", "%v", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return valid.Invalid("args.url", "the scheme is %q, not http or https", u.Scheme)
	case u.Hostname() == "":
		return valid.Invalid("args.url", "the host is missing")
	}
	return nil
}

func checkHeaders(headers map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if !httpguts.ValidHeaderFieldName(name) {
			return valid.Invalid("args.headers", "%q is not a header's name", name)
		}
		switch key := http.CanonicalHeaderKey(name); key {
		case "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade", "Stint-Job", "Stint-Attempt", "Stint-May-Have-Run", "Stint-Callback":
			return valid.Invalid("args.headers", "%s is set by the engine", key)
		}
		if !httpguts.ValidHeaderFieldValue(headers[name]) {
			return valid.Invalid("args.headers", "the value of %s has a control character", name)
		}
	}
	return nil
}
