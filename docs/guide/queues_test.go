package guide

import (
	"context"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/stinttest"
)

func TestQueues(t *testing.T) {
	store := openSQLite(t)
	mux := stint.NewMux()
	stint.Handle(mux, SendInvoice, func(context.Context, *stint.Job, Invoice) error { return nil })

	worker, err := engine.New(store, mux, engine.Config{
		QueueSlots: map[string]int{"mail": 10, "images": 2, "*": 20}, // "*": all other queues together
	})

	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	client := stint.NewClient(store)
	id, err := SendInvoice.Enqueue(ctx, client, Invoice{Customer: 1}, stint.Queue("vip"))
	must(t, err)
	_, err = client.Await(ctx, id)
	must(t, err)
	stop()
	must(t, <-ended)
}

func TestSlots(t *testing.T) {
	store := openSQLite(t)
	mux := stint.NewMux()
	ran := make(chan struct{})
	stint.Handle(mux, SendInvoice, func(context.Context, *stint.Job, Invoice) error { close(ran); return nil })

	worker, err := engine.New(store, mux, engine.Config{Slots: 8, MaxSlots: 200})

	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	_, err = SendInvoice.Enqueue(ctx, stint.NewClient(store), Invoice{Customer: 1})
	must(t, err)
	<-ran
	if m := worker.Metrics().Workers; m.Slots != 8 || m.MaxSlots != 200 {
		t.Errorf("it has %d slots, up to %d", m.Slots, m.MaxSlots)
	}
	stop()
	must(t, <-ended)
}

func TestLimits(t *testing.T) {
	push := stint.NewKind[Payment]("push", stint.Limited("erp"), stint.LimitedBy("tenant", "/order"))
	mux := stint.NewMux()
	stint.Handle(mux, push, func(context.Context, *stint.Job, Payment) error { return nil })

	mux.Limit("erp", stint.LimitRule{AtOnce: 10, Starts: 100, Per: time.Minute}) // over all engines
	mux.Limit("tenant", stint.LimitRule{AtOnce: 2})                              // for each of them

	w := stinttest.New(t, mux)
	for n := range int64(5) {
		_, err := push.Enqueue(t.Context(), w.Client(), Payment{Order: n})
		must(t, err)
	}
	if report := w.Drain(stinttest.FailOnError()); len(report.Runs) != 5 {
		t.Errorf("there were %d runs", len(report.Runs))
	}
}
