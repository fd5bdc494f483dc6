package spans

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/propagation"
)

// MetadataKey is the key in a job's metadata that this package uses: an object with the fields of
// the propagator, by default traceparent and tracestate.
const MetadataKey = "trace"

// roomy is the default limit of metadata in bytes: a job must not be refused because it is
// traced.
const roomy = 64 << 10

// inject returns metadata with the trace context of ctx. A value that is there already stays;
// metadata that is not an object stays too, and the client refuses it.
func inject(ctx context.Context, p propagation.TextMapPropagator, metadata json.RawMessage) json.RawMessage {
	fields := propagation.MapCarrier{}
	p.Inject(ctx, fields)
	if len(fields) == 0 {
		return metadata
	}
	var object map[string]json.RawMessage
	if len(metadata) > 0 && json.Unmarshal(metadata, &object) != nil || object[MetadataKey] != nil {
		return metadata
	}
	if object == nil {
		object = map[string]json.RawMessage{}
	}
	object[MetadataKey], _ = json.Marshal(fields) // texts
	if text, err := json.Marshal(object); err == nil && len(text) <= roomy {
		return text
	}
	return metadata
}

// extract returns ctx with the trace context in metadata, if there is one.
func extract(ctx context.Context, p propagation.TextMapPropagator, metadata json.RawMessage) context.Context {
	var object map[string]json.RawMessage
	fields := propagation.MapCarrier{}
	if json.Unmarshal(metadata, &object) != nil || json.Unmarshal(object[MetadataKey], &fields) != nil {
		return ctx
	}
	return p.Extract(ctx, fields)
}
