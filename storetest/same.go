package storetest

import (
	"bytes"
	"encoding/json"
	"io"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// sameJob compares jobs by what they mean: JSON by its values, times by their
// instant, labels as sets.
var sameJob = []cmp.Option{
	cmp.Comparer(func(a, b json.RawMessage) bool { return sameJSON(a, b) }),
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	cmp.Comparer(func(a, b retry.Policy) bool { return a.String() == b.String() }),
	cmp.Comparer(func(a, b []string) bool {
		return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
	}),
	cmp.FilterValues(func(a, b []stint.Attempt) bool { return len(a)+len(b) == 0 }, cmp.Ignore()),
}

// sameJSON tells whether two texts are the same value. Numbers are compared
// exactly, however they are written; nothing equals only nothing.
func sameJSON(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	x, errX := parse(a)
	y, errY := parse(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

func parse(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	return exact(v), nil
}

// exact writes every number of a value as a fraction in lowest terms.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if r, ok := new(big.Rat).SetString(v.String()); ok {
			return json.Number(r.RatString())
		}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

// deep is an array nested n deep.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func jobIDs(entries []store.Entry) []stint.ID {
	ids := make([]stint.ID, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	return ids
}

func positions(entries []store.Entry) []store.Position {
	at := make([]store.Position, len(entries))
	for i, e := range entries {
		at[i] = e.Pos
	}
	return at
}

// distinct tells whether nothing is there twice.
func distinct[V int64 | stint.ID | store.Position](all []V) bool {
	sorted := slices.Sorted(slices.Values(all))
	return len(slices.Compact(sorted)) == len(all)
}
