package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAnswer bounds what is read of an answer, in bytes: far more than the largest page.
var maxAnswer int64 = 256 << 20

// request is one to the API.
type request struct {
	method string
	path   string // below the prefix
	query  url.Values
	body   any // nil for none
}

// The times between the tries of what may be sent again.
var pauses = []time.Duration{100 * time.Millisecond, 500 * time.Millisecond}

// ask sends a request and decodes the answer.
func ask[T any](ctx context.Context, s *Store, r request) (T, error) {
	var v T
	var body []byte
	if r.body != nil {
		var err error
		if body, err = encode(r.body); err != nil {
			return v, err
		}
	}
	for try := 0; ; try++ {
		text, err := s.send(ctx, r, body)
		if err == nil {
			if err = json.Unmarshal(text, &v); err != nil {
				err = fmt.Errorf("%s does not answer as stint does: %w", s.base, err)
			}
			return v, err
		}
		if try == len(pauses) || !r.mayRepeat() || !passes(err) {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, err
		case <-time.After(pauses[try]):
		}
	}
}

// do sends a request of whose answer nothing is wanted.
func do(ctx context.Context, s *Store, r request) error {
	_, err := ask[json.RawMessage](ctx, s, r)
	return err
}

// mayRepeat reports whether it does no harm to be done twice.
func (r request) mayRepeat() bool { return r.method == http.MethodGet || r.method == http.MethodPut }

// passes reports whether another try may go better: the way to the server broke, or
// what stands in front of it says so.
func passes(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable
	}
	_, way := errors.AsType[*wayError](err)
	return way && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// send sends a request once and returns the JSON of the answer.
func (s *Store) send(ctx context.Context, r request, body []byte) ([]byte, error) {
	address := s.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, &wayError{s.base, err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return nil, &wayError{s.base, err}
	case int64(len(text)) > maxAnswer:
		return nil, fmt.Errorf("%s answers with more than %d MiB", s.base, maxAnswer>>20)
	case res.StatusCode >= 300:
		return nil, refused(res, kind, text)
	case kind != "application/json":
		return nil, fmt.Errorf("%s does not answer as stint does: with %q in place of JSON", s.base, kind)
	}
	return text, nil
}

// encode is JSON without escapes for web pages, since arguments are kept as they
// are written.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// path joins words and names. A name is one segment of it, whatever it holds.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		s = url.PathEscape(s)
		if s == "." || s == ".." { // which would be taken for a way
			s = strings.ReplaceAll(s, ".", "%2E")
		}
		b.WriteString("/" + s)
	}
	return b.String()
}
