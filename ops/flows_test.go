package ops

import (
	"bytes"
	"encoding/json"
	"testing"
)

// What is read of a flow is written so that it is read again as the same.
func FuzzFlowJob(f *testing.F) {
	for _, text := range []string{
		`{"kind":"k"}`, `{"kind":"x","jobs":[]}`, `{"kind":"x","jobs":[{"name":"a","kind":"b","args":{"n":1}},{"kind":"c","needs":["a",7],"needs_failure":["a"],"needs_end":[]}]}`,
		`{"name":7}`, `{"needs":"a"}`, `{"needs":[1.5]}`, `{"jobs":{}}`, `[]`, `null`, `{"kind":"k","kind":"l"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, second FlowJob
		if json.Unmarshal(text, &first) != nil {
			return
		}
		written, err := json.Marshal(first)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", text, err)
		}
		if err := json.Unmarshal(written, &second); err != nil {
			t.Fatalf("%s is written as %s: %v", text, written, err)
		}
		if again, err := json.Marshal(second); err != nil || !bytes.Equal(written, again) || first.Kind != second.Kind || len(first.Jobs) != len(second.Jobs) {
			t.Errorf("%s is written as %s and then as %s, %v", text, written, again, err)
		}
	})
}
