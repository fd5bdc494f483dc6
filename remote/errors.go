package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/stint-go/stint/api"
)

// Error is what a server answers in place of what it was asked for. It wraps the
// error that a store would return, where it stands for one: [errors.Is] and
// [errors.As] find [stint.ErrNotFound], [stint.InvalidError] and the like in it.
type Error struct {
	Status int    // of HTTP
	Detail string // in the server's words; may be empty

	// Location is where the server sends this to, with a status from 300 to 399.
	Location string

	problem *api.Problem
}

// Error is what the API says, as a store would, with each field that its document
// forbids; of other answers it begins with the status.
func (e *Error) Error() string {
	switch {
	case e.Location != "":
		return "the server sends this on to " + e.Location
	case e.problem != nil && e.Detail != "":
		var fields []string
		for _, f := range e.problem.Errors {
			if e.Status == http.StatusUnprocessableEntity && !strings.HasSuffix(e.Detail, f.Message) {
				fields = append(fields, strings.TrimPrefix(strings.TrimPrefix(f.Location, "body.")+": ", ": ")+f.Message)
			}
		}
		return strings.TrimSuffix(e.Detail+": "+strings.Join(fields, "; "), ": ")
	}
	return strings.TrimSuffix(fmt.Sprintf("the server answers %d %s: %s", e.Status, http.StatusText(e.Status), e.Detail), ": ")
}

// Unwrap is the error of a store that this stands for; nil for others.
func (e *Error) Unwrap() error {
	if e.problem == nil {
		return nil
	}
	return e.problem.Unwrap()
}

// maxDetail bounds what is told of an answer that is no problem.
const maxDetail = 300

// refused reads an answer that is not what was asked for.
func refused(res *http.Response, kind string, text []byte) *Error {
	e := &Error{Status: res.StatusCode}
	switch kind {
	case "application/problem+json":
		var p api.Problem
		if json.Unmarshal(text, &p) == nil {
			p.Status = res.StatusCode
			e.problem, e.Detail = &p, cmp.Or(p.Detail, p.Title)
		}
	case "text/plain":
		if line := strings.TrimSpace(string(text)); len(line) <= maxDetail && utf8.ValidString(line) {
			e.Detail = line
		}
	}
	if to, err := url.Parse(res.Header.Get("Location")); e.Status < 400 && err == nil {
		e.Location = (&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}).String()
	}
	return e
}

// wayError is about the way to a server.
type wayError struct {
	server string
	err    error
}

func (e *wayError) Error() string {
	err := e.err
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the address is that of the server, and a filter is nobody's business
	}
	return fmt.Sprintf("ask %s: %v", e.server, err)
}

func (e *wayError) Unwrap() error { return e.err }
