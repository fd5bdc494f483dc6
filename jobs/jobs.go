// Package jobs has what the built-in kinds below it share: handlers whose arguments people
// write by hand, so that every mistake in them is named.
package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stint-go/stint"
)

// Checked are arguments that can tell what is wrong with them beyond what
// their types say: the first thing that can never be right, as an
// [stint.InvalidError], or nil.
type Checked interface{ Check() error }

// Strict makes a handler of a function for arguments that people write
// by hand, as those of the built-in kinds. Arguments that can never be right
// fail the job for good. The result is kept also when the attempt failed; nil
// is none.
func Strict[A Checked, R any](f func(ctx context.Context, job *stint.Job, args A) (*R, error)) stint.Handler {
	return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
		args, err := Decode[A](job.Args)
		if err != nil {
			return nil, stint.NoRetry(err)
		}
		result, err := f(ctx, job, args)
		if result == nil {
			return nil, err
		}
		raw, cannot := json.Marshal(result)
		if cannot != nil {
			return nil, errors.Join(err, cannot)
		}
		return raw, err
	}
}

// Decode decodes arguments, and checks those that are [Checked]. A field
// that A does not have is an error: one that was misspelt and ignored would do
// something else than was meant. Numbers stay exact, as [json.Number] where A
// has no type for them. Errors are [stint.InvalidError]s that name the field.
func Decode[A any](raw json.RawMessage) (A, error) {
	var a A
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(&a); err != nil {
		if known, ok := errors.AsType[*stint.InvalidError](err); ok {
			return a, &stint.InvalidError{Field: fieldOf[A](raw, known.Field), Problem: known.Problem}
		}
		wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
		switch {
		case ok && wrong.Field == "":
			return a, &stint.InvalidError{Field: "args", Problem: fmt.Sprintf("got a JSON %s, want an object", wrong.Value)}
		case ok:
			return a, &stint.InvalidError{Field: "args." + wrong.Field, Problem: fmt.Sprintf("got a JSON %s, want %s", wrong.Value, wrong.Type)}
		}
		return a, &stint.InvalidError{Field: "args", Problem: strings.TrimPrefix(err.Error(), "json: ")}
	}
	if _, err := d.Token(); err != io.EOF {
		return a, &stint.InvalidError{Field: "args", Problem: "more than one JSON value"}
	}
	if c, ok := any(a).(Checked); ok {
		return a, c.Check()
	}
	return a, nil
}

// fieldOf names the first field of an object that does not decode into its place in A: encoding/json does not say
// where a value was that decodes itself. It is the name given if there is none.
func fieldOf[A any](raw json.RawMessage, name string) string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		one, _ := json.Marshal(map[string]json.RawMessage{field: fields[field]})
		if json.Unmarshal(one, new(A)) != nil {
			return name + "." + field
		}
	}
	return name
}
