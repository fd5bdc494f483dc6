package api_test

import (
	"encoding/json"
	"testing"

	"github.com/stint-go/stint/api"
)

// A kind is a name, or an object that says the same.
func FuzzWorkerKind(f *testing.F) {
	for _, text := range []string{`"resize"`, `{"name":"mail","retry":"fixed:2:1s","timeout":"30s","max_losses":0}`, `""`, `7`, `{"name":7}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		info, err := api.ReadWorkerKind([]byte(text))
		var name string
		if json.Unmarshal([]byte(text), &name) == nil && text != "null" && (err != nil || info.Name != name) {
			t.Errorf("%s is %+v, %v", text, info, err)
		}
	})
}
