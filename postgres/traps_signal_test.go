package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// signal sends a signal named a to a job.
func (b *bench) signal(tx stint.Tx, job stint.ID, value, key string) error {
	return b.s.Signal(b.Context(), tx, job, stint.Signal{Name: "a", Key: key, Value: json.RawMessage(value)})
}

// sends is signal, for values that must be sent.
func (b *bench) sends(job stint.ID, values ...string) {
	b.Helper()
	for _, value := range values {
		b.must(b.signal(stint.Tx{}, job, value, ""))
	}
}

// signals says what is wrong when a job has not these signals, taken or not.
func (b *bench) signals(job stint.ID, want string) error {
	got := value[string](b, b.s.pool, `select coalesce(string_agg(value::text, ' ' order by n), '') from stint.signals where job = $1`, int64(job))
	if got != want {
		return fmt.Errorf("job %d has the signals %q, want %q", job, got, want)
	}
	return nil
}

// promotes says what is wrong when a promotion does not move as many jobs.
func (b *bench) promotes(want int) error {
	p, err := b.s.Promote(b.Context(), time.Time{}, 10)
	if err != nil || p.Moved != want {
		return fmt.Errorf("%d jobs are promoted, error %v, want %d", p.Moved, err, want)
	}
	return nil
}

// take is a step of the attempt that takes a signal named a, or waits for it for some time.
func (a attempt) take(step string, wait time.Duration) store.StepRecord {
	r := a.step(step, "")
	r.Result, r.Signal, r.Until = nil, "a", time.Now().Add(wait)
	return r
}

// takes says what is wrong when steps do not come to what is wanted: of each the value that was sent, or
// "timeout", "waits", "refused".
func (a attempt) takes(want string, steps ...store.StepRecord) error {
	all, err := a.b.s.RecordSteps(a.b.Context(), a.w.Info.Token, steps)
	got := make([]string, len(all))
	for i, r := range all {
		var taken struct {
			Value   json.RawMessage
			Timeout bool
		}
		switch {
		case r.Name == "":
			got[i] = "refused"
		case r.Result == nil:
			got[i] = "waits"
		case json.Unmarshal(r.Result, &taken) == nil && taken.Timeout:
			got[i] = "timeout"
		default:
			got[i] = string(taken.Value)
		}
	}
	if got := strings.Join(got, " "); err != nil || got != want {
		return fmt.Errorf("%d steps come to %q, error %v, want %q", len(steps), got, err, want)
	}
	return nil
}

// blocks ends the attempt with a wait of an hour for signals, by the steps that take them.
func (a attempt) blocks(awaits string) {
	a.w.Finish(store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour, Awaits: json.RawMessage(awaits)}, a.e)
}

var signalTraps = []trap{
	{"A signal that came while its job ran wakes it, also if its note was read before the job was blocked", func(b *bench) error {
		a := b.attempt()
		b.must(a.takes("waits", a.take("x", time.Hour)))
		b.sends(a.e.ID, `1`)
		b.must(b.promotes(0))
		a.blocks(`{"x":"a"}`)
		return b.promotes(1)
	}},
	{"A signal wakes its job, also if the note of that was read before", func(b *bench) error {
		a := b.attempt()
		a.blocks(`{"x":"a"}`)
		b.must(b.promotes(0))
		b.sends(a.e.ID, `1`)
		return b.promotes(1)
	}},
	{"No job is woken by a signal of another name or job, or by one that a step has", func(b *bench) error {
		a, other, has := b.attempt(), b.attempt(), b.attempt()
		b.sends(a.e.ID, `1`)
		b.sends(has.e.ID, `1`)
		b.must(has.takes("1", has.take("x", time.Hour)))
		a.blocks(`{"x":"b"}`)
		other.blocks(`{"x":"a"}`)
		has.blocks(`{"y":"a"}`)
		return b.promotes(0)
	}},
	{"A job whose step got its signal is woken, though its run was not told", func(b *bench) error {
		a := b.attempt()
		b.must(a.takes("waits", a.take("x", time.Hour)))
		b.sends(a.e.ID, `1`)
		b.must(a.takes("1", a.take("x", time.Hour))) // by a call that was under way since
		a.blocks(`{"x":"a"}`)
		return b.promotes(1)
	}},
	{"A promotion does not wait for a blocked job that somebody has in hand, and leaves its note", func(b *bench) error {
		a := b.attempt()
		a.blocks(`{"x":"a"}`)
		b.sends(a.e.ID, `1`)
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), `select from stint.waiting for update`)
		b.must(err)
		b.must(b.soon("a promotion", func(ctx context.Context) error {
			_, err := b.s.Promote(ctx, time.Time{}, 10)
			return err
		}))
		b.must(tx.Rollback(b.Context()))
		return b.promotes(1)
	}},
	{"A promotion that leaves notes says that the next one is at once", func(b *bench) error {
		for range 2 {
			b.attempt().blocks(`{"x":"a"}`)
		}
		p, err := b.s.Promote(b.Context(), time.Time{}, 1)
		b.must(err)
		if p.Next != 0 {
			return fmt.Errorf("the next is in %v", p.Next)
		}
		return nil
	}},
	{"A flow does not end before what was added to it was looked at", func(b *bench) error {
		kind, client := stint.NewKind[struct{}]("k"), stint.NewClient(b.s)
		f := stint.NewFlow("graph")
		kind.Add(f, "a", struct{}{})
		id, err := f.Enqueue(b.Context(), client)
		b.must(err)
		w := b.join()
		a := w.One()
		adds := func(c *stint.Client) {
			more := stint.FlowFrom((&stint.Run{Job: &a.Job}).Context(b.Context()))
			kind.Add(more, "", struct{}{})
			_, err := more.Enqueue(b.Context(), c)
			b.must(err)
		}
		tx := begin(b, b.s)
		adds(client.With(Tx(tx)))
		adds(client)
		newer := w.One()
		w.Complete(a)
		promote := func(after int64) {
			_, err := b.s.pool.Exec(b.Context(), `select stint.promote('-infinity', 1000, $1)`, after)
			b.must(err)
		}
		for range 3 {
			promote(0) // the newer one is watched
		}
		b.must(tx.Commit(b.Context()))
		w.Complete(newer)
		promote(value[int64](b, b.s.pool, `select min(n) from stint.notes where flow is not null`))
		if job, err := b.s.Job(b.Context(), id); err != nil || job.State != stint.Blocked {
			return fmt.Errorf("the flow is %v, %v", job.State, err)
		}
		return nil
	}},
	{"With the end of a job begins what needs that alone, and nothing else", func(b *bench) error {
		for _, end := range []store.Result{{Outcome: stint.OutcomeCompleted}, {Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("no"))}} {
			kind, f := stint.NewKind[struct{}]("k"), stint.NewFlow("graph")
			add := func(opts ...stint.Option) *stint.Node { return kind.Add(f, "", struct{}{}, opts...) }
			other := add(stint.Delay(time.Hour))
			a := add() // the newer, so that who needs both watches it
			well, ill := add(stint.Needs(a)), add(stint.NeedsFailure(a))
			add(stint.Needs(a, other))
			add(stint.NeedsEnd(a), stint.Delay(time.Hour))
			_, err := f.Enqueue(b.Context(), stint.NewClient(b.s))
			b.must(err)
			want := well
			if end.Outcome != stint.OutcomeCompleted {
				want = ill
			}
			w := b.join()
			w.Finish(end, w.One())
			if err := b.take(w, 10, nil, []stint.ID{want.ID()}); err != nil {
				return err
			}
			_, err = b.s.Promote(b.Context(), time.Time{}, 10)
			b.must(err)
			if err := b.take(w, 10, nil); err != nil {
				return fmt.Errorf("after a promotion: %w", err)
			}
		}
		return nil
	}},
	{"The end of a job waits for nobody who has the next one in hand, which a promotion begins", func(b *bench) error {
		kind, f := stint.NewKind[struct{}]("k"), stint.NewFlow("chain")
		kind.Add(f, "", struct{}{}, stint.Needs(kind.Add(f, "", struct{}{})))
		_, err := f.Enqueue(b.Context(), stint.NewClient(b.s))
		b.must(err)
		w := b.join()
		a := w.One()
		tx := begin(b, b.s)
		_, err = tx.Exec(b.Context(), `select from stint.waiting for update`)
		b.must(err)
		done := make(chan struct{})
		go func() { defer close(done); w.Complete(a) }()
		select {
		case <-done:
		case <-time.After(patience):
			err = errors.New("the end waits")
		}
		b.must(tx.Rollback(b.Context()))
		<-done
		b.must(err)
		return b.promotes(1)
	}},
	{"Signals are taken in the order in which they were sent, also by steps of one call", func(b *bench) error {
		a := b.attempt()
		b.sends(a.e.ID, `1`, `2`, `3`)
		return errors.Join(a.takes("1", a.take("x", time.Hour)), a.takes("2 3", a.take("y", time.Hour), a.take("z", time.Hour)))
	}},
	{"The end of a call wakes the caller, also if the note of its wait was read before that was committed", func(b *bench) error {
		a, called := b.attempt(), b.attempt()
		called.w.Complete(called.e)
		_, err := b.s.pool.Exec(b.Context(), `insert into stint.steps (job, name, pos, began, ended, until, question)
			values ($1, 'x', $2, now(), now(), now() + interval '1 hour', jsonb_build_object('job', $3::bigint))`, int64(a.e.ID), int64(a.e.Pos), int64(called.e.ID))
		b.must(err)
		_, err = b.s.pool.Exec(b.Context(), `select stint.note(array[$1::bigint])`, int64(called.e.ID))
		b.must(err)
		tx := begin(b, b.s)
		_, err = tx.Exec(b.Context(), `select stint.promote('-infinity', 1000)`)
		b.must(err)
		a.blocks(`{"x":""}`)
		b.must(b.promotes(0))
		b.must(tx.Commit(b.Context()))
		return b.promotes(1)
	}},
	{"A signal that another call takes meanwhile is not taken twice", func(b *bench) error {
		a := b.attempt()
		b.sends(a.e.ID, `1`)
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), `insert into stint.steps (job, name, pos, began, ended, result, signal)
			select job, 'x', 1, now(), now(), '{}', n from stint.signals`)
		b.must(err)
		answer := make(chan error, 1)
		go func() { answer <- a.takes("waits", a.take("y", time.Hour)) }()
		if err := b.blocked(); err != nil {
			return err
		}
		b.must(tx.Commit(b.Context()))
		return errors.Join(<-answer, b.steps(1))
	}},
	{"When the time of a wait is over that is recorded for good, unless a signal is there", func(b *bench) error {
		a := b.attempt()
		b.sends(a.e.ID, `1`)
		b.must(a.takes("1", a.take("x", -time.Hour)))
		b.must(a.takes("timeout", a.take("y", -time.Hour)))
		b.sends(a.e.ID, `2`)
		return a.takes("timeout", a.take("y", time.Hour))
	}},
	{"A step that its attempt cannot record is refused, and is not told to wait", func(b *bench) error {
		a := b.attempt()
		b.sends(a.e.ID, `1`)
		a.w.Finish(returned, a.e)
		return errors.Join(a.takes("refused", a.take("x", time.Hour)), b.steps(0))
	}},
	{"Nothing is left of the signals to a job that is deleted, also of those that commit later", func(b *bench) error {
		a := b.attempt()
		b.sends(a.e.ID, `1`)
		tx := begin(b, b.s)
		b.must(b.signal(Tx(tx), a.e.ID, `2`, ""))
		a.w.Complete(a.e)
		_, err := b.s.Delete(b.Context(), []stint.ID{a.e.ID})
		b.must(err)
		b.must(b.signals(a.e.ID, ""))
		b.must(tx.Commit(b.Context()))
		b.must(b.promotes(0))
		return b.signals(a.e.ID, "")
	}},
	{"What is recovered takes along the signals that no step had taken", func(b *bench) error {
		a := b.attempt()
		b.sends(a.e.ID, `1`, `2`)
		b.must(a.takes("1", a.take("x", time.Hour)))
		a.w.Finish(store.Result{Outcome: stint.OutcomeCancelled}, a.e)
		answers, err := b.s.Retry(b.Context(), []stint.ID{a.e.ID}, stint.RerunOptions{})
		b.must(err)
		return b.signals(answers[a.e.ID].ID, "2")
	}},
	{"A signal to a job that is not there, has ended or is cancelled is refused", func(b *bench) error {
		a, waits := b.attempt(), b.enqueue(1, stint.Delay(time.Hour))[0]
		a.w.Complete(a.e)
		exec(b, b.s, `insert into stint.cancellations (job) select job from stint.waiting`)
		for job, want := range map[stint.ID]error{a.e.ID: stint.ErrEnded, waits: stint.ErrEnded, 1 << 40: stint.ErrNotFound} {
			if err := b.signal(stint.Tx{}, job, `1`, ""); !errors.Is(err, want) {
				return fmt.Errorf("a signal to job %d gives %v, want %v", job, err, want)
			}
		}
		return nil
	}},
	{"Of several signals of a job with one key the first counts, also while that is not committed", func(b *bench) error {
		jobs := b.enqueue(2)
		tx := begin(b, b.s)
		b.must(b.signal(Tx(tx), jobs[0], `1`, "once"))
		answer := make(chan error, 1)
		go func() { answer <- b.signal(stint.Tx{}, jobs[0], `2`, "once") }()
		if err := b.blocked(); err != nil {
			return err
		}
		b.must(tx.Commit(b.Context()))
		b.must(<-answer)
		b.must(b.signal(stint.Tx{}, jobs[1], `3`, "once"))
		return errors.Join(b.signals(jobs[0], "1"), b.signals(jobs[1], "3"))
	}},
	{"A job that is blocked holds its unique key", func(b *bench) error {
		a := b.attempt(stint.UniqueUntilEnded())
		a.blocks(`{"x":"a"}`)
		for _, n := range []int{1, 2} {
			if ids := b.enqueue(n, stint.UniqueUntilEnded()); ids[0] != a.e.ID {
				return fmt.Errorf("beside the blocked job %d a batch of %d is stored as %d", a.e.ID, n, ids)
			}
		}
		return nil
	}},
}
