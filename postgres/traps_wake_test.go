package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// hear listens until the check ends.
func (b *bench) hear() <-chan struct{} {
	ctx, stop := context.WithCancel(b.Context())
	heard, over := make(chan struct{}, 1000), make(chan struct{})
	go func() {
		defer close(over)
		_ = b.s.Listen(ctx, func(store.News) { heard <- struct{}{} })
	}()
	b.Cleanup(func() { stop(); <-over })
	return heard
}

// rings tells whether something is heard soon.
func rings(heard <-chan struct{}) bool {
	select {
	case <-heard:
		return true
	case <-time.After(patience):
		return false
	}
}

// quiet waits until nothing was heard for a while.
func quiet(heard <-chan struct{}) {
	for {
		select {
		case <-heard:
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}

var wakeTraps = []trap{
	{"Who begins to listen looks for what came before", func(b *bench) error {
		if !rings(b.hear()) {
			return errors.New("no ring")
		}
		return nil
	}},
	{"A promotion that looked at as many notes as it may goes on at once", func(b *bench) error {
		kind, f := stint.NewKind[int]("k"), stint.NewFlow("many")
		kind.Add(f, "", 0, stint.Needs(kind.Each(f, make([]int, 25))...))
		if _, err := f.Enqueue(b.Context(), stint.NewClient(b.s)); err != nil {
			return err
		}
		w := storetest.Join(b, b.s, "k")
		for _, e := range w.ClaimAll() {
			w.Complete(e) // with a note of its own
		}
		for range 2 {
			if p, err := b.s.Promote(b.Context(), time.Time{}, 10); err != nil || !p.More {
				return fmt.Errorf("of 25 notes it looked at 10: %+v, %v", p, err)
			}
		}
		for range 3 {
			if p, err := b.s.Promote(b.Context(), time.Time{}, 10); err != nil || p.More {
				return fmt.Errorf("it has looked at the last of 25 notes: %+v, %v", p, err)
			}
		}
		return nil
	}},
	{"Enqueues beside others leave the ring to what comes behind them", func(b *bench) error {
		heard := b.hear()
		rings(heard)
		b.s.notifier.send = func(context.Context, bool) (bool, error) { return true, nil }
		b.s.notifier.begin()
		for range 5 {
			b.enqueue(1)
		}
		// What was sent before this is heard before it.
		exec(b, b.s, b.s.sql.notify)
		if !rings(heard) {
			return errors.New("no ring")
		}
		time.Sleep(50 * time.Millisecond)
		if n := len(heard); n > 0 {
			return fmt.Errorf("%d of 5 rang by themselves", n)
		}
		return nil
	}},
	{"A ring behind an enqueue comes behind its commit", func(b *bench) error {
		tx := begin(b, b.s)
		_, err := tx.Exec(b.Context(), `lock table stint.entries in share mode`)
		b.must(err)
		sent := make(chan struct{}, 1)
		b.s.notifier.send = func(context.Context, bool) (bool, error) {
			sent <- struct{}{}
			return true, nil
		}
		b.s.notifier.begin() // so that it is not alone
		done := make(chan error, 1)
		go func() {
			_, err := stint.NewClient(b.s).Enqueue(b.Context(), stint.NewJob{Kind: "k"})
			done <- err
		}()
		b.must(b.blocked())
		time.Sleep(20 * time.Millisecond)
		if len(sent) > 0 {
			err = errors.New("it rang before")
		}
		b.must(tx.Rollback(b.Context()))
		if err = errors.Join(err, <-done); err == nil && !rings(sent) {
			err = errors.New("no ring")
		}
		return err
	}},
	{"A caller's transaction rings when it commits, whatever else is under way", func(b *bench) error {
		heard := b.hear()
		rings(heard)
		b.s.notifier.begin()
		tx := begin(b, b.s)
		b.enqueueIn(Tx(tx), 1)
		b.s.notifier.wait()
		quiet(heard)
		b.must(tx.Commit(b.Context()))
		if !rings(heard) {
			return errors.New("no ring")
		}
		return nil
	}},
}
