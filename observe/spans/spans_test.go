package spans_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/observe/spans"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// stage is a store, an engine at work, and what they were seen to do.
type stage struct {
	t        *testing.T
	store    *sqlite.Store
	client   *stint.Client
	engine   *engine.Engine
	provider *sdk.TracerProvider
	seen     *tracetest.InMemoryExporter
}

func newStage(t *testing.T, config spans.Config, handlers map[string]stint.Handler) *stage {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	s := &stage{t: t, store: store, seen: tracetest.NewInMemoryExporter()}
	s.provider = sdk.NewTracerProvider(sdk.WithSyncer(s.seen))
	config.Provider = s.provider
	tracer := spans.New(config)
	s.client = stint.NewClient(store).Use(tracer.Enqueue)
	mux := stint.NewMux()
	mux.Use(tracer.Work)
	for kind, h := range handlers {
		mux.Add(stint.KindInfo{Name: kind}, h)
	}
	if s.engine, err = engine.New(store, mux, engine.Config{Client: s.client, Slots: 2}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.engine.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return s
}

// enqueue enqueues a job and waits for its end.
func (s *stage) enqueue(ctx context.Context, job stint.NewJob) *stint.JobInfo {
	s.t.Helper()
	id, err := s.client.Enqueue(ctx, job)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.ended(id)
}

func (s *stage) ended(id stint.ID) *stint.JobInfo {
	s.t.Helper()
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(2 * time.Millisecond) {
		job, err := s.store.Job(s.t.Context(), id)
		if err != nil {
			s.t.Fatal(err)
		}
		if job.State.Final() {
			return job
		}
	}
	s.t.Fatalf("job %d does not end", id)
	return nil
}

// named returns the spans of a name, in the order of their begins.
func (s *stage) named(name string) (some []tracetest.SpanStub) {
	for _, span := range s.seen.GetSpans() {
		if span.Name == name {
			some = append(some, span)
		}
	}
	slices.SortFunc(some, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	return some
}

func (s *stage) one(name string) tracetest.SpanStub {
	s.t.Helper()
	some := s.named(name)
	if len(some) != 1 {
		s.t.Fatalf("there are %d spans named %s among %v", len(some), name, s.seen.GetSpans())
	}
	return some[0]
}

func attribute(span tracetest.SpanStub, key string) string {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// isChild reports whether a span continues another one.
func isChild(child, parent tracetest.SpanStub) bool {
	return child.Parent.SpanID() == parent.SpanContext.SpanID() && child.SpanContext.TraceID() == parent.SpanContext.TraceID()
}

func does(f func(ctx context.Context, job *stint.Job) error) stint.Handler {
	return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) { return nil, f(ctx, job) }
}

func TestATraceGoesFromTheRequestThroughTheJobToWhatItEnqueues(t *testing.T) {
	s := newStage(t, spans.Config{}, map[string]stint.Handler{
		"first": does(func(ctx context.Context, _ *stint.Job) error {
			_, err := stint.ClientFrom(ctx).Enqueue(ctx, stint.NewJob{Kind: "second"})
			return err
		}),
		"second": does(func(context.Context, *stint.Job) error { return nil }),
	})
	ctx, request := s.provider.Tracer("test").Start(t.Context(), "request")
	job := s.enqueue(ctx, stint.NewJob{Kind: "first", Queue: "mail", Metadata: json.RawMessage(`{"tenant":9007199254740993}`)})
	request.End()
	second, err := s.store.Jobs(t.Context(), store.Filter{Kind: "second"})
	if err != nil || len(second) != 1 {
		t.Fatalf("found %v, %v", second, err)
	}
	s.ended(second[0].ID)

	enqueued, worked := s.one("enqueue first"), s.one("work first")
	next, last := s.one("enqueue second"), s.one("work second")
	for name, pair := range map[string][2]tracetest.SpanStub{
		"the enqueue":                {enqueued, s.one("request")},
		"the attempt":                {worked, enqueued},
		"the enqueue of the handler": {next, worked},
		"the attempt after that":     {last, next},
	} {
		if !isChild(pair[0], pair[1]) {
			t.Errorf("%s does not continue what it comes from", name)
		}
	}
	if enqueued.SpanKind != trace.SpanKindProducer || worked.SpanKind != trace.SpanKindConsumer {
		t.Errorf("the spans are a %s and a %s", enqueued.SpanKind, worked.SpanKind)
	}
	for key, want := range map[string]string{
		"messaging.system": "stint", "messaging.operation.name": "work", "messaging.operation.type": "process", "messaging.destination.name": "mail",
		"messaging.message.id": job.ID.String(), "stint.job.kind": "first", "stint.job.attempt": "1", "stint.attempt.outcome": "completed",
	} {
		if got := attribute(worked, key); got != want {
			t.Errorf("%s of the attempt is %q, want %q", key, got, want)
		}
	}
	if attribute(enqueued, "messaging.operation.type") != "send" || attribute(enqueued, "messaging.message.id") != job.ID.String() {
		t.Errorf("the enqueue has %v", enqueued.Attributes)
	}

	var metadata map[string]json.RawMessage
	if err := json.Unmarshal(job.Metadata, &metadata); err != nil || len(metadata) != 2 || string(metadata["tenant"]) != "9007199254740993" ||
		!strings.Contains(string(metadata[spans.MetadataKey]), enqueued.SpanContext.TraceID().String()) {
		t.Errorf("the metadata is %s, %v", job.Metadata, err)
	}
}

func TestEachAttemptIsASpanThatSaysHowItEnded(t *testing.T) {
	s := newStage(t, spans.Config{}, map[string]stint.Handler{
		"fails": does(func(_ context.Context, job *stint.Job) error {
			switch job.Attempt {
			case 1:
				return errors.New("no route")
			case 2:
				panic("oh")
			}
			return nil
		}),
		"cancels": does(func(context.Context, *stint.Job) error { return stint.Cancel("not today") }),
	})
	s.enqueue(t.Context(), stint.NewJob{Kind: "fails", Retry: retry.Fixed(2, 0)})
	attempts := s.named("work fails")
	var got []string
	for _, a := range attempts {
		if !isChild(a, s.one("enqueue fails")) {
			t.Error("an attempt does not continue the enqueue")
		}
		got = append(got, fmt.Sprintf("%s %s %s %q %q", attribute(a, "stint.job.attempt"), attribute(a, "stint.attempt.outcome"), a.Status.Code, a.Status.Description, attribute(a, "error.type")))
	}
	want := []string{`1 failed Error "no route" "errors.errorString"`, `2 failed Error "the handler panicked, or ended its goroutine" "panic"`, `3 completed Unset "" ""`}
	if !slices.Equal(got, want) {
		t.Errorf("the attempts were\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if events := attempts[0].Events; len(events) != 1 || events[0].Name != "exception" {
		t.Errorf("the failure has the events %v", events)
	}
	s.enqueue(t.Context(), stint.NewJob{Kind: "cancels"})
	if span := s.one("work cancels"); span.Status.Code != codes.Unset || attribute(span, "stint.attempt.outcome") != "cancelled" {
		t.Errorf("what was cancelled is %v %v", span.Status, span.Attributes)
	}
}

func TestAJobThatIsRunAtOnceIsInTheTraceOfItsCaller(t *testing.T) {
	s := newStage(t, spans.Config{}, map[string]stint.Handler{"now": does(func(_ context.Context, job *stint.Job) error {
		if job.Attempt == 1 {
			return errors.New("not yet")
		}
		return nil
	})})
	ctx, request := s.provider.Tracer("test").Start(t.Context(), "request")
	x, err := s.engine.RunNow(ctx, stint.NewJob{Kind: "now", Retry: retry.Fixed(1, 0)})
	request.End()
	if err != nil {
		t.Fatal(err)
	}
	s.ended(x.Job)
	if !isChild(s.one("enqueue now"), s.one("request")) {
		t.Error("the enqueue does not continue the request")
	}
	attempts := s.named("work now")
	if len(attempts) != 2 {
		t.Fatalf("there are %d attempts", len(attempts))
	}
	for _, a := range attempts {
		if !isChild(a, s.one("enqueue now")) {
			t.Error("an attempt does not continue the enqueue")
		}
	}
}

func TestAttemptsMayBeginTracesOfTheirOwnThatLink(t *testing.T) {
	s := newStage(t, spans.Config{Link: true}, map[string]stint.Handler{"later": does(func(context.Context, *stint.Job) error { return nil })})
	s.enqueue(t.Context(), stint.NewJob{Kind: "later"})
	enqueued, worked := s.one("enqueue later"), s.one("work later")
	if worked.Parent.IsValid() || worked.SpanContext.TraceID() == enqueued.SpanContext.TraceID() {
		t.Error("the attempt is in the trace of the enqueue")
	}
	if len(worked.Links) != 1 || worked.Links[0].SpanContext.SpanID() != enqueued.SpanContext.SpanID() {
		t.Errorf("it links to %v", worked.Links)
	}
}

func TestABatchIsOneSpanAndItsAttemptsContinueIt(t *testing.T) {
	s := newStage(t, spans.Config{}, map[string]stint.Handler{"many": does(func(context.Context, *stint.Job) error { return nil })})
	ids, err := s.client.EnqueueMany(t.Context(), []stint.NewJob{{Kind: "many"}, {Kind: "many"}, {Kind: "many"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		s.ended(id)
	}
	batch := s.one("enqueue many")
	if attribute(batch, "messaging.batch.message_count") != "3" || attribute(batch, "messaging.message.id") != "" {
		t.Errorf("the batch has %v", batch.Attributes)
	}
	for _, a := range s.named("work many") {
		if !isChild(a, batch) {
			t.Error("an attempt does not continue the batch")
		}
	}
}

// What comes from SQL, from other clients, or from somebody who has the key for
// himself must neither be refused nor spoilt.
func TestJobsWithoutATraceBeginOneAndMetadataIsNeverSpoilt(t *testing.T) {
	s := newStage(t, spans.Config{}, map[string]stint.Handler{"any": does(func(context.Context, *stint.Job) error { return nil })})
	for _, metadata := range []string{``, `{}`, `{"trace":"mine"}`, `{"trace":{"traceparent":"nonsense"}}`, `{"trace":{"traceparent":7}}`} {
		s.seen.Reset()
		id, err := stint.NewClient(s.store).Enqueue(t.Context(), stint.NewJob{Kind: "any", Metadata: json.RawMessage(metadata)})
		if err != nil {
			t.Fatal(err)
		}
		s.ended(id)
		if s.one("work any").Parent.IsValid() {
			t.Errorf("%s: the attempt continues something", metadata)
		}
	}
	s.seen.Reset()
	job := s.enqueue(t.Context(), stint.NewJob{Kind: "any", Metadata: json.RawMessage(`{"trace":"mine"}`)})
	if string(job.Metadata) != `{"trace":"mine"}` {
		t.Errorf("the metadata became %s", job.Metadata)
	}
	full := json.RawMessage(`{"a":"` + strings.Repeat("x", 64<<10-8) + `"}`)
	if job := s.enqueue(t.Context(), stint.NewJob{Kind: "any", Metadata: full}); string(job.Metadata) != string(full) {
		t.Error("metadata that has no room was changed")
	}
	if _, err := s.client.Enqueue(t.Context(), stint.NewJob{Kind: "any", Metadata: json.RawMessage(`[1]`)}); !errors.Is(err, stint.ErrInvalid) {
		t.Errorf("metadata that is no object: %v", err)
	}
	if failed := s.named("enqueue any"); failed[len(failed)-1].Status.Code != codes.Error || attribute(failed[len(failed)-1], "error.type") == "" {
		t.Error("an enqueue that was refused is no error, or has no type")
	}
}

func TestWithoutAnSDKTheTraceFromOutsideIsPassedOn(t *testing.T) {
	tracer := spans.New()
	outside := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
	var stored stint.NewJob
	enqueue := tracer.Enqueue(func(_ context.Context, _ stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
		stored = jobs[0]
		return []stint.Receipt{{ID: 1}}, nil
	})
	if _, err := enqueue(trace.ContextWithSpanContext(t.Context(), outside), stint.Tx{}, []stint.NewJob{{Kind: "any"}}); err != nil {
		t.Fatal(err)
	}
	work := tracer.Work(func(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
		if got := trace.SpanContextFromContext(ctx); got.TraceID() != outside.TraceID() {
			t.Errorf("the handler is in the trace %v", got.TraceID())
		}
		return nil, nil
	})
	if _, err := work(t.Context(), &stint.Job{Kind: "any", Metadata: stored.Metadata}); err != nil {
		t.Fatal(err)
	}
}
