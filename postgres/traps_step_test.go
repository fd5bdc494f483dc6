package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// attempt is one that records steps.
type attempt struct {
	b *bench
	w *storetest.Worker
	e store.Entry
}

func (b *bench) attempt(opts ...stint.Option) attempt {
	b.enqueue(1, opts...)
	w := b.join()
	return attempt{b, w, w.One()}
}

// step is a step of the attempt.
func (a attempt) step(name, result string) store.StepRecord {
	now := time.Now()
	return store.StepRecord{Claim: a.w.ClaimOf(a.e.Pos), Pos: a.e.Pos, Job: a.e.ID, Name: name, Began: now, Ended: now, Result: []byte(result)}
}

// recorded is what is recorded after steps were, each as its name that they have, and "-" for none.
func (a attempt) recorded(steps ...store.StepRecord) (string, error) {
	all, err := a.b.s.RecordSteps(a.b.Context(), a.w.Info.Token, steps)
	what := make([]string, len(all))
	for i, r := range all {
		if what[i] = string(r.Result); r.Result == nil {
			what[i] = "-"
		}
	}
	return strings.Join(what, " "), err
}

// records says what is wrong when that is not what is wanted.
func (a attempt) records(want string, steps ...store.StepRecord) error {
	if got, err := a.recorded(steps...); err != nil || got != want {
		return fmt.Errorf("%d steps are recorded as %q, error %v, want %q", len(steps), got, err, want)
	}
	return nil
}

// steps says what is wrong when there are not as many steps.
func (b *bench) steps(want int) error {
	if n := value[int](b, b.s.pool, `select count(*) from stint.steps`); n != want {
		return fmt.Errorf("%d steps are there, want %d", n, want)
	}
	return nil
}

var stepTraps = []trap{
	{"A step counts for the claim that its attempt came from only", func(b *bench) error {
		a := b.attempt()
		r := a.step("a", "1")
		stolen := attempt{b, b.join(), a.e}
		if err := stolen.records("-", r); err != nil {
			return fmt.Errorf("of another engine: %w", err)
		}
		// The database fell back and handed the same positions out again, or forgot the claim.
		for _, text := range []string{`update stint.claims set nonce = nonce + 1`, `delete from stint.claims`} {
			exec(b, b.s, text)
			if err := a.records("-", r); err != nil {
				return fmt.Errorf("after %s: %w", text, err)
			}
		}
		return b.steps(0)
	}},
	{"A step of an attempt that has an outcome is refused", func(b *bench) error {
		a := b.attempt()
		a.w.Finish(returned, a.e)
		if err := a.records("-", a.step("a", "1")); err != nil {
			return err
		}
		return b.steps(0)
	}},
	{"A step does not come back after its job was deleted", func(b *bench) error {
		a := b.attempt()
		b.must(a.records("1", a.step("a", "1")))
		a.w.Complete(a.e)
		_, err := b.s.Delete(b.Context(), []stint.ID{a.e.ID})
		b.must(err)
		if err := b.steps(0); err != nil {
			return err
		}
		if err := a.records("- -", a.step("a", "1"), a.step("b", "1")); err != nil { // what was under way then
			return err
		}
		return b.steps(0)
	}},
	{"The first record of a step counts, whatever is said later", func(b *bench) error {
		a := b.attempt()
		return errors.Join(a.records("1", a.step("a", "1")), a.records("1", a.step("a", "2")), a.records("3 3", a.step("b", "3"), a.step("b", "4")))
	}},
	{"The buried record no steps", func(b *bench) error {
		a := b.attempt()
		r := a.step("a", "1")
		exec(b, b.s, `delete from stint.engines`)
		if got, err := a.recorded(r); !errors.Is(err, store.ErrBuried) {
			return fmt.Errorf("they are told %q, error %v, want ErrBuried", got, err)
		}
		return b.steps(0)
	}},
	{"Steps in another order do not wait for each other crosswise", func(b *bench) error {
		a := b.attempt()
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), `insert into stint.steps (job, name, pos, began, ended, result) values ($1, 'm', 1, now(), now(), '0')`, int64(a.e.ID))
		b.must(err)
		answers := make(chan error, 2)
		for i, order := range []string{"a m z", "z m a"} {
			var all []store.StepRecord
			for name := range strings.FieldsSeq(order) {
				all = append(all, a.step(name, fmt.Sprint(i)))
			}
			go func() { _, err := a.recorded(all...); answers <- err }()
		}
		if err := b.blockedMany(2); err != nil {
			return err
		}
		b.must(tx.Rollback(b.Context()))
		if err := errors.Join(<-answers, <-answers); err != nil {
			return err
		}
		return b.steps(3)
	}},
	{"Who waited for another's record of a step is told what that is", func(b *bench) error {
		a := b.attempt()
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), `insert into stint.steps (job, name, pos, began, ended, result) values ($1, 'a', 1, now(), now(), '1')`, int64(a.e.ID))
		b.must(err)
		answer := make(chan error, 1)
		go func() { answer <- a.records("1", a.step("a", "2")) }()
		if err := b.blocked(); err != nil {
			return err
		}
		b.must(tx.Commit(b.Context()))
		return <-answer
	}},
	{"What a handler wrote with a step that is there already is rolled back", func(b *bench) error {
		a := b.attempt()
		b.must(a.records("1", a.step("a", "1")))
		tx := begin(b, b.s)
		b.enqueueIn(Tx(tx), 1)
		if err := b.s.RecordStepTx(b.Context(), Tx(tx), a.w.Info.Token, a.step("a", "2")); !errors.Is(err, store.ErrStepRefused) {
			return fmt.Errorf("it gives %v, want ErrStepRefused", err)
		}
		return b.count(1)
	}},
	{"Each step of a call is told whether the call recorded it", func(b *bench) error {
		a := b.attempt()
		b.enqueue(1)
		other := attempt{b, a.w, a.w.One()}
		b.must(a.records("1", a.step("a", "1")))
		args := stepArgs(a.w.Info.Token, []store.StepRecord{a.step("a", "2"), a.step("b", "2"), other.step("a", "2")})
		if fresh := value[[]bool](b, b.s.pool, `select fresh from (`+recordStepsSQL+`) r`, args...); !slices.Equal(fresh, []bool{false, true, true}) {
			return fmt.Errorf("of one that was there and two that were not they are told %v", fresh)
		}
		return nil
	}},
	{"What is recovered goes on where the one before it was, unless that had completed", func(b *bench) error {
		for _, again := range []bool{false, true} {
			for want, end := range []store.Result{completed, {Outcome: stint.OutcomeCancelled}} {
				a := b.attempt()
				if again {
					a.w.Finish(returned, a.e)
					a.e = a.w.One()
				}
				b.must(a.records("1", a.step("a", "1")))
				a.w.Finish(end, a.e)
				answers, err := b.s.Retry(b.Context(), []stint.ID{a.e.ID}, stint.RerunOptions{})
				b.must(err)
				all, err := b.s.Steps(b.Context(), answers[a.e.ID].ID)
				if err != nil || len(all) != want {
					return fmt.Errorf("after outcome %v there are the steps %v, error %v, want %d", end.Outcome, all, err, want)
				}
				a.w.Complete(a.w.One())
			}
		}
		return b.steps(6)
	}},
}
