package spans

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Config says how jobs are traced. The zero value suits most programs.
type Config struct {
	// Provider makes the tracer. The default is the global one of OpenTelemetry.
	Provider trace.TracerProvider

	// Propagator writes the trace context into metadata and reads it back. The default is W3C Trace
	// Context, without baggage.
	Propagator propagation.TextMapPropagator

	// Link starts a new trace for each attempt, with a link to the trace of the enqueue. Use it for
	// jobs that run days later. By default attempts are children of the enqueue.
	Link bool
}

// Name is the name of the tracer in spans.
const Name = "github.com/stint-go/stint/observe/spans"

// Attributes of spans, in addition to OpenTelemetry's messaging attributes.
const (
	AttributeKind    = attribute.Key("stint.job.kind")
	AttributeAttempt = attribute.Key("stint.job.attempt")
	AttributeOutcome = attribute.Key("stint.attempt.outcome")
)

// Tracer has the middleware for clients and handlers. Make one with [New]; any number of clients
// and engines may share it.
type Tracer struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	link       bool
}

// New makes a tracer.
func New(config ...Config) *Tracer {
	c := append(config[:len(config):len(config)], Config{})[0]
	if c.Provider == nil {
		c.Provider = otel.GetTracerProvider()
	}
	if c.Propagator == nil {
		c.Propagator = propagation.TraceContext{}
	}
	return &Tracer{tracer: c.Provider.Tracer(Name), propagator: c.Propagator, link: c.Link}
}

// attributes are those of OpenTelemetry's semantic conventions for messages.
func attributes(operation, kind, queue string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "stint"),
		attribute.String("messaging.operation.name", operation),
		attribute.String("messaging.destination.name", cmp.Or(queue, stint.DefaultQueue)),
		AttributeKind.String(kind),
	}
}

// Enqueue is a [stint.EnqueueMiddleware]. It makes a span for each call that enqueues, and stores
// its context in each of the jobs. A span for several jobs is named after the first one's kind and
// has their number.
func (t *Tracer) Enqueue(next stint.EnqueueFunc) stint.EnqueueFunc {
	return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
		if len(jobs) == 0 {
			return next(ctx, tx, jobs)
		}
		attrs := append(attributes("enqueue", jobs[0].Kind, jobs[0].Queue), attribute.String("messaging.operation.type", "send"))
		if len(jobs) > 1 {
			attrs = append(attrs, attribute.Int("messaging.batch.message_count", len(jobs)))
		}
		ctx, span := t.tracer.Start(ctx, "enqueue "+jobs[0].Kind, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attrs...))
		defer span.End()
		for i := range jobs {
			jobs[i].Metadata = inject(ctx, t.propagator, jobs[i].Metadata)
		}
		receipts, err := next(ctx, tx, jobs)
		if err != nil {
			failed(span, err)
		} else if len(receipts) == 1 {
			span.SetAttributes(attribute.String("messaging.message.id", receipts[0].ID.String()))
		}
		return receipts, err
	}
}

// Work is a [stint.Middleware]. It makes a span for each attempt; the handler's context carries it,
// so what the handler does and enqueues belongs to it.
func (t *Tracer) Work(next stint.Handler) stint.Handler {
	return func(ctx context.Context, job *stint.Job) (result json.RawMessage, err error) {
		attrs := append(attributes("work", job.Kind, job.Queue),
			attribute.String("messaging.operation.type", "process"),
			attribute.String("messaging.message.id", job.ID.String()),
			attribute.String("messaging.message.conversation_id", job.Correlation),
			AttributeAttempt.Int(job.Attempt))
		options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attrs...)}
		from := extract(ctx, t.propagator, job.Metadata)
		if t.link {
			options = append(options, trace.WithNewRoot())
			if producer := trace.SpanContextFromContext(from); producer.IsValid() {
				options = append(options, trace.WithLinks(trace.Link{SpanContext: producer}))
			}
		}
		ctx, span := t.tracer.Start(from, "work "+job.Kind, options...)
		returned := false
		defer func() {
			if !returned {
				span.SetStatus(codes.Error, "the handler panicked, or ended its goroutine")
				span.SetAttributes(AttributeOutcome.String(stint.OutcomeFailed.String()), attribute.String(errorType, "panic"))
			}
			span.End()
		}()
		result, err = next(ctx, job)
		returned = true
		conclude(span, err, context.Cause(ctx))
		return result, err
	}
}

// errorType is the attribute of OpenTelemetry that has the class of an error.
const errorType = "error.type"

// failed says which error a span ended with. Its class is that which jobs are found by.
func failed(span trace.Span, err error) {
	span.RecordError(err)
	span.SetStatus(codes.Error, err.Error())
	span.SetAttributes(attribute.String(errorType, retry.ErrorClasses(err)[0]))
}

// conclude sets the outcome of an attempt. A job that its handler snoozed or cancelled, or
// that was cancelled by people or for a stop, is no error.
func conclude(span trace.Span, err, cause error) {
	end := store.Result{Outcome: stint.OutcomeCompleted}
	switch {
	case err == nil:
	case errors.Is(cause, stint.ErrStopping):
		end.Outcome = stint.OutcomeReturned
	case store.AsResult(err, &end):
	case errors.Is(cause, stint.ErrCancelled):
		end.Outcome = stint.OutcomeCancelled
	default:
		end.Outcome = stint.OutcomeFailed
		failed(span, err)
	}
	span.SetAttributes(AttributeOutcome.String(end.Outcome.String()))
}
