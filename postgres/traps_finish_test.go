package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

var (
	completed = store.Result{Outcome: stint.OutcomeCompleted}
	returned  = store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}
)

func conclude(w *storetest.Worker, end store.Result, entries []store.Entry) []store.Completion {
	var done []store.Completion
	for _, e := range entries {
		done = append(done, w.Conclude(e, end))
	}
	return done
}

var finishTraps = []trap{
	{"An outcome counts for the claim that it came from only", func(b *bench) error {
		b.enqueue(2)
		w := b.join()
		done := conclude(w, completed, w.Claim(normal, 2))
		// The database fell back and handed the same positions out again.
		exec(b, b.s, `update stint.claims set nonce = nonce + 1`)
		if n, err := w.TryFinish(b.Context(), done...); !errors.Is(err, store.ErrClaimGone) {
			return fmt.Errorf("%d outcomes of a claim that is gone were recorded, error %v", n, err)
		}
		return nil
	}},
	{"An outcome counts for the engine that claimed the entry only", func(b *bench) error {
		b.enqueue(1)
		w, other := b.join(), b.join()
		c, err := w.TryClaim(b.Context(), store.ClaimRequest{Lane: normal, Max: 1, Wait: true})
		b.must(err)
		done := conclude(w, completed, c.Entries)
		if n, err := b.s.Finish(b.Context(), other.Info.Token, []store.ClaimRef{c.ClaimRef}, done); !errors.Is(err, store.ErrClaimGone) {
			return fmt.Errorf("%d outcomes of another engine's were recorded, error %v", n, err)
		}
		return nil
	}},
	{"An outcome whose claim is not named is refused", func(b *bench) error {
		b.enqueue(1)
		w := b.join()
		done := conclude(w, completed, w.Claim(normal, 1))
		if n, err := b.s.Finish(b.Context(), w.Info.Token, nil, done); !errors.Is(err, store.ErrClaimGone) {
			return fmt.Errorf("%d were recorded, error %v", n, err)
		}
		return nil
	}},
	{"Repeating a batch in part adds no second successor", func(b *bench) error {
		all := b.enqueue(4)
		w := b.join()
		done := conclude(w, returned, w.Claim(normal, 4))
		for _, part := range [][]store.Completion{done[:2], done[1:], done} {
			if _, err := w.TryFinish(b.Context(), part...); err != nil {
				return err
			}
		}
		front := store.LaneOf(stint.DefaultQueue, 0, store.PartFront, "").ID
		if got := w.Claim(front, 100); len(got) != len(all) {
			return fmt.Errorf("%d entries came back, want %d", len(got), len(all))
		}
		return nil
	}},
	{"Two flushes of the same outcomes never wait crosswise", func(b *bench) error {
		b.enqueue(100)
		w := b.join()
		done := conclude(w, completed, w.Claim(normal, 100))
		back := make([]store.Completion, len(done))
		for i := range done {
			back[len(done)-1-i] = done[i]
		}
		// The first one stands half done: its position 50 waits for us.
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), b.s.sql.in(`
			insert into stint.executions (pos, nonce, engine, started, finished, attempt, slot, outcome, final)
			values ($1, 0, 0, now(), now(), 1, 0, 1, true)`), done[50].Pos)
		b.must(err)
		errs := make(chan error, 2)
		for _, part := range [][]store.Completion{done, back} {
			go func() {
				_, err := w.TryFinish(b.Context(), part...)
				errs <- err
			}()
		}
		b.must(b.blockedMany(2))
		b.must(tx.Rollback(b.Context()))
		return errors.Join(<-errs, <-errs)
	}},
	{"A claim that reads policies needs no second connection", func(b *bench) error {
		b.enqueue(3, stint.Retry(odd))
		one := limited(b, b.s, 1)
		w := storetest.Join(b, one, "k")
		return b.soon("the claim", func(ctx context.Context) error {
			c, err := w.TryClaim(ctx, store.ClaimRequest{Lane: normal, Max: 3, Wait: true})
			if err == nil && (len(c.Entries) != 3 || c.Entries[0].Retry != odd) {
				err = fmt.Errorf("it took %+v", c.Entries)
			}
			return err
		})
	}},
	{"Promoted jobs are claimed in the order of their due times", func(b *bench) error {
		k := stint.KindInfo{Name: "k"}
		enqueued, err := stint.NewClient(b.s).EnqueueMany(b.Context(), []stint.NewJob{k.Job(nil, stint.Delay(11*time.Millisecond)), k.Job(nil, stint.Delay(10*time.Millisecond))})
		b.must(err)
		time.Sleep(15 * time.Millisecond)
		_, err = b.s.Promote(b.Context(), past, 10)
		b.must(err)
		if got := ids(b.join().Claim(normal, 10)); !slices.Equal(got, []stint.ID{enqueued[1], enqueued[0]}) {
			return fmt.Errorf("of %v the second was due first, and claimed were %v", enqueued, got)
		}
		return nil
	}},
	{"A job that is cancelled while it is promoted does not run", func(b *bench) error {
		id := b.enqueue(1, stint.Delay(time.Millisecond))
		time.Sleep(5 * time.Millisecond)
		tx := begin(b, b.s)
		if moved := value[int](b, tx, `select moved from stint.promote('-infinity', 10)`); moved != 1 {
			return fmt.Errorf("%d were promoted", moved)
		}
		answer := make(chan error)
		go func() {
			got, err := b.s.Cancel(b.Context(), id, "")
			if err == nil && got[id[0]] != stint.CancelledNow {
				err = fmt.Errorf("the answer is %q", got[id[0]])
			}
			answer <- err
		}()
		b.must(b.blocked())
		b.must(tx.Commit(b.Context()))
		if err := <-answer; err != nil {
			return err
		}
		if n := len(b.join().ClaimAll()); n != 0 {
			return errors.New("it is handed out")
		}
		return nil
	}},
	{"A cancellation waits for the claim under way, and leaves what that takes to its engine", func(b *bench) error {
		ids, w := b.enqueue(4), b.join()
		tx := begin(b, b.s)
		taken, err := b.claimIn(tx, w, 2)
		b.must(err)
		var got map[stint.ID]stint.CancelStatus
		answer := make(chan error)
		go func() {
			var err error
			got, err = b.s.Cancel(b.Context(), ids, "")
			answer <- err
		}()
		waits := b.blocked()
		b.must(tx.Commit(b.Context()))
		if err := <-answer; err != nil {
			return err
		}
		for i, id := range ids {
			if want := []stint.CancelStatus{stint.CancelRequested, stint.CancelledNow}[i/2]; got[id] != want {
				return fmt.Errorf("%d were taken, and the answers are %v; %w", len(taken), got, waits)
			}
		}
		if n := len(w.ClaimAll()); n != 0 {
			return fmt.Errorf("%d are handed out after that", n)
		}
		return nil
	}},
	{"Promotion passes over what somebody holds", func(b *bench) error {
		b.enqueue(3, stint.Delay(1))
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), `select from stint.waiting order by due limit 1 for update`)
		b.must(err)
		return b.soon("promotion", func(ctx context.Context) error {
			p, err := b.s.Promote(ctx, past, 10)
			if err == nil && p.Moved != 2 {
				err = fmt.Errorf("%d were moved", p.Moved)
			}
			return err
		})
	}},
}
