package dashboard

import (
	"bytes"
	"io"
	"net/http"
)

// inside is the way to the API of this process: a page asks for operations as whoever
// sends the request of the context.
type inside struct{ api http.Handler }

// RoundTrip implements [http.RoundTripper].
func (i inside) RoundTrip(r *http.Request) (*http.Response, error) {
	a := answer{header: http.Header{}, status: http.StatusOK}
	i.api.ServeHTTP(&a, r)
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(&a.body), Request: r}, nil
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
