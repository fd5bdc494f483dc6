package cli

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/stint-go/stint/observe/spans"
)

// Variables of OpenTelemetry that say whether, and how, traces are exported. Its own
// packages read the others, about headers, samples, batches and timeouts.
const (
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	anyEndpoint    = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	anyProtocol    = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesExporter = "OTEL_TRACES_EXPORTER"
	sdkDisabled    = "OTEL_SDK_DISABLED"
)

const (
	onlyProtocol = "http/protobuf"
	tracesStop   = 5 * time.Second // for what is left to export at the end
)

// exportsTraces reports whether the environment says where to export traces: by an
// address, or by the name of the exporter, which has a default address.
func (a *app) exportsTraces() (bool, error) {
	exporter, endpoint := a.env(tracesExporter), cmp.Or(a.env(tracesEndpoint), a.env(anyEndpoint))
	switch {
	case strings.EqualFold(a.env(sdkDisabled), "true"), exporter == "none", exporter != "otlp" && endpoint == "":
		return false, nil
	case exporter != "otlp" && exporter != "":
		return false, withHint(usagef("%s: traces are not exported to %q", tracesExporter, exporter), "otlp or none")
	}
	if protocol := cmp.Or(a.env(tracesProtocol), a.env(anyProtocol), onlyProtocol); protocol != onlyProtocol {
		return false, withHint(usagef("the protocol %q is not supported", protocol), "%s=%s, most often at port 4318", tracesProtocol, onlyProtocol)
	}
	return true, nil
}

// trace traces each attempt, if the environment says where to. Stop exports what is left.
func (w *worker) trace(ctx context.Context) (stop func(), err error) {
	on, err := w.app.exportsTraces()
	if !on {
		return func() {}, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, usagef("traces: %w", err)
	}
	from, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "stint"), attribute.String("service.version", version())),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv()) // which wins
	if err != nil {
		return nil, usagef("traces: %w", err)
	}
	provider := trace.NewTracerProvider(trace.WithResource(from), trace.WithBatcher(&loggedExporter{SpanExporter: exporter, log: w.log}))
	w.tracer = spans.New(spans.Config{Provider: provider})
	w.mux.Use(w.tracer.Work)
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesStop)
		defer cancel()
		_ = provider.Shutdown(ctx) // the exporter logs its errors
	}, nil
}

// loggedExporter logs once that traces cannot be exported, and once that they can again: a
// collector may be away for days.
type loggedExporter struct {
	trace.SpanExporter
	log  *slog.Logger
	away atomic.Bool
}

// ExportSpans implements [trace.SpanExporter].
func (e *loggedExporter) ExportSpans(ctx context.Context, some []trace.ReadOnlySpan) error {
	switch err := e.SpanExporter.ExportSpans(ctx, some); {
	case err != nil && !e.away.Swap(true):
		e.log.Warn("traces cannot be exported, and are lost until they can", "error", err)
	case err == nil && e.away.Swap(false):
		e.log.Info("traces are exported again")
	}
	return nil
}
