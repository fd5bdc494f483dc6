package spans

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// FuzzCarrier makes sure that a trace travels in a job's metadata beside what
// else is there, and that nothing in it stops a job.
func FuzzCarrier(f *testing.F) {
	for _, m := range []string{"", "{}", "null", "[]", `{"a":1}`, `{"trace":{}}`, `{"trace":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}`,
		`{"trace":"x"}`, `{"trace":null}`, `{"trace":{"traceparent":7}}`, `{"trace":{"traceparent":"00-0-0-00"}}`, `{"a":1,"a":2}`, `{`, "\xff"} {
		f.Add([]byte(m))
	}
	p := propagation.TraceContext{}
	context1 := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
	f.Fuzz(func(t *testing.T, metadata []byte) {
		before := bytes.Clone(metadata)
		extract(t.Context(), p, metadata) // whatever it is, it does no harm
		out := inject(trace.ContextWithSpanContext(context.Background(), context1), p, metadata)
		if !bytes.Equal(before, metadata) {
			t.Fatalf("%q was changed in place to %q", before, metadata)
		}
		var was, is map[string]any
		if len(metadata) > 0 && json.Unmarshal(metadata, &was) != nil {
			if !bytes.Equal(out, metadata) {
				t.Fatalf("%q is no object, and became %q", metadata, out)
			}
			return
		}
		if _, theirs := was[MetadataKey]; theirs {
			if !bytes.Equal(out, metadata) {
				t.Fatalf("%q has a trace of somebody's, and became %q", metadata, out)
			}
			return
		}
		if err := json.Unmarshal(out, &is); err != nil {
			t.Fatalf("%q became %q: %v", metadata, out, err)
		}
		if got := trace.SpanContextFromContext(extract(t.Context(), p, out)); len(out) <= roomy && !got.Equal(context1) {
			t.Fatalf("%q became %q, which has the trace %v", metadata, out, got)
		}
		delete(is, MetadataKey)
		if len(was)+len(is) > 0 && !reflect.DeepEqual(was, is) {
			t.Fatalf("%q became %q, which says something else", metadata, out)
		}
	})
}
