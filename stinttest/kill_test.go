package stinttest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"
	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/stinttest"
	"github.com/stint-go/stint/store"
)

// A handler of twenty steps, with a sleep among them, is killed at each point: each value is accepted once, from the run
// that held the claim, and every later run is told the same.
func TestAHandlerOfTwentyStepsIsKilledAtEveryPoint(t *testing.T) {
	const steps = 20
	s, err := postgres.Open(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, on := range map[string]func(t *testing.T, mux *stint.Mux) *stinttest.Worker{
		"memory":   func(t *testing.T, mux *stint.Mux) *stinttest.Worker { return stinttest.New(t, mux) },
		"postgres": func(t *testing.T, mux *stint.Mux) *stinttest.Worker { return stinttest.On(t, s, mux) },
	} {
		t.Run(name, func(t *testing.T) {
			var kills, before, after int
			stinttest.EachKill(t, func(t *testing.T, kill stinttest.Option) {
				calls, told := map[string]int{}, map[string][]string{}
				mux := stint.NewMux()
				stint.Handle(mux, chore, func(ctx context.Context, job *stint.Job, _ note) error {
					for i := range steps {
						name := fmt.Sprint("step ", i)
						value, err := stint.Step(ctx, name, func(context.Context) (string, error) {
							calls[name]++
							return fmt.Sprintf("%d by attempt %d", i, job.Attempt), nil
						})
						if err != nil {
							return err
						}
						told[name] = append(told[name], value)
						if i == steps/2 {
							if err := stint.Sleep(ctx, "sleep", time.Hour); err != nil {
								return err
							}
						}
					}
					return nil
				})
				w := verified(t, on(t, mux))
				id := enqueue(t, w.Client(), chore, "x")
				report := w.Drain(kill)
				lost, twice := 0, 0
				for _, run := range report.Runs {
					if run.Outcome == stint.OutcomeLost {
						lost++
					}
				}
				if last := report.Runs[len(report.Runs)-1]; last.Outcome != stint.OutcomeCompleted || len(report.Runs) != 2+lost || lost > 1 {
					t.Fatalf("the job did not complete after its sleep:\n%v", report)
				}
				recorded, err := w.Store().(store.StepKeeper).Steps(t.Context(), id)
				if err != nil || len(recorded) != steps+1 {
					t.Fatalf("%d steps are recorded, %v", len(recorded), err)
				}
				for _, r := range recorded {
					if r.Name == "sleep" {
						continue
					}
					for _, value := range told[r.Name] {
						if fmt.Sprintf("%q", value) != string(r.Result) {
							t.Errorf("a run was told %q of %s, which is recorded as %s", value, r.Name, r.Result)
						}
					}
					twice += calls[r.Name] - 1
				}
				if kills += lost; twice > lost {
					t.Errorf("%d calls were made again", twice)
				}
				if before += twice; lost > twice {
					after++
				}
			})
			// Once before and after each step and the sleep, and at the ends of both runs.
			if want := 2*(steps+1) + 2; kills != want || before != steps || after != want-steps {
				t.Errorf("%d were killed, %d before a step was recorded, want %d and %d", kills, before, want, steps)
			}
		})
	}
}

func TestAHandlerIsKilledAtAStep(t *testing.T) {
	everywhere(t, func(t *testing.T, on func(mux *stint.Mux, c ...engine.Config) *stinttest.Worker) {
		var done []string
		mux := stint.NewMux()
		stint.Handle(mux, mail, func(ctx context.Context, _ *stint.Job, n note) error {
			for _, name := range []string{"charge", "ship"} {
				if _, err := stint.Step(ctx, name, func(context.Context) (any, error) {
					done = append(done, name)
					return nil, nil
				}); err != nil {
					return err
				}
			}
			return nil
		})
		w := on(mux)
		for _, one := range []struct {
			kill stinttest.Option
			want []string
		}{
			{stinttest.KillBefore("charge"), []string{"charge", "charge", "ship"}},
			{stinttest.KillAfter("charge"), []string{"charge", "ship"}},
			{stinttest.KillBefore("ship"), []string{"charge", "ship", "ship"}},
			{stinttest.KillAfter("ship"), []string{"charge", "ship"}},
		} {
			done = nil
			enqueue(t, w.Client(), mail, "ada")
			report := w.Drain(one.kill)
			if !slices.Equal(done, one.want) {
				t.Errorf("done is %v, want %v", done, one.want)
			}
			same(t, "the runs", told(report), []string{"ada 0s lost", "ada 0s completed"})
			if lost := report.Runs[0]; !lost.Failed() || lost.Final || lost.Job.Attempt != 1 || report.Runs[1].Job.Attempt != 2 || len(report.Left) != 0 {
				t.Errorf("the report is\n%v", report)
			}
		}
	})
}

func TestAKillAtAStepThatNoRunComesToFailsTheTest(t *testing.T) {
	mux := stint.NewMux()
	stint.Handle(mux, chore, func(context.Context, *stint.Job, note) error { return nil })
	said := fails(t, func(f *failing) {
		w := stinttest.New(f, mux)
		enqueue(t, w.Client(), chore, "x")
		w.Drain(stinttest.KillAfter("charge"))
	})
	wantText(t, said, `no run came to the step "charge", where it was to be killed`, "completed")
}

// Steps at the same time, one of which has a transaction: all of them die with the process, and what was not committed is gone.
func TestAKillEndsAllStepsOfTheProcess(t *testing.T) {
	const key = "balance"
	stinttest.EachKill(t, func(t *testing.T, kill stinttest.Option) {
		path := filepath.Join(t.TempDir(), "stint.db")
		s, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(20000)")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), `create table accounts (name text primary key, balance integer)`); err != nil {
			t.Fatal(err)
		}
		mux := stint.NewMux()
		ended := 0
		stint.Handle(mux, chore, func(ctx context.Context, _ *stint.Job, _ note) error {
			var all sync.WaitGroup
			errs := make([]error, 3)
			for i := range errs {
				all.Go(func() {
					_, errs[i] = stint.Step(ctx, fmt.Sprint("fetch ", i), func(context.Context) (int, error) { return i, nil })
				})
			}
			all.Wait()
			if err := errors.Join(errs...); err != nil {
				return err
			}
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			_, err = stint.StepTx(ctx, sqlite.Tx(tx), "book", func(ctx context.Context) (any, error) {
				_, err := tx.ExecContext(ctx, `insert into accounts values (?, 10)`, key)
				return nil, err
			})
			if err == nil {
				ended++
			}
			return err
		})
		w := stinttest.On(t, s, mux)
		enqueue(t, w.Client(), chore, "x")
		report := w.Drain(kill, stinttest.Limit(10))
		var rows int
		if err := db.QueryRowContext(t.Context(), `select count(*) from accounts`).Scan(&rows); err != nil || rows != 1 || ended == 0 {
			t.Errorf("%d rows, %v, %d runs came to the end\n%v", rows, err, ended, report)
		}
	})
}
