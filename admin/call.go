package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/stint-go/stint/admin/api"
)

// refusal is what the API said instead of doing what it was asked.
type refusal struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Location string `json:"location"`
		Message  string `json:"message"`
	} `json:"errors"`
}

// Error says it to people.
func (r *refusal) Error() string {
	var all []string
	for _, e := range r.Errors {
		if e.Message != "" && e.Message != r.Detail {
			all = append(all, strings.TrimPrefix(strings.TrimPrefix(e.Location+": ", ": "), "body.")+e.Message)
		}
	}
	text := r.Detail
	if text == "" {
		text = r.Title
	}
	if len(all) > 0 {
		text += ": " + strings.Join(all, "; ")
	}
	return text
}

// call has an operation of the API done, as whoever sends the request of the
// context. Whatever the API refuses is a *refusal.
func (b *Board) call(ctx context.Context, method, path string, body, into any) error {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(api.ByHand(ctx), method, api.Prefix+path, &text)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	a := answer{header: http.Header{}, status: http.StatusOK}
	b.api.ServeHTTP(&a, r)
	if a.status >= http.StatusBadRequest {
		told := &refusal{Status: a.status, Title: http.StatusText(a.status)}
		_ = json.Unmarshal(a.body.Bytes(), told) // what it says besides is welcome
		return told
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(a.body.Bytes(), into); err != nil {
		return fmt.Errorf("what %s %s answers: %w", method, path, err)
	}
	return nil
}

// answer keeps what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements [http.ResponseWriter].
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
