package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

var fenceTraps = []trap{
	{"A burial in progress does not stop the lane for others", func(b *bench) error {
		b.enqueue(5)
		dying, other := b.join(), b.join()
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), `select pg_advisory_xact_lock($1)`, dying.Info.Token)
		b.must(err)
		done := make(chan error)
		go func() {
			_, err := dying.TryClaim(b.Context(), store.ClaimRequest{Lane: normal, Max: 1, Wait: true})
			done <- err
		}()
		b.must(b.blocked())
		err = b.soon("another engine's claim", func(ctx context.Context) error {
			_, err := other.TryClaim(ctx, store.ClaimRequest{Lane: normal, Max: 1, Wait: true})
			return err
		})
		b.must(tx.Rollback(b.Context()))
		return errors.Join(err, <-done)
	}},
	{"A burial does not miss a claim in flight", func(b *bench) error {
		b.enqueue(5)
		w := b.join()
		tx := begin(b, b.s)
		_, err := b.claimIn(tx, w, 5)
		b.must(err)
		if _, err := b.s.Bury(b.Context(), store.Burial{Engine: w.Info.Token}, judge); !errors.Is(err, store.ErrBurialBlocked) {
			return fmt.Errorf("beside a claim in flight the burial gives %v", err)
		}
		b.must(tx.Commit(b.Context()))
		if n, err := b.s.Bury(b.Context(), store.Burial{Engine: w.Info.Token}, judge); err != nil || n != 5 {
			return fmt.Errorf("after it the burial concluded %d, error %v", n, err)
		}
		return nil
	}},
	{"A claim that waited for a burial finds itself buried", func(b *bench) error {
		b.enqueue(5)
		w := b.join()
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), `select pg_advisory_xact_lock($1)`, w.Info.Token)
		b.must(err)
		_, err = tx.Exec(b.Context(), `delete from stint.engines`)
		b.must(err)
		done := make(chan error)
		go func() {
			_, err := w.TryClaim(b.Context(), store.ClaimRequest{Lane: normal, Max: 5, Wait: true})
			done <- err
		}()
		b.must(b.blocked())
		b.must(tx.Commit(b.Context()))
		if err := <-done; !errors.Is(err, store.ErrBuried) {
			return fmt.Errorf("it claims, error %v", err)
		}
		return nil
	}},
	{"A burial is not kept waiting by a beat in the middle of its transaction, and can end it", func(b *bench) error {
		w := b.join()
		_, err := begin(b, b.s).Exec(b.Context(), b.s.sql.in(beatSQL), w.Info.Token, 1, []int64{}, 1, first, []*int64{}, 0)
		b.must(err)
		err = b.soon("the burial", func(ctx context.Context) error {
			_, err := b.s.Bury(ctx, store.Burial{Engine: w.Info.Token}, judge)
			return err
		})
		if !errors.Is(err, store.ErrBurialBlocked) {
			return fmt.Errorf("beside a beat the burial gives %v", err)
		}
		if n, err := b.s.Evict(b.Context(), w.Info.Token); n != 1 || err != nil {
			return fmt.Errorf("%d sessions were ended, error %v", n, err)
		}
		return b.soon("the burial", func(ctx context.Context) error {
			for {
				_, err := b.s.Bury(ctx, store.Burial{Engine: w.Info.Token}, judge)
				if !errors.Is(err, store.ErrBurialBlocked) {
					return err
				}
			}
		})
	}},
	{"Overlapping fences leave no mark on the roster's row", func(b *bench) error {
		w := b.join()
		for range 3 {
			_, err := begin(b, b.s).Exec(b.Context(), `select stint.fence($1)`, w.Info.Token)
			b.must(err)
		}
		if xmax := value[string](b, b.s.pool, `select xmax::text from stint.engines`); xmax != "0" {
			return fmt.Errorf("the row is locked by %s", xmax)
		}
		return nil
	}},
	{"A burial that waited for another one knows what was claimed meanwhile", func(b *bench) error {
		for range 8 { // it asks again every few milliseconds: before the claim's commit or after it
			b.enqueue(1)
			w := b.join()
			other := begin(b, b.s)
			_, err := other.Exec(b.Context(), `select pg_advisory_xact_lock($1)`, w.Info.Token)
			b.must(err)
			claimed, buried := make(chan error, 1), make(chan error, 1)
			n, took := 0, 0
			go func() {
				var err error
				n, err = storetest.Bury(b.Context(), b.s, store.Burial{Engine: w.Info.Token}, judge)
				buried <- err
			}()
			time.Sleep(10 * time.Millisecond)
			go func() {
				c, err := w.TryClaim(b.Context(), store.ClaimRequest{Lane: normal, Max: 1, Wait: true})
				took = len(c.Positions)
				claimed <- err
			}()
			b.must(b.blocked())
			b.must(other.Rollback(b.Context()))
			if err := <-claimed; err != nil && !errors.Is(err, store.ErrBuried) {
				return err
			}
			if err := <-buried; err != nil {
				return err
			}
			if n != took {
				return fmt.Errorf("%d were claimed, and the burial concluded %d", took, n)
			}
		}
		return nil
	}},
	{"The buried record nothing, neither by a flush nor in a handler's transaction", func(b *bench) error {
		b.enqueue(2)
		w := b.join()
		c, err := w.TryClaim(b.Context(), store.ClaimRequest{Lane: normal, Max: 2, Wait: true})
		b.must(err)
		done := conclude(w, completed, c.Entries)
		_, err = b.s.Bury(b.Context(), store.Burial{Engine: w.Info.Token}, judge)
		b.must(err)
		if n, err := w.TryFinish(b.Context(), done[0]); !errors.Is(err, store.ErrBuried) {
			return fmt.Errorf("a flush records %d, error %v", n, err)
		}
		if err := b.s.FinishTx(b.Context(), Tx(begin(b, b.s)), w.Info.Token, c.ClaimRef, done[1]); !errors.Is(err, store.ErrBuried) {
			return fmt.Errorf("completing gives %v", err)
		}
		return nil
	}},
	{"An engine of before a failover is told that it was buried", func(b *bench) error {
		w := b.join()
		w.Heartbeat()
		exec(b, b.s, `update stint.beats set timeline = 'FFFFFFFF'`)
		if _, err := b.s.Heartbeat(b.Context(), w.Info.Token, store.Heartbeat{}); !errors.Is(err, store.ErrBuried) {
			return fmt.Errorf("its beat gives %v", err)
		}
		return nil
	}},
	{"A beat from before the clock was put back keeps nobody alive", func(b *bench) error {
		w := b.join()
		exec(b, b.s, `update stint.beats set beat = clock_timestamp() + interval '3 hours'`)
		_, err := b.s.Bury(b.Context(), store.Burial{Engine: w.Info.Token, Unless: time.Hour}, judge)
		return err
	}},
	{"What a frozen client left in the middle ends well within the time to live", func(b *bench) error {
		b.enqueue(1)
		w := storetest.NewWorker(b, b.s, "k")
		w.Info.TimeToLive = patience / 2 // the first that joins sets the limits
		b.must(w.TryJoin(b.Context()))
		_, err := b.claimIn(begin(b, b.s), b.join(), 1) // holds the lane
		b.must(err)
		var limited *pgconn.PgError
		err = b.soon("a claim behind a lane", func(ctx context.Context) error {
			_, err := w.TryClaim(ctx, store.ClaimRequest{Lane: normal, Max: 1, Wait: true})
			return err
		})
		if !errors.As(err, &limited) {
			return fmt.Errorf("a claim whose lane is held gives %w", err)
		}
		conn, err := b.s.work().Acquire(b.Context())
		b.must(err)
		defer func() { conn.Release() }()
		for { // until it is fast enough to take the fence within those limits
			tx, err := conn.Begin(b.Context())
			b.must(err)
			if _, err = tx.Exec(b.Context(), `select stint.fence($1)`, w.Info.Token); err == nil {
				break
			} else if !errors.As(err, &limited) || b.Context().Err() != nil {
				return fmt.Errorf("taking the fence: %w", err)
			}
			conn.Release()
			conn, err = b.s.work().Acquire(b.Context())
			b.must(err)
		}
		return b.soon("the burial", func(ctx context.Context) error {
			_, err := storetest.Bury(ctx, b.s, store.Burial{Engine: w.Info.Token}, judge)
			return err
		})
	}},
	{"What a beat believes of its claims does not bound a burial", func(b *bench) error {
		b.enqueue(3)
		w := b.join()
		for range 3 {
			w.Claim(normal, 1)
		}
		_, err := b.s.Heartbeat(b.Context(), w.Info.Token, store.Heartbeat{Low: 100})
		b.must(err)
		if n, err := b.s.Bury(b.Context(), store.Burial{Engine: w.Info.Token}, judge); err != nil || n != 3 {
			return fmt.Errorf("the burial concluded %d, error %v", n, err)
		}
		return nil
	}},
	{"A burial that reads policies needs no second connection", func(b *bench) error {
		b.enqueue(3, stint.Retry(odd))
		w := b.join()
		w.Claim(normal, 10)
		one := limited(b, b.s, 1)
		return b.soon("the burial", func(ctx context.Context) error {
			n, err := one.Bury(ctx, store.Burial{Engine: w.Info.Token}, judge)
			if err == nil && n != 3 {
				err = fmt.Errorf("%d entries were concluded", n)
			}
			return err
		})
	}},
}
