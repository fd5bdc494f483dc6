package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// TestABookIsPrinted plays an example as documentation tells it, through
// seventeen hours: jobs that wait for their time, jobs that fail and recover,
// and jobs that fail for good by their kind, by their error, and at the end of
// the default policy.
func TestABookIsPrinted(t *testing.T) {
	inBubble(t, 48*time.Hour, func(t *testing.T, s *sqlite.Store) {
		var (
			errInk     = errors.New("out of ink")
			errIllegal = errors.New("the text is illegal")

			typeset  = stint.NewKind[int]("typeset")                                    // the default policy
			announce = stint.NewKind[struct{}]("announce", stint.Retry(retry.None()))   // not twice
			proof    = stint.NewKind[struct{}]("proof", stint.Retry(retry.Fixed(2, 0))) // at once
			began    = time.Now()
			ctx      = t.Context()
			client   = stint.NewClient(s)
			mux      = stint.NewMux()
		)
		// Chapter n is set with the n-th attempt; chapter 0 never, and chapter
		// -1 must not be.
		stint.Handle(mux, typeset, func(_ context.Context, job *stint.Job, chapter int) error {
			switch {
			case chapter < 0:
				return stint.NoRetry(fmt.Errorf("chapter %d: %w", chapter, errIllegal))
			case job.Attempt == chapter:
				return nil
			}
			return fmt.Errorf("chapter %d: %w", chapter, errInk)
		})
		stint.Handle(mux, announce, func(context.Context, *stint.Job, struct{}) error { return errors.New("nobody listens") })
		stint.Handle(mux, proof, func(context.Context, *stint.Job, struct{}) error { return errInk })
		enqueue := func(job stint.NewJob, err error) stint.ID {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			id, err := client.Enqueue(ctx, job)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		waits := enqueue(typeset.New(1, stint.Delay(3*time.Hour)))
		first, third := enqueue(typeset.New(1)), enqueue(typeset.New(3))
		hopeless, illegal := enqueue(typeset.New(0)), enqueue(typeset.New(-1))
		noRetry, proofs := enqueue(announce.New(struct{}{})), enqueue(proof.New(struct{}{}))

		stop := start(t, lonely{s}, mux, engine.Config{TimeToLive: time.Hour, Poll: time.Minute})
		at := func(d time.Duration) {
			time.Sleep(time.Until(began.Add(d)))
			synctest.Wait()
		}
		see := func(id stint.ID, state stint.State, runs int, reason string, faulty bool) *stint.JobInfo {
			t.Helper()
			job, err := s.Job(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if job.State != state || len(job.Attempts) != runs || job.Reason != reason || job.Faulty != faulty {
				t.Errorf("after %v job %d (%s) is %s after %d runs, reason %q, faulty %v; want %s, %d, %q, %v", time.Since(began).Round(time.Second),
					id, job.Kind, job.State, len(job.Attempts), job.Reason, job.Faulty, state, runs, reason, faulty)
			}
			return job
		}

		at(30 * time.Second)
		see(waits, stint.Scheduled, 0, "", false)
		see(first, stint.Completed, 1, "done", false)
		see(third, stint.Retrying, 1, "", false)
		see(hopeless, stint.Retrying, 1, "", false)
		see(proofs, stint.Failed, 3, "retries exhausted", false)
		if job := see(noRetry, stint.Failed, 1, "no retries", false); !*job.Attempts[0].Recoverable {
			t.Error("what fails by its kind could have been tried again")
		}
		if job := see(illegal, stint.Failed, 1, "error not retriable", false); *job.Attempts[0].Recoverable {
			t.Error("what fails by its error could not have been tried again")
		}

		at(4 * time.Minute) // 1 and 2 after it failed
		see(third, stint.Completed, 3, "done", false)
		at(2*time.Hour + 59*time.Minute)
		see(waits, stint.Scheduled, 0, "", false)
		at(3*time.Hour + time.Minute)
		if job := see(waits, stint.Completed, 1, "done", false); job.Started.Sub(job.Created) < 3*time.Hour || job.Started.Sub(job.Due) > time.Second {
			t.Errorf("enqueued %v, due %v, it began %v", job.Created, job.Due, job.Started)
		}

		// 1, 2, 4 … 512 minutes: 1,023 in all. With the tenth failure one try is
		// left, and people should look.
		at(500 * time.Minute)
		see(hopeless, stint.Retrying, 9, "", false)
		at(1000 * time.Minute)
		see(hopeless, stint.Retrying, 10, "", true)
		faulty, err := s.Jobs(ctx, store.Filter{Faulty: true})
		if err != nil || len(faulty) != 1 || faulty[0].ID != hopeless {
			t.Errorf("faulty are %+v, error %v", faulty, err)
		}
		at(1024 * time.Minute)
		job := see(hopeless, stint.Failed, 11, "retries exhausted", false)
		wait := time.Minute
		for i, x := range job.Attempts[1:] {
			gap := x.Started.Sub(job.Attempts[i].Finished)
			if gap < wait || gap > wait+time.Second {
				t.Errorf("attempt %d came %v after the one before, want %v", x.Attempt, gap, wait)
			}
			wait *= 2
		}
		if x := job.Attempts[10]; !x.Final || x.Attempt != 11 || x.Error.Message != "chapter 0: out of ink" {
			t.Errorf("the last execution is %+v", x)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// A function that an absent engine has gives its date in virtual time too.
func TestADecisionThatHadToWaitCountsFromItself(t *testing.T) {
	inBubble(t, 12*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := failing("print")
		stop := start(t, lonely{s}, mux, engine.Config{TimeToLive: time.Hour, Poll: time.Minute})
		id := enqueue(t, s, "print", `{"error":"paper","until":2}`, stint.Retry(retry.Function("later")))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if job := until(t, s, id, stint.Retrying); job.PendingRetry != "later" || len(job.Attempts) != 1 {
			t.Fatalf("it waits for %q after %d runs", job.PendingRetry, len(job.Attempts))
		}
		deciding := stint.NewMux()
		deciding.RetryFunc("later", func(_ error, f retry.Failure) retry.Decision { return retry.At(f.Now.Add(time.Hour)) })
		other := start(t, lonely{s}, deciding, engine.Config{TimeToLive: time.Hour, Poll: time.Minute})
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		job := until(t, s, id, stint.Completed)
		if gap := job.Started.Sub(job.Attempts[1].Finished); gap < time.Hour || gap > time.Hour+time.Minute {
			t.Errorf("it ran %v after the decision", gap)
		}
		if err := errors.Join(stop(), other()); err != nil {
			t.Fatal(err)
		}
	})
}
