package stinttest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/stinttest"
)

type User struct{ Name string }

var (
	Welcome = stint.NewKind[User]("welcome", stint.Queue("mail"))
	Remind  = stint.NewKind[User]("remind", stint.Queue("mail"))
)

// Register is the code under test: it greets at once, and reminds a week later
// of whatever may have been forgotten.
func Register(ctx context.Context, c *stint.Client, name string) error {
	_, err := Welcome.Enqueue(ctx, c, User{name})
	return err
}

// Handlers are its handlers.
func Handlers(outbox *[]string) *stint.Mux {
	mux := stint.NewMux()
	down := true
	stint.Handle(mux, Welcome, func(ctx context.Context, job *stint.Job, u User) error {
		if down { // the mail server is, the first time
			down = false
			return errors.New("connection refused")
		}
		*outbox = append(*outbox, "welcome "+u.Name)
		_, err := Remind.Enqueue(ctx, stint.ClientFrom(ctx), u, stint.Delay(7*24*time.Hour))
		return err
	})
	stint.Handle(mux, Remind, func(ctx context.Context, job *stint.Job, u User) error {
		*outbox = append(*outbox, "remember "+u.Name)
		return nil
	})
	return mux
}

// A test enqueues through its program, looks at what was enqueued, has all of it
// performed, and looks at what that did.
func Example() {
	t := exampleT() // the test's own *testing.T

	var outbox []string
	w := stinttest.New(t, Handlers(&outbox))
	if err := Register(t.Context(), w.Client(), "ada"); err != nil {
		t.Fatal(err)
	}
	stinttest.Enqueued(t, w.Store(), Welcome,
		stinttest.Where(func(u User) bool { return u.Name == "ada" }),
		stinttest.InQueue("mail"))

	report := w.Drain()
	fmt.Println(outbox)
	for _, run := range report.Runs {
		fmt.Println(run.After.Round(time.Minute), run)
	}
	// Output:
	// [welcome ada remember ada]
	// 0s job 1 (welcome), attempt 1: failed: connection refused (again in 1m0s)
	// 1m0s job 1 (welcome), attempt 2: completed
	// 168h1m0s job 3 (remind), attempt 1: completed
}

// In a bubble the handlers see the same time as the jobs.
func ExampleWorker_Drain_bubble() {
	_ = func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var outbox []string
			w := stinttest.New(t, Handlers(&outbox))
			began := time.Now()
			if err := Register(t.Context(), w.Client(), "ada"); err != nil {
				t.Fatal(err)
			}
			w.Drain()
			fmt.Println(time.Since(began)) // a week and a minute
		})
	}
}

func TestInABubbleAWeekHasPassedAfterAJobThatWaitedForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var outbox []string
		w := stinttest.New(t, Handlers(&outbox))
		began := time.Now()
		if err := Register(t.Context(), w.Client(), "ada"); err != nil {
			t.Fatal(err)
		}
		w.Drain()
		if passed := time.Since(began).Round(time.Second); passed != 7*24*time.Hour+time.Minute {
			t.Errorf("%v passed", passed)
		}
		if !slices.Equal(outbox, []string{"welcome ada", "remember ada"}) {
			t.Errorf("the outbox is %v", outbox)
		}
	})
}

// The process dies after the card was charged and before that was recorded: without an idempotency key it
// is charged twice.
func ExampleKillBefore() {
	t := exampleT() // the test's own *testing.T

	charge := stint.NewKind[User]("charge")
	mux := stint.NewMux()
	stint.Handle(mux, charge, func(ctx context.Context, job *stint.Job, u User) error {
		_, err := stint.Step(ctx, "charge", func(context.Context) (string, error) {
			fmt.Printf("charge %s under the key %d/charge\n", u.Name, job.ID)
			return "receipt", nil
		})
		return err
	})
	w := stinttest.New(t, mux)
	if _, err := charge.Enqueue(t.Context(), w.Client(), User{"ada"}); err != nil {
		t.Fatal(err)
	}
	report := w.Drain(stinttest.KillBefore("charge"))
	for _, run := range report.Runs {
		fmt.Println(run.Outcome)
	}
	// Output:
	// charge ada under the key 1/charge
	// stinttest: job 1 was killed before step "charge" was recorded
	// charge ada under the key 1/charge
	// lost
	// completed
}

// A handler is tested by itself.
func ExamplePerform() {
	t := exampleT() // the test's own *testing.T

	var outbox []string
	w := stinttest.New(t, Handlers(&outbox))
	run := stinttest.Perform(w, Remind, User{"ada"})
	fmt.Println(run.Outcome, run.Err(), outbox)
	// Output: completed <nil> [remember ada]
}

// exampleT stands for a test's T where there is none.
func exampleT() testing.TB { return &exampleTB{} }

type exampleTB struct{ testing.TB }

func (*exampleTB) Helper()                        {}
func (*exampleTB) Context() context.Context       { return context.Background() }
func (*exampleTB) Cleanup(func())                 {}
func (*exampleTB) Logf(format string, a ...any)   { fmt.Printf(format+"\n", a...) }
func (*exampleTB) Errorf(format string, a ...any) { fmt.Printf(format+"\n", a...) }
func (*exampleTB) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }
func (*exampleTB) Fatal(a ...any)                 { panic(fmt.Sprint(a...)) }
