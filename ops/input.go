package ops

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/valid"
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
	case []int64:
		return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(v), "[]")), ",")
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

// Fill fills in an input, given by a pointer, from a form or a query. The names of the
// fields are those of a request: of its query, and of the members of its body. Name is
// for the name in the path, or else for the only one of the ids; it is not "" for inputs
// that have one of these. Spaces around a value do not count, and without a value a field
// is left as it is. A value that a field cannot have, and a name without a place, are an
// error that matches [stint.ErrInvalid].
func Fill(in any, name string, form url.Values) error {
	f := filler{form: form, name: name}
	if err := f.fill(reflect.ValueOf(in).Elem(), false); err != nil {
		return err
	}
	if f.name != "" {
		return valid.Invalid("name", "%q names nothing here", name)
	}
	return nil
}

// filler fills in an input.
type filler struct {
	form url.Values
	name string // until it has found its place
}

func (f *filler) fill(v reflect.Value, body bool) error {
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		name := field.Tag.Get("query")
		if body {
			name, _, _ = strings.Cut(field.Tag.Get("json"), ",")
		}
		var err error
		switch path := field.Tag.Get("path"); {
		case field.Name == "Body":
			err = f.fill(value, true)
		case path != "":
			err = set(value, path, []string{f.name})
			f.name = ""
		case name == "ids" && f.name != "":
			err = set(value, name, []string{f.name})
			f.name = ""
		case name != "":
			if said := trimmed(f.form[name]); len(said) > 0 {
				err = set(value, name, said)
			}
		case field.Anonymous:
			err = f.fill(value, body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// trimmed are the texts without space around them, and without empty ones.
func trimmed(texts []string) (said []string) {
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			said = append(said, text)
		}
	}
	return said
}

// set gives a field a value: the first of the texts, or of a list all of them.
func set(v reflect.Value, name string, texts []string) error {
	text := texts[0]
	if into, ok := v.Addr().Interface().(*time.Time); ok {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return valid.Invalid(name, "%q is not an instant such as 2026-03-01T09:00:00Z", text)
		}
		*into = t
		return nil
	}
	if into, ok := v.Addr().Interface().(*json.RawMessage); ok {
		*into = json.RawMessage(text)
		return valid.JSON(name, *into, len(text))
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type().Elem().Kind() != reflect.Int {
			return valid.Invalid(name, "a form cannot say it")
		}
		v.Set(reflect.New(v.Type().Elem()))
		return set(v.Elem(), name, texts)
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		is, err := strconv.ParseBool(text)
		if err != nil {
			return valid.Invalid(name, "%q is neither true nor false", text)
		}
		v.SetBool(is)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return valid.Invalid(name, "%q is not a whole number", text)
		}
		v.SetInt(n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), len(texts), len(texts)))
		for i := range texts {
			if err := set(v.Index(i), name, texts[i:]); err != nil {
				return err
			}
		}
	default:
		return valid.Invalid(name, "a form cannot say it")
	}
	return nil
}
