package jobs_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs"
)

// Strict arguments are those that the decoder of the standard library takes,
// without what it would pass over.
func FuzzDecode(f *testing.F) {
	for _, raw := range []string{`{"name":"soup","price":3}`, `{"nmae":"soup"}`, `{"price":-1}`, `{"price":"3"}`, `{"price":1.5}`, `{} {}`, `{}]`, ``, `null`, `[]`, `{"NAME":"x"}`, `{"name":"\ud800"}`, `{"name":1}x`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := jobs.Decode[dish](raw)
		var want dish
		var any map[string]json.RawMessage
		plain := json.Unmarshal(raw, &want)
		if err == nil {
			if plain != nil || got != want {
				t.Errorf("%q is %+v; the library has %+v, %v", raw, got, want, plain)
			}
			return
		}
		var invalid *stint.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != "args" && !strings.HasPrefix(invalid.Field, "args.") {
			t.Errorf("%q is refused by %v, which names no field", raw, err)
		}
		if plain == nil && want.Check() == nil && json.Unmarshal(raw, &any) == nil {
			for name := range any {
				if !strings.EqualFold(name, "name") && !strings.EqualFold(name, "price") {
					return
				}
			}
			t.Errorf("%q is refused though nothing is wrong: %v", raw, err)
		}
	})
}
