package docs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/stinttest"
)

type Order struct {
	ID       int64
	Total    int
	Supplier string
}

var (
	PlaceOrder   = stint.NewKind[Order]("place_order")
	ApproveOrder = stint.NewKind[Order]("approve_order")
)

// theBank knows requests by their keys.
type theBank struct{ charged map[string]int }

func (b *theBank) Charge(_ context.Context, total int, key string) (string, error) {
	if b.charged == nil {
		b.charged = map[string]int{}
	}
	b.charged[key] = total
	return "ref " + key, nil
}

func ordering(bank *theBank) *stint.Mux {
	mux := stint.NewMux()
	ship := func(context.Context, Order, string) error { return nil }
	mail := func(context.Context, Order) error { return nil }
	stint.Handle(mux, PlaceOrder, func(ctx context.Context, job *stint.Job, o Order) error {
		charge, err := stint.Step(ctx, "charge", func(ctx context.Context) (string, error) {
			return bank.Charge(ctx, o.Total, fmt.Sprintf("order-%d", o.ID)) // an idempotency key: see below
		})
		if err != nil {
			return err
		}
		if _, err := stint.Step(ctx, "ship", func(ctx context.Context) (any, error) { return nil, ship(ctx, o, charge) }); err != nil {
			return err
		}
		if err := stint.Sleep(ctx, "let it arrive", 7*24*time.Hour); err != nil {
			return err
		}
		_, err = stint.Step(ctx, "ask for a review", func(ctx context.Context) (any, error) { return nil, mail(ctx, o) })
		return err
	})
	return mux
}

// steps.md
func TestSteps(t *testing.T) {
	bank := &theBank{}
	mux := ordering(bank)
	order := func(t *testing.T, client *stint.Client, id int64) {
		_, err := PlaceOrder.Enqueue(t.Context(), client, Order{ID: id, Total: 900})
		must(t, err)
	}
	charges := func(int64) int { return len(bank.charged) }

	stinttest.EachKill(t, func(t *testing.T, kill stinttest.Option) {
		w := stinttest.New(t, mux)
		order(t, w.Client(), 42)
		w.Drain(kill)
		if n := charges(42); n != 1 {
			t.Errorf("charged %d times", n)
		}
	})
}

func TestAHandlerByItself(t *testing.T) {
	mux, job := ordering(&theBank{}), &stint.Job{Kind: "place_order", Args: []byte(`{"ID": 1}`)}
	ctx := (&stint.Run{Job: job}).Context(t.Context())
	if _, err := mux.Handler("place_order")(ctx, job); err == nil || !strings.Contains(err.Error(), `"let it arrive" sleeps`) {
		t.Error(err)
	}
}

func TestStepsInATransaction(t *testing.T) {
	url := pgtest.New(t)
	store, err := postgres.Open(t.Context(), url)
	must(t, err)
	defer store.Close()
	pool, err := pgxpool.New(t.Context(), url)
	must(t, err)
	defer pool.Close()
	_, err = pool.Exec(t.Context(), `create table bookings (id bigint)`)
	must(t, err)
	book := func(ctx context.Context, tx pgx.Tx, o Order) (int, error) {
		_, err := tx.Exec(ctx, `insert into bookings values ($1)`, o.ID)
		return 1, err
	}
	mux := stint.NewMux()
	tries := 0
	stint.Handle(mux, PlaceOrder, func(ctx context.Context, job *stint.Job, o Order) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx) // after an error; does nothing after StepTx
		id, err := stint.StepTx(ctx, postgres.Tx(tx), "book", func(ctx context.Context) (int, error) {
			return book(ctx, tx, o)
		})
		if tries++; err == nil && tries == 1 {
			err = fmt.Errorf("after booking %d the handler failed", id)
		}
		return err
	})
	w := stinttest.On(t, store, mux)
	_, err = PlaceOrder.Enqueue(t.Context(), w.Client(), Order{ID: 7})
	must(t, err)
	w.Drain()
	n := 0
	must(t, pool.QueryRow(t.Context(), `select count(*) from bookings`).Scan(&n))
	if n != 1 || tries != 2 {
		t.Errorf("there are %d bookings after %d attempts", n, tries)
	}
}

func TestStepsInALoop(t *testing.T) {
	var loaded []int
	load := func(_ context.Context, page int) (int, error) {
		if page == 2 && len(loaded) == 2 {
			loaded = append(loaded, -1)
			return 0, errors.New("no answer")
		}
		loaded = append(loaded, page)
		return page, nil
	}
	pages := 4
	mux := stint.NewMux()
	stint.Handle(mux, Sum, func(ctx context.Context, job *stint.Job, _ struct{}) error {
		for page := range pages {
			_, err := stint.Step(ctx, fmt.Sprintf("page %d", page), func(ctx context.Context) (int, error) { return load(ctx, page) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	w := stinttest.New(t, mux)
	_, err := Sum.Enqueue(t.Context(), w.Client(), struct{}{})
	must(t, err)
	w.Drain()
	if !slices.Equal(loaded, []int{0, 1, -1, 2, 3}) {
		t.Errorf("loaded was %v", loaded)
	}
}

type Decision struct{ By string }

func TestSignals(t *testing.T) {
	mux := stint.NewMux()
	var by string
	stint.Handle(mux, ApproveOrder, func(ctx context.Context, job *stint.Job, o Order) error {
		d, err := stint.Await[Decision](ctx, "approved", 72*time.Hour)
		if errors.Is(err, stint.ErrNoSignal) {
			return stint.Cancel("nobody approved it")
		} else if err != nil {
			return err
		}
		by = d.By
		return nil
	})
	w := stinttest.New(t, mux)
	id, err := ApproveOrder.Enqueue(t.Context(), w.Client(), Order{})
	must(t, err)
	w.Drain()
	must(t, w.Client().Signal(t.Context(), id, "approved", Decision{"ann"}))
	w.Drain()
	if by != "ann" {
		t.Errorf("it was approved by %q", by)
	}
}

type ResizeArgs struct{ Image, Width int }

var Resize = stint.NewResultKind[ResizeArgs, string]("resize")

func TestCalls(t *testing.T) {
	mux, got := stint.NewMux(), ""
	stint.HandleResult(mux, Resize, func(_ context.Context, _ *stint.Job, in ResizeArgs) (string, error) {
		if in.Image == 1 {
			return "", stint.NoRetry(errors.New("no image"))
		}
		return "thumb", nil
	})
	useDefault := func(context.Context, *stint.Failure) error {
		got += "default "
		return nil
	}
	stint.Handle(mux, PlaceOrder, func(ctx context.Context, job *stint.Job, o Order) error {
		id := int(o.ID)
		thumb, err := Resize.Call(ctx, "thumbnail", ResizeArgs{Image: id, Width: 200}) // Resize is a stint.ResultKind
		if failed, ok := errors.AsType[*stint.JobError](err); ok {
			return useDefault(ctx, failed.Failure) // it used up its retries
		} else if err != nil {
			return err
		}
		got += thumb + " "
		return nil
	})
	w := stinttest.New(t, mux)
	for id := range int64(2) {
		_, err := PlaceOrder.Enqueue(t.Context(), w.Client(), Order{ID: id + 1})
		must(t, err)
		w.Drain()
	}
	if got != "default thumb " {
		t.Errorf("it got %q", got)
	}
}

func TestQuestions(t *testing.T) {
	bank, mux := &theBank{}, stint.NewMux()
	stint.Handle(mux, PlaceOrder, func(ctx context.Context, job *stint.Job, o Order) error {
		a, err := stint.Ask(ctx, "approve", fmt.Sprintf("Pay %d EUR to %s?", o.Total, o.Supplier), 72*time.Hour, "pay", "refuse")
		switch {
		case errors.Is(err, stint.ErrNoAnswer):
			return stint.Cancel("nobody approved it in three days")
		case err != nil:
			return err
		case a.Choice == "refuse":
			return stint.Cancel(a.By + " refused it: " + a.Comment)
		}
		_, err = stint.Step(ctx, "charge", func(ctx context.Context) (string, error) {
			return bank.Charge(ctx, o.Total, fmt.Sprintf("order-%d", o.ID))
		})
		return err
	})
	w := stinttest.New(t, mux)
	for i, choice := range []string{"pay", "refuse"} {
		id, err := PlaceOrder.Enqueue(t.Context(), w.Client(), Order{ID: int64(i), Total: 900, Supplier: "ACME"})
		must(t, err)
		w.Drain()
		must(t, w.Client().Answer(t.Context(), id, "approve", stint.Answer{Choice: choice, By: "ann"}))
		w.Drain()
	}
	if len(bank.charged) != 1 {
		t.Errorf("charged was %v", bank.charged)
	}
}
