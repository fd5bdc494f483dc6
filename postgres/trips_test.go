package postgres

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// turnsConn counts how often its client speaks after it has listened.
type turnsConn struct {
	net.Conn
	turns *atomic.Int32
	heard atomic.Bool
}

func (c *turnsConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.heard.Store(true)
	return n, err
}

func (c *turnsConn) Write(b []byte) (int, error) {
	if c.heard.Swap(false) {
		c.turns.Add(1)
	}
	return c.Conn.Write(b)
}

// Distance to the database costs each batch once, however many jobs are in it.
func TestABatchIsOneRoundTrip(t *testing.T) {
	s := newStore(t)
	var turns atomic.Int32
	config, err := pgxpool.ParseConfig(s.url())
	must(t, err)
	config.MaxConns = 1 // and each statement is prepared once
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &turnsConn{Conn: c, turns: &turns}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	far, err := New(t.Context(), pool)
	must(t, err)
	t.Cleanup(far.Close)
	// Rings come behind, one for many enqueues, and nobody waits for them.
	far.notifier.send = func(context.Context, bool) (bool, error) { return true, nil }
	b := &bench{t, far, nil}
	w := b.join()
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "")
	for _, n := range []int{1, 7, 60, 61, 100} { // the first ones prepare the statements
		trips := func(f func()) string {
			before := turns.Load()
			f()
			return fmt.Sprint(turns.Load() - before)
		}
		var entries []store.Entry
		got := trips(func() { b.enqueue(n) }) + " to enqueue, " +
			trips(func() { entries = w.Claim(lane.ID, n) }) + " to claim, " +
			trips(func() { w.Complete(entries...) }) + " to record"
		if len(entries) != n {
			t.Fatalf("%d of %d jobs were claimed", len(entries), n)
		}
		if want := "1 to enqueue, 1 to claim, 1 to record"; n >= 60 && got != want {
			t.Errorf("%d jobs took %s; want %s", n, got, want)
		}
	}
	w.Leave()
}
