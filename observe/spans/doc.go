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
// The context of the trace travels with the job, in its metadata under
// [MetadataKey], as W3C Trace Context writes it. Jobs that were enqueued by a
// client without this middleware, or from SQL, begin traces of their own at each
// attempt; SQL may pass a context on in the metadata.
//
// Only the API of OpenTelemetry is used: where the program sets up no SDK, nothing is
// recorded, but the context of a trace that comes from outside is passed on.
package spans
