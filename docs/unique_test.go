package docs

import (
	"context"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/stinttest"
)

type (
	Doc struct {
		ID     int `json:"id"`
		Tenant int `json:"tenant"`
	}
	Numbered struct {
		ID int `json:"id"`
	}
	Batch struct {
		Size int `json:"size"`
	}
	Account  = Numbered
	Customer = Numbered
	Document = Numbered
	Draft    struct {
		Draft string `json:"draft"`
	}
)

var CleanUp = stint.NewKind[Batch]("clean_up", stint.UniqueUntilEnded(stint.By()))

var Reindex = stint.NewKind[Doc]("reindex", stint.UniqueUntilEnded(stint.By("/tenant")))

var Sync = stint.NewKind[Account]("sync", stint.UniqueUntilStarted(stint.By("/id")), stint.LimitedBy("account", "/id"))

var Index = stint.NewKind[Doc]("index", stint.UniqueUntilStarted(stint.By("/id")))

var Remind = stint.NewKind[Customer]("remind", stint.UniqueWithin(10*time.Minute, stint.By("/id")))

var Notify = stint.NewKind[Document]("notify", stint.UniqueUntilStarted(stint.By("/id"), stint.OrDebounce(time.Minute)))

var Preview = stint.NewKind[Draft]("preview", stint.UniqueUntilEnded(stint.By("/draft"), stint.OrCancelOld()))

func handles[A any](mux *stint.Mux, kind stint.Kind[A]) {
	stint.Handle(mux, kind, func(context.Context, *stint.Job, A) error { return nil })
}

// unique.md
func TestUnique(t *testing.T) {
	mux := stint.NewMux()
	handles(mux, CleanUp)
	handles(mux, Reindex)
	handles(mux, Sync)
	handles(mux, Index)
	handles(mux, Remind)
	handles(mux, Notify)
	handles(mux, Preview)
	mux.Limit("account", stint.LimitRule{AtOnce: 1})
	w := stinttest.New(t, mux)
	ctx, client := t.Context(), w.Client()
	doc, document := Doc{1, 1}, Document{1}
	enqueued := func(_ stint.ID, err error) {
		t.Helper()
		must(t, err)
	}
	for size := range 3 {
		enqueued(CleanUp.Enqueue(ctx, client, Batch{size}))
		enqueued(Reindex.Enqueue(ctx, client, doc))
		enqueued(Sync.Enqueue(ctx, client, Account{7}))
		_, err := Index.Enqueue(ctx, client, doc, stint.Delay(time.Second)) // or in your transaction
		must(t, err)
		enqueued(Remind.Enqueue(ctx, client, Customer{1}))
		_, err = Notify.Enqueue(ctx, client, document, stint.Delay(5*time.Second))
		must(t, err)
		enqueued(Preview.Enqueue(ctx, client, Draft{"a"}))
	}
	report := w.Drain(stinttest.FailOnError())
	for _, kind := range []string{"clean_up", "reindex", "sync", "index", "remind", "notify", "preview"} {
		if n := len(report.Of(kind)); n != 1 {
			t.Errorf("%s ran %d times", kind, n)
		}
	}
}
