// Package spans traces jobs over OpenTelemetry, from the enqueue to the end of
// each attempt.
//
//	tracer := spans.New()
//	client := stint.NewClient(store).Use(tracer.Enqueue)
//	mux.Use(tracer.Work)
//	engine.New(store, mux, engine.Config{Client: client})
//
//	request ──▶ enqueue send_invoice          a producer's span: a child of what the context holds
//	               │  metadata: {"trace": {"traceparent": "00-…"}}
//	               ├──▶ work send_invoice     a consumer's span for each attempt, in whichever process
//	               └──▶ work send_invoice         └──▶ enqueue …   what the handler enqueues
//
// The trace context is stored with the job, in its metadata under [MetadataKey], in
// the format of W3C Trace Context. Jobs that were enqueued by a client without this
// middleware, or from SQL, start a new trace at each attempt; SQL may pass a context
// in the metadata.
//
// The package uses only the API of OpenTelemetry. If the program sets up no SDK,
// nothing is recorded, but a trace context from outside is passed on.
package spans
