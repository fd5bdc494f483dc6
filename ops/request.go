package ops

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// Request is an input as it is sent to an API.
type Request struct {
	Path  string // below the prefix of the API
	Query url.Values
	Body  any // nil for none

	names []string       // in the path
	said  map[string]any // in the query
}

// RequestOf is the request by which an operation is asked for; in is a pointer to its
// input. The error says that nothing can have the name which the path would have.
func RequestOf(op Operation, in any) (Request, error) {
	if err := Check(in); err != nil {
		return Request{}, err
	}
	r := newRequest(in)
	r.Path, r.Query = op.Describe().Path, url.Values{}
	for _, name := range r.names {
		before, rest, _ := strings.Cut(r.Path, "{")
		_, after, _ := strings.Cut(rest, "}")
		r.Path = before + Segment(name) + after
	}
	for name, value := range r.said {
		r.Query.Set(name, text(value))
	}
	return r, nil
}

func newRequest(in any) Request {
	r := Request{said: map[string]any{}}
	r.read(reflect.ValueOf(in).Elem())
	return r
}

func (r *Request) read(v reflect.Value) {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		switch name := field.Tag.Get("query"); {
		case field.Name == "Body":
			r.Body = value.Interface()
		case field.Tag.Get("path") != "":
			r.names = append(r.names, fmt.Sprint(value.Interface()))
		case name != "" && !value.IsZero():
			r.said[name] = value.Interface()
		case field.Anonymous:
			r.read(value)
		}
	}
}

// text is a value of a query.
func text(value any) string {
	switch v := value.(type) {
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case []string:
		return strings.Join(v, ",")
	}
	return fmt.Sprint(value)
}

// Segment escapes a name for a path, also one of dots alone, which would be the way up.
func Segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// checked is an input that knows what can never be right of its names.
type checked interface{ check() error }

// Check finds what can never be right of the names in an input, given by a pointer.
func Check(in any) error {
	if c, ok := in.(checked); ok {
		return c.check()
	}
	return nil
}
