package stint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// jobField is an option of a job. The tags of [NewJob] are the table of them: their
// names in JSON, and what the document of the API says of their values.
type jobField struct {
	index int
	name  string // in JSON: run_at
}

// field is how errors call it: "run at".
func (f jobField) field() string { return strings.ReplaceAll(f.name, "_", " ") }

var jobFields = func() (all []jobField) {
	for f := range reflect.TypeFor[NewJob]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			all = append(all, jobField{f.Index[0], name})
		}
	}
	return all
}()

// differs names the first option in which two jobs differ; empty for none.
func (j NewJob) differs(from NewJob) string {
	a, b := reflect.ValueOf(j), reflect.ValueOf(from)
	for _, f := range jobFields {
		if !reflect.DeepEqual(a.Field(f.index).Interface(), b.Field(f.index).Interface()) {
			return f.field()
		}
	}
	if !reflect.DeepEqual(j.Member, from.Member) {
		return "needs"
	}
	return ""
}

// MarshalJSON writes what the job says and not what is zero. Durations and the retry
// policy are texts: "90s", "fixed:2:1s".
func (j NewJob) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	text := json.NewEncoder(&b)
	text.SetEscapeHTML(false)
	v := reflect.ValueOf(j)
	for _, f := range jobFields {
		value := v.Field(f.index)
		if f.name != "kind" && isUnsaid(value) {
			continue
		}
		fmt.Fprintf(&b, ",%q:", f.name)
		switch said := value.Interface().(type) {
		case json.RawMessage:
			if !json.Valid(said) {
				return nil, valid.Invalid(f.field(), "malformed JSON")
			}
			b.Write(said)
			continue
		case time.Duration:
			value = reflect.ValueOf(retry.FormatDuration(said))
		case retry.Policy:
			value = reflect.ValueOf(said.String())
		}
		if err := text.Encode(value.Interface()); err != nil {
			return nil, valid.Invalid(f.field(), "%v", err)
		}
		b.Truncate(b.Len() - 1) // the line feed
	}
	object := append(b.Bytes(), '}')
	object[0] = '{'
	return object, nil
}

// isUnsaid reports whether a value of an option is as if it was left out.
func isUnsaid(value reflect.Value) bool {
	return value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0
}

// UnmarshalJSON reads what [NewJob.MarshalJSON] writes, and a policy also as an object.
// An option that the JSON does not name keeps its value, as do those that it says
// nothing for (null, ""); tags are added to those that are there. An unknown option and
// a value of the wrong type are an [InvalidError], and leave the job as it was.
func (j *NewJob) UnmarshalJSON(raw []byte) error {
	var said map[string]json.RawMessage
	if err := json.Unmarshal(raw, &said); err != nil {
		return valid.Invalid("job", "it is not a JSON object")
	}
	next := *j
	next.Tags, next.Limits = slices.Clone(j.Tags), slices.Clone(j.Limits)
	if said["start_by"] != nil {
		next.StartWithin = 0
	} else if said["start_within"] != nil {
		next.StartBy = time.Time{}
	}
	for _, f := range jobFields {
		text := said[f.name]
		delete(said, f.name)
		if text == nil || string(text) == "null" || string(text) == `""` && f.name != "args" {
			continue
		}
		if err := next.set(f, text); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		return valid.Invalid(name, "a job has no such option")
	}
	*j = next
	return nil
}

// set takes the value of an option from JSON.
func (j *NewJob) set(f jobField, text json.RawMessage) error {
	into := reflect.ValueOf(j).Elem().Field(f.index)
	var err error
	switch value := reflect.New(into.Type()); p := value.Interface().(type) {
	case *time.Duration:
		var d string
		if err = json.Unmarshal(text, &d); err == nil {
			*p, err = retry.ParseDuration(d)
		}
		into.Set(value.Elem())
	case *retry.Policy:
		var policy string
		if json.Unmarshal(text, &policy) == nil {
			*p, err = retry.Parse(policy)
		} else {
			err = json.Unmarshal(text, p)
		}
		into.Set(value.Elem())
	case *[]string:
		if err = json.Unmarshal(text, p); err == nil && f.name == "limits" {
			Limited(*p...)(j)
		} else if err == nil {
			Tag(*p...)(j)
		}
	default:
		err = json.Unmarshal(text, p)
		into.Set(value.Elem())
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return valid.Invalid(f.field(), "it is a JSON %s", wrong.Value)
	} else if err != nil {
		return valid.Invalid(f.field(), "%v", err)
	}
	return nil
}
