// Approval pays an order after a person has agreed, by a link in a mail.
//
//	go run ./examples/approval
//
// It prints the mail. Open its link, and press a button.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard"
	"github.com/stint-go/stint/dashboard/link"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
)

// Order is what is to be paid, if its approver agrees.
type Order struct {
	Number   int
	Supplier string
	Total    int // in EUR
	Approver string
}

var PayOrder = stint.NewKind[Order]("pay_order", stint.Retry(retry.Exponential(10, time.Second)))

// patience is how long the approver has.
const patience = 72 * time.Hour

// office is what the handler needs of the world outside.
type office struct {
	mail func(ctx context.Context, to, text string) error
	pay  func(ctx context.Context, o Order, key string) (receipt string, err error)
	key  link.Key
	base string // of the dashboard, as people reach it
}

func (f office) handlers() *stint.Mux {
	mux := stint.NewMux()
	stint.Handle(mux, PayOrder, func(ctx context.Context, job *stint.Job, o Order) error {
		question := fmt.Sprintf("Pay %d EUR to %s?", o.Total, o.Supplier)
		_, err := stint.Step(ctx, "mail the approver", func(ctx context.Context) (any, error) {
			url, err := f.key.URL(f.base, link.Link{Job: job.ID, Question: "approve", By: o.Approver, Expires: time.Now().Add(patience)})
			if err != nil {
				return nil, err
			}
			return nil, f.mail(ctx, o.Approver, question+" "+url)
		})
		if err != nil {
			return err
		}
		answer, err := stint.Ask(ctx, "approve", question, patience, "pay", "refuse") // no slot is held meanwhile
		switch {
		case errors.Is(err, stint.ErrNoAnswer):
			return stint.Cancel("nobody approved it in time")
		case err != nil:
			return err
		case answer.Choice == "refuse":
			return stint.Cancel(answer.By + " refused it: " + answer.Comment)
		}
		receipt, err := stint.Step(ctx, "pay", func(ctx context.Context) (string, error) {
			return f.pay(ctx, o, fmt.Sprintf("order-%d", o.Number)) // the bank pays once for each key
		})
		if err != nil {
			return err
		}
		_, err = stint.Step(ctx, "mail the receipt", func(ctx context.Context) (any, error) {
			return nil, f.mail(ctx, o.Approver, fmt.Sprintf("Order %d is paid: %s", o.Number, receipt))
		})
		return err
	})
	return mux
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "approval:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	const secret = "an example, no secret at all" // such as openssl rand -hex 16 prints
	key, err := link.NewKey(secret)
	if err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, "approval.db")
	if err != nil {
		return err
	}
	defer db.Close()
	board, err := dashboard.New(db, dashboard.Config{LinkKey: secret}) // which lets nobody in but by such links
	if err != nil {
		return err
	}
	go func() { fmt.Fprintln(os.Stderr, http.ListenAndServe("localhost:8080", board)) }()

	f := office{
		mail: func(_ context.Context, to, text string) error {
			_, err := fmt.Printf("mail to %s: %s\n", to, text)
			return err
		},
		pay:  func(_ context.Context, o Order, key string) (string, error) { return "receipt of " + key, nil },
		key:  key,
		base: "http://localhost:8080",
	}
	worker, err := engine.New(db, f.handlers(), engine.Config{})
	if err != nil {
		return err
	}
	// However often it is started, the order is paid once.
	_, err = PayOrder.Enqueue(ctx, stint.NewClient(db), Order{17, "ACME", 900, "ann"}, stint.IdempotencyKey("order 17"))
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}
