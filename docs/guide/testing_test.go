package guide

import (
	"context"
	"crypto/rand"
	"database/sql"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/stinttest"
)

type User struct {
	Name string `json:"name"`
}

var (
	Welcome = stint.NewKind[User]("welcome", stint.Queue("mail"))
	Remind  = stint.NewKind[User]("remind", stint.Queue("mail"))
)

// register is the code under test.
func register(ctx context.Context, client *stint.Client, name string) error {
	if _, err := Welcome.Enqueue(ctx, client, User{name}); err != nil {
		return err
	}
	_, err := Remind.Enqueue(ctx, client, User{name}, stint.Delay(7*24*time.Hour))
	return err
}

func newMux(outbox *[]string) *stint.Mux {
	mux := stint.NewMux()
	stint.Handle(mux, Welcome, func(_ context.Context, _ *stint.Job, in User) error {
		*outbox = append(*outbox, "welcome "+in.Name)
		return nil
	})
	stint.Handle(mux, Remind, func(ctx context.Context, _ *stint.Job, in User) error {
		return remind(ctx, outbox, in)
	})
	return mux
}

func remind(ctx context.Context, outbox *[]string, in User) error {
	_, err := stint.Step(ctx, "send", func(context.Context) (bool, error) {
		*outbox = append(*outbox, "remember, "+in.Name)
		return true, nil
	})
	return err
}

func TestRegisteringSendsAWelcomeAndAReminder(t *testing.T) {
	var outbox []string
	w := stinttest.New(t, newMux(&outbox)) // a database in memory; stinttest.On(t, store, mux) for one of yours
	must(t, register(t.Context(), w.Client(), "ada"))
	stinttest.Enqueued(t, w.Store(), Welcome, stinttest.InQueue("mail"))
	stinttest.Enqueued(t, w.Store(), Remind, stinttest.DueIn(7*24*time.Hour))

	report := w.Drain(stinttest.FailOnError()) // now, next week, retries, and what those jobs enqueue
	t.Log(report)                              // a table of every run
	if len(outbox) != 2 {
		t.Errorf("the outbox has %q", outbox)
	}
}

func TestADrainMayTakeMoreRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := newMux(new([]string))
		mux.Schedule(Welcome.Schedule("hourly", cron.Every(time.Hour), User{"ada"}))
		w := stinttest.New(t, mux)
		report := w.Drain(stinttest.Within(45*24*time.Hour), stinttest.Limit(10_000)) // an hourly schedule runs 1,080 times
		if len(report.Runs) != 1080 {
			t.Errorf("there were %d runs", len(report.Runs))
		}
	})
}

func newStore(t *testing.T, url string) *postgres.Store {
	schema := "test_" + strings.ToLower(rand.Text()) // of crypto/rand
	store, err := postgres.Open(t.Context(), url, postgres.Config{Schema: schema})
	must(t, err)
	t.Cleanup(func() {
		must(t, store.Uninstall(context.WithoutCancel(t.Context()))) // drops the schema
		store.Close()
	})
	return store
}

func TestASchemaForEachTest(t *testing.T) {
	url := pgtest.New(t)
	for range 2 {
		t.Run("one", func(t *testing.T) {
			t.Parallel()
			var outbox []string
			w := stinttest.On(t, newStore(t, url), newMux(&outbox))
			must(t, register(t.Context(), w.Client(), "ada"))
			if w.Drain(stinttest.FailOnError()); len(outbox) != 2 {
				t.Errorf("the outbox has %q", outbox)
			}
		})
	}
	t.Cleanup(func() { // after both
		db, err := sql.Open("pgx", url)
		must(t, err)
		defer db.Close()
		var left int
		must(t, db.QueryRow(`select count(*) from pg_namespace where nspname like 'test\_%'`).Scan(&left))
		if left != 0 {
			t.Errorf("%d schemas are left", left)
		}
	})
}

func TestOneHandler(t *testing.T) {
	var outbox []string
	w := stinttest.New(t, newMux(&outbox))
	if run := stinttest.Perform(w, Welcome, User{"ada"}); run.Failed() {
		t.Error(run.Err())
	}
}

func TestTheReminderComesAfterAWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time.Now, timers, the database and the engine agree
		var outbox []string
		w := stinttest.New(t, newMux(&outbox))
		began := time.Now()
		must(t, register(t.Context(), w.Client(), "ada"))
		w.Drain(stinttest.FailOnError())
		if passed := time.Since(began); passed < 7*24*time.Hour {
			t.Errorf("it came after %v", passed)
		}
	})
}

func TestAReminderSurvivesACrashAtAnyPoint(t *testing.T) {
	stinttest.EachKill(t, func(t *testing.T, kill stinttest.Option) {
		var outbox []string
		w := stinttest.New(t, newMux(&outbox))
		_, err := Remind.Enqueue(t.Context(), w.Client(), User{"ada"})
		must(t, err)
		w.Drain(kill)
		if len(outbox) == 0 || len(outbox) > 2 { // twice, if the process died before the step was recorded
			t.Errorf("the outbox has %q", outbox)
		}
	})
}
