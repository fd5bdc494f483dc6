package spans_test

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/observe/spans"
	"github.com/stint-go/stint/sqlite"
)

func Example() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, sqlite.Memory)
	if err != nil {
		panic(err)
	}
	defer store.Close()

	seen := tracetest.NewInMemoryExporter() // in a program: an exporter to a collector
	tracer := spans.New(spans.Config{Provider: sdk.NewTracerProvider(sdk.WithSyncer(seen))})
	client := stint.NewClient(store).Use(tracer.Enqueue)
	mux := stint.NewMux()
	mux.Use(tracer.Work)
	mux.Add(stint.KindInfo{Name: "send_invoice"}, func(context.Context, *stint.Job) (json.RawMessage, error) { return nil, nil })
	worker, err := engine.New(store, mux, engine.Config{Client: client})
	if err != nil {
		panic(err)
	}

	if _, err := worker.RunNow(ctx, stint.NewJob{Kind: "send_invoice"}); err != nil {
		panic(err)
	}
	for _, span := range seen.GetSpans() {
		fmt.Println(span.Name, span.SpanKind, span.Parent.IsValid())
	}
	// Output:
	// enqueue send_invoice producer false
	// work send_invoice consumer true
}
