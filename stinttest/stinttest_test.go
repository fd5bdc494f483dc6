package stinttest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/stinttest"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type note struct{ Text string }

var (
	mail  = stint.NewKind[note]("mail", stint.Queue("mail"), stint.Retry(retry.Fixed(2, time.Hour)))
	chore = stint.NewKind[note]("chore", stint.Retry(retry.None()))
)

// everywhere runs a test in a bubble, and outside of one on each store.
func everywhere(t *testing.T, f func(t *testing.T, on func(mux *stint.Mux, c ...engine.Config) *stinttest.Worker)) {
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f(t, func(mux *stint.Mux, c ...engine.Config) *stinttest.Worker {
				return verified(t, stinttest.New(t, mux, c...))
			})
		})
	})
	t.Run("memory", func(t *testing.T) {
		f(t, func(mux *stint.Mux, c ...engine.Config) *stinttest.Worker {
			return verified(t, stinttest.New(t, mux, c...))
		})
	})
	t.Run("postgres", func(t *testing.T) {
		store, err := postgres.Open(t.Context(), pgtest.New(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		f(t, func(mux *stint.Mux, c ...engine.Config) *stinttest.Worker {
			return verified(t, stinttest.On(t, store, mux, c...))
		})
	})
}

func verified(t *testing.T, w *stinttest.Worker) *stinttest.Worker {
	t.Cleanup(func() { storetest.Verify(t, w.Store().(store.Auditor)) })
	return w
}

func enqueue(t *testing.T, c *stint.Client, kind stint.Kind[note], text string, opts ...stint.Option) stint.ID {
	t.Helper()
	id, err := kind.Enqueue(t.Context(), c, note{text}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// told are the runs of a report: what was run, how long after the beginning, and
// with what outcome.
func told(r *stinttest.Report) []string {
	var all []string
	for _, run := range r.Runs {
		var n note
		_ = json.Unmarshal(run.Job.Args, &n)
		all = append(all, fmt.Sprintf("%s %v %s", n.Text, run.After.Round(time.Minute), run.Outcome))
	}
	return all
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestADrainPerformsEverythingInTheOrderOfItsTime(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(*stint.Mux, ...engine.Config) *stinttest.Worker) {
		mux := stint.NewMux()
		tries, napped := 0, false
		stint.Handle(mux, mail, func(ctx context.Context, job *stint.Job, in note) error {
			if in.Text == "fails once" {
				if tries++; tries == 1 {
					return errors.New("not yet")
				}
			}
			return nil
		})
		stint.Handle(mux, chore, func(ctx context.Context, job *stint.Job, in note) error {
			c := stint.ClientFrom(ctx)
			switch in.Text {
			case "two hours":
				if _, err := chore.Enqueue(ctx, c, note{"child at once"}); err != nil {
					return err
				}
				_, err := mail.Enqueue(ctx, c, note{"child in two"}, stint.Delay(2*time.Hour))
				return err
			case "nap":
				if !napped {
					napped = true
					return stint.Snooze(90 * time.Minute)
				}
			}
			return nil
		})
		w := on(mux)
		c := w.Client()
		enqueue(t, c, mail, "three hours", stint.Delay(3*time.Hour))
		enqueue(t, c, chore, "five hours", stint.Delay(5*time.Hour))
		enqueue(t, c, chore, "two hours", stint.Delay(2*time.Hour))
		enqueue(t, c, mail, "fails once", stint.Delay(150*time.Minute))
		enqueue(t, c, chore, "urgent", stint.Priority(-1))
		enqueue(t, c, chore, "nap", stint.Priority(1))
		r := w.Drain()
		same(t, "the runs", told(r), []string{
			"urgent 0s completed", "nap 0s snoozed", "nap 1h30m0s completed",
			"two hours 2h0m0s completed", "child at once 2h0m0s completed",
			"fails once 2h30m0s failed", "three hours 3h0m0s completed", "fails once 3h30m0s completed",
			"child in two 4h0m0s completed", "five hours 5h0m0s completed",
		})
		if len(r.Left) != 0 || len(r.Failed()) != 1 || r.Failed()[0].Err().Error() != "not yet" {
			t.Errorf("left %v, failed %v", r.Left, r.Failed())
		}
		if again := w.Drain(); len(again.Runs) != 0 {
			t.Errorf("a second drain had %v", again)
		}
		// The test goes on at that time.
		enqueue(t, c, chore, "later", stint.Delay(time.Hour))
		same(t, "the next drain", told(w.Drain()), []string{"later 1h0m0s completed"})
	})
}

func TestADrainEndsWhereItIsToldTo(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(*stint.Mux, ...engine.Config) *stinttest.Worker) {
		mux := stint.NewMux()
		stint.Handle(mux, chore, func(context.Context, *stint.Job, note) error { return nil })
		w := on(mux)
		enqueue(t, w.Client(), chore, "in one", stint.Delay(time.Hour))
		enqueue(t, w.Client(), chore, "in three", stint.Delay(3*time.Hour))
		r := w.Drain(stinttest.Within(2 * time.Hour))
		same(t, "the runs", told(r), []string{"in one 1h0m0s completed"})
		if len(r.Left) != 1 || r.Left[0].Why != "it is not due yet" {
			t.Errorf("left is %+v", r.Left)
		}
		same(t, "one hour later", told(w.Drain()), []string{"in three 1h0m0s completed"})
	})
}

func TestWhatADrainLeavesItExplains(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(*stint.Mux, ...engine.Config) *stinttest.Worker) {
		mux := stint.NewMux()
		stint.Handle(mux, chore, func(context.Context, *stint.Job, note) error { return nil })
		w := on(mux, engine.Config{Queues: []string{"default", "rest"}})
		enqueue(t, w.Client(), mail, "another queue")
		enqueue(t, w.Client(), mail, "unknown", stint.Queue("default"))
		enqueue(t, w.Client(), chore, "paused", stint.Queue("rest"))
		enqueue(t, w.Client(), chore, "done")
		if _, err := w.Store().(store.Pauser).Pause(t.Context(), "rest", "me", "a test"); err != nil {
			t.Fatal(err)
		}
		r := w.Drain(stinttest.LeaveUnknown())
		same(t, "the runs", told(r), []string{"done 0s completed"})
		var why []string
		for _, l := range r.Left {
			why = append(why, l.Why)
		}
		same(t, "what is left", why, []string{"the worker does not work on the queue mail", "the mux has no handler for its kind", "the queue rest is paused"})
	})
}

func TestExpiredJobsAreToldWithoutBeingRunAndCancelledOnesHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := stint.NewMux()
		var w *stinttest.Worker
		stint.Handle(mux, chore, func(ctx context.Context, job *stint.Job, in note) error {
			if in.Text == "slow" {
				time.Sleep(time.Hour)
			}
			return nil
		})
		w = verified(t, stinttest.New(t, mux))
		enqueue(t, w.Client(), chore, "slow")
		enqueue(t, w.Client(), chore, "late", stint.StartWithin(time.Minute))
		gone := enqueue(t, w.Client(), chore, "gone")
		if _, err := w.Store().(store.Canceller).Cancel(t.Context(), []stint.ID{gone}, ""); err != nil {
			t.Fatal(err)
		}
		r := w.Drain()
		same(t, "the runs", told(r), []string{"slow 0s completed", "late 1h0m0s expired"})
		if took := r.Runs[0].Took; took != time.Hour {
			t.Errorf("the slow one took %v", took)
		}
	})
}

// failing is a test that notes how it fails.
type failing struct {
	testing.TB
	said  []string
	fatal bool
}

func (f *failing) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	f.fatal = true
	panic(f)
}

// fails runs a piece of a test that is to fail, and returns what it said.
func fails(t *testing.T, f func(t *failing)) string {
	t.Helper()
	fake := &failing{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(fake) {
				panic(p)
			}
		}()
		f(fake)
	}()
	if len(fake.said) == 0 {
		t.Error("the test did not fail")
	}
	return strings.Join(fake.said, "\n")
}

func wantText(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("it says\n%s\nwithout %q", text, want)
		}
	}
}

func TestADrainWithoutEndFailsTheTestAndSaysWhoseFaultItIs(t *testing.T) {
	mux := stint.NewMux()
	stint.Handle(mux, chore, func(ctx context.Context, job *stint.Job, in note) error {
		if in.Text == "chain" {
			_, err := chore.Enqueue(ctx, stint.ClientFrom(ctx), in)
			return err
		}
		return stint.Snooze(time.Hour)
	})
	for text, want := range map[string]string{
		"sleepy": "there is no end to it after 20 runs: job 1 (chore) ran 20 times, the last one snoozed; if there is an end, stinttest.Limit allows more runs",
		"chain":  "there is no end to it after 20 runs: 20 of the kind chore, each of another job; if there is an end, stinttest.Limit allows more runs",
	} {
		said := fails(t, func(f *failing) {
			w := stinttest.New(f, mux)
			enqueue(t, w.Client(), chore, text)
			w.Drain(stinttest.Limit(20))
		})
		wantText(t, said, want, "after", "took")
	}
}

func TestADrainFailsTheTestForErrorsOnRequestAndForUnknownKindsAlways(t *testing.T) {
	mux := stint.NewMux()
	stint.Handle(mux, chore, func(context.Context, *stint.Job, note) error { return errors.New("no luck") })
	said := fails(t, func(f *failing) {
		w := stinttest.New(f, mux)
		enqueue(t, w.Client(), chore, "a")
		enqueue(t, w.Client(), mail, "b")
		w.Drain(stinttest.FailOnError())
	})
	wantText(t, said, "1 of 1 runs failed", "no luck", "job 2 (mail) is left: the mux has no handler for its kind")
	w := stinttest.New(t, mux)
	enqueue(t, w.Client(), chore, "a")
	w.Drain() // does not fail without the option
}

func TestAssertionsFindJobsByAllThatWasSaidOfThem(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(*stint.Mux, ...engine.Config) *stinttest.Worker) {
		w := on(stint.NewMux())
		first := enqueue(t, w.Client(), mail, "one", stint.Tag("a"), stint.Priority(3))
		second := enqueue(t, w.Client(), mail, "two", stint.Delay(time.Hour))
		is := func(text string) stinttest.Want {
			return stinttest.Where(func(n note) bool { return n.Text == text })
		}
		for what, wants := range map[string][]stinttest.Want{
			"arguments": {is("one")}, "a tag": {stinttest.WithTag("a")}, "a priority": {stinttest.WithPriority(3)},
			"a state": {stinttest.InState(stint.Available)}, "its time": {stinttest.DueIn(0)},
			"anything": {stinttest.Like("it is not the first", func(job *stint.JobInfo) bool { return job.ID == first })},
		} {
			got := stinttest.Enqueued(t, w.Store(), mail, append(wants, stinttest.Times(1))...)
			if len(got) != 1 || got[0].ID != first {
				t.Errorf("by %s found %v", what, got)
			}
		}
		got := stinttest.Enqueued(t, w.Store(), mail, stinttest.DueIn(time.Hour), stinttest.InState(stint.Scheduled))
		if len(got) != 1 || got[0].ID != second {
			t.Errorf("found %v", got)
		}
		stinttest.Enqueued(t, w.Store(), mail, stinttest.InQueue("mail"), stinttest.Times(2))
		stinttest.NotEnqueued(t, w.Store(), mail, is("three"))
		stinttest.NotEnqueued(t, w.Store(), chore)
	})
}

func TestAFailedAssertionListsWhatWasEnqueuedInstead(t *testing.T) {
	w := stinttest.New(t, stint.NewMux())
	said := fails(t, func(f *failing) { stinttest.Enqueued(f, w.Store(), mail) })
	wantText(t, said, "0 jobs of the kind mail are as wanted, want one at least", "nothing was enqueued")
	enqueue(t, w.Client(), chore, "other")
	enqueue(t, w.Client(), mail, strings.Repeat("long", 100))
	said = fails(t, func(f *failing) {
		stinttest.Enqueued(f, w.Store(), mail, stinttest.InQueue("slow"), stinttest.Where(func(n note) bool { return false }))
	})
	wantText(t, said, `{"Text":"longlong`, "…", "its queue is not slow, its arguments", "its kind")
	said = fails(t, func(f *failing) { stinttest.NotEnqueued(f, w.Store(), mail) })
	wantText(t, said, "1 jobs of the kind mail are as wanted, want 0")
	said = fails(t, func(f *failing) {
		stinttest.Enqueued(f, w.Store(), mail, stinttest.Where(func(n int) bool { return true }))
	})
	wantText(t, said, "its arguments are no int")
}

func TestOneHandlerIsPerformedAtOnce(t *testing.T) {
	double := stint.NewResultKind[int, int]("double")
	everywhere(t, func(t *testing.T, on func(*stint.Mux, ...engine.Config) *stinttest.Worker) {
		mux := stint.NewMux()
		stint.HandleResult(mux, double, func(_ context.Context, _ *stint.Job, n int) (int, error) { return 2 * n, nil })
		stint.Handle(mux, mail, func(context.Context, *stint.Job, note) error { return errors.New("bounced") })
		w := on(mux)
		four, run := stinttest.PerformResult(w, double, 2)
		if four != 4 || run.Err() != nil || !run.Final || run.Job.Created.IsZero() || string(run.Job.Args) != "2" {
			t.Errorf("twice two is %d, %v", four, run)
		}
		run = stinttest.Perform(w, mail, note{"x"})
		if err := run.Err(); err == nil || err.Error() != "bounced" || run.Final || run.Next != time.Hour {
			t.Errorf("the failure is %+v", run)
		}
		same(t, "its retries", told(w.Drain()), []string{"x 1h0m0s failed", "x 2h0m0s failed"})
	})
}

func TestADrainOnAFileReachesTransactionsOfTheHandlers(t *testing.T) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	hooked := 0
	mux := stint.NewMux()
	stint.Handle(mux, chore, func(ctx context.Context, job *stint.Job, in note) error { panic("oh") }).Hook(stint.Hooks{
		AfterLastFailure: func(ctx context.Context, _ *stint.Job, _ *stint.Attempt) error {
			hooked++
			_, err := mail.Enqueue(ctx, stint.ClientFrom(ctx), note{"sorry"})
			return err
		},
	})
	stint.Handle(mux, mail, func(context.Context, *stint.Job, note) error { return nil })
	w := verified(t, stinttest.On(t, store, mux))
	enqueue(t, w.Client(), chore, "panics")
	r := w.Drain()
	same(t, "the runs", told(r), []string{"panics 0s failed", "sorry 0s completed"})
	if hooked != 1 || r.Runs[0].Failure.Stack == "" {
		t.Errorf("the hook was called %d times; the failure is %+v", hooked, r.Runs[0].Failure)
	}
	wantText(t, strings.Join(strings.Fields(r.String()), " "), "after job kind attempt outcome took", "oh", "mail") // columns are as wide as what they hold
}

func TestWhatIsOverdueRunsInTheOrderOfItsTimeToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := stint.NewMux()
		stint.Handle(mux, chore, func(context.Context, *stint.Job, note) error { return nil })
		w := stinttest.New(t, mux)
		enqueue(t, w.Client(), chore, "second", stint.Delay(2*time.Hour), stint.Priority(-1))
		enqueue(t, w.Client(), chore, "first", stint.Delay(time.Hour))
		time.Sleep(3 * time.Hour)
		same(t, "the runs", told(w.Drain()), []string{"first 0s completed", "second 0s completed"})
	})
}

func TestAJobThatIsPutOffRunsAtItsNewTime(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(*stint.Mux, ...engine.Config) *stinttest.Worker) {
		var w *stinttest.Worker
		var later stint.ID
		mux := stint.NewMux()
		stint.Handle(mux, chore, func(ctx context.Context, job *stint.Job, in note) error {
			if in.Text != "puts off" {
				return nil
			}
			_, err := w.Store().Retry(ctx, []stint.ID{later}, stint.RerunOptions{Delay: 4 * time.Hour})
			return err
		})
		w = on(mux)
		later = enqueue(t, w.Client(), chore, "put off", stint.Delay(3*time.Hour))
		enqueue(t, w.Client(), chore, "between", stint.Delay(5*time.Hour))
		enqueue(t, w.Client(), chore, "puts off", stint.Delay(2*time.Hour))
		same(t, "the runs", told(w.Drain()), []string{"puts off 2h0m0s completed", "between 5h0m0s completed", "put off 6h0m0s completed"})
	})
}

func TestSchedulesFireWithinTheTimeOfADrainInABubble(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(*stint.Mux, ...engine.Config) *stinttest.Worker) {
		mux := stint.NewMux()
		stint.Handle(mux, chore, func(context.Context, *stint.Job, note) error { return nil })
		mux.Schedule(chore.Schedule("hourly", cron.MustParse("@hourly"), note{"hourly"}))
		w := on(mux)
		enqueue(t, w.Client(), chore, "between", stint.Delay(90*time.Minute))
		same(t, "without a bound", told(w.Drain()), []string{"between 1h30m0s completed"})
		want := []string{"hourly 30m0s completed", "hourly 1h30m0s completed"}
		if !strings.HasSuffix(t.Name(), "bubble") {
			want = nil
		}
		r := w.Drain(stinttest.Within(100 * time.Minute))
		if got := told(r); len(got) > 1 {
			same(t, "within a bound", got[len(got)-2:], want) // behind one that was missed meanwhile
		} else {
			same(t, "within a bound", got, want)
		}
		all, err := w.Store().(store.ScheduleKeeper).Schedules(t.Context())
		if err != nil || len(all) != 1 || all[0].Name != "hourly" {
			t.Errorf("the schedules are %v, %v", all, err)
		}
	})
}

func TestAHandlerOfBatchesGetsWhatIsReady(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(mux *stint.Mux, c ...engine.Config) *stinttest.Worker) {
		var calls []string
		mux := stint.NewMux()
		stint.HandleMany(mux, chore, stint.Gather(3, time.Second), func(_ context.Context, jobs []stint.BatchJob[note]) error {
			var all []string
			errs := make([]error, len(jobs))
			for i, j := range jobs {
				all = append(all, j.Args.Text)
				if j.Args.Text == "bad" {
					errs[i] = errors.New("no")
				}
			}
			calls = append(calls, strings.Join(all, " "))
			return stint.PerJob(errs)
		})
		stint.Handle(mux, mail, func(context.Context, *stint.Job, note) error { calls = append(calls, "mail"); return nil })
		w := on(mux)
		for _, text := range []string{"a", "b", "c", "d", "bad"} {
			if _, err := chore.Enqueue(t.Context(), w.Client(), note{text}); err != nil {
				t.Fatal(err)
			}
		}
		for _, kind := range []stint.Kind[note]{mail, chore} {
			if _, err := kind.Enqueue(t.Context(), w.Client(), note{"z"}, stint.Queue(stint.DefaultQueue)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := chore.Enqueue(t.Context(), w.Client(), note{"later"}, stint.Delay(time.Hour)); err != nil {
			t.Fatal(err)
		}
		r := w.Drain()
		if want := []string{"a b c", "d bad", "mail", "z", "later"}; !slices.Equal(calls, want) {
			t.Errorf("the calls are %q, want %q", calls, want)
		}
		if len(r.Runs) != 8 || len(r.Failed()) != 1 {
			t.Errorf("the report is %v", r)
		}
	})
}

// A handler sleeps for a month between its steps, and one of them fails at first: each is done once, and the
// whole month passes in the report only.
func TestStepsAndSleepsTakeNoTime(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(mux *stint.Mux, c ...engine.Config) *stinttest.Worker) {
		const month = 30 * 24 * time.Hour
		var done []string
		mux := stint.NewMux()
		stint.Handle(mux, mail, func(ctx context.Context, job *stint.Job, n note) error {
			step := func(name string, wrong bool) error {
				_, err := stint.Step(ctx, name, func(context.Context) (any, error) {
					if wrong {
						return nil, errors.New("not yet")
					}
					done = append(done, name+" "+n.Text)
					return nil, nil
				})
				return err
			}
			for _, do := range []func() error{
				func() error { return step("greet", false) },
				func() error { return stint.Sleep(ctx, "a month", month) },
				func() error { return step("remind", job.Attempt == 1) },
				func() error { return stint.Sleep(ctx, "another", month) },
				func() error { return step("part", false) },
			} {
				if err := do(); err != nil {
					return err
				}
			}
			return nil
		})
		w := on(mux)
		enqueue(t, w.Client(), mail, "ada")
		report := w.Drain()
		if want := []string{"greet ada", "remind ada", "part ada"}; !slices.Equal(done, want) || len(report.Runs) != 4 {
			t.Errorf("done is %v in %d runs, want %v in 4\n%v", done, len(report.Runs), want, report)
		}
		last := report.Runs[len(report.Runs)-1]
		if last.Outcome != stint.OutcomeCompleted || last.After < 2*month || last.After > 2*month+2*time.Hour {
			t.Errorf("the last run was %s after %v", last.Outcome, last.After)
		}
		run := stinttest.Perform(w, mail, note{"bob"})
		if run.Outcome != stint.OutcomeSnoozed || len(done) != 4 {
			t.Errorf("performed at once it is %s, and done is %v", run.Outcome, done)
		}
	})
}

func TestAHandlerByItselfWaitsForNoLimits(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(mux *stint.Mux, c ...engine.Config) *stinttest.Worker) {
		limited := stint.NewKind[note]("limited", stint.Limited("smtp"))
		mux := stint.NewMux()
		stint.Handle(mux, limited, func(context.Context, *stint.Job, note) error { return nil })
		w := on(mux)
		if run := stinttest.Perform(w, limited, note{"ada"}, stint.Limited("fax")); run.Outcome != stint.OutcomeCompleted {
			t.Errorf("it is %s: %v", run.Outcome, run.Err())
		}
	})
}

// A job that awaits a signal is left until the test sends it. In a bubble time passes its end when another job is due later.
func TestAJobIsLeftUntilItsSignalIsSent(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(mux *stint.Mux, c ...engine.Config) *stinttest.Worker) {
		var got []string
		mux := stint.NewMux()
		stint.Handle(mux, mail, func(ctx context.Context, job *stint.Job, n note) error {
			for _, name := range []string{"first", "second"} {
				v, err := stint.Await[string](ctx, name, 72*time.Hour)
				if err != nil {
					return err
				}
				if got = append(got, v); name == "first" {
					if err := stint.Sleep(ctx, "a day", 24*time.Hour); err != nil {
						return err
					}
				}
			}
			return nil
		})
		w := on(mux)
		id := enqueue(t, w.Client(), mail, "ada")
		other := enqueue(t, w.Client(), mail, "bob", stint.Delay(time.Hour))
		r := w.Drain()
		if len(r.Runs) != 2 || len(r.Left) != 2 || r.Left[0].Why != `it awaits the signal "first"` || r.Runs[1].After > 2*time.Hour {
			t.Errorf("after a drain: %v, left %+v", r, r.Left)
		}
		for _, name := range []string{"second", "first"} {
			if err := w.Client().Signal(t.Context(), id, name, "the "+name); err != nil {
				t.Fatal(err)
			}
		}
		r = w.Drain()
		if job, err := w.Store().Job(t.Context(), id); err != nil || job.State != stint.Completed || len(r.Runs) != 2 || len(r.Left) != 1 || r.Left[0].Job.ID != other {
			t.Errorf("after the signals it is %v, %v: %v", job.State, err, r)
		}
		if want := []string{"the first", "the first", "the second"}; !slices.Equal(got, want) {
			t.Errorf("it got %v, want %v", got, want)
		}
	})
}

// A job that asks people is left until the test answers.
func TestAJobIsLeftUntilItsQuestionIsAnswered(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(mux *stint.Mux, c ...engine.Config) *stinttest.Worker) {
		var got []string
		mux := stint.NewMux()
		stint.Handle(mux, mail, func(ctx context.Context, _ *stint.Job, n note) error {
			a, err := stint.Ask(ctx, "approve", "Write to "+n.Text+"?", 72*time.Hour, "yes", "no")
			if err == nil {
				got = append(got, a.Choice+" by "+a.By)
			}
			return err
		})
		w := on(mux)
		id := enqueue(t, w.Client(), mail, "ada")
		if r := w.Drain(); len(r.Runs) != 1 || len(r.Left) != 1 || r.Left[0].Why != `it awaits the answer to "approve"` {
			t.Errorf("after a drain: %v, left %+v", r, r.Left)
		}
		if err := w.Client().Answer(t.Context(), id, "approve", stint.Answer{Choice: "no", By: "bob"}); err != nil {
			t.Fatal(err)
		}
		if r := w.Drain(); len(r.Runs) != 1 || len(r.Left) != 0 || !slices.Equal(got, []string{"no by bob"}) {
			t.Errorf("after the answer it got %q: %v", got, r)
		}
	})
}

// In a bubble a question is over within the time of a drain.
func TestAQuestionIsOverWithinTheTimeOfADrainInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := stint.NewMux()
		stint.Handle(mux, mail, func(ctx context.Context, _ *stint.Job, n note) error {
			if _, err := stint.Ask(ctx, "approve", "?", 72*time.Hour, "yes"); !errors.Is(err, stint.ErrNoAnswer) {
				return err
			}
			return nil
		})
		w := verified(t, stinttest.New(t, mux))
		enqueue(t, w.Client(), mail, "ada")
		if r := w.Drain(stinttest.Within(71 * time.Hour)); len(r.Runs) != 1 || len(r.Left) != 1 {
			t.Errorf("before its end: %v", r)
		}
		if r := w.Drain(stinttest.Within(2 * time.Hour)); len(r.Runs) != 1 || len(r.Left) != 0 || r.Runs[0].Outcome != stint.OutcomeCompleted {
			t.Errorf("at its end: %v", r)
		}
	})
}

// In a bubble a wait ends within the time of a drain.
func TestAWaitEndsWithinTheTimeOfADrainInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := stint.NewMux()
		stint.Handle(mux, mail, func(ctx context.Context, _ *stint.Job, n note) error {
			if _, err := stint.Await[string](ctx, "first", 72*time.Hour); !errors.Is(err, stint.ErrNoSignal) {
				return err
			}
			return nil
		})
		w := verified(t, stinttest.New(t, mux))
		enqueue(t, w.Client(), mail, "ada")
		if r := w.Drain(stinttest.Within(71 * time.Hour)); len(r.Runs) != 1 || len(r.Left) != 1 {
			t.Errorf("before its end: %v", r)
		}
		if r := w.Drain(stinttest.Within(2 * time.Hour)); len(r.Runs) != 1 || len(r.Left) != 0 || r.Runs[0].Outcome != stint.OutcomeCompleted {
			t.Errorf("at its end: %v", r)
		}
	})
}

// In a bubble a wait ends, too, when time passes its end since another job is due later.
func TestAWaitEndsBeforeALaterJobInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := stint.NewMux()
		var after []string
		stint.Handle(mux, mail, func(ctx context.Context, _ *stint.Job, n note) error {
			if n.Text == "bob" {
				after = append(after, "bob")
				return nil
			}
			if _, err := stint.Await[string](ctx, "first", time.Hour); !errors.Is(err, stint.ErrNoSignal) {
				return err
			}
			after = append(after, "no signal")
			return nil
		})
		w := verified(t, stinttest.New(t, mux))
		enqueue(t, w.Client(), mail, "ada")
		enqueue(t, w.Client(), mail, "bob", stint.Delay(10*time.Hour))
		if r := w.Drain(); len(r.Left) != 0 || !slices.Equal(after, []string{"no signal", "bob"}) {
			t.Errorf("they came in the order %q: %v", after, r)
		}
	})
}

func TestATestSeesWhatAHandlerSaid(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(mux *stint.Mux, c ...engine.Config) *stinttest.Worker) {
		mux := stint.NewMux()
		stint.Handle(mux, mail, func(ctx context.Context, job *stint.Job, n note) error {
			stint.SetProgress(ctx, float64(job.Attempt)/2, n.Text)
			stint.Logger(ctx).Info("sent", "to", n.Text, "attempt", job.Attempt)
			if job.Attempt == 1 {
				return errors.New("no")
			}
			return nil
		})
		stint.Handle(mux, chore, func(context.Context, *stint.Job, note) error { return nil })
		w := on(mux)
		run := stinttest.Perform(w, mail, note{"ada"})
		if p, lines := w.Progress(run.Job.ID), w.Log(run.Job.ID); p == nil || p.Fraction != 0.5 || p.Text != "ada" || len(lines) != 1 || lines[0].Text != "sent to=ada attempt=1" {
			t.Errorf("it said %v, and is at %v", lines, p)
		}
		w.Drain()
		if p, lines := w.Progress(run.Job.ID), w.Log(run.Job.ID); p == nil || p.Fraction != 1 || len(lines) != 2 || lines[1].Attempt != 2 {
			t.Errorf("it said %v, and is at %v", lines, p)
		}
		silent := stinttest.Perform(w, chore, note{})
		if p, lines := w.Progress(silent.Job.ID), w.Log(silent.Job.ID); p != nil || len(lines) != 0 {
			t.Errorf("one that says nothing said %v, and is at %v", lines, p)
		}
	})
}
