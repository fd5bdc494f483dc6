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
	"time"

	"github.com/stint-go/stint/ops"
)

// maxAnswer bounds what is read of an answer, in bytes: far more than the largest page.
var maxAnswer int64 = 256 << 20

// The times between the tries of what may be sent again.
var pauses = []time.Duration{100 * time.Millisecond, 500 * time.Millisecond}

// Call has an operation done by the server. It implements [ops.Caller].
func (s *Store) Call(ctx context.Context, op ops.Operation, in, out any) error {
	r, err := ops.RequestOf(op, in)
	if err != nil {
		return err
	}
	var body []byte
	if r.Body != nil {
		if body, err = encode(r.Body); err != nil {
			return err
		}
	}
	method := op.Describe().Method
	for try := 0; ; try++ {
		text, err := s.send(ctx, method, r, body)
		if err == nil {
			if err = json.Unmarshal(text, out); err != nil {
				err = fmt.Errorf("%s does not answer as stint does: %w", s.base, err)
			}
			return err
		}
		if try == len(pauses) || !mayRepeat(method) || !passes(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pauses[try]):
		}
	}
}

// mayRepeat reports whether a request does no harm when it is done twice.
func mayRepeat(method string) bool { return method == http.MethodGet || method == http.MethodPut }

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
func (s *Store) send(ctx context.Context, method string, r ops.Request, body []byte) ([]byte, error) {
	address := s.base + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
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
