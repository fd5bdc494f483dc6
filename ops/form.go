package ops

import (
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

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
			var said []string
			for _, text := range f.form[name] {
				if text = strings.TrimSpace(text); text != "" {
					said = append(said, text)
				}
			}
			if len(said) > 0 {
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
	switch v.Kind() {
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
