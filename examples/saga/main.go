// Saga books a trip with three other systems. If one of them refuses, what was booked
// before is cancelled, the last first.
//
//	go run ./examples/saga
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
)

// Trip is what is to be booked.
type Trip struct {
	Customer string
	Parts    []string
}

// Booking is a part of a trip. The other system books a key once, and cancels a key also if it has booked nothing
// under it.
type Booking struct{ Part, Key string }

// Outcome is how a trip ended: booked, or undone because of a failure.
type Outcome struct {
	Booked []string // references, in the order of the parts
	Failed string   // why it is undone; empty when it is booked
	Left   []string // parts that could not be cancelled either, for a person to look at
}

var (
	Book   = stint.NewResultKind[Booking, string]("book", stint.Retry(retry.Exponential(5, time.Second)))
	Undo   = stint.NewKind[Booking]("undo", stint.Retry(retry.Fixed(100, 5*time.Minute)))
	Travel = stint.NewResultKind[Trip, Outcome]("travel")
)

// agency is the other systems. An error that can never go away is a stint.NoRetry.
type agency struct {
	book   func(ctx context.Context, b Booking) (reference string, err error)
	cancel func(ctx context.Context, b Booking) error
}

func (a agency) handlers() *stint.Mux {
	mux := stint.NewMux()
	stint.HandleResult(mux, Book, func(ctx context.Context, _ *stint.Job, b Booking) (string, error) { return a.book(ctx, b) })
	stint.Handle(mux, Undo, func(ctx context.Context, _ *stint.Job, b Booking) error { return a.cancel(ctx, b) })
	stint.HandleResult(mux, Travel, travel)
	return mux
}

// travel calls a job for each booking. How it ended is recorded, a failure as well, so each run takes the same way.
func travel(ctx context.Context, job *stint.Job, t Trip) (o Outcome, err error) {
	var tried []Booking
	for _, part := range t.Parts {
		b := Booking{part, fmt.Sprintf("trip-%d-%s", job.ID, part)}
		tried = append(tried, b)
		reference, err := Book.Call(ctx, "book "+part, b)
		if failed, ok := errors.AsType[*stint.JobError](err); ok {
			return undo(ctx, tried, failed)
		} else if err != nil {
			return o, err // it waits for the booking
		}
		o.Booked = append(o.Booked, reference)
	}
	return o, nil
}

// undo cancels what was tried, the last first. What failed is cancelled as well: perhaps only its answer was lost.
func undo(ctx context.Context, tried []Booking, because *stint.JobError) (Outcome, error) {
	o := Outcome{Failed: because.Error()}
	for _, b := range slices.Backward(tried) {
		err := Undo.Call(ctx, "undo "+b.Part, b)
		if _, failed := errors.AsType[*stint.JobError](err); failed {
			o.Left = append(o.Left, b.Part)
		} else if err != nil {
			return o, err // it waits for the end of that
		}
	}
	return o, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "saga:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	db, err := sqlite.Open(ctx, "saga.db")
	if err != nil {
		return err
	}
	defer db.Close()
	worker, err := engine.New(db, agency{
		book: func(_ context.Context, b Booking) (string, error) {
			fmt.Println("book", b.Part)
			if b.Part == "car" {
				return "", stint.NoRetry(errors.New("there are no cars"))
			}
			return "reference of " + b.Key, nil
		},
		cancel: func(_ context.Context, b Booking) error {
			_, err := fmt.Println("cancel", b.Part)
			return err
		},
	}.handlers(), engine.Config{})
	if err != nil {
		return err
	}
	client := stint.NewClient(db)
	id, err := Travel.Enqueue(ctx, client, Trip{"ada", []string{"flight", "hotel", "car"}})
	if err != nil {
		return err
	}
	working, enough := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(working) }()
	outcome, err := Travel.Await(ctx, client, id)
	enough()
	fmt.Printf("%+v\n", outcome)
	return errors.Join(err, <-ended)
}
